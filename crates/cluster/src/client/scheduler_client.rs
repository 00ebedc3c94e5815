//! [`Client`]: calls to a scheduler.
//!
//! Ballista's client polls every 50 ms, and learns only the job's status. Here each reply also carries the state of the
//! cluster, and the scheduler holds it for up to half a second while the job goes on.

use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::job_status::Status as JobStatus;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobStatusParams, KeyValuePair,
    execute_query_result,
};
use ballista_core::version;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::error::{ClusterError, Result, innermost_cause};
use crate::net::address::Address;
use crate::net::tls::Tls;
use crate::net::{CONNECT_TIMEOUT, MAX_MESSAGE, status_text};
use crate::wire::headers::{self, CLIENT, ClusterState, STATE, VERSION, WAIT};

/// A client of a scheduler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    address: Address,
    tls: Option<Tls>,
    scheduler: SchedulerGrpcClient<Channel>,
}

impl Client {
    /// Connects to a scheduler.
    ///
    /// # Errors
    /// [`ClusterError`] when nothing answers, or what answers is not a scheduler of this version.
    pub async fn connect(address: Address, tls: Option<Tls>) -> Result<Self> {
        let endpoint = address.endpoint(tls.as_ref())?;
        let unreachable = |reason: String| ClusterError::Unreachable {
            address: address.to_string(),
            reason: format!("no scheduler answers: {reason}"),
        };
        let seconds = 2 * CONNECT_TIMEOUT.as_secs();
        let late = || unreachable(format!("no reply within {seconds} s"));
        let channel = tokio::time::timeout(2 * CONNECT_TIMEOUT, endpoint.connect()).await;
        let channel = channel.map_err(|_| late())?.map_err(|error| {
            unreachable(innermost_cause(&error).unwrap_or_else(|| error.to_string()))
        })?;
        let scheduler = SchedulerGrpcClient::new(channel)
            .max_encoding_message_size(MAX_MESSAGE)
            .max_decoding_message_size(MAX_MESSAGE);
        let client = Self {
            address: address.clone(),
            tls,
            scheduler,
        };
        tokio::time::timeout(2 * CONNECT_TIMEOUT, client.status_and_state(""))
            .await
            .map_err(|_| late())?
            .map_err(|status| unreachable(status_text(&status)))??;
        Ok(client)
    }

    /// Returns the address of the scheduler.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the key and certificates of this process.
    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Returns the status of a job, and the state of the cluster. The status is `None` if `job` is
    /// empty, or the scheduler does not know the job.
    ///
    /// The scheduler holds its reply for up to half a second while the job goes on. The outer error is a call that
    /// failed; the inner one is a reply that is not from a scheduler of this version.
    pub(super) async fn status_and_state(
        &self,
        job: &str,
    ) -> std::result::Result<Result<(Option<JobStatus>, ClusterState)>, Status> {
        let params = GetJobStatusParams {
            job_id: job.to_owned(),
        };
        let mut request = Request::new(params);
        if !job.is_empty() {
            headers::insert(request.metadata_mut(), WAIT, &true);
        }
        let response = self.scheduler.clone().get_job_status(request).await?;
        let state: Option<ClusterState> = headers::get(response.metadata(), STATE);
        let version = |reason: String| ClusterError::Version {
            address: self.address.to_string(),
            reason,
        };
        let Some(state) = state else {
            let reason = "this is not a scheduler of dedup-job".to_owned();
            return Ok(Err(version(reason)));
        };
        if state.version != VERSION {
            let reason = format!(
                "the scheduler is dedup-job {}, this is {VERSION}: all processes of a cluster, and its clients, must have the same version",
                state.version
            );
            return Ok(Err(version(reason)));
        }
        let status = response.into_inner().status.and_then(|job| job.status);
        Ok(Ok((status, state)))
    }

    /// Submits an encoded plan, and returns the id of its job.
    pub(super) async fn submit(&self, session: &str, plan: Vec<u8>) -> Result<String> {
        let params = ExecuteQueryParams {
            session_id: session.to_owned(),
            operation_id: uuid::Uuid::new_v4().to_string(),
            settings: vec![KeyValuePair {
                key: ballista_core::config::BALLISTA_JOB_NAME.to_owned(),
                value: Some(format!("dedup-job {session}")),
            }],
            query: Some(Query::PhysicalPlan(plan)),
        };
        let mut request = Request::new(params);
        version::insert_version_header(request.metadata_mut());
        headers::insert(request.metadata_mut(), CLIENT, &VERSION);
        let reply = self.scheduler.clone().execute_query(request).await;
        let reply = reply.map_err(|status| match status.code() {
            Code::FailedPrecondition => ClusterError::Version {
                address: self.address.to_string(),
                reason: status.message().to_owned(),
            },
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                self.scheduler_lost(&status_text(&status))
            }
            _ => ClusterError::Internal(format!(
                "{}: the plan was refused: {}",
                self.address,
                status_text(&status)
            )),
        })?;
        match reply.into_inner().result {
            Some(execute_query_result::Result::Success(job)) => Ok(job.job_id),
            other => Err(ClusterError::Internal(format!(
                "{}: the plan was refused: {other:?}",
                self.address
            ))),
        }
    }

    /// Returns the error for a scheduler that is lost.
    pub(super) fn scheduler_lost(&self, reason: &str) -> ClusterError {
        ClusterError::SchedulerLost {
            address: self.address.to_string(),
            reason: reason.to_owned(),
        }
    }

    /// Cancels a job, and removes its answers.
    pub(super) async fn cancel(&self, job: &str) -> std::result::Result<(), Status> {
        let job_id = job.to_owned();
        let cancel = CancelJobParams { job_id };
        self.scheduler.clone().cancel_job(cancel).await?;
        self.remove_answers(job).await
    }

    /// Removes the answers of a job from the executors.
    pub(super) async fn remove_answers(&self, job: &str) -> std::result::Result<(), Status> {
        let job_id = job.to_owned();
        let clean = CleanJobDataParams {
            job_id,
            remove_stage_ids: Vec::new(),
        };
        self.scheduler.clone().clean_job_data(clean).await?;
        Ok(())
    }
}
