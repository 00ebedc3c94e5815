//! The configuration file: a TOML file whose keys are the long names of options.
//!
//! Keys at the top are options of every command; a table named after a command holds that command's
//! options. [`parse`] inserts the file's options as arguments before those of the command line. So
//! clap checks both by the same rules, and the command line wins.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser as _, ValueHint};
use engine::run::DaySource;
use toml::{Table, Value};

use crate::args::{Cli, DEFAULT_OUTPUT, FILE_OF_SOURCES, RunArgs, definition};
use crate::exit::Failure;

/// Parses the command line, together with the options of the configuration file.
pub fn parse(arguments: &[OsString]) -> Result<Cli, Failure> {
    let arguments = &join_optional_values(arguments);
    let matches = definition().try_get_matches_from(arguments)?;
    let given = read(&matches)?;
    let Some(path) = &given.common.config else {
        return Ok(given);
    };
    let table = read_table(path)?;
    let wrong = |reason: String| Failure::Configuration(format!("{}: {reason}", path.display()));
    let added = file_arguments(&table, &matches).map_err(wrong)?;
    let Some((command, _)) = matches.subcommand() else {
        return Ok(given);
    };
    // Inserts them directly after the command's name, so that the command line's arguments come
    // later and win.
    let mut all = arguments.to_vec();
    let at = position_after(arguments, command);
    all.splice(at..at, added.into_iter().map(OsString::from));
    definition()
        .args_override_self(true)
        .try_get_matches_from(&all)
        .and_then(|matches| read(&matches))
        .map_err(|error| {
            let text = error.to_string();
            wrong(text.trim_start_matches("error: ").trim().to_owned())
        })
}

/// The command line of `matches`. `split` gets the options of its run, too, as the job keeps them.
fn read(matches: &ArgMatches) -> Result<Cli, clap::Error> {
    let mut cli = Cli::from_arg_matches(matches)?;
    if let (crate::args::Command::Split(args), Some((_, own))) =
        (&mut cli.command, matches.subcommand())
    {
        args.options = kept_options(own, args.run.day.as_ref());
        // `reduce` may run in another directory.
        let names_output = args.run.output.is_some() || args.run.writes_decisions();
        if !args.options.is_empty() && !names_output {
            args.options
                .push(format!("--output={}", absolute(DEFAULT_OUTPUT)));
        }
    }
    Ok(cli)
}

/// The options of a run among those of `split`, in the order of their definitions: with absolute paths, and with `day` for the
/// date that `--day yesterday` stands for.
fn kept_options(matches: &ArgMatches, day: Option<&DaySource>) -> Vec<String> {
    let definition = Cli::command();
    let split = definition.find_subcommand("split").into_iter();
    let mut options = Vec::new();
    for argument in split.flat_map(Command::get_arguments) {
        let id = argument.get_id().as_str();
        let is_of_run = !matches!(id, "job" | "parts" | "restart" | "help");
        if !is_of_run || !is_given(matches, id) || argument.is_global_set() {
            continue;
        }
        let name = argument.get_long().unwrap_or("new");
        if !argument.get_action().takes_values() {
            options.push(format!("--{name}"));
            continue;
        }
        if let (Some(DaySource::Date(day)), "day") = (day, id) {
            options.push(format!("--day={day}"));
            continue;
        }
        let is_path = matches!(
            argument.get_value_hint(),
            ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
        );
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = value.to_string_lossy();
            // As in `--prefer longest,source=@FILE`.
            let file = value.rfind(FILE_OF_SOURCES).filter(|_| id == "prefer");
            let path = match file {
                Some(at) => Some(at + FILE_OF_SOURCES.len()),
                None => is_path.then_some(0),
            };
            let value = match path.map(|at| value.split_at(at)) {
                Some((before, path)) if path != "-" && !path.contains("://") => {
                    format!("{before}{}", absolute(path))
                }
                _ => value.to_string(),
            };
            options.push(format!("--{name}={value}"));
        }
    }
    options
}

fn absolute(path: &str) -> String {
    let absolute = std::path::absolute(path).ok();
    absolute.map_or_else(
        || path.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// The arguments of a run that [`parse`] kept for a job.
pub fn run_options(options: &[String]) -> Result<RunArgs, Failure> {
    let arguments = ["dedup-job", "run"].into_iter();
    let arguments = arguments.chain(options.iter().map(String::as_str));
    match Cli::try_parse_from(arguments).map(|parsed| parsed.command) {
        Ok(crate::args::Command::Run(args)) => Ok(*args),
        Ok(_) => Err(Failure::Configuration(
            "the options of the job are those of another command".into(),
        )),
        Err(error) => Err(Failure::Configuration(error.to_string())),
    }
}

/// Turns `--append kept` into `--append=kept`, the only form with a value that clap accepts.
/// Without that rule, clap would take `day.parquet` in `run --append day.parquet` for the value.
fn join_optional_values(arguments: &[OsString]) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut are_options = true;
    for argument in arguments {
        are_options &= argument != "--";
        let is_value = are_options && (argument == "all" || argument == "kept");
        match joined.last_mut() {
            Some(last) if last == "--append" && is_value => {
                last.push("=");
                last.push(argument);
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

fn read_table(path: &Path) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Configuration(format!("{}: {error}", path.display())))?;
    // The library's own text shows the line, which may have a password.
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map_or(String::new(), |before| {
            let line = 1 + before.matches('\n').count();
            let column = 1 + before.chars().rev().take_while(|c| *c != '\n').count();
            format!(", line {line}, column {column}")
        });
        let reason = error.message().lines().next().unwrap_or_default();
        Failure::Configuration(format!(
            "{}{place}: it is no valid TOML: {reason}",
            path.display()
        ))
    })
}

/// The file's options for this command, as arguments. Options that the command line sets are left
/// out.
fn file_arguments(table: &Table, matches: &ArgMatches) -> Result<Vec<String>, String> {
    let Some((command, own)) = matches.subcommand() else {
        return Ok(Vec::new());
    };
    let definition = Cli::command();
    let mut arguments = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(options) => {
                let Some(subcommand) = definition.find_subcommand(key) else {
                    return Err(format!("there is no command {key:?}"));
                };
                for (option, value) in options {
                    if subcommand.has_subcommands() {
                        return Err(format!(
                            "`[{key}]`: a configuration file cannot set options of the subcommands of {key:?}"
                        ));
                    }
                    if !has_option(subcommand, option) {
                        return Err(misplaced(&definition, command, option));
                    }
                    // Documents that the command line names without an option replace the file's.
                    let stands_for = match option.as_str() {
                        "new" | "input" => "documents",
                        other => other,
                    };
                    let is_given = |name: &str| is_given(own, &argument_id(name));
                    // A job has no metrics, and is resumed by itself.
                    let is_of_split = command == "split"
                        && key == "run"
                        && !matches!(option.as_str(), "metrics" | "resume");
                    let is_own = key == command || is_of_split;
                    if is_own && !is_given(option) && !is_given(stands_for) {
                        push_option(&mut arguments, option, value)?;
                    }
                }
            }
            value => {
                if !is_common(&definition, key) {
                    return Err(misplaced(&definition, command, key));
                }
                let id = argument_id(key);
                if !is_given(own, &id) && !is_given(matches, &id) {
                    push_option(&mut arguments, key, value)?;
                }
            }
        }
    }
    Ok(arguments)
}

/// Whether a command has an option of this long name; options of every command do not count.
fn has_option(command: &Command, option: &str) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_long() == Some(option))
}

/// Whether `option` names an option of every command that the file may set: any but --config.
fn is_common(definition: &Command, option: &str) -> bool {
    option != "config"
        && definition
            .get_arguments()
            .any(|argument| argument.get_long() == Some(option) && argument.is_global_set())
}

/// The error for an option in the wrong place of the file. It says where the option belongs; if
/// several commands have the option, it prefers the table of `command`.
fn misplaced(definition: &Command, command: &str, option: &str) -> String {
    if is_common(definition, option) {
        return format!("`{option}` belongs at the top of the file, above all tables");
    }
    let has = |subcommand: &&Command| has_option(subcommand, option);
    let this = definition.find_subcommand(command).filter(has);
    match this.or_else(|| definition.get_subcommands().find(has)) {
        Some(owner) => format!("`{option}` belongs under `[{}]`", owner.get_name()),
        None => format!("there is no option `{option}` that a configuration file can set"),
    }
}

/// clap's id of an option.
fn argument_id(option: &str) -> String {
    option.replace('-', "_")
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Adds one option: a list repeats the option, `true` adds a switch, and `false` adds nothing or
/// the switch's opposite.
fn push_option(arguments: &mut Vec<String>, option: &str, value: &Value) -> Result<(), String> {
    let text = match value {
        Value::Boolean(true) => {
            arguments.push(format!("--{option}"));
            return Ok(());
        }
        Value::Boolean(false) => {
            // Only `within` is on by default, so only it has an opposite.
            arguments.extend((option == "within").then(|| "--no-within".to_owned()));
            return Ok(());
        }
        Value::Array(values) => {
            return values
                .iter()
                .try_for_each(|value| push_option(arguments, option, value));
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(date) => date.to_string(),
        Value::Table(_) => return Err(format!("`{option}` cannot be a table")),
    };
    arguments.push(format!("--{option}={text}"));
    Ok(())
}

/// The index of the argument after the command's name.
fn position_after(arguments: &[OsString], command: &str) -> usize {
    let definition = Cli::command();
    // The argument after an option that takes a value is that value, not the command.
    let takes_value = |argument: &OsString| {
        let name = argument.to_str().and_then(|text| text.strip_prefix("--"));
        definition.get_arguments().any(|known| {
            name.is_some() && known.get_long() == name && known.get_action().takes_values()
        })
    };
    let at = (1..arguments.len())
        .find(|&at| arguments[at] == command && !takes_value(&arguments[at - 1]));
    at.map_or(arguments.len(), |at| at + 1)
}
