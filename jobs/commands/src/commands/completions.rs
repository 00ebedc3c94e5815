//! `dedup-job completions` and `man`: clap generates both from the definition of the command line.

use std::path::Path;

use clap::CommandFactory as _;
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
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(StorageError::io("the manual page"))?;
        return print(&String::from_utf8_lossy(&page));
    };
    let failed = StorageError::io(directory.display());
    std::fs::create_dir_all(directory).map_err(&failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    Ok(())
}
