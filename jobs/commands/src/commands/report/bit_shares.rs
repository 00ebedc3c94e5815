//! How often each bit is 1 in the fingerprints of an archive. A bit that is nearly always the same
//! does not tell documents apart.

use archive::{DecodedStep, Snapshot};

use crate::exit::Failure;

/// The most row groups to read; they are evenly spread over the archive.
const MOST_ROW_GROUPS: usize = 32;

/// Counts of the bits of a sample of an archive's fingerprints.
#[derive(Debug)]
pub(super) struct BitShares {
    pub(super) fingerprints: u64,
    /// In how many fingerprints each bit is 1, the lowest bit first.
    pub(super) ones: [u64; 64],
}

impl BitShares {
    /// Counts the bits in some of the archive's row groups.
    pub(super) async fn read(snapshot: &Snapshot) -> Result<Self, Failure> {
        let groups: Vec<(usize, usize)> = snapshot
            .files
            .iter()
            .enumerate()
            .flat_map(|(file, opened)| {
                (0..opened.reader.row_groups().len()).map(move |group| (file, group))
            })
            .collect();
        let mut bit_shares = Self {
            fingerprints: 0,
            ones: [0; 64],
        };
        let step = groups.len().div_ceil(MOST_ROW_GROUPS).max(1);
        let mut decoded = DecodedStep::default();
        for (file, group) in groups.into_iter().step_by(step) {
            let reader = &snapshot.files[file].reader;
            let encoded = reader.fetch(group).await?;
            reader.decode(group, encoded, &mut decoded, |step| {
                bit_shares.add(step.values());
                true
            })?;
        }
        Ok(bit_shares)
    }

    fn add(&mut self, fingerprints: &[u64]) {
        self.fingerprints += fingerprints.len() as u64;
        for fingerprint in fingerprints {
            for (bit, ones) in self.ones.iter_mut().enumerate() {
                *ones += fingerprint >> bit & 1;
            }
        }
    }

    /// The share of fingerprints in which the bit is 1.
    pub(super) fn share(&self, bit: usize) -> f64 {
        self.ones[bit] as f64 / self.fingerprints.max(1) as f64
    }
}
