//! `dedup-job completions` and `man`: clap generates both from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use storage::StorageError;

use crate::args::Cli;
use crate::exit::Failure;
use crate::printing::print;

pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dedup-job", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the program's manual page, or writes one page per command to `directory`.
pub fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        return print(&page(Cli::command())?);
    };
    let failed = StorageError::io(directory.display());
    std::fs::create_dir_all(directory).map_err(&failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    Ok(())
}

fn page(command: Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(StorageError::io("the manual page"))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
