//! Printing through a pager, if standard output is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use crate::exit::Failure;
use crate::printing;
use crate::signals::StopSignals;

/// Prints a text, in a terminal through `$PAGER`. If `$PAGER` is unset, uses `less`; if it is
/// empty, no pager.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return printing::print(text);
    }
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else {
        return printing::print(text);
    };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // F: exit if the text fits the screen. R: show colours. X: leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else {
        return printing::print(text);
    };
    // Ctrl-C is for the pager, which stops a search with it.
    let _signals = StopSignals::listen()?;
    if let Some(mut input) = child.stdin.take() {
        // If the user quits early, the pager closes this pipe.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = child.wait();
    Ok(())
}
