//! The commands that use what `tune` found.

use crate::args::{ColumnArgs, SpecArgs, TuneArgs};

/// The archive in the commands, unless --base names one.
const ARCHIVE: &str = "archive/";

/// A `run` over the documents with these settings, after `archive create` unless there is an archive.
pub(super) fn lines(args: &TuneArgs, max_distance: u32, min_similarity: f64) -> Vec<String> {
    let archive = args.base.as_deref().unwrap_or(ARCHIVE);
    let mut lines = Vec::new();
    if args.base.is_none() {
        let mut create = Line::new("archive create");
        create.word(archive);
        create.spec(&args.spec);
        lines.push(create.0);
    }
    let mut run = Line::new("run");
    run.option("new", &args.documents);
    run.option("base", [archive]);
    run.columns(&args.columns);
    run.0 += &format!(" -k {max_distance} --verify jaccard --min-similarity {min_similarity}");
    lines.push(run.0);
    lines
}

/// A command line for a shell.
struct Line(String);

impl Line {
    fn new(command: &str) -> Self {
        Self(format!("dedup-job {command}"))
    }

    /// Adds a word, quoted if the shell would split or expand it.
    fn word(&mut self, word: &str) {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
        self.0.push(' ');
        match !word.is_empty() && word.chars().all(is_plain) {
            true => self.0 += word,
            false => self.0 += &format!("'{}'", word.replace('\'', r"'\''")),
        }
    }

    /// Adds an option with its values, or nothing if there are none.
    fn option<V: ToString>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.0 += &format!(" --{name}");
        }
        for value in values {
            self.word(&value.to_string());
        }
    }

    fn columns(&mut self, columns: &ColumnArgs) {
        self.option("id-column", &columns.id_column);
        self.option("text-column", &columns.text_column);
    }

    fn spec(&mut self, spec: &SpecArgs) {
        let features = &spec.features;
        self.option("tokenizer", features.tokenizer);
        self.option("normalize", features.normalize);
        self.option("markup", features.markup);
        self.option("stop-words", &features.stop_words);
        self.option("weight", spec.weight);
        self.option("idf", &spec.idf);
        self.option("min-features", spec.min_features);
        self.option("hash-seed", spec.hash_seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_can_be_copied() {
        let mut args = TuneArgs {
            documents: vec!["a.parquet".into(), "it's here/*.jsonl".into()],
            ..TuneArgs::default()
        };
        args.columns.id_column = Some("url".into());
        args.spec.weight = Some(simhash::Weight::LogTf);
        let run = "dedup-job run --new a.parquet 'it'\\''s here/*.jsonl' --base archive/ --id-column url -k 6 --verify jaccard --min-similarity 0.8";
        assert_eq!(
            lines(&args, 6, 0.8),
            ["dedup-job archive create archive/ --weight log-tf", run]
        );
        args.base = Some("s3://crawl/archive".into());
        let run = run.replace("archive/", "s3://crawl/archive");
        assert_eq!(lines(&args, 6, 0.8), [run]);
    }
}
