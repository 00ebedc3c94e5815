//! Makes `-h` short: it groups the commands by task, and shows the options of `run` that most runs need. `--help` shows all options.

use clap::builder::StyledStr;
use clap::{Command, CommandFactory as _};

use super::Cli;

/// Tasks, and the commands for each.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Find near-duplicates", &["run", "archive", "fingerprint"]),
    (
        "Look at what was found",
        &["show", "groups", "report", "explain", "history"],
    ),
    ("Choose settings", &["tune", "plan", "idf"]),
    (
        "Look documents up, one by one",
        &["index", "lookup", "serve"],
    ),
    ("Use many machines", &["split", "map", "reduce"]),
    ("More", &["sql", "generate", "completions", "man", "help"]),
];

/// The options of a run that `-h` shows.
const OF_RUN: [&str; 18] = [
    "documents",
    "base",
    "output",
    "day",
    "append",
    "id_column",
    "text_column",
    "max_distance",
    "verify",
    "min_similarity",
    "decisions",
    "kept",
    "prefer",
    "audit",
    "max_dropped",
    "json",
    "quiet",
    "config",
];

/// Examples of runs.
const EXAMPLES: &str = "Examples:
  dedup-job run pages.jsonl --kept unique.jsonl
  dedup-job run day.parquet --base archive/ --append --day today --decisions decisions.parquet
  dedup-job run 's3://crawl/{day}/*.warc.gz' --base s3://crawl/archive --append --day yesterday";

/// The command line, for parsing.
pub fn definition() -> Command {
    let mut definition = Cli::command();
    // Adds `help` to the commands.
    definition.build();
    let template = template(&definition);
    // The template lists them.
    let definition = definition
        .override_usage("dedup-job [OPTIONS] <COMMAND>")
        .mut_subcommands(|command| command.hide(true));
    let brief = |command: Command| {
        command.mut_args(|arg| {
            let is_shown = OF_RUN.contains(&arg.get_id().as_str()) || arg.get_id() == "help";
            arg.hide_short_help(!is_shown)
        })
    };
    definition
        .help_template(template)
        .mut_subcommand("run", |run| brief(run).after_help(EXAMPLES))
        .mut_subcommand("split", brief)
}

/// The help of the program.
fn template(definition: &Command) -> StyledStr {
    let styles = definition.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, commands) in GROUPS {
        text += &format!("{header}{title}:{header:#}\n");
        for name in commands {
            let command = definition.find_subcommand(name);
            let about = command.and_then(Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            text += &format!("  {literal}{name:<11}{literal:#}  {about}\n");
        }
        text.push('\n');
    }
    text.push_str("{all-args}{after-help}");
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_there() {
        let mut definition = Cli::command();
        definition.build();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let mut names: Vec<&str> = definition
            .get_subcommands()
            .map(Command::get_name)
            .collect();
        names.sort_unstable();
        let mut sorted = grouped.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, names);
        let run = definition.find_subcommand("run").expect("a command");
        for id in OF_RUN {
            assert!(run.get_arguments().any(|arg| arg.get_id() == id), "{id}");
        }
    }
}
