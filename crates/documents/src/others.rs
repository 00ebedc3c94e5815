//! The batch beside the documents of `--base`: joins both, and finds a file that is in both.

use std::collections::HashMap;
use std::sync::Arc;

use storage::Location;

use super::{Documents, Prefer};

impl Documents {
    /// These documents and `others`, to find the templates of both.
    pub fn with_others(&self, others: &Self) -> Self {
        let mut both = self.clone();
        both.files.extend(others.files.iter().cloned());
        both.columns.prefer = Prefer::default();
        for file in &mut both.files {
            Arc::make_mut(file).columns.prefer = Prefer::default();
        }
        both
    }

    /// A file that both have.
    pub fn shared_file(&self, others: &Self) -> Option<&Location> {
        let own = self.files.iter().map(|file| &file.location);
        let own: HashMap<_, _> = own.map(|own| (own.identity(), own)).collect();
        let mut theirs = others.files.iter();
        theirs.find_map(|file| own.get(&file.location.identity()).copied())
    }
}
