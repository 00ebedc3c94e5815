//! Runs a map to its end, in rounds. A round is one or more jobs over all slices that have an open item, that is, an
//! item without an answer.
//!
//! ```text
//! items ─ cut once ─▶ slices ─▶ jobs of a bounded plan size ─▶ answers
//!                       ▲                                        │
//!                       └── slices with an open item: next round ┘
//! ```
//!
//! Ballista 55 does not recompute results that are lost after the job succeeded, and a restarted scheduler has
//! forgotten its jobs, because its state is in memory. Both cause another round here.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc::Sender;

use super::connection::Remote;
use super::map_parameters::{MapParameters, Rows};
use super::slices;
use crate::error::{ClusterError, Result};

/// Limit on the slices of a job: each takes some hundred bytes of the job's plan, which is one gRPC message.
const MAX_SLICES: usize = 4096;
/// Limit on the work items of a job, for the same reason.
const MAX_ITEMS: usize = 50_000;
/// Number of rounds of one map that may lose answers.
const MAX_LOSSY_ROUNDS: u32 = 5;

impl Remote {
    /// Runs `map` over all `items`, and sends its rows to `sender`.
    pub(super) async fn run_map<T>(
        &self,
        map: &MapParameters<'_, T>,
        items: Vec<T>,
        sender: Sender<Rows>,
    ) -> Result<()> {
        let mut open: BTreeSet<u32> = items.iter().map(map.number).collect();
        let progress = &self.0.resources.progress;
        let state = self.wait_for_executors().await?;
        // Cut once, so that a slice is the same in every round.
        let mut slices = slices::cut(items, state.slots, map.weight, map.group);
        self.summary_mut().slices += slices.len() as u64;
        let (mut lossy_rounds, mut resubmitted) = (0, 0);
        while !open.is_empty() {
            slices.retain(|slice| slice.iter().any(|item| open.contains(&(map.number)(item))));
            if lossy_rounds + resubmitted > 0 {
                self.summary_mut().slices_again += slices.len() as u64;
            }
            progress.slices.store(0, Ordering::Relaxed);
            let all = slices.len() as u64;
            progress.slices_total.store(all, Ordering::Relaxed);
            let mut missing = None;
            let mut done_before = 0;
            let mut rest = slices.as_slice();
            while !rest.is_empty() {
                let (slices, later) = rest.split_at(slices_of_next_job(rest));
                match self
                    .run_job(map, slices, done_before, &mut open, &sender)
                    .await
                {
                    Ok(reason) => missing = reason.or(missing),
                    Err(ClusterError::SchedulerLost { address, reason })
                        if resubmitted < self.0.settings.resubmit =>
                    {
                        resubmitted += 1;
                        tracing::warn!(
                            "{address}: the scheduler is lost ({reason}); its work is submitted again"
                        );
                        self.wait_for_scheduler().await?;
                        // A scheduler that was only unreachable still runs the job.
                        self.cancel_jobs().await;
                        break;
                    }
                    Err(error) => return Err(error),
                }
                if sender.is_closed() {
                    return Ok(());
                }
                done_before += slices.len() as u64;
                rest = later;
            }
            if open.is_empty() || !rest.is_empty() {
                continue;
            }
            lossy_rounds += 1;
            let reason = missing.unwrap_or_else(|| "some work has no answer".into());
            if lossy_rounds > MAX_LOSSY_ROUNDS {
                return Err(ClusterError::NoExecutors {
                    address: self.0.client.address().to_string(),
                    reason: format!(
                        "executors were lost before their answers were fetched, in {lossy_rounds} rounds: {reason}"
                    ),
                });
            }
            tracing::warn!("answers were lost: {reason}; their slices are handed out again");
        }
        Ok(())
    }
}

/// Returns how many of the first slices fit into one job, at least one.
fn slices_of_next_job<T>(slices: &[Vec<T>]) -> usize {
    let mut items = 0;
    let fits = slices.iter().take(MAX_SLICES).take_while(|slice| {
        items += slice.len();
        items <= MAX_ITEMS
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_plans_of_a_bounded_size() {
        assert_eq!(slices_of_next_job(&vec![vec![0; 10]; 10_000]), 4096);
        assert_eq!(slices_of_next_job(&vec![vec![0; 1000]; 10_000]), 50);
        assert_eq!(slices_of_next_job(&[vec![0; 1_000_000]]), 1);
    }
}
