//! Validates the structure of Parquet pages before the Parquet library decodes them. Checksums are in
//! `file_checksums` and `row_group_sums`.
//!
//! For a forged page of delta-encoded text, the library would allocate memory for as many values as
//! the page claims, up to 2⁶⁴, which ends the process. Skipping a plain text whose length goes
//! beyond its page would have the same effect. So would a row whose list claims 2³² values: a page needs few bytes for them.

pub mod row_bytes;

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::Fields;
use bytes::{Buf as _, Bytes};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::schema::types::ColumnDescPtr;

use crate::page_header::HeaderReader;

/// Reads pages of a local file.
pub struct WholeFile(pub File);

impl Length for WholeFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for WholeFile {
    type T = HeaderReader<BufReader<File>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut file = self.0.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(HeaderReader::new(BufReader::new(file)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Some parts of a file, in memory.
pub struct FileParts {
    /// The offset and the bytes of each part, by ascending offset.
    parts: Vec<(u64, Bytes)>,
}

impl FileParts {
    /// The parts at `ranges`, in any order; `bytes` has the bytes of each.
    pub fn new(ranges: &[Range<u64>], bytes: Vec<Bytes>) -> Self {
        let mut parts: Vec<(u64, Bytes)> = ranges.iter().map(|r| r.start).zip(bytes).collect();
        parts.sort_unstable_by_key(|(start, _)| *start);
        Self { parts }
    }

    /// A whole file as one part.
    pub fn whole(file: Bytes) -> Self {
        Self {
            parts: vec![(0, file)],
        }
    }

    /// The bytes from offset `start` to the end of its part.
    fn bytes_from(&self, start: u64) -> Result<Bytes> {
        let behind = self.parts.partition_point(|(first, _)| *first <= start);
        let part = behind.checked_sub(1).map(|at| &self.parts[at]);
        part.and_then(|(first, bytes)| {
            let skipped = usize::try_from(start - first).ok()?;
            (skipped <= bytes.len()).then(|| bytes.slice(skipped..))
        })
        .ok_or_else(|| {
            ParquetError::EOF(format!(
                "the file's metadata places a page at byte {start}, outside the bytes that were read"
            ))
        })
    }
}

impl Length for FileParts {
    fn len(&self) -> u64 {
        let last = self.parts.last();
        last.map_or(0, |(start, bytes)| start + bytes.len() as u64)
    }
}

impl ChunkReader for FileParts {
    type T = HeaderReader<bytes::buf::Reader<Bytes>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(HeaderReader::new(self.bytes_from(start)?.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.bytes_from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!(
                "a page at {start} is {length} bytes long, {} are there",
                bytes.len()
            )));
        }
        Ok(bytes.slice(..length))
    }
}

/// Row groups of a file. Reads their pages from `R`, and validates the structure of each page.
pub struct ValidatedRowGroups<R> {
    source: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    groups: Range<usize>,
}

impl<R: ChunkReader + 'static> ValidatedRowGroups<R> {
    /// The row groups `groups` of the file with the footer `metadata`. Uses its offset index, if it has one.
    pub fn new(source: R, metadata: Arc<ParquetMetaData>, groups: Range<usize>) -> Self {
        Self {
            source: Arc::new(source),
            metadata,
            groups,
        }
    }

    /// Reads the columns of `mask`, all rows or a selection. Columns have the Arrow types of their Parquet types: the
    /// footer's Arrow schema is ignored.
    ///
    /// # Errors
    /// [`ParquetError`] when a column chunk is outside the file. At damaged pages, the returned reader fails, or the Parquet
    /// library panics.
    pub fn read(
        &self,
        mask: ProjectionMask,
        batch_size: usize,
        selection: Option<RowSelection>,
    ) -> Result<ParquetRecordBatchReader> {
        self.read_as(None, mask, batch_size, selection)
    }

    /// As [`Self::read`], with the Arrow types of `fields`, which has all columns of the file.
    pub fn read_as(
        &self,
        fields: Option<&Fields>,
        mask: ProjectionMask,
        batch_size: usize,
        selection: Option<RowSelection>,
    ) -> Result<ParquetRecordBatchReader> {
        let schema = self.metadata.file_metadata().schema_descr();
        let levels: FieldLevels = parquet_to_arrow_field_levels(schema, mask, fields)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, self, batch_size, selection)
    }
}

impl<R: ChunkReader + 'static> RowGroups for ValidatedRowGroups<R> {
    fn num_rows(&self) -> usize {
        let rows = self.row_groups().map(|group| group.num_rows().max(0));
        rows.fold(0, |sum, rows| {
            sum.saturating_add(usize::try_from(rows).unwrap_or(usize::MAX))
        })
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let readers = self.groups.clone().map(|group| self.chunk(group, column));
        let readers: Vec<_> = readers.collect();
        Ok(Box::new(Chunks(readers.into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups()[self.groups.clone()].iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

impl<R: ChunkReader + 'static> ValidatedRowGroups<R> {
    fn chunk(&self, group: usize, column: usize) -> Result<Box<dyn PageReader>> {
        let chunk = self.metadata.row_group(group).column(column);
        let rows = usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0);
        let locations = self.metadata.offset_index().and_then(|index| {
            let pages = index.get(group)?.get(column)?.page_locations();
            (!pages.is_empty()).then(|| pages.clone())
        });
        let source = Arc::clone(&self.source);
        let pages = SerializedPageReader::new(source, chunk, rows, locations)?;
        let column = chunk.column_descr_ptr();
        let values = u64::try_from(chunk.num_values()).unwrap_or(0);
        let values_left = (column.max_rep_level() > 0).then_some(values);
        Ok(Box::new(ValidatedPages {
            pages,
            column,
            values_left,
        }))
    }
}

/// The chunks of one column, row group by row group.
struct Chunks(std::vec::IntoIter<Result<Box<dyn PageReader>>>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl PageIterator for Chunks {}

/// The pages of a column chunk, validated one by one.
struct ValidatedPages<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    column: ColumnDescPtr,
    /// In lists, how many more values the chunk has by the footer. Other columns have a value in a row, and readers count rows.
    values_left: Option<u64>,
}

impl<R: ChunkReader> ValidatedPages<R> {
    /// Counts the values of a page, if the column is in lists.
    fn count_values(&mut self, page: &Page) -> Result<()> {
        let Some(left) = &mut self.values_left else {
            return Ok(());
        };
        if matches!(page, Page::DictionaryPage { .. }) {
            return Ok(());
        }
        let after = left.checked_sub(page.num_values().into());
        *left = after.ok_or_else(|| {
            let reason = "the pages of a list have more values than the footer says";
            ParquetError::General(reason.into())
        })?;
        Ok(())
    }
}

impl<R: ChunkReader> Iterator for ValidatedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for ValidatedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            check_texts(page, &self.column).ok_or_else(|| {
                let reason = "a page of text claims more values than its header, or longer ones than the page";
                ParquetError::General(reason.into())
            })?;
            self.count_values(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// Checks the texts of a page. Returns `None` if delta-encoded text claims more values than the
/// page header, or if a plain text is longer than the rest of the page.
fn check_texts(page: &Page, column: &ColumnDescPtr) -> Option<()> {
    let streams = match page.encoding() {
        Encoding::PLAIN if column.physical_type() == Type::BYTE_ARRAY && page.num_values() > 0 => {
            return check_lengths(value_bytes(page, column)?, page.num_values());
        }
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        // The lengths of prefixes, then the lengths of suffixes.
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Some(()),
    };
    let mut values = value_bytes(page, column)?;
    for _ in 0..streams {
        let count = skip_delta_stream(&mut values)?;
        if count > u64::from(page.num_values()) {
            return None;
        }
    }
    Some(())
}

/// `None` if one of the first `count` texts is longer than the rest of the page.
fn check_lengths(mut values: &[u8], count: u32) -> Option<()> {
    for _ in 0..count {
        // Nulls have no bytes, so the page may have fewer texts than `count`.
        let Some((length, rest)) = values.split_first_chunk() else {
            break;
        };
        values = rest.get(u32::from_le_bytes(*length) as usize..)?;
    }
    Some(())
}

/// The bytes of a page after its repetition and definition levels.
fn value_bytes<'a>(page: &'a Page, column: &ColumnDescPtr) -> Option<&'a [u8]> {
    match page {
        Page::DictionaryPage { buf, .. } => Some(buf),
        Page::DataPageV2 {
            buf,
            rep_levels_byte_len,
            def_levels_byte_len,
            ..
        } => buf.get(*rep_levels_byte_len as usize + *def_levels_byte_len as usize..),
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let levels = [
                (column.max_rep_level(), rep_level_encoding),
                (column.max_def_level(), def_level_encoding),
            ];
            let mut rest: &[u8] = buf;
            for (highest, encoding) in levels.into_iter().filter(|(highest, _)| *highest > 0) {
                #[expect(deprecated, reason = "old files have it")]
                let bytes = match encoding {
                    Encoding::RLE => {
                        let (length, behind) = rest.split_first_chunk()?;
                        rest = behind;
                        u32::from_le_bytes(*length) as usize
                    }
                    Encoding::BIT_PACKED => {
                        let bits = 16 - highest.cast_unsigned().leading_zeros() as usize;
                        (*num_values as usize * bits).div_ceil(8)
                    }
                    _ => return None,
                };
                rest = rest.get(bytes..)?;
            }
            Some(rest)
        }
    }
}

/// Skips integers in the encoding DELTA_BINARY_PACKED, and returns the count that their header claims.
fn skip_delta_stream(bytes: &mut &[u8]) -> Option<u64> {
    // The stream's header: values per delta block, miniblocks per delta block, total values, first
    // value.
    let delta_block_values = varint(bytes)?;
    let miniblocks = usize::try_from(varint(bytes)?).ok()?;
    let count = varint(bytes)?;
    let _first = varint(bytes)?;
    let values = delta_block_values.checked_div(miniblocks as u64)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _smallest = varint(bytes)?;
        let (widths, behind) = bytes.split_at_checked(miniblocks)?;
        *bytes = behind;
        for &width in widths {
            // Miniblocks after the last value have no bytes.
            if left == 0 {
                break;
            }
            let packed = values.checked_mul(u64::from(width))?.div_ceil(8);
            *bytes = bytes.get(usize::try_from(packed).ok()?..)?;
            left = left.saturating_sub(values.max(1));
        }
        if widths.is_empty() {
            return None;
        }
    }
    Some(count)
}

/// Reads an integer in ULEB128.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..10 {
        let (byte, behind) = bytes.split_first()?;
        *bytes = behind;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Array as _, ArrayRef, AsArray as _, ListBuilder, RecordBatch, StringArray, StringBuilder,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;

    const ROWS: usize = 5000;

    /// A file of one column of text in pages of 1000 rows, and the column.
    fn text_file(encoding: Encoding, version: WriterVersion, some_null: bool) -> (Bytes, ArrayRef) {
        let text: StringArray = (0..ROWS)
            .map(|row| (!some_null || row % 7 > 0).then(|| format!("page/{}/{row}", row / 10)))
            .collect();
        let column: ArrayRef = Arc::new(text);
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .set_data_page_row_count_limit(1000)
            .set_write_batch_size(1000)
            .build();
        let batch =
            RecordBatch::try_from_iter_with_nullable([("id", Arc::clone(&column), some_null)]);
        let batch = batch.unwrap();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        (writer.into_inner().unwrap().into(), column)
    }

    /// The row group of `file`, read from `bytes` as if they began at offset `first` of the file.
    fn row_groups(file: &Bytes, first: u64, bytes: Bytes) -> ValidatedRowGroups<FileParts> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(file).unwrap();
        let range = first..first + bytes.len() as u64;
        let parts = FileParts::new(std::slice::from_ref(&range), vec![bytes]);
        ValidatedRowGroups::new(parts, Arc::new(metadata), 0..1)
    }

    #[test]
    fn a_plain_text_that_is_longer_than_its_page_is_refused() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let (file, _) = text_file(Encoding::PLAIN, version, true);
            let mut forged = file.to_vec();
            let text = b"\x08\0\0\0page/0/1";
            let at = forged
                .windows(text.len())
                .position(|bytes| bytes == text)
                .unwrap();
            forged[at..at + 4].copy_from_slice(&0x3539_5e98_u32.to_le_bytes());
            let groups = row_groups(&file, 0, forged.into());
            // The selection skips the row of the forged text.
            let selection = RowSelection::from_consecutive_ranges(std::iter::once(2..3), ROWS);
            let read = groups
                .read(ProjectionMask::all(), ROWS, Some(selection))
                .unwrap();
            let mut read = read;
            let error = read.try_for_each(|batch| batch.map(drop)).unwrap_err();
            assert!(
                error.to_string().contains("longer ones"),
                "{version:?}: {error}"
            );
        }
    }

    #[test]
    fn text_of_every_encoding_is_read() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for encoding in [
                Encoding::PLAIN,
                Encoding::DELTA_LENGTH_BYTE_ARRAY,
                Encoding::DELTA_BYTE_ARRAY,
            ] {
                for some_null in [false, true] {
                    let (file, expected) = text_file(encoding, version, some_null);
                    let groups = row_groups(&file, 0, file.clone());
                    let read = groups.read(ProjectionMask::all(), ROWS, None).unwrap();
                    let batches: Vec<_> = read.map(|batch| batch.unwrap()).collect();
                    assert_eq!(batches.len(), 1, "{encoding} {version:?}");
                    let found = batches[0].column(0).as_string::<i32>();
                    assert_eq!(found, expected.as_string::<i32>(), "{encoding} {version:?}");
                    assert_eq!(found.null_count() > 0, some_null);
                }
            }
        }
    }

    /// One delta-encoded integer, with `count` in the header.
    fn stream(count: &[u8]) -> Vec<u8> {
        [&[0x80, 1, 4], count, &[0]].concat()
    }

    const HUGE: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];

    #[test]
    fn text_that_claims_more_values_is_refused() {
        let (file, _) = text_file(Encoding::PLAIN, WriterVersion::PARQUET_2_0, false);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
        let column = metadata.unwrap().row_group(0).column(0).column_descr_ptr();
        let page = |encoding, streams: &[Vec<u8>]| Page::DataPageV2 {
            buf: streams.concat().into(),
            num_values: 1,
            encoding,
            num_nulls: 0,
            num_rows: 1,
            def_levels_byte_len: 0,
            rep_levels_byte_len: 0,
            is_compressed: false,
            statistics: None,
        };
        let check = |encoding, streams: &[Vec<u8>]| check_texts(&page(encoding, streams), &column);
        let (one, two, huge) = (stream(&[1]), stream(&[2]), stream(&HUGE));
        let length = Encoding::DELTA_LENGTH_BYTE_ARRAY;
        assert_eq!(check(length, std::slice::from_ref(&one)), Some(()));
        for bad in [&two, &huge] {
            assert_eq!(check(length, std::slice::from_ref(bad)), None);
            let both = Encoding::DELTA_BYTE_ARRAY;
            assert_eq!(check(both, &[one.clone(), one.clone()]), Some(()));
            assert_eq!(check(both, &[one.clone(), bad.clone()]), None);
            assert_eq!(check(both, &[bad.clone(), one.clone()]), None);
        }
    }

    #[test]
    fn lists_with_more_values_than_the_footer_says_are_refused() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for row in 0..ROWS {
                let items = 0..row % 4;
                lists.append_value(items.map(|item| (item != 2).then(|| format!("{row}"))));
            }
            let lists: ArrayRef = Arc::new(lists.finish());
            let batch = RecordBatch::try_from_iter([("a", Arc::clone(&lists))]).unwrap();
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_data_page_row_count_limit(1000)
                .set_write_batch_size(1000)
                .build();
            let mut writer =
                ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let file: Bytes = writer.into_inner().unwrap().into();
            let metadata = ParquetMetaDataReader::new()
                .parse_and_finish(&file)
                .unwrap();
            let values = metadata.row_group(0).column(0).num_values();
            assert!(values > ROWS as i64);
            let read = |values| {
                let group = metadata.row_group(0).clone();
                let column = group.column(0).clone().into_builder();
                let column = column.set_num_values(values).build().unwrap();
                let group = group.into_builder().set_column_metadata(vec![column]);
                let footer = metadata.clone().into_builder();
                let footer = footer.set_row_groups(vec![group.build().unwrap()]).build();
                let source = FileParts::whole(file.clone());
                let groups = ValidatedRowGroups::new(source, Arc::new(footer), 0..1);
                let read = groups.read(ProjectionMask::all(), ROWS, None).unwrap();
                let batches: Result<Vec<_>, _> = read.collect();
                batches.map_err(|error| error.to_string())
            };
            let found = read(values).unwrap();
            assert_eq!(found.len(), 1);
            let (found, expected) = (found[0].column(0).as_list::<i32>(), lists.as_list::<i32>());
            assert_eq!(found.value_offsets(), expected.value_offsets());
            assert_eq!(found.values(), expected.values());
            let error = read(values - 1).unwrap_err();
            assert!(error.contains("more values than the footer"), "{error}");
        }
    }

    #[test]
    fn a_cut_off_header_is_refused() {
        let (file, _) = text_file(Encoding::PLAIN, WriterVersion::PARQUET_1_0, false);
        // Field 9, which no version knows: a list of 2³¹ - 1 lists of as many numbers.
        let list = [0xff, 0xff, 0xff, 0xff, 0x07];
        let header = [&[0x99, 0xf9], &list[..], &[0xf7], &list[..]].concat();
        let groups = row_groups(&file, 4, header.into());
        let mut read = groups.read(ProjectionMask::all(), ROWS, None).unwrap();
        let error = read.next().unwrap().unwrap_err();
        assert!(error.to_string().contains("end of file"), "{error}");
    }
}
