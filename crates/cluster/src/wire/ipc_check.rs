//! Checks an Arrow IPC stream of another process before one of Arrow's readers decodes it.
//!
//! Arrow's `StreamReader`, which decodes the work items of a plan, allocates the length that a
//! message claims before it looks for the bytes; an allocation that fails ends the process. Arrow's
//! `StreamDecoder`, which decodes answers, buffers a message of any length, and allocates what a
//! compressed buffer claims. So [`Checker`] demands that every length fits into the part that
//! contains it. Features that our tables never use are refused: nested columns, dictionaries,
//! column metadata, compressed record batches, overlapping buffers.
//!
//! ```text
//! stream  = message* end
//! message = ffffffff length metadata body      the metadata states the body's length
//! end     = ffffffff 0                         another stream may follow
//! ```
//!
//! Old writers omit "ffffffff"; the checker accepts both forms.

use std::iter;

use datafusion::arrow::ipc::{self, MessageHeader};

/// First bytes of a message.
const MARKER: [u8; 4] = [0xff; 4];
/// Limit on a message's metadata, in bytes; our messages have a few hundred.
const MAX_METADATA: usize = 1 << 20;
/// Limit on a message's body, in bytes. A reader buffers a whole body before it returns a record batch.
const MAX_BODY: usize = 1 << 30;
/// Limit on the number of columns; our tables have ten.
const MAX_COLUMNS: usize = 64;

/// Checks a whole stream.
pub(crate) fn check(stream: &[u8]) -> Result<(), String> {
    let mut checker = Checker::default();
    checker.check(stream)?;
    match checker.part {
        Part::Marker if checker.pending.is_empty() => Ok(()),
        _ => Err(format!("it ends {} bytes too early", checker.missing())),
    }
}

/// Checks a stream that arrives in blocks.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    part: Part,
    /// Bytes of the current part that have arrived; a body is counted, not kept.
    pending: Vec<u8>,
}

/// The part of the stream that is being read.
#[derive(Debug, Default)]
enum Part {
    #[default]
    Marker,
    Length,
    /// Metadata, with its length in bytes.
    Metadata(usize),
    /// A body, with the number of bytes that have not arrived.
    Body(usize),
}

impl Checker {
    /// Checks the next block. After an error the rest of the stream must not be decoded.
    pub(crate) fn check(&mut self, mut block: &[u8]) -> Result<(), String> {
        while !block.is_empty() {
            let (now, rest) = block.split_at(self.missing().min(block.len()));
            block = rest;
            match &mut self.part {
                Part::Body(left) => *left -= now.len(),
                _ => self.pending.extend_from_slice(now),
            }
            if self.missing() == 0 {
                self.part = self.finish_part()?;
            }
        }
        Ok(())
    }

    /// Returns how many bytes the current part still lacks.
    fn missing(&self) -> usize {
        match self.part {
            Part::Marker | Part::Length => MARKER.len() - self.pending.len(),
            Part::Metadata(length) => length - self.pending.len(),
            Part::Body(left) => left,
        }
    }

    /// Checks the current part, which is complete, and returns the one that follows.
    fn finish_part(&mut self) -> Result<Part, String> {
        let bytes = std::mem::take(&mut self.pending);
        Ok(match self.part {
            Part::Marker if bytes == MARKER => Part::Length,
            Part::Marker | Part::Length => match metadata_length(&bytes)? {
                0 => Part::Marker,
                length => Part::Metadata(length),
            },
            Part::Metadata(_) => match check_metadata(&bytes)? {
                0 => Part::Marker,
                length => Part::Body(length),
            },
            Part::Body(_) => Part::Marker,
        })
    }
}

/// Reads the length of a message's metadata; 0 ends the stream.
fn metadata_length(bytes: &[u8]) -> Result<usize, String> {
    let length = <[u8; 4]>::try_from(bytes).map_or(u32::MAX, u32::from_le_bytes) as usize;
    match length <= MAX_METADATA {
        true => Ok(length),
        false => Err(format!(
            "metadata of {length} bytes, at most {MAX_METADATA}"
        )),
    }
}

/// Checks the metadata of a message, and returns the length of its body.
fn check_metadata(metadata: &[u8]) -> Result<usize, String> {
    let message =
        ipc::root_as_message(metadata).map_err(|_| "metadata that is damaged".to_owned())?;
    let length = message.bodyLength();
    let body = usize::try_from(length).unwrap_or(usize::MAX);
    if body > MAX_BODY {
        return Err(format!("a body of {length} bytes, at most {MAX_BODY}"));
    }
    let checked = match message.header_type() {
        MessageHeader::Schema => message.header_as_schema().map(check_schema),
        MessageHeader::RecordBatch => message
            .header_as_record_batch()
            .map(|batch| check_batch(batch, body)),
        _ => None,
    };
    match checked {
        Some(checked) => checked.map(|()| body),
        None => Err(format!("a message of type {:?}", message.header_type())),
    }
}

fn check_schema(schema: ipc::Schema<'_>) -> Result<(), String> {
    let fields = schema.fields();
    let columns = fields.map_or(0, |fields| fields.len());
    if columns > MAX_COLUMNS {
        return Err(format!("{columns} columns, at most {MAX_COLUMNS}"));
    }
    if schema.custom_metadata().is_some_and(|all| !all.is_empty()) {
        return Err("a schema with metadata".into());
    }
    for (number, field) in fields.into_iter().flatten().enumerate() {
        let is_plain = field.children().is_none_or(|fields| fields.is_empty())
            && field.custom_metadata().is_none_or(|all| all.is_empty())
            && field.dictionary().is_none();
        if !is_plain {
            return Err(format!(
                "column {number} is nested, has a dictionary, or has metadata"
            ));
        }
    }
    Ok(())
}

fn check_batch(batch: ipc::RecordBatch<'_>, body: usize) -> Result<(), String> {
    if batch.compression().is_some() {
        return Err("a batch that is compressed".into());
    }
    let body = body as i64;
    // A row takes at least one bit of a column.
    let columns = batch.nodes().into_iter().flatten();
    let mut rows = iter::once(batch.length()).chain(columns.map(|column| column.length()));
    if let Some(rows) = rows.find(|rows| !(0..=8 * body).contains(rows)) {
        return Err(format!("{rows} rows in a body of {body} bytes"));
    }
    let mut total = 0;
    for buffer in batch.buffers().into_iter().flatten() {
        let (offset, length) = (buffer.offset(), buffer.length());
        if !(0..=body).contains(&offset) || !(0..=body - offset).contains(&length) {
            return Err(format!(
                "a buffer of {length} bytes at {offset} in a body of {body} bytes"
            ));
        }
        total += length;
    }
    // A reader copies every unaligned buffer, so overlapping ones would multiply the body.
    match total <= body {
        true => Ok(()),
        false => Err(format!("buffers of {total} bytes in a body of {body}")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ops::Range;
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, ListArray, NullArray, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion::arrow::ipc::CompressionType;
    use datafusion::arrow::ipc::reader::StreamReader;
    use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

    use super::*;

    fn written(column: ArrayRef, compression: Option<CompressionType>) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let options = IpcWriteOptions::default()
            .try_with_compression(compression)
            .unwrap();
        let mut writer =
            StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn numbers() -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(0..100))
    }

    /// Returns for each message the range of its metadata and the length of its body.
    fn messages(stream: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let length = u32::from_le_bytes(stream[at + 4..at + 8].try_into().unwrap());
            if length == 0 {
                return found;
            }
            let metadata = at + 8..at + 8 + length as usize;
            let message = ipc::root_as_message(&stream[metadata.clone()]).unwrap();
            let body = message.bodyLength() as usize;
            at = metadata.end + body;
            found.push((metadata, body));
        }
    }

    /// Returns the stream with a forged body length in its first record batch.
    pub(crate) fn with_body_length(stream: &[u8], forged: i64) -> Vec<u8> {
        let (metadata, body) = messages(stream).remove(1);
        let is_length = |at: &usize| stream[*at..at + 8] == (body as i64).to_le_bytes();
        let found: Vec<usize> = (metadata.start..metadata.end - 7)
            .step_by(8)
            .filter(is_length)
            .collect();
        assert_eq!(
            found.len(),
            1,
            "the length of the body, and no other number"
        );
        let mut stream = stream.to_vec();
        stream[found[0]..found[0] + 8].copy_from_slice(&forged.to_le_bytes());
        stream
    }

    #[test]
    fn a_sound_stream_passes_whole_and_in_blocks() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        for column in [numbers(), texts, none] {
            let stream = written(column, None);
            check(&stream).unwrap();
            // Another stream may follow.
            check(&[&stream[..], &stream[..]].concat()).unwrap();
            let mut checker = Checker::default();
            for byte in stream.chunks(1) {
                checker.check(byte).unwrap();
            }
        }
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: each of these makes a reader allocate
    /// more bytes than the stream has, or copy the same bytes many times.
    #[test]
    fn what_readers_must_not_get_is_refused_by_name() {
        let sound = written(numbers(), None);
        let mut metadata = sound.clone();
        metadata[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
        let lz4 = Some(CompressionType::LZ4_FRAME);
        let cases = [
            (
                with_body_length(&sound, 1 << 45),
                "a body of 35184372088832",
            ),
            (with_body_length(&sound, -1), "a body of -1"),
            (with_body_length(&sound, 1 << 29), "too early"),
            (with_body_length(&sound, 8), "in a body of 8"),
            (metadata, "metadata of 2147483647"),
            (sound[..sound.len() - 20].to_vec(), "too early"),
            (written(numbers(), lz4), "compressed"),
            (written(Arc::new(list), None), "nested"),
            (written(Arc::new(NullArray::new(1000)), None), "1000 rows"),
        ];
        for (stream, named) in cases {
            let reason = check(&stream).unwrap_err();
            assert!(reason.contains(named), "{named}: {reason}");
        }
    }

    /// Writes 2^45 at every offset: `check` refuses the stream, or Arrow's reader does not allocate
    /// 32 TiB, which would end the process.
    #[test]
    fn no_number_of_a_stream_is_allocated() {
        let sound = written(numbers(), None);
        let mut passed = 0;
        for at in 0..sound.len() - 7 {
            let mut forged = sound.clone();
            forged[at..at + 8].copy_from_slice(&(1_i64 << 45).to_le_bytes());
            if check(&forged).is_ok() {
                passed += 1;
                let _ = catch_unwind(|| {
                    let reader = StreamReader::try_new(&forged[..], None)?;
                    reader.collect::<Result<Vec<_>, _>>()
                });
            }
        }
        assert!(passed > 700, "the numbers of the body may be any");
    }
}
