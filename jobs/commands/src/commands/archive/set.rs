//! `dedup-job archive set`: the settings of runs that an archive records.

use ::archive::{Archive, RunDefaults};
use serde_json::json;

use super::info::defaults_text;
use crate::args::{CommonArgs, Setting};
use crate::exit::{Failure, usage};
use crate::printing::{print_json, print_summary};
use crate::process::{self, Process};

pub(super) fn run(common: &CommonArgs, dir: &str, settings: &[Setting]) -> Result<(), Failure> {
    let (version, defaults) = process::run(common, async |process: &Process| {
        let mut archive = Archive::open(&process.locate(dir)?).await?;
        if archive.spec().sketch.is_none() && settings.iter().any(Setting::verifies) {
            return usage(format!(
                "{dir} has no sketches, by which pairs could be verified: create it without `--profile paper` and `--sketch 0`"
            ));
        }
        let change = |defaults: &mut RunDefaults| {
            settings.iter().for_each(|setting| setting.apply(defaults));
        };
        let version = archive.set_run_defaults(change).await?;
        Ok((version, archive.run_defaults().clone()))
    })?;
    if common.json {
        return print_json(&json!({ "archive": dir, "version": version, "runs": defaults }));
    }
    let recorded = match version {
        Some(version) => {
            format!("recorded as version {version}; days that are committed keep theirs")
        }
        None => "nothing changes".to_owned(),
    };
    print_summary(
        common,
        &format!("{dir}: {}\n  {recorded}\n", defaults_text(&defaults)),
    )
}
