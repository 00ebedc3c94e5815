//! Lets the linker put functions with the same code together, if it can: that makes the program a tenth smaller.

use std::env::var;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDED: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if links_folded().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins={FOLDED}");
    }
}

/// Whether the linker takes the option: links a program of nothing.
fn links_folded() -> Option<bool> {
    let directory = var("OUT_DIR").ok()?;
    let directory = Path::new(&directory);
    let source = directory.join("nothing.rs");
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(var("RUSTC").ok()?);
    rustc.arg(&source).arg("-o").arg(directory.join("nothing"));
    rustc.args(["--target", &var("TARGET").ok()?, "-C"]);
    rustc.arg(format!("link-arg={FOLDED}"));
    if let Ok(linker) = var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let linked = rustc.stderr(Stdio::null()).status().ok()?;
    Some(linked.success())
}
