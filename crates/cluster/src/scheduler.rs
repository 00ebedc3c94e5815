//! The scheduler's process: Ballista's scheduler, behind a service that knows what ours need besides.
//!
//! Executors fetch their work, so that every connection is opened towards a server of ours, which can be had with
//! mutual TLS. What is added to Ballista's calls: versions are compared, tasks that were lost on the way are handed out
//! again, clients are told how far their job is, and jobs end whose client is gone.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::{SchedulerGrpc, SchedulerGrpcServer};
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult,
    CreateUpdateSessionParams, CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult,
    ExecutorStoppedParams, ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult,
    GetJobStatusParams, GetJobStatusResult, HeartBeatParams, HeartBeatResult, PollWorkParams,
    PollWorkResult, RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams,
    RemoveSessionResult, TaskDefinition, UpdateTaskStatusParams, UpdateTaskStatusResult,
    execute_query_params::Query, execute_query_result, job_status, task_status,
};
use ballista_core::serde::scheduler::ExecutorSpecification;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use engine::probe::ProbeExec;
use tonic::{Request, Response, Status};

use crate::answer::AnswerExec;
use crate::codec::Codec;
use crate::error::{ClusterError, Result};
use crate::fingerprint::FingerprintExec;
use crate::listen;
use crate::outstanding::Outstanding;
use crate::protocol::{self, Announcement, CLIENT, EXECUTOR, STATE, State, VERSION, WAIT};
use crate::registration::{self, MESSAGE};
use crate::tls::Tls;

/// How often executors that do not call are looked for.
const CHECK: Duration = Duration::from_secs(2);
/// For how long clients and executors are held that would only ask again, and how often it is looked for news meanwhile.
const HOLD_CLIENT: Duration = Duration::from_millis(500);
const HOLD_EXECUTOR: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// How often a slice is handed out at most: when so many executors are lost with it, the slice is what kills them.
const HAND_OUTS: u32 = 6;
/// For how long a client may not ask about its job before the job ends.
const CLIENT_GONE: Duration = Duration::from_secs(60);

/// How a scheduler runs.
#[derive(Debug, Clone)]
pub struct SchedulerSettings {
    /// Where it listens; port 0 takes a free one.
    pub bind: SocketAddr,
    /// For how long an executor may not call before it is lost. A busy one calls every five seconds.
    pub executor_timeout: Duration,
    /// Its keys; without them connections are open to everybody.
    pub tls: Option<Tls>,
}

/// Runs a scheduler until `stop`; `ready` is told where it listens.
///
/// # Errors
/// [`ClusterError`] when it cannot listen.
pub async fn run(
    settings: SchedulerSettings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (incoming, address) = listen::listen(settings.bind).await?;
    let internal = |error: ballista_core::error::BallistaError| {
        ClusterError::Internal(format!("the scheduler cannot start: {error}"))
    };
    let config = Arc::new(SchedulerConfig {
        external_host: address.ip().to_string(),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: settings.executor_timeout.as_secs().max(1),
        expire_dead_executor_interval_seconds: CHECK.as_secs(),
        // The client knows for how long it wants to wait.
        no_executors_grace_period_seconds: u64::from(u32::MAX),
        grpc_server_max_decoding_message_size: MESSAGE as u32,
        grpc_server_max_encoding_message_size: MESSAGE as u32,
        // A job's answers go when its client says so, or is gone.
        finished_job_data_clean_up_interval_seconds: 0,
        // It is not for the scheduler to call executors: that would only wait for nothing.
        override_create_grpc_client_endpoint: Some(Arc::new(|_| {
            Err("executors are not called".into())
        })),
        override_physical_codec: Some(Arc::new(Codec::default())),
        override_config_producer: Some(Arc::new(registration::config)),
        ..SchedulerConfig::default()
    });
    let cluster = BallistaCluster::new_from_config(&config)
        .await
        .map_err(internal)?;
    let server = create_scheduler(cluster, config).await.map_err(internal)?;
    let scheduler = Scheduler {
        server: Arc::new(server),
        seen: Arc::default(),
    };
    let watch = tokio::spawn(scheduler.clone().watch(settings.executor_timeout));
    let service = SchedulerGrpcServer::new(scheduler)
        .max_encoding_message_size(MESSAGE)
        .max_decoding_message_size(MESSAGE);
    let mut builder = listen::server(settings.tls.as_ref())?;
    ready(address);
    let served = builder.add_service(service).serve_with_incoming(incoming);
    let done = tokio::select! {
        served = served => served.map_err(|error| ClusterError::Internal(archive::error::told(&error))),
        () = stop => Ok(()),
    };
    watch.abort();
    done
}

/// Ballista's scheduler, and what was seen of its executors and clients.
#[derive(Clone)]
struct Scheduler {
    server: Arc<SchedulerServer<LogicalPlanNode, PhysicalPlanNode>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    executors: HashMap<String, Executor>,
    /// When the client of a job last asked.
    jobs: HashMap<String, Instant>,
    /// How often each slice of a job was handed out.
    handed_out: HashMap<String, HashMap<u32, u32>>,
    /// Jobs that were ended because of a slice.
    doomed: HashMap<String, u32>,
}

impl Seen {
    /// Counts tasks that are handed out; gives jobs of which one was too often.
    fn count(&mut self, tasks: &[TaskDefinition]) -> Vec<String> {
        let mut doomed = Vec::new();
        for task in tasks {
            let counts = self.handed_out.entry(task.job_id.clone()).or_default();
            for slice in &task.global_output_partition_ids {
                let count = counts.entry(*slice).or_default();
                *count += 1;
                if *count > HAND_OUTS && !self.doomed.contains_key(&task.job_id) {
                    self.doomed.insert(task.job_id.clone(), *slice);
                    doomed.push(task.job_id.clone());
                }
            }
        }
        doomed
    }

    /// Forgets a job that has ended.
    fn forget(&mut self, job: &str) {
        self.jobs.remove(job);
        self.handed_out.remove(job);
        self.doomed.remove(job);
    }
}

struct Executor {
    slots: usize,
    memory: u64,
    called: Instant,
    tasks: Outstanding,
}

impl Scheduler {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after what nobody asks about any more.
    async fn watch(self, executor_timeout: Duration) {
        loop {
            tokio::time::sleep(CHECK).await;
            let mut gone = Vec::new();
            {
                let mut seen = self.seen();
                seen.executors.retain(|id, executor| {
                    let alive = executor.called.elapsed() < executor_timeout;
                    if !alive {
                        tracing::warn!(executor = id, "an executor is lost: it does not call");
                    }
                    alive
                });
                seen.jobs.retain(|job, asked| {
                    let there = asked.elapsed() < CLIENT_GONE;
                    if !there {
                        gone.push(job.clone());
                    }
                    there
                });
                for job in &gone {
                    seen.forget(job);
                }
                let Seen {
                    executors, jobs, ..
                } = &mut *seen;
                for executor in executors.values_mut() {
                    executor.tasks.retain(jobs);
                }
            }
            for job in gone {
                tracing::warn!(job, "the client of a job is gone: the job ends");
                // Of a job that is done there is nothing to cancel, but results to clean up.
                let _ = self.server.cancel_job(JobId::new(job.as_str())).await;
                let clean = Request::new(CleanJobDataParams {
                    job_id: job,
                    remove_stage_ids: Vec::new(),
                });
                let _ = self.server.clean_job_data(clean).await;
            }
        }
    }

    /// What an executor says and wants.
    async fn poll(
        &self,
        request: Request<PollWorkParams>,
    ) -> Result<Response<PollWorkResult>, Status> {
        let said: Option<Announcement> = protocol::get(request.metadata(), EXECUTOR);
        check(said.as_ref().map(|said| said.version.as_str()))?;
        let (slots, memory) = said.map_or((0, 0), |said| (said.slots, said.memory));
        let params = request.get_ref();
        let Some(executor) = &params.metadata else {
            return Err(Status::invalid_argument("an executor without a name"));
        };
        let id = executor.id.clone();
        let specification: ExecutorSpecification =
            executor.specification.clone().unwrap_or_default().into();
        let busy = specification.vcores.saturating_sub(params.num_free_vcores) as usize;
        let now = Instant::now();
        let lost = {
            let mut seen = self.seen();
            let is_new = !seen.executors.contains_key(&id);
            let known = seen
                .executors
                .entry(id.clone())
                .or_insert_with(|| Executor {
                    slots,
                    memory,
                    called: now,
                    tasks: Outstanding::default(),
                });
            known.called = now;
            if is_new {
                tracing::info!(executor = id, slots, "an executor has come");
            }
            known.tasks.report(&params.task_status, busy, now)
        };
        let again = PollWorkParams {
            task_status: Vec::new(),
            ..params.clone()
        };
        let response = self.server.poll_work(request).await;
        if lost {
            tracing::warn!(
                executor = id,
                "tasks were lost on the way to or from an executor: they are handed out again"
            );
            let stopped = ExecutorStoppedParams {
                executor_id: id.clone(),
                reason: "it does not know of its tasks".into(),
            };
            // It comes again with its next call.
            self.server.executor_stopped(Request::new(stopped)).await?;
        }
        let mut response = response?;
        // So is an executor that has nothing to do.
        while busy == 0 && is_empty(response.get_ref()) && now.elapsed() < HOLD_EXECUTOR {
            tokio::time::sleep(LOOK).await;
            if !self
                .server
                .state
                .task_manager
                .get_running_job_cache()
                .is_empty()
            {
                response = self.server.poll_work(Request::new(again.clone())).await?;
            }
        }
        let tasks = &mut response.get_mut().tasks;
        for task in tasks.iter_mut() {
            // Thousands of bytes, and all of them what the executor has anyway.
            task.props.clear();
        }
        let doomed = {
            let mut seen = self.seen();
            if let Some(known) = seen.executors.get_mut(&id) {
                known.tasks.hand_out(tasks);
            }
            seen.count(tasks)
        };
        for job in doomed {
            tracing::warn!(
                job,
                "a slice of work loses every executor that has it: the job ends"
            );
            self.server
                .cancel_job(JobId::new(job.as_str()))
                .await
                .map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(response)
    }

    /// The state of the cluster, and of a job.
    async fn state(&self, job: &str) -> State {
        let (executors, slots, memory, doomed) = {
            let seen = self.seen();
            let all = seen.executors.values();
            (
                seen.executors.len(),
                all.clone().map(|executor| executor.slots).sum(),
                all.map(|executor| executor.memory).min().unwrap_or(0),
                seen.doomed.get(job).copied(),
            )
        };
        let (mut done, mut began) = (0, None);
        let jobs = self.server.state.task_manager.get_running_job_cache();
        if let Some(job) = jobs.get(&JobId::new(job)) {
            let graph = job.execution_graph.read().await;
            let tasks = graph
                .stages()
                .values()
                .filter_map(|stage| stage.task_infos());
            for task in tasks.flatten() {
                if matches!(task.task_status, task_status::Status::Successful(_)) {
                    done += task.global_input_partition_ids.len();
                }
                let launched = u64::try_from(task.scheduled_time).ok();
                began = [began, launched].into_iter().flatten().min();
            }
        }
        State {
            version: VERSION.to_owned(),
            executors,
            slots,
            memory,
            done,
            began,
            doomed,
        }
    }
}

/// Whether a job may yet change.
fn is_going_on(result: &GetJobStatusResult) -> bool {
    let status = result.status.as_ref().and_then(|job| job.status.as_ref());
    !matches!(
        status,
        Some(job_status::Status::Successful(_) | job_status::Status::Failed(_))
    )
}

/// Whether an executor has nothing to do by this.
fn is_empty(result: &PollWorkResult) -> bool {
    result.tasks.is_empty() && result.jobs_to_clean.is_empty()
}

/// Refuses a process of another version, or of another program.
fn check(version: Option<&str>) -> Result<(), Status> {
    match version {
        Some(VERSION) => Ok(()),
        version => Err(Status::failed_precondition(format!(
            "the scheduler is dedup-job {VERSION}, this is {}: all processes of a cluster, and its clients, are of one version",
            version.unwrap_or("another program")
        ))),
    }
}

/// Refuses what no process of ours asks for: what is let through is what can be done with this port.
fn refused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("this is a scheduler of dedup-job"))
}

/// Refuses plans that are not ours: with those of others, whoever reaches this port could read the executors' files.
fn check_plan(query: Option<&Query>) -> Result<(), Status> {
    let bad = |reason: String| Status::invalid_argument(format!("no plan of dedup-job: {reason}"));
    let Some(Query::PhysicalPlan(bytes)) = query else {
        return Err(bad("it is not physical".into()));
    };
    let plan = PhysicalPlanNode::try_decode(bytes)
        .and_then(|plan| plan.try_into_physical_plan(&TaskContext::default(), &Codec::default()))
        .map_err(|error| bad(error.to_string()))?;
    match is_ours(plan.as_ref()) {
        true => Ok(()),
        false => Err(bad("it has other operators".into())),
    }
}

/// Answers of a map over a table in the plan itself.
fn is_ours(plan: &dyn ExecutionPlan) -> bool {
    let child = |plan: &dyn ExecutionPlan| match plan.children().as_slice() {
        [child] => Some(Arc::clone(child)),
        _ => None,
    };
    let map = child(plan).filter(|_| plan.is::<AnswerExec>());
    let map = map.filter(|map| map.is::<ProbeExec>() || map.is::<FingerprintExec>());
    let table = map.and_then(|map| child(map.as_ref()));
    table.is_some_and(|table| {
        let source = table.downcast_ref::<DataSourceExec>();
        source.is_some_and(|source| {
            let source: &dyn std::any::Any = source.data_source().as_ref();
            source.is::<MemorySourceConfig>()
        })
    })
}

#[tonic::async_trait]
impl SchedulerGrpc for Scheduler {
    type ExecuteQueryPushStream = futures::stream::Empty<Result<GetJobStatusResult, Status>>;

    async fn poll_work(
        &self,
        request: Request<PollWorkParams>,
    ) -> Result<Response<PollWorkResult>, Status> {
        // To its end, even if the executor hangs up: tasks that are taken out must be noted.
        let scheduler = self.clone();
        let polled = tokio::spawn(async move { scheduler.poll(request).await }).await;
        polled.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    async fn execute_query(
        &self,
        request: Request<ExecuteQueryParams>,
    ) -> Result<Response<ExecuteQueryResult>, Status> {
        let version: Option<String> = protocol::get(request.metadata(), CLIENT);
        check(version.as_deref())?;
        check_plan(request.get_ref().query.as_ref())?;
        let response = self.server.execute_query(request).await?;
        if let Some(execute_query_result::Result::Success(job)) = &response.get_ref().result {
            let job = job.job_id.clone();
            self.seen().jobs.insert(job, Instant::now());
        }
        Ok(response)
    }

    async fn get_job_status(
        &self,
        request: Request<GetJobStatusParams>,
    ) -> Result<Response<GetJobStatusResult>, Status> {
        let job = request.get_ref().job_id.clone();
        if let Some(asked) = self.seen().jobs.get_mut(&job) {
            *asked = Instant::now();
        }
        // A client that would only ask again is answered when there is something to say.
        let begin = Instant::now();
        let patience = match request.metadata().contains_key(WAIT) {
            true => HOLD_CLIENT,
            false => Duration::ZERO,
        };
        let mut response = self.server.get_job_status(request).await?;
        while is_going_on(response.get_ref()) && begin.elapsed() < patience {
            tokio::time::sleep(LOOK).await;
            let again = GetJobStatusParams {
                job_id: job.clone(),
            };
            response = self.server.get_job_status(Request::new(again)).await?;
        }
        let state = self.state(&job).await;
        protocol::insert(response.metadata_mut(), STATE, &state);
        Ok(response)
    }

    async fn clean_job_data(
        &self,
        request: Request<CleanJobDataParams>,
    ) -> Result<Response<CleanJobDataResult>, Status> {
        self.seen().forget(&request.get_ref().job_id);
        self.server.clean_job_data(request).await
    }

    async fn executor_stopped(
        &self,
        request: Request<ExecutorStoppedParams>,
    ) -> Result<Response<ExecutorStoppedResult>, Status> {
        let id = &request.get_ref().executor_id;
        tracing::info!(executor = id, "an executor has left");
        self.seen().executors.remove(id);
        self.server.executor_stopped(request).await
    }

    async fn cancel_job(
        &self,
        request: Request<CancelJobParams>,
    ) -> Result<Response<CancelJobResult>, Status> {
        tracing::info!(job = request.get_ref().job_id, "a job is cancelled");
        SchedulerGrpc::cancel_job(self.server.as_ref(), request).await
    }

    async fn register_executor(
        &self,
        _: Request<RegisterExecutorParams>,
    ) -> Result<Response<RegisterExecutorResult>, Status> {
        refused()
    }

    async fn heart_beat_from_executor(
        &self,
        _: Request<HeartBeatParams>,
    ) -> Result<Response<HeartBeatResult>, Status> {
        refused()
    }

    async fn update_task_status(
        &self,
        _: Request<UpdateTaskStatusParams>,
    ) -> Result<Response<UpdateTaskStatusResult>, Status> {
        refused()
    }

    async fn create_update_session(
        &self,
        _: Request<CreateUpdateSessionParams>,
    ) -> Result<Response<CreateUpdateSessionResult>, Status> {
        refused()
    }

    async fn remove_session(
        &self,
        _: Request<RemoveSessionParams>,
    ) -> Result<Response<RemoveSessionResult>, Status> {
        refused()
    }

    async fn execute_query_push(
        &self,
        _: Request<ExecuteQueryParams>,
    ) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        refused()
    }

    async fn get_job_metrics(
        &self,
        _: Request<GetJobMetricsParams>,
    ) -> Result<Response<GetJobMetricsResult>, Status> {
        refused()
    }
}
