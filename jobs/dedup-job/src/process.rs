//! What the process works with: threads, memory, a scratch directory, the session, the runtime.

use std::sync::Arc;

use archive::{Location, Stores};
use datafusion::prelude::SessionContext;
use engine::Limits;
use engine::resources::Resources;
use tempfile::TempDir;

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::{signals, terminal};

/// A session with its resources, and the scratch directory that goes when it does.
pub struct Process {
    pub context: SessionContext,
    pub resources: Arc<Resources>,
    pub scratch: TempDir,
}

impl Process {
    /// The stores behind paths.
    pub fn stores(&self) -> &Stores {
        &self.resources.stores
    }

    /// What a path stands for.
    pub fn locate(&self, path: &str) -> Result<Location, Failure> {
        Ok(self.stores().locate(path)?)
    }

    fn new(common: &CommonArgs) -> Result<Self, Failure> {
        let parent = common.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let scratch = tempfile::Builder::new()
            .prefix("dedup-job-")
            .tempdir_in(&parent)
            .map_err(|source| Failure::Io {
                path: parent.display().to_string(),
                source,
            })?;
        let stores = Stores::new(common.storage.options());
        let resources = Arc::new(Resources::new(stores));
        let limits = Limits {
            threads: threads(common),
            memory: memory(common),
            spill: scratch.path().to_owned(),
        };
        let context = engine::session::session(&limits, Arc::clone(&resources))?;
        Ok(Self {
            context,
            resources,
            scratch,
        })
    }
}

/// Runs `work` in a runtime, with progress on the terminal, until it ends or a signal comes.
pub fn run<T>(
    common: &CommonArgs,
    work: impl AsyncFnOnce(&Process) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads(common))
        .enable_all()
        .build()
        .map_err(|source| Failure::Io {
            path: "starting threads".into(),
            source,
        })?;
    let process = Process::new(common)?;
    let display = terminal::Display::start(common, Arc::clone(&process.resources));
    let done = runtime.block_on(signals::until_signal(
        &process.resources.progress,
        work(&process),
    ));
    drop(display);
    drop(process);
    // Work on other threads that nobody waits for any more must not hold up the exit.
    runtime.shutdown_background();
    done
}

fn threads(common: &CommonArgs) -> usize {
    common
        .threads
        .map(usize::from)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The limit that was given, or three quarters of what the machine, or the control group, has.
pub fn memory(common: &CommonArgs) -> usize {
    let bytes = common
        .memory_limit
        .map(|size| size.as_u64())
        .unwrap_or_else(|| {
            let mut system = sysinfo::System::new();
            system.refresh_memory();
            let group = system
                .cgroup_limits()
                .map_or(u64::MAX, |limits| limits.total_memory);
            system.total_memory().min(group) / 4 * 3
        });
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The most memory that the process had, in bytes, where the system says.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}
