//! [`Remote`]: a run's connection to a cluster. Closing it, or dropping its [`Guard`], removes what
//! the run left on the cluster.
//!
//! Ballista keeps jobs and results until a timeout. [`Remote`] cancels the run's jobs and removes
//! its files when the run ends, even if the run fails.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::EngineError;
use engine::cluster::ClusterSummary;
use engine::resources::Resources;
use storage::Location;

use super::scheduler_client::Client;
use crate::error::Result;
use crate::net::address::Address;
use crate::net::tls::Tls;

/// Pause between attempts to reach a scheduler that does not answer.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Time limit on removing what a run leaves on the cluster.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of a run on a cluster.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// The scheduler.
    pub scheduler: Address,
    /// The key and certificates of this process.
    pub tls: Option<Tls>,
    /// Directory or URL prefix that both this process and the executors reach.
    pub shared: String,
    /// Local directory for temporary files; it must exist.
    pub scratch: PathBuf,
    /// Limit on how many times the client submits the work again after the scheduler is lost.
    pub resubmit: u32,
    /// The longest wait for the scheduler to answer, and for an executor while there is none.
    pub wait: Duration,
}

/// A run's connection to a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Remote(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) settings: RemoteSettings,
    pub(super) client: Client,
    /// Name of the run, and of its session.
    pub(super) run_name: String,
    pub(super) resources: Arc<Resources>,
    /// Location of the files that the run shares with the executors.
    pub(super) shared: Location,
    /// Ids of the jobs that are running, or have answers to fetch.
    jobs: Mutex<HashSet<String>>,
    summary: Mutex<ClusterSummary>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("settings", &self.0.settings)
            .field("run", &self.0.run_name)
            .finish_non_exhaustive()
    }
}

/// Removes what a run left on its cluster when the guard is dropped, unless [`Remote::close`] did.
#[derive(Debug)]
pub struct Guard(Option<Remote>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(remote) = self.0.take() {
            storage::wait_briefly(async move { remote.abandon().await });
        }
    }
}

impl Remote {
    /// Connects to a cluster, waiting for its scheduler as long as the settings say.
    ///
    /// # Errors
    /// [`ClusterError`](crate::ClusterError) when no scheduler answers; [`EngineError`] when `shared` is not a valid
    /// location.
    pub async fn connect(
        settings: RemoteSettings,
        resources: Arc<Resources>,
    ) -> Result<(Self, Guard), EngineError> {
        let begin = Instant::now();
        let client = loop {
            let connecting = Client::connect(settings.scheduler.clone(), settings.tls.clone());
            match connecting.await {
                Ok(client) => break client,
                Err(error) if error.kind() != storage::ErrorKind::Unreachable => {
                    return Err(error.into());
                }
                Err(error) if begin.elapsed() + RETRY_PAUSE > settings.wait => {
                    return Err(error.into());
                }
                Err(error) => {
                    if begin.elapsed() < RETRY_PAUSE {
                        tracing::warn!("{error}; waiting for it");
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        };
        let run_name = uuid::Uuid::new_v4().simple().to_string();
        let shared = resources.stores.locate(&settings.shared)?;
        let shared = shared.child(&format!("dedup-job-{run_name}"))?;
        let summary = ClusterSummary {
            scheduler: settings.scheduler.to_string(),
            ..ClusterSummary::default()
        };
        let remote = Self(Arc::new(Inner {
            settings,
            client,
            run_name,
            resources,
            shared,
            jobs: Mutex::default(),
            summary: Mutex::new(summary),
        }));
        Ok((remote.clone(), Guard(Some(remote))))
    }

    /// Cancels the jobs of the run, and removes its files from the shared location.
    pub async fn close(&self, mut guard: Guard) {
        guard.0 = None;
        if tokio::time::timeout(CLOSE_TIMEOUT, self.abandon())
            .await
            .is_err()
        {
            tracing::warn!(
                "the cluster does not answer; temporary files of this run may stay in the shared location"
            );
        }
    }

    /// Cancels jobs and removes files at the same time, so that a scheduler that does not answer
    /// cannot prevent the removal.
    async fn abandon(&self) {
        let (cleared, ()) = futures::join!(self.0.shared.remove_all(), self.cancel_jobs());
        if let Err(error) = cleared {
            tracing::warn!("temporary files of this run stay in the shared location: {error}");
        }
    }

    /// Cancels the jobs of the run, if the scheduler answers.
    pub(super) async fn cancel_jobs(&self) {
        let jobs: Vec<String> = self.jobs().drain().collect();
        for job in &jobs {
            let _ = self.0.client.cancel(job).await;
        }
    }

    /// Locks the ids of the jobs of the run.
    pub(super) fn jobs(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the summary of the run.
    pub(super) fn summary_mut(&self) -> MutexGuard<'_, ClusterSummary> {
        self.0
            .summary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
