//! What the maps share that stream record batches: how streams are read ahead and made into tables, the size of record batches,
//! threads for work that takes long, the memory that a session has, and the errors of its queries.

mod ahead;
mod batches;
mod memory;
mod query;
mod table;
mod threads;

pub use ahead::{read_ahead, read_ahead_on_thread};
pub use batches::{BATCH_BYTES, BATCH_ROWS, BatchSize, bytes, coalesced, of_batches};
pub use memory::{free_bytes, limit_bytes};
pub use query::{
    Own, causes, exhausted_memory, full_disk, query_kind, query_message, root_message,
};
pub use table::table;
pub use threads::{Stopped, blocking, ended, locked, thread_pool};
