//! `dedup-job scheduler`: the process that deals out a cluster's work.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use cluster::SchedulerSettings;

use crate::args::{CommonArgs, SchedulerArgs};
use crate::exit::Failure;
use crate::terminal::{print, print_json};
use crate::{process, signals};

/// Where a scheduler listens unless told otherwise.
pub const BIND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 50050);
/// When an executor is lost that does not call.
const EXECUTOR_TIMEOUT: Duration = Duration::from_secs(15);
/// It has to be longer than the time between the calls of a busy one.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(6);

pub fn run(common: &CommonArgs, args: &SchedulerArgs) -> Result<(), Failure> {
    let timeout = args.executor_timeout.unwrap_or(EXECUTOR_TIMEOUT);
    if timeout < SHORTEST_TIMEOUT {
        return Err(Failure::Usage(format!(
            "--executor-timeout {}: a busy executor calls every 5 seconds, so that at least 6s are needed",
            humantime::format_duration(timeout)
        )));
    }
    let settings = SchedulerSettings {
        bind: args.bind.unwrap_or(BIND),
        executor_timeout: timeout,
        tls: args.tls.read()?,
    };
    warn_if_open(settings.bind, settings.tls.is_some());
    let ready = |address: SocketAddr| {
        let said = match common.json {
            true => print_json(&serde_json::json!({ "scheduler": format!("df://{address}") })),
            false if common.quiet => Ok(()),
            false => print(&format!("scheduler at df://{address}\n")),
        };
        // Who does not listen does not want to know.
        let _ = said;
    };
    let runtime = process::runtime(2)?;
    let done = runtime.block_on(async {
        let mut stopped = Ok(());
        let stop = async { stopped = signals::stop(args.stop_with_stdin).await };
        cluster::scheduler::run(settings, ready, stop).await?;
        stopped
    });
    runtime.shutdown_background();
    done
}

/// Says that a port is open to everybody, where it is.
pub fn warn_if_open(bind: SocketAddr, tls: bool) {
    if !bind.ip().is_loopback() && !tls {
        tracing::warn!(
            "listening at {bind} without encryption: whoever reaches this port can have work done, and read what it finds; use --tls-ca, --tls-cert and --tls-key, or keep others away by a network policy"
        );
    }
}
