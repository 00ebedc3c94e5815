//! What the tests share: they run the program, read and write its files, and start servers.

pub mod certificates;
pub mod crawl_files;
pub mod days;
pub mod foreign_writer;
pub mod servers;
pub mod support;
