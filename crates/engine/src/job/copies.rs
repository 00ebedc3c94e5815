//! Copies of kept documents, which parts make and `reduce` publishes.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use storage::{Location, UnchangedFile};

use super::answer::{Answers, Copied, Copy};
use super::{DocumentsMap, Item, Job};
use crate::error::{EngineError, Result};
use documents::{MadeCopy, RowSet};

impl Job {
    /// Copies the files of a part.
    pub(super) async fn copy(
        &self,
        source: &DocumentsMap,
        context: &SessionContext,
        kept: &Arc<RowSet>,
        items: &[Item],
    ) -> Result<Vec<Copied>> {
        let mut copied = Vec::with_capacity(items.len());
        for item in items {
            let Item::File(number) = *item else { continue };
            let documents = source.documents.open(context, [number]).await?;
            let path = self.scratch.join(format!("copy-{number}"));
            let first_part = documents.first_part();
            let documents = documents.documents;
            let copy = if documents
                .copy_kept_to(context, first_part, kept, &path)
                .await?
            {
                let (bytes, sha256) = UnchangedFile::at(&path)?.digest().await?;
                let object = format!("copies/{number}-{sha256}");
                let target = self.location.child(&object)?;
                // Another attempt may have put it there; or it is damaged.
                if !target.exists().await? || target.digest().await? != (bytes, sha256.clone()) {
                    self.put(&target, &path).await?;
                }
                Some(Copy {
                    version: match target.local() {
                        Some(_) => None,
                        None => Some(target.version().await?),
                    },
                    object,
                    bytes,
                    sha256,
                })
            } else {
                None
            };
            let _ = std::fs::remove_file(&path);
            copied.push(Copied { file: number, copy });
        }
        Ok(copied)
    }

    /// The copies that all parts made, in the order of the files: where each is in the job.
    pub(crate) fn made_copies(&self, answers: &Answers) -> Result<Vec<Option<MadeCopy>>> {
        let mut copies: Vec<(usize, Option<MadeCopy>)> = Vec::new();
        for copied in answers.receipts().flat_map(|receipt| &receipt.copies) {
            let made = match &copied.copy {
                None => None,
                Some(copy) => Some(MadeCopy {
                    location: self.copy_location(&copy.object)?,
                    bytes: copy.bytes,
                    sha256: copy.sha256.clone(),
                }),
            };
            copies.push((copied.file, made));
        }
        copies.sort_by_key(|(file, _)| *file);
        Ok(copies.into_iter().map(|(_, made)| made).collect())
    }

    pub(super) fn copy_location(&self, object: &str) -> Result<Location> {
        if object.starts_with("copies/") {
            Ok(self.location.child(object)?)
        } else {
            Err(EngineError::bad_data(
                self.name(),
                format!("an answer names {object:?}, which is no copy"),
            ))
        }
    }
}
