//! `dedup-job executor`: a process that does a cluster's work.

use std::net::{Ipv4Addr, SocketAddr};

use cluster::ExecutorSettings;
use cluster::executor::{MAX_SLOTS, Started};
use engine::Limits;

use super::required;
use crate::args::{CommonArgs, ExecutorArgs};
use crate::exit::Failure;
use crate::printing::{print, print_json};
use crate::process;
use crate::scratch::Scratch;
use crate::signals::StopSignals;

/// The address that an executor serves results on by default.
const DEFAULT_BIND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn run(common: &CommonArgs, args: &ExecutorArgs) -> Result<(), Failure> {
    let address = required(args.scheduler.clone(), "--scheduler")?;
    let slots = args
        .slots
        .map_or_else(|| process::threads(common), usize::from)
        .min(MAX_SLOTS);
    let scratch = Scratch::create(common)?;
    let settings = ExecutorSettings {
        scheduler: address.parse()?,
        bind: args.bind.unwrap_or(DEFAULT_BIND),
        advertise: args.advertise.clone(),
        slots,
        limits: Limits {
            threads: common.threads.map_or(slots, usize::from),
            memory: process::memory_limit(common),
            spill: scratch.path().to_owned(),
        },
        stores: common.storage.options(),
        directory: scratch.path().to_owned(),
        tls: args.server.tls.read()?,
        insecure: args.server.insecure,
    };
    let scheduler = settings.scheduler.to_string();
    let ready = |started: &Started| {
        let Started { id, address } = started;
        let printed = match common.json {
            true => print_json(&serde_json::json!({
                "executor": id, "address": address, "slots": slots, "scheduler": scheduler,
            })),
            false if common.quiet => Ok(()),
            false => print(&format!(
                "executor {id} with {slots} slots at {address}, for the scheduler {scheduler}\n"
            )),
        };
        // If the reader closed standard output, it does not need the address.
        let _ = printed;
    };
    let mut signals = StopSignals::listen()?;
    let runtime = process::runtime(slots.max(2))?;
    let done = runtime.block_on(async {
        let stop = signals.wait(args.stop_with_stdin);
        Ok(cluster::executor::run(settings, ready, stop).await?)
    });
    runtime.shutdown_background();
    drop(scratch);
    done
}
