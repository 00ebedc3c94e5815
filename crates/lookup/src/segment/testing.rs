//! Segments of given fingerprints, for tests.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::{Part, ROWS, SIGN, Segment, SegmentWriter, TABLES};
use crate::rows::{IdRef, Row, RowShape};

/// Writes and opens a segment of one part with these fingerprints; an id is the number in `fingerprints`.
pub(crate) fn segment_of(directory: &Path, name: &str, fingerprints: &[u64]) -> Arc<Segment> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap();
    let create = |ending: &str| File::create(directory.join(format!("{name}.{ending}"))).unwrap();
    let shape = RowShape {
        bigint: true,
        days: false,
        sketch: 0,
    };
    let part = Part {
        day: None,
        source: name.into(),
    };
    let files = (create(TABLES), create(ROWS));
    let rows = fingerprints.len() as u64;
    let mut writer = SegmentWriter::new(name, files, shape, vec![part], rows, directory).unwrap();
    let mut sorted: Vec<(u64, usize)> = fingerprints
        .iter()
        .enumerate()
        .map(|(row, value)| (value ^ SIGN, row))
        .collect();
    sorted.sort_unstable();
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        for (_, row) in equal {
            let id = IdRef::Number(*row as i64);
            let (part, sketch) = (0, None);
            writer.push_row(Row { id, part, sketch }).unwrap();
        }
        writer.push(equal[0].0, equal.len() as u32).unwrap();
    }
    writer.finish(&pool).unwrap();
    Arc::new(Segment::open(directory, name).unwrap())
}
