//! The scheduler's process: Ballista's scheduler behind a service of ours.
//!
//! Executors fetch their work, so every connection is opened towards a server of ours and can have mutual TLS. The
//! service checks versions and plans, hands out lost tasks again, tells clients the progress of their jobs, and ends
//! jobs whose client is gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;

use crate::error::{ClusterError, Result};
use crate::net::tls::Tls;
use crate::net::{MAX_MESSAGE, listen};
use crate::plan::codec::Codec;
use crate::plan::session;

mod outstanding;
mod poll;
mod service;
mod tracking;
mod tracking_scheduler;
mod watch;

/// Settings of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerSettings {
    /// Address at which it listens; port 0 takes a free one.
    pub bind: SocketAddr,
    /// How long an executor may be silent before it counts as lost. A busy one calls every five seconds.
    pub executor_timeout: Duration,
    /// Its key and certificates; without them anyone can connect.
    pub tls: Option<Tls>,
    /// Whether it may listen without TLS at an address that other machines reach.
    pub insecure: bool,
}

/// Runs a scheduler until `stop`; calls `ready` with the address at which it listens.
///
/// # Errors
/// [`ClusterError`] when it cannot listen; [`ClusterError::Exposed`] when other machines could
/// reach it without TLS.
pub async fn run(
    settings: SchedulerSettings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (incoming, address) =
        listen::listen(settings.bind, settings.tls.as_ref(), settings.insecure).await?;
    let internal = |error: ballista_core::error::BallistaError| {
        ClusterError::Internal(format!("the scheduler cannot start: {error}"))
    };
    let config = Arc::new(SchedulerConfig {
        external_host: address.ip().to_string(),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: settings.executor_timeout.as_secs().max(1),
        expire_dead_executor_interval_seconds: watch::INTERVAL.as_secs(),
        // Clients decide how long to wait for executors.
        no_executors_grace_period_seconds: u64::from(u32::MAX),
        grpc_server_max_decoding_message_size: MAX_MESSAGE as u32,
        grpc_server_max_encoding_message_size: MAX_MESSAGE as u32,
        // Ballista must not remove answers after a time: this process removes them when the client
        // says so or is gone.
        finished_job_data_clean_up_interval_seconds: 0,
        // The scheduler would call executors only to stop them, at a port that they do not have.
        override_create_grpc_client_endpoint: Some(Arc::new(|_| {
            Err("executors are not called".into())
        })),
        override_physical_codec: Some(Arc::new(Codec::default())),
        override_config_producer: Some(Arc::new(session::session_config)),
        ..SchedulerConfig::default()
    });
    let cluster = BallistaCluster::new_from_config(&config)
        .await
        .map_err(internal)?;
    let server = create_scheduler(cluster, config).await.map_err(internal)?;
    let scheduler = tracking_scheduler::TrackingScheduler::new(server);
    let watching = tokio::spawn(watch::watch(scheduler.clone(), settings.executor_timeout));
    let service = SchedulerGrpcServer::new(service::Service(scheduler))
        .max_encoding_message_size(MAX_MESSAGE)
        .max_decoding_message_size(MAX_MESSAGE);
    let mut builder = listen::server(settings.tls.as_ref())?;
    ready(address);
    let served = builder.add_service(service).serve_with_incoming(incoming);
    let done = tokio::select! {
        served = served => served.map_err(|error| ClusterError::Internal(storage::plain_message(&error))),
        () = stop => Ok(()),
    };
    watching.abort();
    done
}
