//! [`Contact`]: an executor's calls to its scheduler besides fetching work.
//!
//! Ballista 55's poll loop does not end when a scheduler refuses it. Ballista's scheduler notices only after a timeout
//! that an executor has stopped.

use std::net::IpAddr;
use std::time::Duration;

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{ExecutorRegistration, ExecutorStoppedParams, PollWorkParams};
use ballista_executor::health::ExecutorHealth;
use tokio::net::UdpSocket;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::error::{ClusterError, Result};
use crate::net::address::Address;
use crate::net::{MAX_MESSAGE, status_text};
use crate::wire::headers::{Announcement, EXECUTOR};

/// Interval of attempts to reach the scheduler, and of checks that it still answers.
const INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the call that tells the scheduler that the executor stops.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A client of a scheduler whose calls carry the executor's announcement.
pub(super) type SchedulerClient =
    SchedulerGrpcClient<InterceptedService<Channel, AnnouncingInterceptor>>;

/// An executor's connection to its scheduler.
#[derive(Clone)]
pub(super) struct Contact {
    scheduler: SchedulerClient,
    metadata: ExecutorRegistration,
    address: Address,
}

impl Contact {
    /// Creates the contact to the scheduler at `address`, for the executor registered as `metadata`.
    pub(super) fn new(
        channel: Channel,
        announcement: &Announcement,
        metadata: ExecutorRegistration,
        address: Address,
    ) -> Result<Self> {
        let interceptor = AnnouncingInterceptor::new(announcement)?;
        let scheduler = SchedulerGrpcClient::with_interceptor(channel, interceptor)
            .max_encoding_message_size(MAX_MESSAGE)
            .max_decoding_message_size(MAX_MESSAGE);
        Ok(Self {
            scheduler,
            metadata,
            address,
        })
    }

    /// Returns a client of the scheduler.
    pub(super) fn scheduler(&self) -> SchedulerClient {
        self.scheduler.clone()
    }

    /// Polls without a free vcore, so that no task comes back; an error says that the scheduler refuses or does not
    /// answer.
    async fn poll_without_vcores(&mut self) -> Result<()> {
        let poll = PollWorkParams {
            metadata: Some(self.metadata.clone()),
            num_free_vcores: 0,
            task_status: Vec::new(),
        };
        match self.scheduler.poll_work(poll).await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == tonic::Code::FailedPrecondition => {
                Err(ClusterError::Version {
                    address: self.address.to_string(),
                    reason: status.message().to_owned(),
                })
            }
            Err(status) => Err(ClusterError::Unreachable {
                address: self.address.to_string(),
                reason: status_text(&status),
            }),
        }
    }

    /// Waits until the scheduler accepts the executor.
    ///
    /// # Errors
    /// [`ClusterError::Version`] when it refuses this version.
    pub(super) async fn wait_until_accepted(&mut self) -> Result<()> {
        let mut warned = false;
        loop {
            match self.poll_without_vcores().await {
                Err(error @ ClusterError::Unreachable { .. }) => {
                    if !std::mem::replace(&mut warned, true) {
                        tracing::warn!("{error}; waiting for the scheduler");
                    }
                    tokio::time::sleep(INTERVAL).await;
                }
                other => return other,
            }
        }
    }

    /// Waits until a scheduler of another version takes the place of the first one and refuses the
    /// executor; returns that error. Logs when the scheduler stops answering, and when it is back.
    pub(super) async fn wait_until_refused(mut self, health: &ExecutorHealth) -> ClusterError {
        let mut was_there = true;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let is_there = health.is_ready();
            if !is_there
                && let Err(error @ ClusterError::Version { .. }) = self.poll_without_vcores().await
            {
                return error;
            }
            let address = &self.address;
            match (was_there, is_there) {
                (true, false) => {
                    tracing::warn!("{address}: the scheduler does not answer; waiting for it")
                }
                (false, true) => tracing::warn!("{address}: the scheduler is back"),
                _ => {}
            }
            was_there = is_there;
        }
    }

    /// Tells the scheduler that the executor stops, so that the scheduler hands out the executor's
    /// work again at once.
    pub(super) async fn leave(&mut self, id: String) {
        let stopped = ExecutorStoppedParams {
            executor_id: id,
            reason: "it was stopped".into(),
        };
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.scheduler.executor_stopped(stopped)).await;
    }
}

/// Returns this machine's address on the route to the scheduler; retries until there is a route.
pub(super) async fn own_address(scheduler: &Address) -> IpAddr {
    let mut warned = false;
    loop {
        let found = async {
            let socket = UdpSocket::bind("0.0.0.0:0").await?;
            // Connecting a UDP socket sends nothing.
            socket.connect((scheduler.host(), scheduler.port())).await?;
            socket.local_addr()
        };
        match found.await {
            Ok(address) => return address.ip(),
            Err(error) if !std::mem::replace(&mut warned, true) => tracing::warn!(
                "{scheduler}: no route to it: {error}; trying again (--advertise sets the address of this executor)"
            ),
            Err(_) => {}
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Adds the executor's announcement to each call.
#[derive(Debug, Clone)]
pub(super) struct AnnouncingInterceptor(AsciiMetadataValue);

impl AnnouncingInterceptor {
    fn new(announcement: &Announcement) -> Result<Self> {
        let internal = |error: String| ClusterError::Internal(error);
        let text =
            serde_json::to_string(announcement).map_err(|error| internal(error.to_string()))?;
        let value =
            AsciiMetadataValue::try_from(text).map_err(|error| internal(error.to_string()))?;
        Ok(Self(value))
    }
}

impl Interceptor for AnnouncingInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(EXECUTOR, self.0.clone());
        Ok(request)
    }
}
