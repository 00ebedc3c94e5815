//! What a command runs with: threads, a memory limit, a scratch directory, a DataFusion session and
//! a runtime.

use std::io::Write as _;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use engine::Limits;
use engine::resources::Resources;
use storage::{Draft, Location, StorageError, Stores};
use tokio::runtime::Runtime;

use crate::args::CommonArgs;
use crate::control_groups;
use crate::exit::Failure;
use crate::panics;
use crate::progress::Display;
use crate::scratch::Scratch;
use crate::signals::StopSignals;

/// A session with its resources and its scratch directory.
pub struct Process {
    pub context: SessionContext,
    pub resources: Arc<Resources>,
    pub scratch: Scratch,
}

impl Process {
    /// The object stores and the local file system that paths refer to.
    pub fn stores(&self) -> &Stores {
        &self.resources.stores
    }

    /// The number of threads: --threads, or one per core.
    pub fn threads(&self) -> usize {
        self.context.state().config().target_partitions()
    }

    /// Writes a file, whole or not at all.
    pub async fn write(&self, place: &Location, bytes: &[u8]) -> Result<(), Failure> {
        let draft = Draft::new(place, self.scratch.path())?;
        let written = draft.open()?.write_all(bytes);
        written.map_err(StorageError::io(place))?;
        Ok(draft.publish().await?)
    }

    /// The location of a path or URL.
    pub fn locate(&self, path: &str) -> Result<Location, Failure> {
        Ok(self.stores().locate(path)?)
    }

    fn new(common: &CommonArgs) -> Result<Self, Failure> {
        let scratch = Scratch::create(common)?;
        let stores = Stores::new(common.storage.options());
        let mut resources = Resources::new(stores);
        // The page cache may take half of the memory; this and other processes need the rest.
        resources.cache = Some(memory() / 2);
        let resources = Arc::new(resources);
        let limits = Limits {
            threads: threads(common),
            memory: memory_limit(common),
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

/// Runs `work` in a runtime, with progress on standard error, until it ends or a signal arrives.
pub fn run<T>(
    common: &CommonArgs,
    work: impl AsyncFnOnce(&Process) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_with_signals(
        common,
        async |process: &Process, signals: &mut StopSignals| {
            let _display = Display::start(common, Arc::clone(&process.resources));
            let progress = &process.resources.progress;
            let done = signals.interrupt(progress, work(process)).await;
            done.map_err(|failure| match &failure {
                Failure::Engine(error) => match error.as_full_scratch() {
                    Some(full) => {
                        let directory = process.scratch.parent().display();
                        let full = std::io::Error::new(full.kind(), full.to_string());
                        StorageError::io(format!("the scratch directory {directory}"))(full).into()
                    }
                    None => failure,
                },
                _ => failure,
            })
        },
    )
}

/// Runs `work`, which acts on signals itself, in a runtime; there is no progress to show.
pub fn run_with_signals<T>(
    common: &CommonArgs,
    work: impl AsyncFnOnce(&Process, &mut StopSignals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut signals = StopSignals::listen()?;
    let runtime = runtime(threads(common))?;
    let process = Process::new(common)?;
    let done = panics::caught(|| runtime.block_on(work(&process, &mut signals)));
    drop(process);
    // Abandoned work on other threads must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Threads for short blocking work: tokio's default.
const BLOCKING: usize = 512;

/// A runtime with this many worker threads.
fn runtime(threads: usize) -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        // Each running partition of files of rows in an object store occupies a blocking thread for each file that it opens ahead.
        .max_blocking_threads(BLOCKING + 40 * threads)
        .enable_all()
        .build();
    Ok(runtime.map_err(StorageError::io("starting threads"))?)
}

/// The number of threads: --threads, or one per core.
pub fn threads(common: &CommonArgs) -> usize {
    common
        .threads
        .map(usize::from)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The memory limit in bytes: --memory-limit, or three quarters of the memory of the machine or of
/// its control group.
pub fn memory_limit(common: &CommonArgs) -> usize {
    let given = common.memory_limit.map(|size| size.as_u64());
    let bytes = given.unwrap_or_else(|| memory() / 4 * 3);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes of memory of the machine, or less if the control groups of the process allow less.
pub fn memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let groups = control_groups::memory_limit().unwrap_or(u64::MAX);
    system.total_memory().min(groups)
}

/// Raises the limit on open files to the system's maximum: `--kept` holds one draft open per copied
/// file.
pub fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If this fails, the present limit still suffices for all but large batches.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// The peak memory of the process in bytes, if the system reports it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}
