//! The rows of a segment: id, part and sketch of each document, found by the row's number. The part has the document's
//! day.
//!
//! 64 rows are stored together, as a group. Section `groups` has the start of each group and the end of the last one,
//! as u64. Bytes of a group of n rows:
//!
//! ```text
//! parts      n × u16: number in the segment's list of parts; only if the segment has several parts
//! sketches   u64: a 1 for each row that has a sketch; then n sketches, zeros where there is none; only with sketches
//! ids        BIGINT: n × i64
//!            STRING: u8 width w (2, 4 or 8), n × w bytes: where each id ends, counted from the first; then the ids
//! ```

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{LookupError, Result};
use crate::paged::{PagedFile, PagedWriter, Section, u64_at};

const GROUP: usize = 64;

/// A borrowed [`DocumentId`](archive::DocumentId).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdRef<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// Which fields the rows of a segment have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowShape {
    /// Whether ids are BIGINT.
    pub(crate) bigint: bool,
    /// Whether rows have a part number: the segment has several parts.
    pub(crate) days: bool,
    /// Bytes of a sketch; 0 if there are none.
    pub(crate) sketch: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row<'a> {
    pub(crate) id: IdRef<'a>,
    /// Number in the segment's list of parts, which has the day.
    pub(crate) part: u16,
    pub(crate) sketch: Option<&'a [u8]>,
}

pub(crate) struct RowsWriter {
    shape: RowShape,
    starts: Vec<u64>,
    rows: u64,
    parts: Vec<u16>,
    sketches: Vec<u8>,
    has_sketch: u64,
    numbers: Vec<i64>,
    texts: Vec<u8>,
    ends: Vec<u64>,
    bytes: Vec<u8>,
}

impl RowsWriter {
    pub(crate) fn new(shape: RowShape) -> Self {
        Self {
            shape,
            starts: Vec::new(),
            rows: 0,
            parts: Vec::with_capacity(GROUP),
            sketches: Vec::new(),
            has_sketch: 0,
            numbers: Vec::with_capacity(GROUP),
            texts: Vec::new(),
            ends: Vec::with_capacity(GROUP),
            bytes: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, file: &mut PagedWriter, row: Row<'_>) -> Result<()> {
        let within = self.rows % GROUP as u64;
        match row.id {
            IdRef::Number(number) => self.numbers.push(number),
            IdRef::Text(text) => {
                self.texts.extend_from_slice(text);
                self.ends.push(self.texts.len() as u64);
            }
        }
        if self.shape.days {
            self.parts.push(row.part);
        }
        if self.shape.sketch > 0 {
            let end = self.sketches.len() + self.shape.sketch;
            if let Some(sketch) = row.sketch {
                self.has_sketch |= 1 << within;
                self.sketches.extend_from_slice(sketch);
            }
            self.sketches.resize(end, 0);
        }
        self.rows += 1;
        if within as usize == GROUP - 1 {
            self.end_group(file)
        } else {
            Ok(())
        }
    }

    fn end_group(&mut self, file: &mut PagedWriter) -> Result<()> {
        self.starts.push(file.section_bytes());
        let bytes = &mut self.bytes;
        bytes.extend(self.parts.drain(..).flat_map(u16::to_le_bytes));
        if self.shape.sketch > 0 {
            bytes.extend_from_slice(&self.has_sketch.to_le_bytes());
            bytes.append(&mut self.sketches);
            self.has_sketch = 0;
        }
        if self.shape.bigint {
            bytes.extend(self.numbers.drain(..).flat_map(i64::to_le_bytes))
        } else {
            let width: usize = match self.texts.len() {
                0..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => 8,
            };
            bytes.push(width as u8);
            for end in self.ends.drain(..) {
                bytes.extend_from_slice(&end.to_le_bytes()[..width]);
            }
            bytes.append(&mut self.texts);
        }
        file.write(bytes)?;
        bytes.clear();
        Ok(())
    }

    /// Ends the rows, as the sections `rows` and `groups`.
    pub(crate) fn finish(mut self, file: &mut PagedWriter) -> Result<()> {
        if !self.rows.is_multiple_of(GROUP as u64) {
            self.end_group(file)?;
        }
        self.starts.push(file.section_bytes());
        file.end_section("rows");
        for start in &self.starts {
            file.write(&start.to_le_bytes())?;
        }
        file.end_section("groups");
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) file: PagedFile,
    shape: RowShape,
    rows: u64,
    sections: (Section, Section),
}

impl Rows {
    pub(crate) fn open(file: PagedFile, shape: RowShape, rows: u64) -> Result<Self> {
        let sections = (file.section("rows")?, file.section("groups")?);
        let groups = rows.div_ceil(GROUP as u64) + 1;
        if sections.1.len() as u64 != groups * 8 {
            return Err(LookupError::damaged(
                &file.name,
                "the section of groups is damaged",
            ));
        }
        Ok(Self {
            file,
            shape,
            rows,
            sections,
        })
    }

    pub(crate) fn damaged(&self, row: u32) -> LookupError {
        LookupError::damaged(&self.file.name, format!("row {row} is damaged"))
    }

    pub(crate) fn row(&self, row: u32) -> Result<Row<'_>> {
        let damaged = || self.damaged(row);
        let (group, within) = (row as usize / GROUP, row as usize % GROUP);
        let count = (self.rows as usize)
            .checked_sub(group * GROUP)
            .ok_or_else(damaged)?;
        let count = count.min(GROUP);
        if within >= count {
            return Err(damaged());
        }
        let starts = self.sections.1.start + 8 * group;
        let starts = self.file.bytes(starts..starts + 16)?;
        let place = |at| {
            let offset = usize::try_from(u64_at(starts, at)?).ok()?;
            let place = self.sections.0.start.checked_add(offset)?;
            (place <= self.sections.0.end).then_some(place)
        };
        let (Some(start), Some(end)) = (place(0), place(8)) else {
            return Err(damaged());
        };
        let bytes = Group {
            rows: self,
            row,
            range: start..end,
        };
        bytes.row(count, within)
    }
}

/// Reads one row of a group of rows, and checks the pages that it reads, no others. A length that leads outside the group is an error.
struct Group<'a> {
    rows: &'a Rows,
    /// The number of the row, for errors.
    row: u32,
    range: Range<usize>,
}

impl<'a> Group<'a> {
    fn bytes(&self, start: usize, length: usize) -> Result<&'a [u8]> {
        let start = self.range.start.saturating_add(start);
        let end = start.saturating_add(length);
        if end <= self.range.end {
            self.rows.file.bytes(start..end)
        } else {
            Err(self.rows.damaged(self.row))
        }
    }

    /// A number of `width` bytes.
    fn number(&self, start: usize, width: usize) -> Result<u64> {
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.bytes(start, width)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Row `within` of the group's `count` rows.
    fn row(&self, count: usize, within: usize) -> Result<Row<'a>> {
        let shape = self.rows.shape;
        let mut at = 0;
        let mut part = 0;
        if shape.days {
            part = self.number(2 * within, 2)? as u16;
            at += 2 * count;
        }
        let mut sketch = None;
        if shape.sketch > 0 {
            if self.number(at, 8)? >> within & 1 == 1 {
                sketch = Some(self.bytes(at + 8 + within * shape.sketch, shape.sketch)?);
            }
            at += 8 + count * shape.sketch;
        }
        let id = if shape.bigint {
            IdRef::Number(self.number(at + 8 * within, 8)?.cast_signed())
        } else {
            IdRef::Text(self.text(at, count, within)?)
        };
        Ok(Row { id, part, sketch })
    }

    fn text(&self, at: usize, count: usize, within: usize) -> Result<&'a [u8]> {
        let damaged = || self.rows.damaged(self.row);
        let width = self.number(at, 1)? as usize;
        if ![2, 4, 8].contains(&width) {
            return Err(damaged());
        }
        let ends = at + 1;
        let start = match within {
            0 => 0,
            _ => self.number(ends + (within - 1) * width, width)?,
        };
        let end = self.number(ends + within * width, width)?;
        let length = end.checked_sub(start).ok_or_else(damaged)?;
        let first = (ends + count * width).saturating_add(start as usize);
        self.bytes(first, usize::try_from(length).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use archive::DocumentId;
    use proptest::prelude::*;

    use super::*;

    fn written(shape: RowShape, rows: &[(DocumentId, u16, Option<Vec<u8>>)]) -> Rows {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let mut file = PagedWriter::new("rows", std::fs::File::create(&path).unwrap());
        let mut writer = RowsWriter::new(shape);
        for (id, part, sketch) in rows {
            let id = match id {
                DocumentId::Number(number) => IdRef::Number(*number),
                DocumentId::Text(text) => IdRef::Text(text.as_bytes()),
            };
            let (part, sketch) = (*part, sketch.as_deref());
            writer.push(&mut file, Row { id, part, sketch }).unwrap();
        }
        writer.finish(&mut file).unwrap();
        file.finish(&()).unwrap();
        Rows::open(PagedFile::open(&path).unwrap(), shape, rows.len() as u64).unwrap()
    }

    proptest! {
        #[test]
        fn rows_are_what_was_written(
            rows in proptest::collection::vec(
                (any::<i64>(), ".{0,20}", any::<u16>(), proptest::option::of(proptest::collection::vec(any::<u8>(), 16))),
                0..200,
            ),
            bigint: bool,
            days: bool,
            sketches: bool,
            long in 0_usize..200,
        ) {
            let shape = RowShape { bigint, days, sketch: if sketches { 16 } else { 0 } };
            let rows: Vec<_> = rows.into_iter().enumerate().map(|(at, (number, text, part, sketch))| {
                // One id makes its group need wider ends.
                let text = if at == long { text + &"x".repeat(70_000) } else { text };
                let id = if bigint { DocumentId::Number(number) } else { DocumentId::Text(text.into()) };
                (id, if days { part } else { 0 }, sketch.filter(|_| sketches))
            }).collect();
            let found = written(shape, &rows);
            for (at, (id, part, sketch)) in rows.iter().enumerate() {
                let row = found.row(at as u32).unwrap();
                let found_id = match row.id {
                    IdRef::Number(number) => DocumentId::Number(number),
                    IdRef::Text(text) => DocumentId::Text(str::from_utf8(text).unwrap().into()),
                };
                prop_assert_eq!((&found_id, row.part, row.sketch), (id, *part, sketch.as_deref()));
            }
            prop_assert!(found.row(rows.len() as u32).is_err());
        }
    }
}
