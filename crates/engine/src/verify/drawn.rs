//! Compares the texts of pairs that an audit drew; it reads the documents of the batch by their positions in the inputs.

use std::path::Path;

use archive::IdType;
use datafusion::prelude::SessionContext;

use super::Verifier;
use super::compare::{Comparer, PairTexts};
use super::texts::{Side, Texts};
use crate::error::Result;
use crate::progress::Stage;
use documents::{DocumentId, RowSet};
use streams::blocking;

/// A document of the batch, and the one that it repeats.
#[derive(Debug, Clone)]
pub(crate) struct DrawnPair {
    /// The position of the document in the inputs.
    pub(crate) position: i64,
    pub(crate) other: Other,
    /// Bits in which their fingerprints differ.
    pub(crate) distance: i32,
}

/// The document that another repeats.
#[derive(Debug, Clone)]
pub(crate) enum Other {
    /// It is in the batch, at this position in the inputs.
    At(i64),
    InArchive(DocumentId),
}

/// The similarities of `pairs`, in their order; `None` where a text is not at hand.
pub(crate) async fn similarities(
    context: &SessionContext,
    pairs: Vec<DrawnPair>,
    verifier: &Verifier,
    id_type: IdType,
    scratch: &Path,
) -> Result<Vec<Option<f64>>> {
    let mut texts = Texts::create(scratch, &context.runtime_env().memory_pool)?;
    let mut wanted = RowSet::default();
    for pair in &pairs {
        wanted.add(pair.position);
        match &pair.other {
            Other::At(position) => wanted.add(*position),
            Other::InArchive(id) => texts.want(Side::Archive, id.clone())?,
        }
    }
    texts.copy_both(context, verifier, id_type, wanted).await?;
    let comparer = Comparer::new(texts, verifier, context)?;
    let progress = &comparer.resources.progress;
    progress.begin(Stage::Verify, pairs.len() as u64);
    blocking(move || {
        let texts_of = |row: usize| {
            let (pair, texts) = (&pairs[row], &comparer.texts);
            PairTexts {
                new: texts.place_at(pair.position),
                others: match &pair.other {
                    Other::At(position) => texts.place_at(*position).into(),
                    Other::InArchive(id) => texts.places(Side::Archive, id).into(),
                },
                is_archived: matches!(pair.other, Other::InArchive(_)),
                distance: pair.distance,
            }
        };
        comparer.similarities(pairs.len(), texts_of)
    })
    .await
}
