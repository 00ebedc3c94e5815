//! [`FilterLayout`]: the kind and the size of the filters of halves, by the number of entries.

/// Bits of a quarter.
pub(super) const QUARTER_BITS: u32 = 16;

/// The kind and the parameters of the half filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FilterLayout {
    /// See [`super::lines::Lines`].
    Lines {
        /// How many upper bits of a quarter make the key.
        key_bits: u32,
        /// How many tags each key has room for.
        lanes: usize,
    },
    /// See [`super::bitmap::Bitmap`].
    Bitmap,
}

impl FilterLayout {
    /// Chooses the smallest lines in which hardly any key has more entries than lanes, or bitmaps if there are no such
    /// lines.
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

    /// How many cache lines the lookup of a half reads, unless the archive is sorted by that half.
    pub(super) fn accesses(self) -> f64 {
        match self {
            Self::Lines { lanes, .. } => 2.0 * (lanes as f64 / 32.0).max(1.0),
            Self::Bitmap => 1.0,
        }
    }

    /// An upper bound of the share of fingerprints that pass because one of their keys is crowded.
    /// A key with no more entries than lanes is never crowded.
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

    /// Bytes of both half filters.
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
                format!("lines of {lanes} tags, keys of {key_bits} bits")
            }
            Self::Bitmap => "bitmaps of all halves".to_owned(),
        }
    }
}
