//! What the entries of a log did.

use deltalake_core::kernel::Action;

/// Delta operations that write only rows of the files that they remove.
const REWRITES: [&str; 2] = ["DELETE", "OPTIMIZE"];

/// Delta's name of the operation that a log entry with these `actions` committed, if the entry has it.
pub(crate) fn operation_name(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        Action::CommitInfo(info) => info.operation.as_deref(),
        _ => None,
    })
}

/// Field of the log entry of a repair, which writes the rows of the files that it removes with other decisions.
pub(crate) const REPAIR: &str = "repair";

/// Whether the log entry with these `actions` wrote only rows of the files that it removed.
pub(crate) fn is_rewrite(actions: &[Action]) -> bool {
    let is_repair = actions.iter().any(|action| match action {
        Action::CommitInfo(info) => info.info.get(REPAIR) == Some(&true.into()),
        _ => false,
    });
    is_repair || operation_name(actions).is_some_and(|name| REWRITES.contains(&name))
}
