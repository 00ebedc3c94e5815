//! Lookups whose pages all come from the disk.

use std::fs::File;
use std::path::Path;

use ::lookup::Index;
use serde_json::Value;

use super::index::one_by_one;
use super::queries::{Queries, sorted};
use crate::latency::Latencies;
use crate::machine;

/// Bytes of a page of the cache.
const PAGE: u64 = 4096;

/// Of this many pages, one at most is in the cache when it is needed.
const COLD: u64 = 50;

/// Measures one thread that looks up the first `count` queries one by one. `open` opens the index in `directory`; it is closed, and
/// the page cache emptied, before the first query, and again whenever a fiftieth of the pages may have been read.
pub fn measure(
    directory: &Path,
    open: impl Fn() -> Index,
    queries: &Queries,
    count: usize,
) -> Value {
    let index = open();
    let pages = index.info().table_bytes / PAGE;
    // Two pages for each block that is visited, and both tables have as many blocks to visit.
    let per_query = 4 * within(32, queries.k / 2);
    drop(index);
    let at_once = usize::try_from(pages / COLD / per_query).map_or(1, |queries| queries.max(1));
    let (mut nanoseconds, mut answers, mut read, mut dropped_by) = (Vec::new(), Vec::new(), 0, "");
    let chosen = &queries.fingerprints[..count.min(queries.fingerprints.len())];
    for (round, some) in chosen.chunks(at_once).enumerate() {
        dropped_by = drop_page_cache(directory);
        let index = open();
        let mut searcher = index.searcher();
        let before = read_bytes();
        let (each, found) = one_by_one(&mut searcher, some, queries.k);
        read += read_bytes() - before;
        nanoseconds.extend(each);
        let first = (round * at_once) as u32;
        answers.extend(
            found
                .into_iter()
                .map(|(query, fingerprint)| (first + query, fingerprint)),
        );
    }
    let answers = sorted(answers);
    queries.check("the cold index", &answers, chosen.len());
    let latencies = Latencies::new(nanoseconds);
    let mut row = latencies.json();
    row["method"] = "ours, from the disk".into();
    row["answers"] = answers.len().into();
    row["cache_dropped_by"] = dropped_by.into();
    row["cache_dropped_every"] = at_once.into();
    row["disk_bytes_per_query"] = (read as f64 / chosen.len() as f64).into();
    row
}

/// Returns how many numbers of `bits` bits are within `radius` bits of one of them.
fn within(bits: u64, radius: u32) -> u64 {
    let (mut all, mut exactly) = (1, 1);
    for chosen in 1..=u64::from(radius) {
        exactly = exactly * (bits - chosen + 1) / chosen;
        all += exactly;
    }
    all
}

/// Drops cached pages from the memory: as root those of all files, else those of the index's files. Returns which of the
/// two it did. The system keeps pages that a process has mapped, so close the index before.
fn drop_page_cache(directory: &Path) -> &'static str {
    // Only clean pages are dropped.
    rustix::fs::sync();
    if std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
        return "drop_caches";
    }
    for entry in std::fs::read_dir(directory).expect("the index") {
        let path = entry.expect("the index").path();
        if path.is_file() {
            let file = File::open(&path).expect("the index");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("the index");
        }
    }
    "fadvise"
}

/// Returns the bytes that this process has caused to be read from disks; 0 where the system does not say.
fn read_bytes() -> u64 {
    let number = machine::line("/proc/self/io", "read_bytes");
    number.map_or(0, |number| number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn numbers_within_a_radius() {
        assert_eq!([0, 1, 3].map(|radius| within(32, radius)), [1, 33, 5489]);
    }
}
