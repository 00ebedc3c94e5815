//! Options of columns and of fingerprints, which many commands share; options of `fingerprint` and `idf`.

use archive::BatchName;
use clap::{Args, ValueHint};
use documents::Quote;
use engine::run::DaySource;
use simhash::Spec;

use super::values::{charset, choice, day, delimiter, either, first_given, quote};

/// The columns of the input to read.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnArgs {
    /// Column of ids [default: id, or a common name such as doc_id, url]
    ///
    /// Of a column in structures, its path, such as meta.id; also in other options.
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Column of texts [default: text, or a common name such as body]
    ///
    /// Or of lists, such as messages.content, whose texts are joined by newlines; or several columns, such as title,body.
    #[arg(long, value_name = "NAME", conflicts_with = "fingerprint_column")]
    pub text_column: Option<String>,
    /// Column of ready 64-bit fingerprints [default: fp, if the input has it and no column of texts]
    #[arg(long, value_name = "NAME")]
    pub fingerprint_column: Option<String>,
    /// What separates the fields of CSV: one ASCII character, or tab [default: comma, semicolon, tab or vertical bar, as in the
    /// header]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// What quotes the fields of CSV: one ASCII character, or none [default: ", or none, as the file is right with it]
    #[arg(long, value_name = "CHAR", value_parser = quote)]
    pub quote: Option<Quote>,
    /// Encoding of all texts, such as windows-1251 [default: what each file says, unless its bytes contradict it, or else what they
    /// are like]
    #[arg(long, value_name = "NAME", value_parser = charset)]
    pub charset: Option<String>,
    #[command(flatten)]
    pub crawl: CrawlArgs,
}

impl ColumnArgs {
    /// The first option that says how files are read, and not what a column is called.
    pub fn of_files(&self) -> Option<&'static str> {
        let crawl = &self.crawl;
        first_given(&[
            ("--fingerprint-column", self.fingerprint_column.is_some()),
            ("--delimiter", self.delimiter.is_some()),
            ("--quote", self.quote.is_some()),
            ("--charset", self.charset.is_some()),
            ("--id-from", crawl.id_from.is_some()),
            ("--status", !crawl.status.is_empty()),
            ("--check-digests", crawl.check_digests),
        ])
    }
}

/// How documents on standard input are read.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PipeArgs {
    /// Format of standard input (-) and of pipes [default: by their first bytes]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub format: Option<Format>,
}

/// Which records of WARC files are documents, and their ids.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "WARC files (.warc, .wet)")]
pub struct CrawlArgs {
    /// What the id of a document is: the WARC-Record-ID, or the URL [default: record]
    #[arg(long, value_name = "WHAT", conflicts_with = "id_column")]
    pub id_from: Option<IdFrom>,
    /// Read responses of these HTTP statuses, separated by commas [default: 200]
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..=599))]
    pub status: Vec<u16>,
    /// Leave out records whose digest (WARC-Block-Digest, or else WARC-Payload-Digest) is wrong
    #[arg(long)]
    pub check_digests: bool,
}

/// What the id of a WARC file's document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum IdFrom {
    /// Its WARC-Record-ID
    Record,
    /// Its URL; several captures of a page then have one id
    Url,
}

/// The format of what comes from standard input or a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// JSON Lines, or an array of objects
    Jsonl,
    /// CSV with a header
    Csv,
    /// Parquet
    Parquet,
    /// WARC or WET
    Warc,
    /// One page of HTML
    Html,
    /// One text
    Text,
}

/// How texts are split into features.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fingerprints (an archive fixes these options when it is created)")]
pub struct FeatureArgs {
    /// How a text is cut into features
    #[arg(long, value_name = "NAME", value_parser = choice(Some(Spec::default().tokenizer)))]
    pub tokenizer: Option<simhash::Tokenizer>,
    /// How a text is normalised before it is cut
    #[arg(long, value_name = "FORM", value_parser = choice(Some(Spec::default().normalize)))]
    pub normalize: Option<simhash::Normalize>,
    /// Also ignore differences of letters [default: none]
    #[arg(long, value_name = "WHICH", value_parser = choice(None::<simhash::Fold>))]
    pub fold: Option<simhash::Fold>,
    /// Which text of HTML pages counts
    ///
    /// With any value but none, texts of Parquet, JSON and CSV are parsed as HTML, too; plain text (.txt, .wet, and text/plain in
    /// .warc) never is. An archive fixes it: the default of `archive create` is none, or with --learn that of the documents.
    /// Without an archive, the default is text for HTML files and .warc files, and none for others.
    #[arg(long, value_name = "HOW", value_parser = choice(None::<simhash::Markup>))]
    pub markup: Option<simhash::Markup>,
    /// File of words to leave out, one per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stop_words: Option<String>,
}

/// How fingerprints are computed; an archive fixes these options when it is created.
#[derive(Debug, Clone, Default, Args)]
pub struct SpecArgs {
    #[command(flatten)]
    pub features: FeatureArgs,
    /// Weight of a feature, from the number of its occurrences in the text (tf)
    #[arg(long, value_name = "SCHEME", value_parser = choice(Some(Spec::default().weight)))]
    pub weight: Option<simhash::Weight>,
    /// Multiply weights by the inverse document frequency, from a table that `dedup-job idf` wrote
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub idf: Option<String>,
    /// Raise the inverse document frequency to this power before it multiplies weights
    #[arg(long, value_name = "POWER", value_parser = choice(Some(engine::recipe::IDF_POWER)))]
    pub idf_power: Option<simhash::IdfPower>,
    /// Store a sketch of this many bits beside each fingerprint. `run --verify sketch` estimates similarities from the sketches,
    /// and reads no texts [default: 256 in sharp archives, elsewhere 0]
    #[arg(long, value_name = "BITS", value_parser = choice(None::<simhash::SketchBits>))]
    pub sketch: Option<simhash::SketchBits>,
    /// Do not compare documents by their features if they have fewer than N distinct ones [default: 4]
    #[arg(long, value_name = "N")]
    pub min_features: Option<u32>,
    /// What becomes of documents with fewer than --min-features features [default: whole; with --profile paper, and in
    /// `fingerprint`, none]
    #[arg(long, value_name = "HOW", value_parser = choice(None::<simhash::ShortTexts>))]
    pub short_texts: Option<simhash::ShortTexts>,
    /// Whether the template of a document's source is left out of its text: passages that many pages of a source share
    /// [default: on; with --profile paper, and in `fingerprint` without an archive, off]
    #[arg(long, value_name = "HOW", value_parser = choice(None::<simhash::Template>))]
    pub template: Option<simhash::Template>,
    /// Seed of the feature hash [default: 0]
    #[arg(long, value_name = "N")]
    pub hash_seed: Option<u32>,
}

impl SpecArgs {
    /// The paths of the files that --idf and --stop-words name.
    pub fn table_files(&self) -> impl Iterator<Item = &str> {
        let stop_words = self.features.stop_words.as_deref();
        self.idf.as_deref().into_iter().chain(stop_words)
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(
    override_usage = "dedup-job fingerprint [OPTIONS] --output <FILE> <PATH>...\n       dedup-job fingerprint [OPTIONS] --append <DIR> --day <YYYY-MM-DD> <PATH>..."
)]
pub struct FingerprintArgs {
    /// Documents: files, directories or patterns. Parquet; or JSON Lines, CSV, WARC, WET, HTML or plain text, each also
    /// compressed (.gz, .zst)
    #[arg(value_name = "PATH", conflicts_with = "input", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// The same as PATH, as an option
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub input: Vec<String>,
    /// Write the fingerprints to this .parquet file
    #[arg(long, short, value_name = "FILE", conflicts_with = "append", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Replace an existing file of any kind; without it, only an earlier output of the same kind is replaced
    #[arg(long)]
    pub overwrite: bool,
    /// Commit the fingerprints to this archive, as the day of --day
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub append: Option<String>,
    /// Make them as this archive does: by its spec, and without the templates that it knows
    #[arg(long, value_name = "DIR", conflicts_with = "append", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// With --append: commit a day without documents, too
    #[arg(long)]
    pub allow_empty: bool,
    /// Column that has the source of each document, as for `run`
    #[arg(long, value_name = "COLUMN")]
    pub source: Option<String>,
    /// Date of the documents: YYYY-MM-DD, or yesterday or today (in UTC); or from-records, as for `run`
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub day: Option<DaySource>,
    /// With --append: name of the batch, if its day has several
    #[arg(long = "batch", value_name = "NAME", requires = "day")]
    pub batch_name: Option<BatchName>,
    #[command(flatten)]
    pub pipe: PipeArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

impl FingerprintArgs {
    /// The paths of the documents, however they were given.
    pub fn paths(&self) -> &[String] {
        either(&self.documents, &self.input)
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job idf [OPTIONS] --output <FILE> <PATH>...")]
pub struct IdfArgs {
    /// Documents: files, directories or patterns. Parquet; or JSON Lines, CSV, WARC, WET, HTML or plain text, each also
    /// compressed (.gz, .zst)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Write the table to this .parquet file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Replace an existing file of any kind; without it, only an earlier output of the same kind is replaced
    #[arg(long)]
    pub overwrite: bool,
    /// Keep the N most frequent features (terms); all others share one weight [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub terms: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub features: FeatureArgs,
}
