//! The program as its users meet it: a process, files, an exit code.

mod append;
mod bad_input;
mod cli;
mod corpora;
mod formats;
mod hits;
mod insight;
mod interop;
mod specs;
mod support;
mod verify;
