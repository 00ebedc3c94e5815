//! Entry points for fuzz targets into private code. Compiled only with `--cfg fuzzing`, see `.ci/fuzz`.

use std::fs::File;
use std::path::Path;

use crate::paged::PagedWriter;
use crate::rows::{IdRef, RowShape};
use crate::search::Searcher;
use crate::segment::testing::segment_of;
use crate::segment::{Part, Segment, SegmentFacts};
use crate::{MAX_DISTANCE, Result};

/// Makes a segment whose sections are parts of `bytes`, with correct checksums; then opens, searches and verifies it.
/// Lengths and counts in it are arbitrary: none may cause a panic, or a read outside the file.
///
/// # Errors
/// The reason why it is refused.
pub fn read_forged(directory: &Path, bytes: &[u8]) -> Result<()> {
    let Some((head, sections)) = bytes.split_first_chunk::<8>() else {
        return Ok(());
    };
    let shape = RowShape {
        bigint: head[0] & 1 == 1,
        days: head[0] & 2 == 2,
        sketch: usize::from(head[0] >> 2 & 3) * 8,
    };
    let facts = SegmentFacts {
        fingerprints: u64::from(head[1]),
        rows: u64::from(head[1]) + u64::from(head[2]),
        bucket_bits: 7 + u32::from(head[3] % 4),
        shape,
        parts: vec![Part {
            day: None,
            source: String::new(),
        }],
    };
    let blocks = 1usize << (facts.bucket_bits - 7);
    let (tables, rows) = sections.split_at(sections.len() * usize::from(head[4]) / 256);
    let file = File::create(directory.join("forged.tables")).expect("a file");
    let mut writer = PagedWriter::new("forged", file);
    for (name, section) in ["straight", "rotated"]
        .iter()
        .zip(tables.chunks(tables.len() / 2 + 1))
    {
        let section = &section[..section.len() / 8 * 8];
        writer.write(section)?;
        writer.end_section(&format!("{name}.blocks"));
        for block in 0..=blocks {
            let at = section.len() / 8 * block / blocks;
            writer.write(&(at as u32).to_le_bytes())?;
        }
        writer.end_section(&format!("{name}.directory"));
    }
    writer.finish(&facts)?;
    let file = File::create(directory.join("forged.rows")).expect("a file");
    let mut writer = PagedWriter::new("forged", file);
    writer.write(rows)?;
    writer.end_section("rows");
    let groups = facts.rows.div_ceil(64);
    for group in 0..=groups {
        let at = rows.len() as u64 * group / groups.max(1);
        writer.write(&at.to_le_bytes())?;
    }
    writer.end_section("groups");
    writer.finish(&facts)?;
    let segment = std::sync::Arc::new(Segment::open(directory, "forged")?);
    let mut found = Vec::new();
    let query = u64::from_le_bytes(*head);
    let searched = Searcher::new(vec![segment.clone()].into()).search(
        &[query, 0, u64::MAX],
        MAX_DISTANCE,
        &mut found,
    );
    for found in &found {
        for row in found.rows.clone().take(100) {
            let _ = segment.document(row);
        }
    }
    let verified = segment.verify();
    searched.and(verified)
}

/// Asserts that a segment of `fingerprints` finds for `queries` what brute force finds.
pub fn compare(directory: &Path, fingerprints: &[u64], queries: &[u64], k: u32) {
    let segment = segment_of(directory, "compared", fingerprints);
    segment.verify().expect("a whole segment");
    let mut found = Vec::new();
    let mut searcher = Searcher::new(vec![segment.clone()].into());
    searcher.search(queries, k, &mut found).expect("an answer");
    let mut rows: Vec<(u32, i64, u32)> = Vec::new();
    for found in &found {
        for row in found.rows.clone() {
            if let IdRef::Number(id) = segment.rows.row(row).expect("a row").id {
                rows.push((found.query, id, found.distance));
            }
        }
    }
    rows.sort_unstable();
    let mut expected = Vec::new();
    for (query, own) in queries.iter().enumerate() {
        for (row, other) in fingerprints.iter().enumerate() {
            let distance = (own ^ other).count_ones();
            if distance <= k {
                expected.push((query as u32, row as i64, distance));
            }
        }
    }
    assert_eq!(rows, expected);
}
