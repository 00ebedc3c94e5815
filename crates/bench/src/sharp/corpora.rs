//! The corpora that `bench sharp` measures on.

use std::path::{Path, PathBuf};

use engine::tune::one_word::ShortTexts;

use super::near::Part;
use crate::documents;

/// The documents of a file.
pub struct Corpus {
    /// The file's name, without its ending.
    pub name: String,
    pub path: PathBuf,
    pub texts: Vec<String>,
    pub parts: Vec<Part>,
    /// A piece of each text that is long enough, for each length.
    pub short: Vec<ShortTexts>,
}

/// The source of each document of the first corpus.
pub struct Sources {
    /// In alphabetical order.
    pub names: Vec<String>,
    /// For each document, the index of its source's name.
    pub of_documents: Vec<u32>,
}

/// All corpora. The first one has documents of several unrelated sources.
pub struct Corpora {
    pub all: Vec<Corpus>,
    pub sources: Sources,
}

/// Numbers the distinct values in alphabetical order. Returns the distinct values, and for each of
/// `values` its number.
fn number(values: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut names = values.to_vec();
    names.sort_unstable();
    names.dedup();
    let number = |value| names.binary_search(value).expect("one of the names") as u32;
    let numbers = values.iter().map(number).collect();
    (names, numbers)
}

impl Corpus {
    fn load(path: &Path, lengths: &[usize]) -> Self {
        let texts = documents::strings(path, "text");
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: path.to_owned(),
            short: ShortTexts::cut(&texts, lengths, usize::MAX),
            texts,
            parts: Vec::new(),
        }
    }

    /// Returns the bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

impl Corpora {
    /// Reads the corpora, and computes the similarities inside each of the sources `templates` and among revisions.
    /// Short texts of the given `lengths` are cut from each corpus.
    pub fn load(
        unrelated: &Path,
        revisions: &[PathBuf],
        templates: &[String],
        lengths: &[usize],
    ) -> Self {
        let mut first = Corpus::load(unrelated, lengths);
        let (names, of_documents) = number(&documents::strings(unrelated, "source"));
        assert!(
            names.len() > 1,
            "{}: needs documents of at least two sources",
            unrelated.display()
        );
        for name in templates {
            let Some(source) = names.iter().position(|other| other == name) else {
                continue;
            };
            let documents: Vec<u32> = (0..of_documents.len())
                .filter(|&document| of_documents[document] as usize == source)
                .map(|document| document as u32)
                .collect();
            let families = vec![0; documents.len()];
            let part = Part::new(name, documents, families, &first.texts);
            first.parts.push(part);
        }
        let mut all = vec![first];
        for path in revisions {
            let mut corpus = Corpus::load(path, lengths);
            let (_, families) = number(&documents::strings(path, "doc"));
            let documents = (0..families.len() as u32).collect();
            let part = Part::new(&corpus.name, documents, families, &corpus.texts);
            corpus.parts.push(part);
            all.push(corpus);
        }
        Self {
            all,
            sources: Sources {
                names,
                of_documents,
            },
        }
    }

    /// Returns the parts of all corpora.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().flat_map(|corpus| &corpus.parts)
    }
}
