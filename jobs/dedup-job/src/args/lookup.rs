//! Options of the online index: `index`, `lookup` and `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, Subcommand, ValueHint};

use super::values::time_span;

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Build an index of an archive for `lookup` and `serve`, or bring it up to date. Run it again after each commit; a build that
    /// was stopped goes on where it was
    Build(IndexBuildArgs),
    /// Show what an index contains
    Info {
        /// Directory or URL of the index
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Read every file, and check all of it
        #[arg(long)]
        verify: bool,
        #[command(flatten)]
        cache: CacheArgs,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub struct IndexBuildArgs {
    /// Archive of whose documents the index is
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Directory or URL of the index; the first build creates it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<String>,
    /// Merge all segments into one: lookups are fastest, but everything is written again [default: merge segments of like size]
    #[arg(long)]
    pub merge_all: bool,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct CacheArgs {
    /// Directory for copies of an index that is kept in an object store; it may grow to the size of the index [default: a directory
    /// below the user's cache directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct LookupArgs {
    /// What to look up. A fingerprint: 16 hexadecimal digits. A file: each of its lines is looked up. `-`: each line of standard
    /// input. Anything else is a text. A line is a fingerprint, a text, or a JSON object with "fp" or "text"
    #[arg(value_name = "FINGERPRINT|TEXT|FILE", value_hint = ValueHint::FilePath)]
    pub queries: Vec<String>,
    /// Directory or URL of the index
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub index: Option<String>,
    /// Largest distance, from 0 to 8 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub max_distance: Option<u32>,
    /// Show at most N documents for each query [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Leave out documents whose sketch says that they are less similar than this to the text, from 0 to 1 [default: 0]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "The page at http://127.0.0.1:8080/ looks up a text that is pasted into it; programs send JSON:\n\n  \
    curl --json '{\"text\": \"...\"}' http://127.0.0.1:8080/v1/lookup\n\nSIGTERM lets the requests in progress end."
)]
pub struct ServeArgs {
    /// Directory or URL of the index. New versions of it are used as they appear
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub index: Option<String>,
    /// Address to listen on; port 0 takes a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<SocketAddr>,
    /// Documents whose texts are shown beside hits; they are held in memory
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub texts: Vec<String>,
    /// Remember what is sent to POST /v1/seen in this directory, so that copies that arrive before the next build find each other
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub remember: Option<PathBuf>,
    /// How long to remember [default: 48h]
    #[arg(long, value_name = "TIME", requires = "remember", value_parser = time_span)]
    pub remember_for: Option<Duration>,
    /// Documents to remember at most; each takes about 200 bytes of memory [default: 10000000]
    #[arg(long, value_name = "N", requires = "remember", value_parser = clap::value_parser!(u32).range(1..))]
    pub remember_max: Option<u32>,
    /// Largest body of a request [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_body: Option<ByteSize>,
    /// Requests that may wait for a thread; more are refused with 429 [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub queue: Option<u32>,
    /// Connections at the same time; more wait [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Time for a client to send a request or to take its answer, for a connection to be idle, and for a request to wait
    /// [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub timeout: Option<Duration>,
    /// Time for the requests in progress to end, when the server is stopped [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub drain: Option<Duration>,
    /// How often to look for a new version of the index [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub refresh: Option<Duration>,
    /// File with a token that clients must send, as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Accept connections from other machines without TLS, or without a token or client certificates. Use it only on a network where
    /// you trust every process
    #[arg(long)]
    pub insecure: bool,
    /// Certificate of the server (PEM), to serve HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Certificate (PEM) of an authority: clients must show a certificate of it
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"], value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheArgs,
}
