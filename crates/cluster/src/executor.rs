//! An executor's process: fetches slices of work from a scheduler, and serves their answers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive::{StoreOptions, Stores};
use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::BALLISTA_PROTOCOL_VERSION;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::executor_resource::Resource;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    ExecutorOperatingSystemSpecification, ExecutorRegistration, ExecutorResource,
    ExecutorSpecification, ExecutorStoppedParams, PollWorkParams,
};
use ballista_executor::execution_engine::DefaultExecutionEngine;
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::ExecutorMetricsCollector;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use engine::Limits;
use engine::resources::Resources;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::client::Address;
use crate::codec::Codec;
use crate::error::{ClusterError, Result};
use crate::listen;
use crate::protocol::{Announcement, EXECUTOR, VERSION};
use crate::registration::{self, MESSAGE};
use crate::runs::Runs;
use crate::tls::Tls;

/// Slices that an executor is given for each slot: while one is computed the first bytes of the next are on their way,
/// and the ids of the last one's hits.
const TASKS_PER_SLOT: usize = 2;
/// How soon an executor that was given nothing asks again, while runs go on and else; the scheduler takes its time to
/// answer one that has nothing at all to do.
const ASK_OFTEN: Duration = Duration::from_millis(20);
const ASK_SELDOM: Duration = Duration::from_millis(100);
/// How often it is looked whether runs are over.
const CHECK: Duration = Duration::from_secs(10);
/// How often it is looked whether the scheduler answers.
const HEALTH: Duration = Duration::from_secs(1);

/// Slots of an executor at most: each of its tasks has a thread that writes and one that computes, of 512 that the runtime of
/// Ballista's tasks has.
pub const MOST_SLOTS: usize = 128;

/// How an executor runs.
#[derive(Debug, Clone)]
pub struct ExecutorSettings {
    /// The scheduler.
    pub scheduler: Address,
    /// Where it serves answers; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The name or address that others reach it by; by default that of `bind`, or else the one that leads to the scheduler.
    pub advertise: Option<String>,
    /// Slices that it works on at the same time, [`MOST_SLOTS`] at most.
    pub slots: usize,
    /// What it may use.
    pub limits: Limits,
    /// How it reaches stores.
    pub stores: StoreOptions,
    /// Directory for answers and batches; it must exist.
    pub directory: PathBuf,
    /// Its keys; without them connections are open to everybody.
    pub tls: Option<Tls>,
}

/// An executor that has started.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its name.
    pub id: String,
    /// Where it serves answers.
    pub address: String,
}

/// Runs an executor until `stop`; `ready` is told its name and where it serves answers. It waits for a scheduler that is
/// not there, or goes away.
///
/// # Errors
/// [`ClusterError`] when it cannot listen, or is of another version than the scheduler.
pub async fn run(
    settings: ExecutorSettings,
    ready: impl FnOnce(&Started),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (incoming, address) = listen::listen(settings.bind).await?;
    let mut stop = std::pin::pin!(stop);
    let host = match &settings.advertise {
        Some(host) => host.clone(),
        None if address.ip().is_unspecified() => tokio::select! {
            own = own_address(&settings.scheduler) => own.to_string(),
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
        std::fs::create_dir_all(directory)
            .map_err(|error| ClusterError::Internal(format!("{}: {error}", directory.display())))?;
    }

    let internal = |error: engine::EngineError| ClusterError::Task {
        kind: error.kind(),
        message: error.to_string(),
    };
    let resources = Arc::new(Resources::new(Stores::new(settings.stores.clone())));
    let context = engine::session::session(&settings.limits, resources).map_err(internal)?;
    let runtime = context.runtime_env();
    let tasks = settings.slots * TASKS_PER_SLOT;
    let runs = Arc::new(Runs::new(
        started.id.clone(),
        settings.stores.clone(),
        batches,
        context,
        settings.slots,
        tasks,
    ));
    let of_tasks = Arc::clone(&runs);
    let executor = Arc::new(Executor::new(
        registration_of(&started, host, address.port(), tasks),
        &answers.to_string_lossy(),
        Arc::new(move |_| Ok(Arc::clone(&runtime))),
        Arc::new(move || registration::config().with_extension(Arc::clone(&of_tasks))),
        Arc::new(registration::registry()),
        Arc::new(NoMetrics),
        tasks,
        Arc::new(DefaultExecutionEngine::new()),
    ));

    let endpoint = settings.scheduler.endpoint(settings.tls.as_ref())?;
    let announcement = Announcement {
        version: VERSION.to_owned(),
        slots: settings.slots,
        memory: settings.limits.counted() as u64,
    };
    let announce = Announce::new(&announcement)?;
    let mut scheduler = SchedulerGrpcClient::with_interceptor(endpoint.connect_lazy(), announce)
        .max_encoding_message_size(MESSAGE)
        .max_decoding_message_size(MESSAGE);
    let codec = BallistaCodec::<LogicalPlanNode, PhysicalPlanNode>::new(
        Arc::new(ballista_core::serde::BallistaLogicalExtensionCodec::default()),
        Arc::new(Codec::default()),
    );
    let mut builder = listen::server(settings.tls.as_ref())?;
    let flight = FlightServiceServer::new(BallistaFlightService::new(
        answers.to_string_lossy().into_owned(),
    ))
    .max_encoding_message_size(MESSAGE)
    .max_decoding_message_size(MESSAGE);
    let serving = builder.add_service(flight).serve_with_incoming(incoming);

    // Its version is judged before it asks for work, which it does for as long as it lives.
    tokio::select! {
        greeted = greet(&mut scheduler, &executor.metadata, &settings.scheduler) => greeted?,
        () = &mut stop => return Ok(()),
    }
    ready(&started);
    let health = ExecutorHealth::new();
    let wake = Arc::new(Notify::new());
    let metadata = executor.metadata.clone();
    let polling = poll_loop(
        scheduler.clone(),
        executor,
        codec,
        Some(Arc::clone(&wake)),
        None,
        health.clone(),
    );
    let done = tokio::select! {
        ended = polling => Err(ClusterError::Internal(format!("asking for work ended: {ended:?}"))),
        served = serving => served.map_err(|error| ClusterError::Internal(archive::error::told(&error))),
        () = look_after(&runs) => Ok(()),
        () = ask(&runs, &wake) => Ok(()),
        refused = report(&health, scheduler.clone(), &metadata, &settings.scheduler) => Err(refused),
        () = &mut stop => Ok(()),
    };
    let stopped = ExecutorStoppedParams {
        executor_id: started.id,
        reason: "it was stopped".into(),
    };
    // What it had is handed out again at once, and not only when it is missed.
    let _ = tokio::time::timeout(HEALTH, scheduler.executor_stopped(stopped)).await;
    done
}

type Scheduler = SchedulerGrpcClient<InterceptedService<Channel, Announce>>;

/// Asks the scheduler for no work, to see whether it would give any.
async fn ask_for_nothing(
    scheduler: &mut Scheduler,
    metadata: &ExecutorRegistration,
    address: &Address,
) -> Result<()> {
    let poll = PollWorkParams {
        metadata: Some(metadata.clone()),
        num_free_vcores: 0,
        task_status: Vec::new(),
    };
    match scheduler.poll_work(poll).await {
        Ok(_) => Ok(()),
        Err(status) if status.code() == tonic::Code::FailedPrecondition => {
            Err(ClusterError::Version {
                address: address.to_string(),
                reason: status.message().to_owned(),
            })
        }
        Err(status) => Err(ClusterError::Unreachable {
            address: address.to_string(),
            reason: crate::client::told(&status),
        }),
    }
}

/// Waits for a scheduler that would give work.
async fn greet(
    scheduler: &mut Scheduler,
    metadata: &ExecutorRegistration,
    address: &Address,
) -> Result<()> {
    let mut waited = false;
    loop {
        match ask_for_nothing(scheduler, metadata, address).await {
            Err(error @ ClusterError::Unreachable { .. }) => {
                if !std::mem::replace(&mut waited, true) {
                    tracing::warn!("{error}; waiting for the scheduler");
                }
                tokio::time::sleep(HEALTH).await;
            }
            other => return other,
        }
    }
}

/// Has an executor without work ask for some: often while there are runs, else seldom.
async fn ask(runs: &Runs, wake: &Notify) {
    loop {
        let pause = match runs.are_going_on() {
            true => ASK_OFTEN,
            false => ASK_SELDOM,
        };
        tokio::time::sleep(pause).await;
        wake.notify_one();
    }
}

/// Lets go of runs that are over.
async fn look_after(runs: &Runs) {
    loop {
        tokio::time::sleep(CHECK).await;
        runs.drop_old();
    }
}

/// Says when the scheduler goes, and when it is back; ends when it is back with another version.
async fn report(
    health: &ExecutorHealth,
    mut scheduler: Scheduler,
    metadata: &ExecutorRegistration,
    address: &Address,
) -> ClusterError {
    let mut was = true;
    loop {
        tokio::time::sleep(HEALTH).await;
        let is = health.is_ready();
        if !is
            && let Err(error @ ClusterError::Version { .. }) =
                ask_for_nothing(&mut scheduler, metadata, address).await
        {
            return error;
        }
        match (was, is) {
            (true, false) => {
                tracing::warn!("{address}: the scheduler does not answer; waiting for it")
            }
            (false, true) => tracing::warn!("{address}: the scheduler is back"),
            _ => {}
        }
        was = is;
    }
}

/// The address of this machine by which the scheduler is reached; waits for a name that is not known yet.
async fn own_address(scheduler: &Address) -> IpAddr {
    let mut waited = false;
    loop {
        let found = async {
            let socket = UdpSocket::bind("0.0.0.0:0").await?;
            // Nothing is sent.
            socket.connect((scheduler.host(), scheduler.port())).await?;
            socket.local_addr()
        };
        match found.await {
            Ok(address) => return address.ip(),
            Err(error) if !std::mem::replace(&mut waited, true) => tracing::warn!(
                "{scheduler}: no way there: {error}; waiting for one (--advertise says what this executor is reached by)"
            ),
            Err(_) => {}
        }
        tokio::time::sleep(HEALTH).await;
    }
}

fn registration_of(
    started: &Started,
    host: String,
    port: u16,
    tasks: usize,
) -> ExecutorRegistration {
    let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
    ExecutorRegistration {
        id: started.id.clone(),
        host: Some(host),
        port: u32::from(port),
        // It has none: it asks, and is not told.
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

/// Adds what an executor says of itself to its calls.
#[derive(Debug, Clone)]
struct Announce(AsciiMetadataValue);

impl Announce {
    fn new(announcement: &Announcement) -> Result<Self> {
        let internal = |error: String| ClusterError::Internal(error);
        let text =
            serde_json::to_string(announcement).map_err(|error| internal(error.to_string()))?;
        let value =
            AsciiMetadataValue::try_from(text).map_err(|error| internal(error.to_string()))?;
        Ok(Self(value))
    }
}

impl Interceptor for Announce {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(EXECUTOR, self.0.clone());
        Ok(request)
    }
}

/// Ballista's own would print every plan.
struct NoMetrics;

impl ExecutorMetricsCollector for NoMetrics {
    fn record_stage(
        &self,
        _: &ballista_core::JobId,
        _: usize,
        _: usize,
        _: Arc<dyn ballista_executor::execution_engine::QueryStageExecutor>,
    ) {
    }
}
