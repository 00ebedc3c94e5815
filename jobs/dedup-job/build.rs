//! Makes the program smaller by what the linker can do: functions with the same code are put together, and addresses that the
//! loader sets are packed. The loaders of systems before 2022 cannot unpack them, so programs that are shipped have them as usual.

use std::env::var;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDED: &str = "-Wl,--icf=all";
const PACKED: &str = "-Wl,-z,pack-relative-relocs";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    for option in [FOLDED, PACKED] {
        if works(option).unwrap_or(false) {
            println!("cargo::rustc-link-arg-bins={option}");
        }
    }
}

/// Whether the linker takes the option, and the system runs what it links: tries it on a program of nothing.
fn works(option: &str) -> Option<bool> {
    let directory = var("OUT_DIR").ok()?;
    let directory = Path::new(&directory);
    // TARGET/PROFILE/build/PACKAGE/out
    let profile = directory.ancestors().nth(3)?;
    let is_shipped = profile.ends_with("dist");
    if option == PACKED && is_shipped {
        return None;
    }
    let (source, program) = (directory.join("nothing.rs"), directory.join("nothing"));
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(var("RUSTC").ok()?);
    rustc.arg(&source).arg("-o").arg(&program);
    rustc.args(["--target", &var("TARGET").ok()?, "-C"]);
    rustc.arg(format!("link-arg={option}"));
    if let Ok(linker) = var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    if !rustc.stderr(Stdio::null()).status().ok()?.success() {
        return None;
    }
    Some(Command::new(&program).status().ok()?.success())
}
