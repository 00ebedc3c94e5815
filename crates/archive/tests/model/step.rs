//! The steps of a scenario.

use super::store::Fault;

/// Number of days in a scenario.
pub const DAYS: usize = 4;
/// Number of different inputs.
pub const INPUTS: usize = 6;

/// A step of a scenario.
#[derive(Debug, Clone)]
pub enum Step {
    Run {
        day: usize,
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
        day: usize,
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
}
