//! The bytes that rows take in memory.

use parquet::basic::Type;
use parquet::column::page::Page;
use parquet::errors::Result;
use parquet::file::reader::ChunkReader;

use super::ValidatedRowGroups;

/// The bytes of a row, in some columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowBytes {
    /// By the sizes in the footer.
    pub average: u64,
    /// If it has the longest value of each dictionary: each row that has one gets a copy, which no size in the footer counts.
    pub longest: u64,
}

impl RowBytes {
    /// How many rows have about `bytes` bytes on average, and at most `most` bytes if all have the longest values. At least 1, at
    /// most `rows`.
    pub fn rows_within(&self, bytes: u64, most: u64, rows: u64) -> usize {
        let rows = rows
            .min(bytes / self.average.max(1))
            .min(most / self.longest.max(1));
        usize::try_from(rows).unwrap_or(usize::MAX).max(1)
    }
}

impl<R: ChunkReader + 'static> ValidatedRowGroups<R> {
    /// The bytes that a row takes in memory in the columns `leaves`.
    pub fn row_bytes(&self, leaves: impl Iterator<Item = usize> + Clone) -> Result<RowBytes> {
        let mut most = RowBytes::default();
        for group in self.groups.clone() {
            let mut bytes = RowBytes::default();
            for leaf in leaves.clone() {
                let column = self.value_bytes(group, leaf)?;
                bytes.average = bytes.average.saturating_add(column.average);
                bytes.longest = bytes.longest.saturating_add(column.longest);
            }
            most.average = most.average.max(bytes.average);
            most.longest = most.longest.max(bytes.longest);
        }
        Ok(most)
    }

    /// As [`Self::row_bytes`], in one column of one row group.
    fn value_bytes(&self, group: usize, leaf: usize) -> Result<RowBytes> {
        let group_metadata = self.metadata.row_group(group);
        let rows = group_metadata.num_rows().max(1).cast_unsigned();
        let chunk = group_metadata.column(leaf);
        let average = chunk.uncompressed_size().max(0).cast_unsigned() / rows;
        let column = chunk.column_descr_ptr();
        let longest = match column.physical_type() {
            // Who joins the values of a list bounds them.
            _ if column.max_rep_level() > 0 => 0,
            Type::FIXED_LEN_BYTE_ARRAY => column.type_length().max(0).cast_unsigned().into(),
            Type::BYTE_ARRAY => match self.chunk(group, leaf)?.get_next_page()? {
                Some(Page::DictionaryPage { buf, .. }) => longest(&buf),
                _ => 0,
            },
            _ => 0,
        };
        Ok(RowBytes {
            average,
            longest: longest.max(average),
        })
    }
}

/// The length of the longest of the texts that a page has.
fn longest(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(length);
        values = rest.get(length as usize..).unwrap_or_default();
    }
    longest.into()
}
