//! Arguments of the commands for online lookup: `index`, `lookup` and `serve`.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, Subcommand, ValueHint};

use super::values::{local_path, time_span};

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Build an index of an archive for `lookup` and `serve`, or bring it up to date. Run it again after each commit.
    /// If a build is stopped, the next one continues it
    Build(IndexBuildArgs),
    /// Show what an index contains
    Info {
        /// Directory or URL of the index
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Read and check every byte of the index
        #[arg(long)]
        verify: bool,
        #[command(flatten)]
        cache: CacheArgs,
    },
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job index build [OPTIONS] --base <DIR> --output <DIR>")]
pub struct IndexBuildArgs {
    /// Archive to index
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Directory or URL of the index; the first build creates it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<String>,
    /// Merge all segments into one: lookups are fastest then, but the build writes everything again [default: merge
    /// segments of like size]
    #[arg(long)]
    pub merge_all: bool,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct CacheArgs {
    /// Directory to which segments of an index in an object store are copied; it may grow to the size of the index
    /// [default: dedup-job/index below the user's cache directory]
    #[arg(long, value_name = "DIR", value_parser = local_path, value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job lookup [OPTIONS] --index <DIR> <FINGERPRINT|TEXT|FILE>...")]
pub struct LookupArgs {
    /// What to look up: fingerprints (16 hexadecimal digits), files of queries, `-` for queries on standard input, or
    /// texts. A line of a file is one query: a fingerprint, a text, or a JSON object with "fp" or "text"
    #[arg(value_name = "FINGERPRINT|TEXT|FILE", value_hint = ValueHint::FilePath)]
    pub queries: Vec<String>,
    /// Directory or URL of the index
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub index: Option<String>,
    /// Largest distance, from 0 to 8 [default: that of runs with the archive]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub max_distance: Option<u32>,
    /// Show at most N documents for each query [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Leave out documents whose similarity to the text, estimated from sketches, is below X, from 0 to 1 [default:
    /// that of runs with the archive]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// URL or source of the texts that are arguments: the template of the source is left out of them. Queries in files say it
    /// as "url" or "source"
    #[arg(long, value_name = "URL")]
    pub source: Option<String>,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job serve [OPTIONS] --index <DIR>")]
#[command(
    after_help = "People use the page at http://127.0.0.1:8080/; programs send JSON:\n\n  \
    curl --json '{\"text\": \"...\"}' http://127.0.0.1:8080/v1/lookup\n\nOn SIGTERM the server finishes the requests \
    in progress, then exits."
)]
pub struct ServeArgs {
    /// Directory or URL of the index. The server opens new versions of it as they appear
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub index: Option<String>,
    /// Address to listen on; port 0 takes a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Documents with texts, which are held in memory and added to hits of the same id
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub texts: Vec<String>,
    /// Directory in which to remember the documents sent to POST /v1/seen, so that duplicates that arrive before the
    /// next build find each other
    #[arg(long, value_name = "DIR", value_parser = local_path, value_hint = ValueHint::DirPath)]
    pub remember: Option<PathBuf>,
    /// How long to remember a document [default: 48h]
    #[arg(long, value_name = "TIME", requires = "remember", value_parser = time_span)]
    pub remember_for: Option<Duration>,
    /// Remember at most N documents, of about 200 bytes of memory each; more are refused with 503 [default: 10000000]
    #[arg(long, value_name = "N", requires = "remember", value_parser = clap::value_parser!(u32).range(1..))]
    pub remember_max: Option<u32>,
    /// Largest body of a request [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_body: Option<ByteSize>,
    /// Requests that may wait for a thread; more are refused with 429 [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub queue: Option<u32>,
    /// Open connections; more wait to be accepted [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Longest wait: for a request to arrive, for a client to take its response, for an idle connection's next request,
    /// and for a thread [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub timeout: Option<Duration>,
    /// How long requests in progress may go on after the server was asked to stop [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub drain: Option<Duration>,
    /// How often to look for a new version of the index [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub refresh: Option<Duration>,
    /// Name by which clients reach the server, such as the name of a proxy in front of it. Without --token-file, --tls-ca and
    /// --insecure, requests to other names are refused with 421; addresses and `localhost` are always known
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,
    /// File with the token that clients must send, as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE", value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Listen to other machines without TLS, or without a token or client certificates. Use it only on a network where
    /// you trust every process
    #[arg(long)]
    pub insecure: bool,
    /// Certificate of the server (PEM), to serve HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key", value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Certificate (PEM) of an authority. Each client must then show a certificate that the authority issued
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"], value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheArgs,
}
