//! A run on a cluster.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Address, Guard, Remote, RemoteSettings};
use engine::{RunSettings, Summary};

use crate::args::{CommonArgs, RunArgs};
use crate::exit::Failure;
use crate::process::Process;
use crate::scratch::is_in_store;

/// How long a run without --executor-wait waits for the scheduler, and for an executor.
const DEFAULT_EXECUTOR_WAIT: Duration = Duration::from_secs(60);

/// Runs the job on the cluster whose scheduler is at `address`.
pub(super) async fn find_pairs(
    process: &Process,
    common: &CommonArgs,
    args: &RunArgs,
    address: &str,
    mut settings: RunSettings,
) -> Result<(RunSettings, Summary), Failure> {
    let (remote, guard) = connect(process, common, args, address, &settings).await?;
    settings.cluster = Some(Arc::new(remote.clone()));
    let done = super::find_pairs(process, settings).await;
    remote.close(guard).await;
    done
}

/// Connects to the cluster. The guard ends the run's work there when this process stops early.
async fn connect(
    process: &Process,
    common: &CommonArgs,
    args: &RunArgs,
    address: &str,
    settings: &RunSettings,
) -> Result<(Remote, Guard), Failure> {
    let scheduler: Address = address.parse()?;
    let base = settings.base.as_deref().unwrap_or_default();
    let remote = RemoteSettings {
        shared: shared_directory(process, common, &scheduler, base)?,
        scheduler,
        tls: args.tls.read()?,
        scratch: process.scratch.path().to_owned(),
        resubmit: args.remote.resubmit.unwrap_or(0),
        wait: args.remote.executor_wait.unwrap_or(DEFAULT_EXECUTOR_WAIT),
    };
    let resources = Arc::clone(&process.resources);
    Ok(Remote::connect(remote, resources).await?)
}

/// The directory through which the executors get files of this process: --scratch, or the process's
/// own scratch directory if the whole cluster is on this machine.
fn shared_directory(
    process: &Process,
    common: &CommonArgs,
    scheduler: &Address,
    base: &str,
) -> Result<String, Failure> {
    let in_store = is_in_store(base);
    match &common.scratch {
        Some(given) if is_in_store(given) || !in_store => Ok(given.clone()),
        None if !in_store && scheduler.is_loopback() => {
            Ok(process.scratch.path().to_string_lossy().into_owned())
        }
        _ if in_store => Err(Failure::Usage(format!(
            "--cluster needs --scratch URL: a prefix in an object store, through which the executors get the fingerprints of \
             the batch; for example --scratch {}",
            scratch_beside(base)
        ))),
        _ => Err(Failure::Usage(
            "--cluster needs --scratch DIR: a directory that the executors reach too, through which they get the \
             fingerprints of the batch"
                .into(),
        )),
    }
}

/// An example of a scratch prefix, in the bucket of `base`.
fn scratch_beside(base: &str) -> String {
    let mut parts = base.splitn(4, '/');
    let scheme = parts.next().unwrap_or_default();
    let bucket = parts.nth(1).unwrap_or_default();
    format!("{scheme}//{bucket}/scratch/")
}
