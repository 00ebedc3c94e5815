//! Options of a cluster's processes: `cluster`, `scheduler` and `executor`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::values::{local_path, time_span};

/// Certificates of a cluster's process or client.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Encryption between a cluster's processes (all three options, or none)"
)]
pub struct TlsArgs {
    /// Certificate (PEM) of the authority that issued the certificates of all processes and clients of the cluster
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"], value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// Certificate of this process (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"], value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_cert"], value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
}

/// Who may call a process that listens.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerArgs {
    /// Accept connections from other machines without the three --tls options: everybody who reaches the port can then submit
    /// work and read its results. Use it only on a network where you trust every process
    #[arg(long)]
    pub insecure: bool,
    #[command(flatten)]
    pub tls: TlsArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Starts `dedup-job scheduler` and several `dedup-job executor` processes on this machine; Ctrl-C stops them. \
    Then, in another terminal:\n\n  dedup-job run --new day.parquet --base archive/ --cluster df://127.0.0.1:50050"
)]
pub struct ClusterArgs {
    /// Number of executors [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub executors: Option<u16>,
    /// Slices of work that each executor processes at the same time [default: the cores, shared evenly]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub slots: Option<u16>,
    /// Address that the scheduler listens on; the executors take free ports of the same address [default: 127.0.0.1:50050]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
    /// Accept connections from other machines: everybody who reaches the ports can then submit work and read its results.
    /// Clusters of this command have no encryption; `scheduler` and `executor` have --tls-ca, --tls-cert and --tls-key. Use it
    /// only on a network where you trust every process
    #[arg(long)]
    pub insecure: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub struct SchedulerArgs {
    /// Address to listen on; port 0 takes a free port [default: 127.0.0.1:50050]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
    /// Time without a call after which an executor counts as lost and others do its work; a busy executor calls every 5
    /// seconds [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub executor_timeout: Option<Duration>,
    /// Stop when standard input ends, as it does when the parent process dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job executor [OPTIONS] --scheduler <HOST:PORT>")]
pub struct ExecutorArgs {
    /// Address of the scheduler
    #[arg(long, value_name = "HOST:PORT")]
    pub scheduler: Option<String>,
    /// Slices of work to process at the same time, at most 128; a larger machine needs several executors [default: one per
    /// core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub slots: Option<u16>,
    /// Address to serve results on; port 0 takes a free port [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
    /// Name or address at which clients reach this executor [default: that of --bind, or the local address of the connection
    /// to the scheduler]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// Stop when standard input ends, as it does when the parent process dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}
