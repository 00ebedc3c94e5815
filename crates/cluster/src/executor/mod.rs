//! The executor's process: fetches slices of work from a scheduler, and serves their answers.
//!
//! It starts Ballista's executor with our memory limits, checks every task, shares the batch and its tables among the
//! tasks of a run, and stops when the scheduler has another version. Ballista's own `main` does none of this.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::BALLISTA_PROTOCOL_VERSION;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::executor_resource::Resource;
use ballista_core::serde::protobuf::{
    ExecutorOperatingSystemSpecification, ExecutorRegistration, ExecutorResource,
    ExecutorSpecification,
};
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::LoggingMetricsCollector;
use datafusion_proto::protobuf::LogicalPlanNode;
use engine::Limits;
use engine::resources::Resources;
use storage::{StoreOptions, Stores};
use tokio::sync::Notify;

use self::contact::Contact;
use self::task_check::CheckedEngine;
use crate::error::{ClusterError, Result};
use crate::net::address::Address;
use crate::net::tls::Tls;
use crate::net::{MAX_MESSAGE, listen};
use crate::plan::codec::Codec;
use crate::plan::encoded_check::CheckedNode;
use crate::plan::run_cache::RunCaches;
use crate::plan::session;
use crate::wire::headers::{Announcement, VERSION};

mod contact;
mod task_check;

/// Tasks that an executor gets for each slot: while one computes, another fetches its first fingerprints, or the ids of
/// its pairs.
const TASKS_PER_SLOT: usize = 2;
/// Interval of polls for work while a run is active.
const ACTIVE_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of polls while no run is active. The scheduler also holds its reply to an executor that has nothing to do.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which expired caches of runs are dropped.
const DROP_INTERVAL: Duration = Duration::from_secs(10);

/// Largest number of slots. A slot has two tasks, and a task up to two blocking threads: one writes, and the other
/// computes or reads ids. Ballista's task runtime has 512 blocking threads.
pub const MAX_SLOTS: usize = 128;

/// Settings of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorSettings {
    /// The scheduler.
    pub scheduler: Address,
    /// Address at which it serves answers; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Host name or IP address by which clients reach it. The default is the IP address of `bind`;
    /// if that is unspecified (`0.0.0.0` or `::`), this machine's address on the route to the
    /// scheduler.
    pub advertise: Option<String>,
    /// Number of slices that it computes at the same time, at most [`MAX_SLOTS`].
    pub slots: usize,
    /// Limits on memory, disk and threads.
    pub limits: Limits,
    /// Settings of connections to stores.
    pub stores: StoreOptions,
    /// Directory for answers and batches; it must exist.
    pub directory: PathBuf,
    /// Its key and certificates; without them anyone can connect.
    pub tls: Option<Tls>,
    /// Whether it may listen without TLS at an address that other machines reach.
    pub insecure: bool,
}

/// An executor that has started.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its id.
    pub id: String,
    /// Address at which it serves answers.
    pub address: String,
}

/// Runs an executor until `stop`; calls `ready` once the scheduler accepts the executor. While no
/// scheduler answers, the executor waits.
///
/// # Errors
/// [`ClusterError`] when it cannot listen, or the scheduler has another version;
/// [`ClusterError::Exposed`] when other machines could reach it without TLS.
pub async fn run(
    settings: ExecutorSettings,
    ready: impl FnOnce(&Started),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (incoming, address) =
        listen::listen(settings.bind, settings.tls.as_ref(), settings.insecure).await?;
    let mut stop = std::pin::pin!(stop);
    let host = match &settings.advertise {
        Some(host) => host.clone(),
        None if address.ip().is_unspecified() => tokio::select! {
            own = contact::own_address(&settings.scheduler) => own.to_string(),
            () = &mut stop => return Ok(()),
        },
        None => address.ip().to_string(),
    };
    let started = Started {
        id: uuid::Uuid::new_v4().simple().to_string(),
        address: format!("{host}:{}", address.port()),
    };
    let answers = settings.directory.join("answers");
    let batches = settings.directory.join("batches");
    for directory in [&answers, &batches] {
        create_private_directory(directory)?;
    }

    let internal = |error: engine::EngineError| ClusterError::Task {
        kind: error.kind(),
        message: error.to_string(),
    };
    let resources = Arc::new(Resources::new(Stores::new(settings.stores.clone())));
    let context = engine::session::session(&settings.limits, resources).map_err(internal)?;
    let runtime = context.runtime_env();
    let tasks = settings.slots * TASKS_PER_SLOT;
    let caches = Arc::new(RunCaches::new(
        started.id.clone(),
        settings.stores.clone(),
        batches,
        context,
        settings.slots,
        tasks,
    ));
    let caches_of_tasks = Arc::clone(&caches);
    let executor = Arc::new(Executor::new(
        registration(&started, host, address.port(), tasks),
        &answers.to_string_lossy(),
        Arc::new(move |_| Ok(Arc::clone(&runtime))),
        Arc::new(move || session::session_config().with_extension(Arc::clone(&caches_of_tasks))),
        Arc::new(session::registry()),
        Arc::new(LoggingMetricsCollector::default()),
        tasks,
        Arc::new(CheckedEngine::default()),
    ));

    let endpoint = settings.scheduler.endpoint(settings.tls.as_ref())?;
    let announcement = Announcement {
        version: VERSION.to_owned(),
        slots: settings.slots,
        memory: settings.limits.pool_bytes() as u64,
    };
    let mut contact = Contact::new(
        endpoint.connect_lazy(),
        &announcement,
        executor.metadata.clone(),
        settings.scheduler.clone(),
    )?;
    let codec = BallistaCodec::<LogicalPlanNode, CheckedNode>::new(
        Arc::new(ballista_core::serde::BallistaLogicalExtensionCodec::default()),
        Arc::new(Codec::default()),
    );
    let mut builder = listen::server(settings.tls.as_ref())?;
    let flight = FlightServiceServer::new(BallistaFlightService::new(
        answers.to_string_lossy().into_owned(),
    ))
    .max_encoding_message_size(MAX_MESSAGE)
    .max_decoding_message_size(MAX_MESSAGE);
    let serving = builder.add_service(flight).serve_with_incoming(incoming);

    // Ballista's loop polls a scheduler of another version for ever, so this call checks the
    // version first.
    tokio::select! {
        accepted = contact.wait_until_accepted() => accepted?,
        () = &mut stop => return Ok(()),
    }
    ready(&started);
    let health = ExecutorHealth::new();
    let wake = Arc::new(Notify::new());
    let polling = poll_loop(
        contact.scheduler(),
        executor,
        codec,
        Some(Arc::clone(&wake)),
        None,
        health.clone(),
    );
    let done = tokio::select! {
        ended = polling => Err(ClusterError::Internal(format!("asking for work ended: {ended:?}"))),
        served = serving => served.map_err(|error| ClusterError::Internal(storage::plain_message(&error))),
        () = drop_expired_caches(&caches) => Ok(()),
        () = wake_regularly(&caches, &wake) => Ok(()),
        refused = contact.clone().wait_until_refused(&health) => Err(refused),
        () = &mut stop => Ok(()),
    };
    contact.leave(started.id).await;
    done
}

/// Creates a directory that others cannot read: Ballista writes answers with default permissions.
fn create_private_directory(directory: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| ClusterError::Internal(format!("{}: {error}", directory.display())))
}

/// Wakes Ballista's poll loop every [`ACTIVE_INTERVAL`] while a run is active, otherwise every
/// [`IDLE_INTERVAL`]. By itself the loop sleeps for 1 s.
async fn wake_regularly(caches: &RunCaches, wake: &Notify) {
    loop {
        let pause = match caches.any_active() {
            true => ACTIVE_INTERVAL,
            false => IDLE_INTERVAL,
        };
        tokio::time::sleep(pause).await;
        wake.notify_one();
    }
}

/// Drops expired caches every [`DROP_INTERVAL`].
async fn drop_expired_caches(caches: &RunCaches) {
    loop {
        tokio::time::sleep(DROP_INTERVAL).await;
        caches.drop_expired();
    }
}

/// Returns the executor's registration with Ballista's scheduler.
fn registration(started: &Started, host: String, port: u16, tasks: usize) -> ExecutorRegistration {
    let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
    ExecutorRegistration {
        id: started.id.clone(),
        host: Some(host),
        port: u32::from(port),
        // The scheduler never calls an executor: executors fetch their work.
        grpc_port: 0,
        specification: Some(ExecutorSpecification {
            resources: vec![ExecutorResource {
                resource: Some(Resource::Vcores(tasks)),
            }],
        }),
        os_info: Some(ExecutorOperatingSystemSpecification::default()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    }
}
