//! Tests of the program as users run it: a process, files, an exit code.

// Helpers of tests that need a feature are left over without it.
#![cfg_attr(not(feature = "cluster"), allow(dead_code, unused_imports))]

mod append;
mod bad_input;
mod cli;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_crawls;
#[cfg(feature = "cluster")]
mod cluster_faults;
#[cfg(feature = "cluster")]
mod cluster_processes;
mod columns;
mod corpora;
mod crash;
mod crawls;
mod damaged_crawls;
mod decided_days;
mod decisions;
mod faults;
mod formats;
mod groups;
mod helpers;
mod hits;
mod input_files;
mod inspect;
mod integrity;
mod interop;
mod json_and_csv;
mod lookup;
mod metrics;
mod objects;
mod outputs;
mod page_texts;
#[cfg(feature = "sql")]
mod paths;
mod races;
mod removal;
mod report;
mod resume;
mod rewritten;
mod scratch;
mod serve;
mod short_texts;
mod show;
mod sketches;
mod specs;
mod texts_in_lists;
mod verified_decisions;
mod verify;
mod warc;
