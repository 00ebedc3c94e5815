//! What every process of a cluster registers, in one place: functions, and how sessions are set up.

use std::collections::HashMap;
use std::sync::Arc;

use ballista_core::config::{
    BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, BALLISTA_SHUFFLE_COMPRESSION_CODEC,
};
use ballista_core::extension::SessionConfigExt as _;
use ballista_core::registry::BallistaFunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionConfig;

/// Bytes of a message at most; plans of large histories are cut into several jobs before.
pub(crate) const MESSAGE: usize = 64 << 20;

/// Our functions that need no table.
pub(crate) fn functions() -> HashMap<String, Arc<ScalarUDF>> {
    [
        engine::udf::FingerprintBits::udf(),
        engine::udf::HammingDistance::udf(),
    ]
    .into_iter()
    .map(|function| (function.name().to_owned(), Arc::new(function)))
    .collect()
}

/// Ballista's functions, and ours beside them.
pub(crate) fn registry() -> BallistaFunctionRegistry {
    let mut registry = BallistaFunctionRegistry::default();
    registry.scalar_functions.extend(functions());
    registry
}

/// How Ballista is to run our plans: one partition a task, and no rewriting of stages on the way.
pub(crate) fn config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_ballista_adaptive_query_planner(false)
        .with_ballista_grpc_client_max_message_size(MESSAGE)
        .set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1)
        // Fingerprints do not get smaller, and ids are few: it took longer than to send them as they are.
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
