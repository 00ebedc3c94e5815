//! The commands that `tune` prints for the user to copy: they run the job with the recommended
//! settings.

use documents::Quote;
use engine::Profile;
use engine::profile::default_similarity;
use engine::tune::Tuned;
use simhash::{Choice as _, Measure, SketchBits, Spec};

use super::best::{Advice, Settings};
use crate::args::{ColumnArgs, IdFrom, SpecArgs, TuneArgs};

/// The archive that the commands name unless --base names one.
const ARCHIVE: &str = "archive/";

/// An `archive create`, unless --base names an archive, an `archive set` if its runs have other settings than it records, and a `run`.
pub(super) fn lines(
    args: &TuneArgs,
    advice: &Advice<'_>,
    tuned: &Tuned,
    min_similarity: f64,
) -> Vec<String> {
    let archive = args.base.as_deref().unwrap_or(ARCHIVE);
    let settings = match advice {
        Advice::Settings(settings) => Some(settings),
        Advice::Sharp(_) | Advice::Nothing => None,
    };
    let mut lines = Vec::new();
    if args.base.is_none() {
        let mut create = Line::new("archive create");
        create.add_word(archive);
        let mut spec = args.spec.clone();
        let (default, best_spec) = (Spec::default(), &tuned.spec);
        if best_spec.tokenizer != default.tokenizer {
            spec.features.tokenizer = Some(best_spec.tokenizer);
        }
        if best_spec.weight != default.weight {
            spec.weight = Some(best_spec.weight);
        }
        if best_spec.markup != default.markup {
            spec.features.markup = Some(best_spec.markup);
        }
        if !tuned.learnt && spec.idf.is_none() {
            spec.idf_power = None;
        }
        if let Some(sketch) = settings.and_then(|settings| settings.sketch) {
            let is_size = |size: &SketchBits| sketch.bits == size.bits();
            let is_of_sharp = is_size(&Profile::Sharp.sketch());
            spec.sketch = SketchBits::examples().into_iter().find(is_size);
            spec.sketch = spec.sketch.filter(|_| !is_of_sharp);
        }
        create.add_spec(&spec);
        if tuned.learnt {
            create.add_option("learn", &args.documents);
            create.add_columns(&args.columns);
        }
        lines.push(create.0);
    }
    let set = |k: u32, least: f64| {
        let mut set = Line::new("archive set");
        set.add_word(archive);
        format!("{} k={k} min-similarity={least}", set.0)
    };
    let mut run = Line::new("run");
    run.add_option("new", &args.documents);
    run.add_option("base", [archive]);
    run.add_columns(&args.columns);
    if let Some(Settings { at, sketch, .. }) = settings {
        let k = at.max_distance;
        match sketch {
            Some(sketch) => lines.push(set(k, sketch.min_similarity)),
            None => {
                run.0 += &format!(" -k {k} --verify jaccard");
                if min_similarity != default_similarity(Measure::Jaccard) {
                    run.0 += &format!(" --min-similarity {min_similarity}");
                }
            }
        }
    } else if args.base.is_some() && matches!(advice, Advice::Sharp(_)) {
        // The archive may record others.
        let least = default_similarity(Measure::Sketch);
        lines.push(set(Profile::Sharp.max_distance(), least));
    }
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
        if !word.is_empty() && word.chars().all(is_plain) {
            self.0 += word
        } else {
            self.0 += &format!("'{}'", word.replace('\'', r"'\''"))
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
        let quote = columns.quote.map(|quote| match quote {
            Quote::None => "none".to_owned(),
            Quote::Byte(quote) => char::from(quote).to_string(),
        });
        self.add_option("quote", quote);
        self.add_option("charset", &columns.charset);
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
        self.add_option("fold", features.fold);
        self.add_option("markup", features.markup);
        self.add_option("stop-words", &features.stop_words);
        self.add_option("weight", spec.weight);
        self.add_option("idf", &spec.idf);
        self.add_option("idf-power", spec.idf_power);
        self.add_option("sketch", spec.sketch);
        self.add_option("min-features", spec.min_features);
        self.add_option("short-texts", spec.short_texts);
        self.add_option("template", spec.template);
        self.add_option("hash-seed", spec.hash_seed);
    }
}

#[cfg(test)]
mod tests {
    use simhash::{IdfPower, Weight};

    use super::super::best::tests::tuned;
    use super::*;

    #[test]
    fn the_commands_can_be_copied() {
        let mut best = tuned(Weight::SqrtTf, 7, 0.9, |_| 70.0);
        let mut args = TuneArgs {
            documents: vec!["a.parquet".into(), "it's here/*.jsonl".into()],
            ..TuneArgs::default()
        };
        args.columns.id_column = Some("url".into());
        let lines_of = |args: &TuneArgs, best: &Tuned, k: usize, bits: Option<u32>| {
            let mut at = best.distances[k].clone();
            at.sketches[0].bits = bits.unwrap_or_default();
            let sketch = bits.map(|_| &at.sketches[0]);
            let settings = Settings {
                tuned: best,
                at: &at,
                sketch,
            };
            lines(args, &Advice::Settings(settings), best, 0.8)
        };
        let run =
            "dedup-job run --new a.parquet 'it'\\''s here/*.jsonl' --base archive/ --id-column url";
        let create = "dedup-job archive create archive/";
        let set = "dedup-job archive set archive/ k=8 min-similarity=0.78";
        assert_eq!(
            lines(&args, &Advice::Sharp(None), &best, 0.8),
            [create, run]
        );
        assert_eq!(lines_of(&args, &best, 8, Some(256)), [create, set, run]);
        let by_texts = format!("{run} -k 8 --verify jaccard");
        assert_eq!(lines_of(&args, &best, 8, None), [create, &by_texts]);
        best.spec.weight = Weight::LogTf;
        let create = format!("{create} --weight log-tf");
        best.spec.idf = Some("digest".into());
        best.spec.idf_power = IdfPower::Half;
        best.learnt = true;
        let learn = "--learn a.parquet 'it'\\''s here/*.jsonl' --id-column url";
        let sketched = format!("{create} --sketch 128 {learn}");
        assert_eq!(lines_of(&args, &best, 8, Some(128)), [&sketched, set, run]);
        args.columns.crawl.id_from = Some(IdFrom::Url);
        args.columns.crawl.status = vec![200, 404];
        args.columns.crawl.check_digests = true;
        best.spec.markup = simhash::Markup::Main;
        let [create, _, with_crawl] = &lines_of(&args, &best, 8, Some(256))[..] else {
            panic!()
        };
        assert!(create.contains(" --markup main "), "{create}");
        for line in [create, with_crawl] {
            let crawl = " --id-from url --status 200,404 --check-digests";
            assert!(line.contains(crawl), "{line}");
        }
        args.columns.crawl = Default::default();
        args.base = Some("s3://crawl/archive".into());
        let [set, run] = [set, run].map(|line| line.replace("archive/", "s3://crawl/archive"));
        assert_eq!(lines_of(&args, &best, 8, Some(256)), [set, run.clone()]);
        let set = "dedup-job archive set s3://crawl/archive k=7 min-similarity=0.755";
        assert_eq!(lines(&args, &Advice::Sharp(None), &best, 0.7), [set, &run]);
    }
}
