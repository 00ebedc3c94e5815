//! The configuration file: a TOML file whose keys are the long names of options.
//!
//! Keys at the top are options of every command; a table named after a command holds that command's. They
//! become arguments in front of those that were given, so that they are judged by the same rules, and flags
//! win over them.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use toml::{Table, Value};

use crate::args::Cli;
use crate::exit::Failure;

/// Why there are no arguments to work with.
pub enum Refused {
    /// clap has something to say: help, or a wrong argument.
    Clap(clap::Error),
    /// The configuration file is at fault.
    Failure(Failure),
}

/// The command line, with what the configuration file adds.
pub fn parse(arguments: &[OsString]) -> Result<Cli, Refused> {
    let matches = Cli::command()
        .try_get_matches_from(arguments)
        .map_err(Refused::Clap)?;
    let given = Cli::from_arg_matches(&matches).map_err(Refused::Clap)?;
    let Some(path) = &given.common.config else {
        return Ok(given);
    };
    let table = read(path).map_err(Refused::Failure)?;
    let wrong = |reason: String| {
        Refused::Failure(Failure::Configuration(format!(
            "{}: {reason}",
            path.display()
        )))
    };
    let added = added(&table, &matches).map_err(wrong)?;
    let Some((command, _)) = matches.subcommand() else {
        return Ok(given);
    };
    // After the command's name, before everything that follows it.
    let mut all = arguments.to_vec();
    let at = position(arguments, command);
    all.splice(at..at, added.into_iter().map(OsString::from));
    Cli::command()
        .args_override_self(true)
        .try_get_matches_from(&all)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| {
            wrong(
                error
                    .to_string()
                    .trim_start_matches("error: ")
                    .trim()
                    .to_owned(),
            )
        })
}

fn read(path: &Path) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Configuration(format!("{}: {error}", path.display())))?;
    text.parse().map_err(|error: toml::de::Error| {
        Failure::Configuration(format!("{}: {error}", path.display()))
    })
}

/// What the file says about this command and was not given as a flag, as arguments.
fn added(table: &Table, matches: &ArgMatches) -> Result<Vec<String>, String> {
    let Some((command, own)) = matches.subcommand() else {
        return Ok(Vec::new());
    };
    let definition = Cli::command();
    let mut arguments = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(options) => {
                let Some(of) = definition.find_subcommand(key) else {
                    return Err(format!("there is no command {key:?}"));
                };
                for (option, value) in options {
                    let id = option.replace('-', "_");
                    if !of
                        .get_arguments()
                        .any(|argument| argument.get_long() == Some(option))
                    {
                        return Err(format!("{key} has no option {option:?}"));
                    }
                    if key == command && !is_given(own, &id) {
                        push(&mut arguments, option, value)?;
                    }
                }
            }
            value => {
                let known = definition
                    .get_arguments()
                    .any(|argument| argument.get_long() == Some(key) && argument.is_global_set());
                if !known || key == "config" {
                    return Err(format!("{key:?} is no option of every command"));
                }
                let id = key.replace('-', "_");
                if !is_given(own, &id) && !is_given(matches, &id) {
                    push(&mut arguments, key, value)?;
                }
            }
        }
    }
    Ok(arguments)
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// One option as arguments: a list is given again and again, a switch is given or not.
fn push(arguments: &mut Vec<String>, option: &str, value: &Value) -> Result<(), String> {
    let text = match value {
        Value::Boolean(true) => {
            arguments.push(format!("--{option}"));
            return Ok(());
        }
        Value::Boolean(false) => {
            // The one switch that is on by default has a switch against it.
            arguments.extend((option == "within").then(|| "--no-within".to_owned()));
            return Ok(());
        }
        Value::Array(values) => {
            return values
                .iter()
                .try_for_each(|value| push(arguments, option, value));
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(date) => date.to_string(),
        other => return Err(format!("{option} = {other} is of no use")),
    };
    arguments.push(format!("--{option}={text}"));
    Ok(())
}

/// Just behind the name of the command.
fn position(arguments: &[OsString], command: &str) -> usize {
    let definition = Cli::command();
    // What follows an option that takes a value is that.
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
