//! What the process works with: threads, memory, a scratch directory, the session, the runtime.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive::{Location, Stores};
use datafusion::prelude::SessionContext;
use engine::Limits;
use engine::resources::Resources;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::args::{Command, CommonArgs};
use crate::exit::Failure;
use crate::{signals, terminal};

/// A session with its resources, and the scratch directory that goes when it does.
pub struct Process {
    pub context: SessionContext,
    pub resources: Arc<Resources>,
    pub scratch: Scratch,
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
        let scratch = scratch(common)?;
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
    let runtime = runtime(threads(common))?;
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

/// Threads for work that blocks, beside those that hold one for long: tokio's own default.
const BLOCKING: usize = 512;

/// A runtime with so many threads.
pub fn runtime(threads: usize) -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        // Files of rows are parsed on one for each partition, and wait there for others that read from the disk.
        .max_blocking_threads(BLOCKING + threads)
        .enable_all()
        .build()
        .map_err(|source| Failure::Io {
            path: "starting threads".into(),
            source,
        })
}

/// A directory of the process, which goes when it is dropped.
pub struct Scratch {
    directory: TempDir,
    /// Locked as long as the process lives.
    _lock: File,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// What directories of this program begin with.
const PREFIX: &str = "dedup-job-";
/// A file in them that is locked while their process lives.
const LOCK: &str = ".lock";
/// Younger directories are left alone: their lock may be on its way.
const YOUNG: Duration = Duration::from_secs(60);

/// Makes a directory for the process, and removes those of processes that were killed.
pub fn scratch(common: &CommonArgs) -> Result<Scratch, Failure> {
    let parent = match &common.scratch {
        Some(given) if !is_in_store(given) => PathBuf::from(given),
        _ => std::env::temp_dir(),
    };
    sweep(&parent);
    let failed = |source| Failure::Io {
        path: parent.display().to_string(),
        source,
    };
    let directory = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(&parent)
        .map_err(failed)?;
    let lock = File::create(directory.path().join(LOCK)).map_err(failed)?;
    // A file system that knows no locks keeps what killed processes leave.
    let _ = lock.try_lock();
    Ok(Scratch {
        directory,
        _lock: lock,
    })
}

/// Removes directories whose processes are gone. What cannot be removed is somebody else's.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if !is_ours || age().is_none_or(|age| age < YOUNG) {
            continue;
        }
        if let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a path is one in a store.
pub fn is_in_store(path: &str) -> bool {
    path.contains("://")
}

/// Refuses a scratch prefix in a store where nothing would be put there.
pub fn check_scratch(common: &CommonArgs, command: &Command) -> Result<(), Failure> {
    let is_for_cluster = matches!(command, Command::Run(args) if args.remote.cluster.is_some());
    match &common.scratch {
        Some(given) if is_in_store(given) && !is_for_cluster => Err(Failure::Usage(format!(
            "--scratch {given}: a local directory is needed; only run --cluster takes a prefix in a store"
        ))),
        _ => Ok(()),
    }
}

/// The threads that were asked for, or one per core.
pub fn threads(common: &CommonArgs) -> usize {
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
