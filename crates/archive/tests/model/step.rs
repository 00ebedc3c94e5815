//! The steps of a scenario.

use super::store::Fault;

/// Number of days in a scenario.
pub const DAYS: usize = 4;
/// Number of batches with a name that a day may have.
pub const BATCHES: usize = 2;
/// Number of different inputs.
pub const INPUTS: usize = 6;

/// What one commit brings: a day, and the number of the batch; `None` is the batch without a name.
pub type Batch = (usize, Option<usize>);

/// What is wrong with the hint at the last checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    Missing,
    Garbage,
    /// It names a version that has no checkpoint.
    NoCheckpoint,
}

#[derive(Debug, Clone)]
pub enum Step {
    Run {
        batch: Batch,
        input: usize,
        replace: bool,
        fault: Fault,
    },
    Append {
        day: usize,
        input: usize,
        fault: Fault,
    },
    Rerun {
        batch: Batch,
    },
    RerunWithoutDay {
        day: usize,
    },
    Race {
        one: (usize, usize),
        other: (usize, usize),
    },
    RemoveDay {
        day: usize,
        fault: Fault,
    },
    RemoveBatch {
        batch: Batch,
        fault: Fault,
    },
    /// Removes two of the documents of an input.
    RemoveIds {
        input: usize,
        fault: Fault,
    },
    Compact {
        fault: Fault,
    },
    RacingCompactions,
    Vacuum,
    OtherOptimize {
        day: usize,
    },
    /// Another program deletes a document of an input.
    OtherDelete {
        input: usize,
    },
    /// Another program deletes a document of an input by a deletion vector, and then purges it.
    OtherDeletesByVector {
        input: usize,
    },
    /// Another program adds documents to a day, or to none.
    OtherAppend {
        day: Option<usize>,
        input: usize,
    },
    RunWhileOtherAppends {
        day: usize,
        input: usize,
        to: Option<usize>,
    },
    /// Another program makes the table what it was some steps ago.
    OtherRestores {
        back: usize,
    },
    /// Another program replaces all documents of a day.
    OtherOverwritesDay {
        day: usize,
        input: usize,
    },
    OtherCheckpoints,
    LastCheckpointLies {
        lie: Lie,
    },
    /// Another program deletes the entries of the log before the last checkpoint.
    OtherCleansLog,
}
