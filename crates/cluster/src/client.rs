//! A client's side of a scheduler, and of the executors that hold answers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::client::BallistaClient;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::job_status::Status as JobStatus;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobStatusParams, KeyValuePair,
    PartitionLocation, execute_query_result,
};
use ballista_core::version;
use datafusion::execution::SendableRecordBatchStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use url::Url;

use crate::error::{ClusterError, Result, innermost};
use crate::protocol::{self, CLIENT, STATE, State, VERSION, WAIT};
use crate::registration::MESSAGE;
use crate::tls::Tls;

/// Port of a scheduler where none is given.
const PORT: u16 = 50050;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a call may take.
const CALL: Duration = Duration::from_secs(30);
/// How often the other end of a connection is asked for a sign of life, and how long it has for that.
pub(crate) const ALIVE: Duration = Duration::from_secs(5);
/// How often the fetching of an answer is tried again at once.
const FETCHES: u8 = 2;

/// Address of a scheduler: `df://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// A scheduler's address.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// Name or address of the machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn endpoint(&self, tls: Option<&Tls>) -> Result<Endpoint> {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}:{}", self.host, self.port))
            .map_err(|error| ClusterError::Address {
                given: self.to_string(),
                reason: archive::error::told(&error),
            })?;
        Ok(connected(endpoint, tls)
            .map_err(crate::tls::refused)?
            .timeout(CALL))
    }
}

/// The settings of all connections.
fn connected(
    endpoint: Endpoint,
    tls: Option<&Tls>,
) -> std::result::Result<Endpoint, tonic::transport::Error> {
    let endpoint = endpoint
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(2 * ALIVE)
        .keep_alive_while_idle(true);
    match tls {
        Some(tls) => endpoint.tls_config(tls.client()),
        None => Ok(endpoint),
    }
}

impl FromStr for Address {
    type Err = ClusterError;

    fn from_str(given: &str) -> Result<Self> {
        let bad = |reason: &str| ClusterError::Address {
            // Without a password, which is not asked for here.
            given: given.rsplit('@').next().unwrap_or(given).to_owned(),
            reason: reason.to_owned(),
        };
        let form = "a scheduler's address is df://HOST:PORT";
        let with_scheme = match given.contains("://") {
            true => given.to_owned(),
            false => format!("df://{given}"),
        };
        let url = Url::parse(&with_scheme).map_err(|_| bad(form))?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && matches!(url.path(), "" | "/");
        match url.host_str() {
            Some(host) if url.scheme() == "df" && is_plain && !host.is_empty() => {
                Ok(Self::new(host, url.port().unwrap_or(PORT)))
            }
            _ => Err(bad(form)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

/// What a failed call says, in one line.
pub(crate) fn told(status: &Status) -> String {
    innermost(status).unwrap_or_else(|| archive::store::scrub(status.message()))
}

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
    /// [`ClusterError`] when nobody answers, or who answers is no scheduler of this version.
    pub async fn connect(address: Address, tls: Option<Tls>) -> Result<Self> {
        let endpoint = address.endpoint(tls.as_ref())?;
        let named = address.to_string();
        let late = || ClusterError::Unreachable {
            address: named.clone(),
            reason: "no scheduler answers: it takes too long".into(),
        };
        let channel = tokio::time::timeout(2 * CONNECT, endpoint.connect()).await;
        let channel = channel.map_err(|_| late())?.map_err(|error| {
            let reason = innermost(&error).unwrap_or_else(|| error.to_string());
            ClusterError::Unreachable {
                address: address.to_string(),
                reason: format!("no scheduler answers: {reason}"),
            }
        })?;
        let scheduler = SchedulerGrpcClient::new(channel)
            .max_encoding_message_size(MESSAGE)
            .max_decoding_message_size(MESSAGE);
        let client = Self {
            address,
            tls,
            scheduler,
        };
        tokio::time::timeout(2 * CONNECT, client.state(""))
            .await
            .map_err(|_| late())?
            .map_err(|status| ClusterError::Unreachable {
                address: client.address.to_string(),
                reason: format!("no scheduler answers: {}", told(&status)),
            })??;
        Ok(client)
    }

    /// The scheduler.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What has become of a job, when it has ended or a moment later, and the state of the cluster. The outer error is one of
    /// the connection.
    pub(crate) async fn state(
        &self,
        job: &str,
    ) -> std::result::Result<Result<(Option<JobStatus>, State)>, Status> {
        let params = GetJobStatusParams {
            job_id: job.to_owned(),
        };
        let mut request = Request::new(params);
        if !job.is_empty() {
            protocol::insert(request.metadata_mut(), WAIT, &true);
        }
        let response = self.scheduler.clone().get_job_status(request).await?;
        let said: Option<State> = protocol::get(response.metadata(), STATE);
        let version = |reason: String| ClusterError::Version {
            address: self.address.to_string(),
            reason,
        };
        let Some(state) = said else {
            let reason = "this is no scheduler of dedup-job".to_owned();
            return Ok(Err(version(reason)));
        };
        if state.version != VERSION {
            let reason = format!(
                "the scheduler is dedup-job {}, this is {VERSION}: all processes of a cluster, and its clients, are of one version",
                state.version
            );
            return Ok(Err(version(reason)));
        }
        let status = response.into_inner().status.and_then(|job| job.status);
        Ok(Ok((status, state)))
    }

    /// Submits a plan, and gives the name of its job.
    pub(crate) async fn submit(&self, session: &str, plan: Vec<u8>) -> Result<String> {
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
        protocol::insert(request.metadata_mut(), CLIENT, &VERSION);
        let answer = self.scheduler.clone().execute_query(request).await;
        let answer = answer.map_err(|status| match status.code() {
            Code::FailedPrecondition => ClusterError::Version {
                address: self.address.to_string(),
                reason: status.message().to_owned(),
            },
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                self.lost(&told(&status))
            }
            _ => ClusterError::Internal(format!(
                "{}: the plan was refused: {}",
                self.address,
                told(&status)
            )),
        })?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(job)) => Ok(job.job_id),
            other => Err(ClusterError::Internal(format!(
                "{}: the plan was refused: {other:?}",
                self.address
            ))),
        }
    }

    /// That the scheduler is lost.
    pub(crate) fn lost(&self, reason: &str) -> ClusterError {
        ClusterError::SchedulerLost {
            address: self.address.to_string(),
            reason: reason.to_owned(),
        }
    }

    /// Ends a job.
    pub(crate) async fn cancel(&self, job: &str) -> std::result::Result<(), Status> {
        let job_id = job.to_owned();
        let cancel = CancelJobParams { job_id };
        self.scheduler.clone().cancel_job(cancel).await?;
        self.clean(job).await
    }

    /// Has the answers of a job removed.
    pub(crate) async fn clean(&self, job: &str) -> std::result::Result<(), Status> {
        let job_id = job.to_owned();
        let clean = CleanJobDataParams {
            job_id,
            remove_stage_ids: Vec::new(),
        };
        self.scheduler.clone().clean_job_data(clean).await?;
        Ok(())
    }

    /// The answer at `location`, or why it cannot be had.
    pub(crate) async fn fetch(
        &self,
        location: PartitionLocation,
    ) -> std::result::Result<SendableRecordBatchStream, String> {
        let layout = location.layout();
        let executor = location.executor_meta.ok_or("an answer of nobody")?;
        let partition = location.partition_id.ok_or("an answer to nothing")?;
        let port = u16::try_from(executor.port).map_err(|error| error.to_string())?;
        let tls = self.tls.clone();
        let customize = BallistaConfigGrpcEndpoint::new(Arc::new(move |endpoint: Endpoint| {
            connected(endpoint, tls.as_ref()).map_err(Into::into)
        }));
        let connecting = BallistaClient::try_new(
            &executor.host,
            port,
            MESSAGE,
            self.tls.is_some(),
            Some(Arc::new(customize)),
            FETCHES,
            200,
            0,
            0,
        );
        let mut client = tokio::time::timeout(2 * CONNECT, connecting)
            .await
            .map_err(|_| format!("{}: it does not answer", executor.host))?
            .map_err(|error| error.to_string())?;
        client
            .fetch_partition(
                &executor.id,
                &partition.into(),
                location.file_id,
                layout,
                // The file as it is: the other way packs and unpacks it once more.
                false,
            )
            .await
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (given, address) in [
            ("df://scheduler:50050", "df://scheduler:50050"),
            ("df://scheduler", "df://scheduler:50050"),
            ("scheduler:1", "df://scheduler:1"),
            ("127.0.0.1:7", "df://127.0.0.1:7"),
            ("df://[::1]:7/", "df://[::1]:7"),
        ] {
            assert_eq!(given.parse::<Address>().unwrap().to_string(), address);
        }
        for given in [
            "",
            "df://",
            "http://a:1",
            "df://a:b",
            "df://a:99999",
            "df://u:secret@a:1",
            "df://a:1/path",
            "df://a:1?x",
        ] {
            assert!(given.parse::<Address>().is_err(), "{given}");
        }
    }
}
