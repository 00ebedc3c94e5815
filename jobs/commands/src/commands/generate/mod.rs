//! `dedup-job generate`: a batch, an archive, and the pairs that a run of the two must find.
//!
//! The output directory gets `day.parquet`, `archive/` and `expected.parquet`. The expected pairs
//! are those that were planted, or come from the oracle, never from the join.

mod files;
mod fingerprints;
mod pages;

use chrono::Days;

use self::files::Target;
use crate::args::{CommonArgs, GenerateCommand};
use crate::exit::{Failure, usage};
use crate::printing::{count, print_json, print_summary};
use crate::process::{self, Process};

/// Numbers of rows of the archive, and of the expected pairs.
struct Generated {
    base: u64,
    expected: u64,
}

pub fn run(common: &CommonArgs, command: GenerateCommand) -> Result<(), Failure> {
    let shared = match &command {
        GenerateCommand::Pages(args) => args.shared.clone(),
        GenerateCommand::Fingerprints(args) => args.shared.clone(),
    };
    let output = &shared.output;
    if shared
        .day
        .checked_sub_days(Days::new(shared.days.into()))
        .is_none()
    {
        return usage(format!(
            "there are no {} days before {}",
            shared.days, shared.day
        ));
    }
    let generated = process::run(common, async |process: &Process| {
        let target = Target::new(process, output).await?;
        match command {
            GenerateCommand::Pages(args) => pages::generate(&args, process, &target).await,
            GenerateCommand::Fingerprints(args) => {
                fingerprints::generate(&args, process, &target).await
            }
        }
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "output": output,
            "new": shared.new,
            "base": generated.base,
            "expected": generated.expected,
        }));
    }
    let dir = output.trim_end_matches('/');
    print_summary(
        common,
        &format!(
            "{dir}: {} documents in the batch, {} in the archive, {} expected pairs\n\
         to try it: dedup-job run --new {dir}/day.parquet --base {dir}/archive --day {} -k {} --output hits.parquet && cmp hits.parquet {dir}/expected.parquet\n",
            count(shared.new),
            count(generated.base),
            count(generated.expected),
            shared.day,
            shared.max_distance
        ),
    )
}
