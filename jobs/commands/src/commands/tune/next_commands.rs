//! The commands that `tune` prints for the user to copy: they run the job with the recommended
//! settings.

use engine::tune::{AtDistance, AtSketch, Tuned};
use simhash::{Choice as _, Measure, SketchBits, Spec};

use crate::args::{ColumnArgs, IdFrom, SpecArgs, TuneArgs};

/// The archive that the commands name unless --base names one.
const ARCHIVE: &str = "archive/";

/// An `archive create`, unless --base names an archive, and a `run` with the best settings. The run
/// verifies pairs by `sketch`, or by texts if `sketch` is `None`.
pub(super) fn lines(
    args: &TuneArgs,
    best: &Tuned,
    at: &AtDistance,
    sketch: Option<&AtSketch>,
    min_similarity: f64,
) -> Vec<String> {
    let archive = args.base.as_deref().unwrap_or(ARCHIVE);
    let mut lines = Vec::new();
    if args.base.is_none() {
        let mut create = Line::new("archive create");
        create.add_word(archive);
        let mut spec = args.spec.clone();
        let (default, best_spec) = (Spec::default(), &best.spec);
        if best_spec.tokenizer != default.tokenizer {
            spec.features.tokenizer = Some(best_spec.tokenizer);
        }
        if best_spec.weight != default.weight {
            spec.weight = Some(best_spec.weight);
        }
        if best_spec.markup != default.markup {
            spec.features.markup = Some(best_spec.markup);
        }
        if !best.learnt && spec.idf.is_none() {
            spec.idf_power = None;
        }
        if spec.sketch.is_none() {
            let size = |size: &SketchBits| sketch.is_some_and(|sketch| sketch.bits == size.bits());
            spec.sketch = SketchBits::examples().into_iter().find(size);
        }
        create.add_spec(&spec);
        if best.learnt {
            create.add_option("learn", &args.documents);
            create.add_columns(&args.columns);
        }
        lines.push(create.0);
    }
    let mut run = Line::new("run");
    run.add_option("new", &args.documents);
    run.add_option("base", [archive]);
    run.add_columns(&args.columns);
    let (measure, least) = match sketch {
        Some(sketch) => (Measure::Sketch, sketch.min_similarity),
        None => (Measure::Jaccard, min_similarity),
    };
    let k = at.max_distance;
    run.0 += &format!(" -k {k} --verify {measure} --min-similarity {least}");
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
    fn add_word(&mut self, word: &str) {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
        self.0.push(' ');
        match !word.is_empty() && word.chars().all(is_plain) {
            true => self.0 += word,
            false => self.0 += &format!("'{}'", word.replace('\'', r"'\''")),
        }
    }

    /// Adds an option with its values, or nothing if there are none.
    fn add_option<V: ToString>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.0 += &format!(" --{name}");
        }
        for value in values {
            self.add_word(&value.to_string());
        }
    }

    fn add_columns(&mut self, columns: &ColumnArgs) {
        self.add_option("id-column", &columns.id_column);
        self.add_option("text-column", &columns.text_column);
        let name = |delimiter| match delimiter {
            b'\t' => "tab".to_owned(),
            other => char::from(other).to_string(),
        };
        self.add_option("delimiter", columns.delimiter.map(name));
        let id_from = columns.crawl.id_from.map(|from| match from {
            IdFrom::Record => "record",
            IdFrom::Url => "url",
        });
        self.add_option("id-from", id_from);
        let statuses: Vec<String> = columns.crawl.status.iter().map(u16::to_string).collect();
        if !statuses.is_empty() {
            self.add_option("status", [statuses.join(",")]);
        }
        if columns.crawl.check_digests {
            self.0 += " --check-digests";
        }
    }

    fn add_spec(&mut self, spec: &SpecArgs) {
        let features = &spec.features;
        self.add_option("tokenizer", features.tokenizer);
        self.add_option("normalize", features.normalize);
        self.add_option("markup", features.markup);
        self.add_option("stop-words", &features.stop_words);
        self.add_option("weight", spec.weight);
        self.add_option("idf", &spec.idf);
        self.add_option("idf-power", spec.idf_power);
        self.add_option("sketch", spec.sketch);
        self.add_option("min-features", spec.min_features);
        self.add_option("short-texts", spec.short_texts);
        self.add_option("hash-seed", spec.hash_seed);
    }
}

#[cfg(test)]
mod tests {
    use engine::tune::{Estimate, Share};
    use simhash::{IdfPower, Weight};

    use super::*;

    #[test]
    fn the_commands_can_be_copied() {
        let mut best = Tuned {
            spec: Spec::default(),
            learnt: false,
            documents: 9,
            sampled: 9,
            without_fingerprint: 0,
            alike: [0; 4],
            wanted: 0,
            differ_in_a_name: Share::default(),
            distances: Vec::new(),
            lengths: Vec::new(),
        };
        let mut args = TuneArgs {
            documents: vec!["a.parquet".into(), "it's here/*.jsonl".into()],
            ..TuneArgs::default()
        };
        args.columns.id_column = Some("url".into());
        let at = AtDistance {
            max_distance: 6,
            pairs: 0,
            by_similarity: [0; 5],
            recall: 1.0,
            precision: 1.0,
            unrelated: 0.0,
            estimate: Estimate::Counted,
            design: "halves".into(),
            table_bytes: 0,
            core_seconds: 0.0,
            sketches: Vec::new(),
        };
        let sketch = AtSketch {
            bits: 128,
            min_similarity: 0.74,
            pairs: 0,
            recall: 1.0,
            precision: 1.0,
        };
        let lines = |args: &TuneArgs, best: &Tuned| lines(args, best, &at, None, 0.8);
        let run = "dedup-job run --new a.parquet 'it'\\''s here/*.jsonl' --base archive/ --id-column url -k 6 --verify jaccard --min-similarity 0.8";
        let create = "dedup-job archive create archive/";
        assert_eq!(lines(&args, &best), [create, run]);
        best.spec.weight = Weight::LogTf;
        let create = format!("{create} --weight log-tf");
        assert_eq!(lines(&args, &best), [create.as_str(), run]);
        best.spec.idf = Some("digest".into());
        best.spec.idf_power = IdfPower::Half;
        best.learnt = true;
        let learn = "--learn a.parquet 'it'\\''s here/*.jsonl' --id-column url";
        let create = format!("{create} {learn}");
        assert_eq!(lines(&args, &best), [create.as_str(), run]);
        let create = create.replace(" --learn", " --sketch 128 --learn");
        let by_sketch = run.replace(
            "jaccard --min-similarity 0.8",
            "sketch --min-similarity 0.74",
        );
        let with_sketch = super::lines(&args, &best, &at, Some(&sketch), 0.8);
        assert_eq!(with_sketch, [create, by_sketch]);
        args.columns.crawl.id_from = Some(IdFrom::Url);
        args.columns.crawl.status = vec![200, 404];
        args.columns.crawl.check_digests = true;
        best.spec.markup = simhash::Markup::Main;
        let [create, with_crawl] = &super::lines(&args, &best, &at, None, 0.8)[..] else {
            panic!()
        };
        assert!(create.contains(" --markup main "), "{create}");
        for line in [create, with_crawl] {
            let crawl = " --id-from url --status 200,404 --check-digests";
            assert!(line.contains(crawl), "{line}");
        }
        args.columns.crawl = Default::default();
        args.base = Some("s3://crawl/archive".into());
        let run = run.replace("archive/", "s3://crawl/archive");
        assert_eq!(lines(&args, &best), [run]);
    }
}
