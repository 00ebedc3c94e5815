//! What the entries of a log did.

use deltalake_core::kernel::Action;

/// Delta operations that write only rows of the files that they remove.
pub(crate) const REWRITES: [&str; 2] = ["DELETE", "OPTIMIZE"];

/// Delta's name of the operation that a log entry with these `actions` committed, if the entry has it.
pub(crate) fn operation_name(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        Action::CommitInfo(info) => info.operation.as_deref(),
        _ => None,
    })
}
