//! x
mod buffer;
mod fault;
mod headers;
mod input;
mod members;
mod reader;
#[cfg(test)]
mod test_files;
