//! `dedup-job executor`: a process that does a cluster's work.

use std::net::{Ipv4Addr, SocketAddr};

use cluster::ExecutorSettings;
use cluster::executor::{MOST_SLOTS, Started};
use engine::Limits;

use super::{required, scheduler};
use crate::args::{CommonArgs, ExecutorArgs};
use crate::exit::Failure;
use crate::terminal::{print, print_json};
use crate::{process, signals};

/// Where an executor serves answers unless told otherwise.
const BIND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn run(common: &CommonArgs, args: &ExecutorArgs) -> Result<(), Failure> {
    let address = required(args.scheduler.clone(), "--scheduler")?;
    let slots = args
        .slots
        .map_or_else(|| process::threads(common), usize::from)
        .min(MOST_SLOTS);
    let scratch = process::scratch(common)?;
    let settings = ExecutorSettings {
        scheduler: address.parse()?,
        bind: args.bind.unwrap_or(BIND),
        advertise: args.advertise.clone(),
        slots,
        limits: Limits {
            threads: common.threads.map_or(slots, usize::from),
            memory: process::memory(common),
            spill: scratch.path().to_owned(),
        },
        stores: common.storage.options(),
        directory: scratch.path().to_owned(),
        tls: args.tls.read()?,
    };
    scheduler::warn_if_open(settings.bind, settings.tls.is_some());
    let of = settings.scheduler.to_string();
    let ready = |started: &Started| {
        let Started { id, address } = started;
        let said = match common.json {
            true => print_json(&serde_json::json!({
                "executor": id, "address": address, "slots": slots, "scheduler": of,
            })),
            false if common.quiet => Ok(()),
            false => print(&format!(
                "executor {id} with {slots} slots at {address}, for {of}\n"
            )),
        };
        // Who does not listen does not want to know.
        let _ = said;
    };
    let runtime = process::runtime(slots.max(2))?;
    let done = runtime.block_on(async {
        let mut stopped = Ok(());
        let stop = async { stopped = signals::stop(args.stop_with_stdin).await };
        cluster::executor::run(settings, ready, stop).await?;
        stopped
    });
    runtime.shutdown_background();
    drop(scratch);
    done
}
