//! The program as its users meet it: a process, files, an exit code.

mod append;
mod bad_input;
mod cli;
mod cluster;
mod cluster_faults;
mod corpora;
mod crash;
mod faults;
mod formats;
mod hits;
mod insight;
mod interop;
mod metrics;
mod objects;
mod processes;
mod races;
mod servers;
mod specs;
mod support;
mod verify;
