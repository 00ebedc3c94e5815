//! What the entries of a log did.

use std::collections::HashMap;

use deltalake_core::kernel::Action;
use serde_json::Value;

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

/// Field of a log entry: how many actions this program wrote to it, besides this one. An entry that lost its last lines is still JSON,
/// line by line, and would be read as a commit of fewer files.
const ACTIONS: &str = "dedup-job.actions";

/// The metadata of a log entry, with the number of its actions.
pub(crate) fn with_count(
    metadata: impl IntoIterator<Item = (String, Value)>,
    actions: usize,
) -> HashMap<String, Value> {
    let count = (ACTIONS.to_owned(), Value::from(actions));
    metadata.into_iter().chain([count]).collect()
}

/// Whether a log entry has fewer actions than it says.
pub(crate) fn is_cut_off(entry: &[u8]) -> bool {
    let all = entry.split(|byte| *byte == b'\n');
    let mut lines = all.filter(|line| !line.trim_ascii().is_empty());
    let first = lines.next().map(serde_json::from_slice::<Value>);
    let said = first.and_then(|first| first.ok()?["commitInfo"][ACTIONS].as_u64());
    said.is_some_and(|said| (lines.count() as u64) < said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_lost_lines_is_cut_off() {
        let own = "{\"commitInfo\":{\"dedup-job.actions\":2}}\n{\"add\":{}}\n{\"txn\":{}}";
        assert!(!is_cut_off(own.as_bytes()));
        assert!(!is_cut_off(format!("{own}\n").as_bytes()));
        for (end, _) in own.match_indices('\n') {
            assert!(is_cut_off(&own.as_bytes()[..end]), "{end}");
            assert!(is_cut_off(&own.as_bytes()[..=end]), "{end}");
        }
        // Other programs, and earlier versions of this one, do not say how many there are.
        for other in ["{\"commitInfo\":{}}", "{\"add\":{}}", "PAR1", ""] {
            assert!(!is_cut_off(other.as_bytes()), "{other}");
        }
    }
}
