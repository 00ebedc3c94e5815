//! Which filter the halves are looked up in, by the number of entries.

/// Bits of a quarter.
pub(super) const QUARTER_BITS: u32 = 16;

/// The filter of each half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Layout {
    /// See [`super::lines::Lines`].
    Lines {
        /// Bits of the key, the upper ones of a quarter.
        key_bits: u32,
        /// Room for sketches under each key.
        lanes: usize,
    },
    /// See [`super::bitmap::Bitmap`].
    Bitmap,
}

impl Layout {
    /// The smallest lines in which hardly any key has too many entries; bitmaps when there are none.
    pub(super) fn choose(entries: usize) -> Self {
        let fits = |&(key_bits, lanes): &(u32, usize)| {
            let mean = entries as f64 / f64::from(1u32 << key_bits);
            // Three standard deviations of a Poisson distribution.
            mean + 3.0 * mean.sqrt() <= lanes as f64
        };
        let layouts = (4..=QUARTER_BITS).flat_map(|bits| [16, 32, 64].map(|lanes| (bits, lanes)));
        layouts
            .filter(fits)
            .min_by_key(|&(key_bits, lanes)| (lanes << key_bits, lanes))
            .map_or(Self::Bitmap, |(key_bits, lanes)| Self::Lines {
                key_bits,
                lanes,
            })
    }

    /// Cache lines that a fingerprint reads on a half that is not sorted.
    pub(super) fn accesses(self) -> f64 {
        match self {
            Self::Lines { lanes, .. } => 2.0 * (lanes as f64 / 32.0).max(1.0),
            Self::Bitmap => 1.0,
        }
    }

    /// An upper bound of the share of fingerprints that pass because their key is crowded: more of `entries` than lanes.
    pub(super) fn crowded_share(self, entries: usize) -> f64 {
        match self {
            // One key in 1,000 is beyond three standard deviations; a fingerprint has four keys.
            Self::Lines { key_bits, lanes } => {
                let mean = entries as f64 / f64::from(1u32 << key_bits);
                if mean + 4.0 * mean.sqrt() > lanes as f64 {
                    0.004
                } else {
                    0.0
                }
            }
            Self::Bitmap => 0.0,
        }
    }

    /// Bytes of both halves.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Lines { key_bits, lanes } => {
                4 * (((2 * lanes) << key_bits) + (1 << key_bits) / 8)
            }
            Self::Bitmap => 2 << (2 * QUARTER_BITS - 3),
        }
    }

    /// Describes the layout in words.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Lines { key_bits, lanes } => {
                format!("lines of {lanes} sketches, keys of {key_bits} bits")
            }
            Self::Bitmap => "bitmaps of all halves".to_owned(),
        }
    }
}
