//! The error of commands and options whose feature of the build is off; `Cargo.toml` lists the features.

use crate::exit::Failure;

/// The error of `given`, a command or an option that needs `part` of the program.
pub fn error(given: &str, part: &str) -> Failure {
    Failure::Usage(format!(
        "{given}: this program was built without {part}; build it with `cargo build --release -p dedup-job`, or install a \
         release"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_how_to_get_the_whole_program() {
        let refused = error("--cluster", "clusters");
        assert_eq!(refused.code(), 64);
        assert_eq!(
            refused.to_string(),
            "--cluster: this program was built without clusters; build it with `cargo build --release -p dedup-job`, or \
             install a release"
        );
    }
}
