//! The gRPC service of a scheduler: Ballista's calls with our checks and headers.
//!
//! Ballista 55 accepts any plan from any client of its major version, and replies at once to a
//! client that asks for a job's status. This service checks plans, holds that reply while the job
//! goes on, and refuses calls that no process of ours makes.

use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult,
    CreateUpdateSessionParams, CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult,
    ExecutorStoppedParams, ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult,
    GetJobStatusParams, GetJobStatusResult, HeartBeatParams, HeartBeatResult, PollWorkParams,
    PollWorkResult, RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams,
    RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult,
    execute_query_params::Query, execute_query_result, job_status,
};
use datafusion::execution::TaskContext;
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use tonic::{Request, Response, Status};

use super::poll::HOLD_INTERVAL;
use super::tracking_scheduler::TrackingScheduler;
use crate::plan::codec::Codec;
use crate::plan::encoded_check::CheckedNode;
use crate::plan::operator_check;
use crate::wire::headers::{self, CLIENT, STATE, WAIT};

/// How long the scheduler holds its reply about a job's status while the job goes on. Our client
/// asks again at once: the hold is its pause.
const STATUS_HOLD: Duration = Duration::from_millis(500);

/// The service of a scheduler.
pub(super) struct Service(pub(super) TrackingScheduler);

/// Returns whether the status of a job may still change.
fn is_going_on(result: &GetJobStatusResult) -> bool {
    let status = result.status.as_ref().and_then(|job| job.status.as_ref());
    !matches!(
        status,
        Some(job_status::Status::Successful(_) | job_status::Status::Failed(_))
    )
}

/// Returns the reply to calls that no process of ours makes.
fn unsupported<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("this is a scheduler of dedup-job"))
}

/// Checks that a query is one of our plans.
fn check_query(query: Option<&Query>) -> Result<(), Status> {
    let refused =
        |reason: String| Status::invalid_argument(format!("not a plan of dedup-job: {reason}"));
    let Some(Query::PhysicalPlan(bytes)) = query else {
        return Err(refused("it is not physical".into()));
    };
    let plan = CheckedNode::try_decode(bytes)
        .and_then(|plan| plan.try_into_physical_plan(&TaskContext::default(), &Codec::default()))
        .map_err(|error| refused(error.to_string()))?;
    operator_check::check_plan(plan.as_ref()).map_err(refused)
}

#[tonic::async_trait]
impl SchedulerGrpc for Service {
    type ExecuteQueryPushStream = futures::stream::Empty<Result<GetJobStatusResult, Status>>;

    async fn poll_work(
        &self,
        request: Request<PollWorkParams>,
    ) -> Result<Response<PollWorkResult>, Status> {
        // A spawned future goes on if the executor hangs up: tasks that were taken from Ballista must be tracked.
        let scheduler = self.0.clone();
        let polled = tokio::spawn(async move { scheduler.poll(request).await }).await;
        polled.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    async fn execute_query(
        &self,
        request: Request<ExecuteQueryParams>,
    ) -> Result<Response<ExecuteQueryResult>, Status> {
        let version: Option<String> = headers::get(request.metadata(), CLIENT);
        headers::check_version(version.as_deref())?;
        check_query(request.get_ref().query.as_ref())?;
        let response = self.0.server.execute_query(request).await?;
        if let Some(execute_query_result::Result::Success(job)) = &response.get_ref().result {
            let job = job.job_id.clone();
            self.0.tracking().jobs.insert(job, Instant::now());
        }
        Ok(response)
    }

    async fn get_job_status(
        &self,
        request: Request<GetJobStatusParams>,
    ) -> Result<Response<GetJobStatusResult>, Status> {
        let job = request.get_ref().job_id.clone();
        if let Some(asked) = self.0.tracking().jobs.get_mut(&job) {
            *asked = Instant::now();
        }
        let begin = Instant::now();
        let hold = match request.metadata().contains_key(WAIT) {
            true => STATUS_HOLD,
            false => Duration::ZERO,
        };
        let mut response = self.0.server.get_job_status(request).await?;
        while is_going_on(response.get_ref()) && begin.elapsed() < hold {
            tokio::time::sleep(HOLD_INTERVAL).await;
            let again = GetJobStatusParams {
                job_id: job.clone(),
            };
            response = self.0.server.get_job_status(Request::new(again)).await?;
        }
        let state = self.0.cluster_state(&job).await;
        headers::insert(response.metadata_mut(), STATE, &state);
        Ok(response)
    }

    async fn clean_job_data(
        &self,
        request: Request<CleanJobDataParams>,
    ) -> Result<Response<CleanJobDataResult>, Status> {
        self.0.tracking().forget_job(&request.get_ref().job_id);
        self.0.server.clean_job_data(request).await
    }

    async fn executor_stopped(
        &self,
        request: Request<ExecutorStoppedParams>,
    ) -> Result<Response<ExecutorStoppedResult>, Status> {
        let id = &request.get_ref().executor_id;
        tracing::info!(executor = id, "an executor has left");
        self.0.tracking().executors.remove(id);
        self.0.server.executor_stopped(request).await
    }

    async fn cancel_job(
        &self,
        request: Request<CancelJobParams>,
    ) -> Result<Response<CancelJobResult>, Status> {
        tracing::info!(job = request.get_ref().job_id, "a job is cancelled");
        SchedulerGrpc::cancel_job(self.0.server.as_ref(), request).await
    }

    async fn register_executor(
        &self,
        _: Request<RegisterExecutorParams>,
    ) -> Result<Response<RegisterExecutorResult>, Status> {
        unsupported()
    }

    async fn heart_beat_from_executor(
        &self,
        _: Request<HeartBeatParams>,
    ) -> Result<Response<HeartBeatResult>, Status> {
        unsupported()
    }

    async fn update_task_status(
        &self,
        _: Request<UpdateTaskStatusParams>,
    ) -> Result<Response<UpdateTaskStatusResult>, Status> {
        unsupported()
    }

    async fn create_update_session(
        &self,
        _: Request<CreateUpdateSessionParams>,
    ) -> Result<Response<CreateUpdateSessionResult>, Status> {
        unsupported()
    }

    async fn remove_session(
        &self,
        _: Request<RemoveSessionParams>,
    ) -> Result<Response<RemoveSessionResult>, Status> {
        unsupported()
    }

    async fn execute_query_push(
        &self,
        _: Request<ExecuteQueryParams>,
    ) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        unsupported()
    }

    async fn get_job_metrics(
        &self,
        _: Request<GetJobMetricsParams>,
    ) -> Result<Response<GetJobMetricsResult>, Status> {
        unsupported()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;

    /// Fault 47 (docs/faults.md), a process that is not ours: a submitted plan is checked before any executor gets it.
    #[test]
    fn queries_of_others_are_refused() {
        let plan = Arc::new(EmptyExec::new(engine::work_items::schema()));
        let node = PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default()).unwrap();
        let mut bytes = Vec::new();
        node.try_encode(&mut bytes).unwrap();
        let foreign = Query::PhysicalPlan(bytes);
        let damaged = Query::PhysicalPlan(vec![0xff; 9]);
        let logical = Query::LogicalPlan(Vec::new());
        for (query, named) in [
            (
                Some(&foreign),
                "Empty where an operator of dedup-job belongs",
            ),
            (Some(&damaged), "not a plan of dedup-job"),
            (Some(&logical), "not physical"),
            (None, "not physical"),
        ] {
            let status = check_query(query).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            assert!(status.message().contains(named), "{}", status.message());
        }
    }
}
