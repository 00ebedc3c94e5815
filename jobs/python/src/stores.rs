//! The object stores that a call reaches, with the options of the command line.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use storage::{StoreOptions, Stores};

use crate::error::Failed;

/// The local file system, and object stores with these options: their names in Python, and their values as text. Credentials
/// come from the environment.
pub(crate) fn stores(options: &HashMap<String, String>) -> Result<Stores, Failed> {
    let mut set = StoreOptions::default();
    for (name, value) in options {
        match name.as_str() {
            "allow_http" => set.allow_http = parse(name, value)?,
            "endpoint" => set.endpoint = Some(value.clone()),
            "request_timeout" => set.request_timeout = time_span(name, value)?,
            // As many as the command allows at most.
            "retries" => set.retries = parse::<u16>(name, value)?.min(1000).into(),
            "retry_deadline" => set.deadline = time_span(name, value)?,
            _ => return Err(Failed::usage(format!("storage has no option {name}"))),
        }
    }
    Ok(Stores::new(set))
}

/// Parses the value of the option `name`.
pub(crate) fn parse<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, Failed> {
    let parsed = value.parse();
    parsed.map_err(|error| Failed::usage(format!("{name}={value}: {error}")))
}

/// Parses a time span such as 30s or 5m, as the command does.
fn time_span(name: &str, value: &str) -> Result<Duration, Failed> {
    let parsed = commands::time_span(value);
    parsed.map_err(|error| Failed::usage(format!("{name}={value}: {error}")))
}
