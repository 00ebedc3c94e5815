//! Fetches answers from executors.
//!
//! Ballista 55's client decodes the bytes of executors unchecked, and gives up at the first
//! executor that does not answer. This client checks the bytes first, and takes an answer from any
//! executor that has it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::flight_service_client::FlightServiceClient;
use ballista_core::serde::protobuf::action::ActionType;
use ballista_core::serde::protobuf::{self, FetchPartition, PartitionLocation, ShuffleLayout};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use prost::Message as _;
use tokio::sync::mpsc::Sender;
use tonic::Code;

use super::connection::Remote;
use super::map_parameters::{MapParameters, Rows};
use super::scheduler_client::Client;
use super::settle::AnswerCheck;
use crate::error::innermost_cause;
use crate::net::address::Address;
use crate::net::{CONNECT_TIMEOUT, MAX_MESSAGE, status_text};
use crate::wire::answer;
use crate::wire::receipt::Receipt;

/// Limit on the client's requests to one executor for one answer.
const ATTEMPTS: u8 = 2;
/// Pause between these attempts.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);

/// A whole answer.
pub(super) struct Answer {
    pub(super) receipt: Receipt,
    /// Rows not yet sent to the run.
    pub(super) unsent: Vec<RecordBatch>,
}

/// Groups the locations of answers by slice; those of a slice keep their order.
pub(super) fn by_slice(locations: Vec<PartitionLocation>) -> Vec<Vec<PartitionLocation>> {
    let mut slices: BTreeMap<u32, Vec<PartitionLocation>> = BTreeMap::new();
    for location in locations {
        let slice = location.partition_id.as_ref().map(|id| id.partition_id);
        slices
            .entry(slice.unwrap_or(u32::MAX))
            .or_default()
            .push(location);
    }
    slices.into_values().collect()
}

impl Remote {
    /// Fetches the answer to one slice from any of its `locations`, the latest attempt first. Skips
    /// the executors in `dead`; when an executor fails, adds it to `dead`. The error says why the
    /// answer is lost.
    pub(super) async fn fetch_any<T>(
        &self,
        map: &MapParameters<'_, T>,
        locations: Vec<PartitionLocation>,
        schema: &SchemaRef,
        sender: &Sender<Rows>,
        dead: &Mutex<HashSet<String>>,
    ) -> Result<Answer, String> {
        let mut reason = "an answer without a location".to_owned();
        for location in locations.into_iter().rev() {
            let executor = location.executor_meta.as_ref();
            let executor = executor.map_or(String::new(), |executor| executor.id.clone());
            let is_dead = |id: &String| {
                let dead = dead.lock().unwrap_or_else(PoisonError::into_inner);
                dead.contains(id)
            };
            if is_dead(&executor) {
                reason = format!("executor {executor} is gone");
                continue;
            }
            match self.fetch(map, location, schema, sender).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    reason = failure;
                    let mut dead = dead.lock().unwrap_or_else(PoisonError::into_inner);
                    dead.insert(executor);
                }
            }
        }
        Err(reason)
    }

    /// Fetches one answer. Sends its rows to the run at once, unless each row must come exactly
    /// once: then returns them as `unsent`, to wait until the receipt is settled.
    async fn fetch<T>(
        &self,
        map: &MapParameters<'_, T>,
        location: PartitionLocation,
        schema: &SchemaRef,
        sender: &Sender<Rows>,
    ) -> Result<Answer, String> {
        let mut batches = self.0.client.fetch(location).await?;
        let mut unsent = Vec::new();
        let mut check = AnswerCheck::default();
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| error.to_string())?;
            let Some(rows) = check.add(&batch, schema)? else {
                continue;
            };
            match map.exactly_once {
                true => unsent.push(rows),
                // If the receiver is gone, `run_map` notices it after the job.
                false => drop(sender.send(Ok(rows)).await),
            }
        }
        let receipt = check.finish()?;
        Ok(Answer { receipt, unsent })
    }
}

impl Client {
    /// Opens the answer at `location`; the error says why it cannot be read.
    async fn fetch(
        &self,
        location: PartitionLocation,
    ) -> Result<SendableRecordBatchStream, String> {
        let layout = ShuffleLayout::from(location.layout());
        let executor = location
            .executor_meta
            .ok_or("an answer without an executor")?;
        let partition = location.partition_id.ok_or("an answer without a slice")?;
        let port = u16::try_from(executor.port).map_err(|error| error.to_string())?;
        let fetch = FetchPartition {
            job_id: partition.job_id,
            stage_id: partition.stage_id,
            partition_id: partition.partition_id,
            host: executor.host.clone(),
            port: executor.port,
            file_id: location.file_id,
            layout: layout.into(),
            ..FetchPartition::default()
        };
        let fetch = protobuf::Action {
            action_type: Some(ActionType::FetchPartition(fetch)),
            ..protobuf::Action::default()
        };
        // This action makes the executor send the file's bytes; `do_get` would decode and encode them again.
        let action = arrow_flight::Action {
            r#type: "IO_BLOCK_TRANSPORT".into(),
            body: fetch.encode_to_vec().into(),
        };
        let failed = |reason: &str| format!("{}:{port}: {reason}", executor.host);
        let endpoint = Address::new(&executor.host, port).endpoint(self.tls());
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = tokio::time::timeout(2 * CONNECT_TIMEOUT, endpoint.connect())
            .await
            .map_err(|_| failed("the executor does not answer"))?
            .map_err(|error| {
                failed(&innermost_cause(&error).unwrap_or_else(|| error.to_string()))
            })?;
        let mut flight = FlightServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
        let mut attempts = 1;
        let blocks = loop {
            match flight.do_action(action.clone()).await {
                Ok(response) => break response.into_inner(),
                // Tonic reports a broken connection as `Unknown`.
                Err(status) if status.code() == Code::Unknown && attempts < ATTEMPTS => {
                    attempts += 1;
                    tokio::time::sleep(ATTEMPT_PAUSE).await;
                }
                Err(status) => return Err(failed(&status_text(&status))),
            }
        };
        answer::decode(blocks.map(|block| block.map(|block| block.body))).await
    }
}
