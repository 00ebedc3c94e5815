//! `dedup-job scheduler`: the process that assigns a cluster's work to its executors.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use cluster::SchedulerSettings;

use crate::args::{CommonArgs, SchedulerArgs};
use crate::exit::Failure;
use crate::printing::{print, print_json};
use crate::process;
use crate::signals::StopSignals;

/// The address that a scheduler listens on by default.
pub const DEFAULT_BIND: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 50050);
/// Default of --executor-timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);
/// The shortest --executor-timeout: longer than the 5 seconds between calls of a busy executor.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(6);

pub fn run(common: &CommonArgs, args: &SchedulerArgs) -> Result<(), Failure> {
    let timeout = args.executor_timeout.unwrap_or(DEFAULT_TIMEOUT);
    if timeout < SHORTEST_TIMEOUT {
        return Err(Failure::Usage(format!(
            "--executor-timeout {} is too short: a busy executor calls every 5 seconds, so it must be at least 6s",
            humantime::format_duration(timeout)
        )));
    }
    let settings = SchedulerSettings {
        bind: args.bind.unwrap_or(DEFAULT_BIND),
        executor_timeout: timeout,
        tls: args.server.tls.read()?,
        insecure: args.server.insecure,
    };
    let ready = |address: SocketAddr| {
        let printed = match common.json {
            true => print_json(&serde_json::json!({ "scheduler": format!("df://{address}") })),
            false if common.quiet => Ok(()),
            false => print(&format!("scheduler at df://{address}\n")),
        };
        // If the reader closed standard output, it does not need the address.
        let _ = printed;
    };
    let mut signals = StopSignals::listen()?;
    let runtime = process::runtime(2)?;
    let done = runtime.block_on(async {
        let stop = signals.wait(args.stop_with_stdin);
        Ok(cluster::scheduler::run(settings, ready, stop).await?)
    });
    runtime.shutdown_background();
    done
}
