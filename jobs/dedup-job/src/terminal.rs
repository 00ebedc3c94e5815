//! Printing on standard output and standard error.

use std::io::Write as _;

use indicatif::HumanCount;

use crate::exit::Failure;

/// Prints on standard output. If the reader closed it, the error is [`Failure::ClosedPipe`].
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
        Err(source) => Err(Failure::Io {
            path: "standard output".into(),
            source,
        }),
    }
}

/// Prints on standard error, for commands that write their rows to standard output.
pub fn print_aside(text: &str) {
    // If it is closed, there is nowhere to report it.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a value as JSON on one line.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&json_line(value)?)
}

/// Formats a value as JSON on one line.
pub fn json_line(value: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(value).map_err(|error| Failure::Io {
        path: "standard output".into(),
        source: error.into(),
    })?;
    Ok(json + "\n")
}

/// Formats a number with thousands separators.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats a number of bytes with its unit.
pub fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}
