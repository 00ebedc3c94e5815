//! Functions and session settings that client, scheduler and executors share.
//!
//! Ballista's plans contain neither: every process registers custom functions itself. By default, Ballista packs
//! several partitions into one task and compresses results.

use std::collections::HashMap;
use std::sync::Arc;

use ballista_core::config::{
    BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, BALLISTA_SHUFFLE_COMPRESSION_CODEC,
};
use ballista_core::extension::SessionConfigExt as _;
use ballista_core::registry::BallistaFunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionConfig;

use crate::net::MAX_MESSAGE;

/// Returns our scalar functions, by name.
pub(crate) fn functions() -> HashMap<String, Arc<ScalarUDF>> {
    [
        engine::udf::FingerprintBits::udf(),
        engine::udf::HammingDistance::udf(),
    ]
    .into_iter()
    .map(|function| (function.name().to_owned(), Arc::new(function)))
    .collect()
}

/// Returns the registry of an executor: Ballista's functions and ours.
pub(crate) fn registry() -> BallistaFunctionRegistry {
    let mut registry = BallistaFunctionRegistry::default();
    registry.scalar_functions.extend(functions());
    registry
}

/// Returns the settings of our sessions: one partition a task, results uncompressed.
pub(crate) fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_ballista_grpc_client_max_message_size(MAX_MESSAGE)
        .set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1)
        // Fingerprints do not compress, and ids are few: compressing took longer than sending.
        .set_str(BALLISTA_SHUFFLE_COMPRESSION_CODEC, "none")
}

#[cfg(test)]
mod tests {
    use datafusion::execution::FunctionRegistry as _;

    use super::*;

    #[test]
    fn our_functions_stand_beside_the_built_in_ones() {
        let ours = registry();
        for name in ["hamming_distance", "fingerprint_bits", "substr", "abs"] {
            assert_eq!(ours.udf(name).unwrap().name(), name);
        }
        assert!(ours.udaf("min").is_ok());
        let built_in = BallistaFunctionRegistry::default();
        for name in built_in.scalar_functions.keys() {
            assert!(ours.udf(name).is_ok(), "{name}");
        }
    }
}
