//! Documents in JSON Lines and CSV, plain or compressed, through DataFusion's readers.

use std::io::{BufRead as _, BufReader};
use std::sync::Arc;

use archive::{ArchiveError, IdType, Location};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Buf as _;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::prelude::{CsvReadOptions, DataFrame, JsonReadOptions, SessionContext, ident};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;

use super::columns::{Columns, Content};
use super::parquet::Source;
use super::{Batches, Format, InputFile};
use crate::error::{EngineError, Result};

/// Bytes of an object in a store that are looked through first.
const FIRST_BYTES: u64 = 64 << 10;
/// A first record longer than this is not looked through.
const RECORD_LIMIT: u64 = 64 << 20;

/// Finds the columns by the first record.
pub(super) async fn open_json(
    location: Location,
    compression: FileCompressionType,
    columns: &Columns,
) -> Result<Option<InputFile>> {
    let bad_data = |reason: String| EngineError::BadData {
        object: location.to_string(),
        reason,
    };
    let Some(line) = first_line(&location, compression).await? else {
        return Ok(None);
    };
    let record: serde_json::Value = serde_json::from_slice(&line)
        .map_err(|error| bad_data(format!("its first line is no JSON: {error}")))?;
    let Some(record) = record.as_object() else {
        return Err(bad_data("its first line is no JSON object".into()));
    };
    let names: Vec<&str> = record.keys().map(String::as_str).collect();
    let found = columns.find(location.given(), &names)?;
    let id_type = match &record[&found.id] {
        serde_json::Value::String(_) => IdType::String,
        serde_json::Value::Number(number) if number.is_i64() => IdType::Bigint,
        other => {
            return Err(bad_data(format!(
                "column {:?}: ids are text or integers, this is {other}",
                found.id
            )));
        }
    };
    Ok(Some(InputFile {
        format: Format::Json(compression),
        columns: found,
        id_type,
        spec: None,
        footer: None,
        source: source(&location, compression).await?,
        location,
    }))
}

/// The file as it weighs against others: text is about a quarter as long when it is compressed.
async fn source(location: &Location, compression: FileCompressionType) -> Result<Source> {
    let size = location.size().await?;
    let bytes = match compression.is_compressed() {
        true => size.saturating_mul(4),
        false => size,
    };
    Ok(Source::Rows { bytes })
}

/// Finds the columns by the header.
pub(super) async fn open_csv(
    context: &SessionContext,
    location: Location,
    compression: FileCompressionType,
    columns: &Columns,
) -> Result<Option<InputFile>> {
    if first_line(&location, compression).await?.is_none() {
        return Ok(None);
    }
    let table = csv(context, &location, compression).await?;
    let names: Vec<&str> = table
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let found = columns.find(location.given(), &names)?;
    let format = Format::Csv(compression);
    Ok(Some(InputFile {
        format,
        columns: found,
        id_type: IdType::String,
        spec: None,
        footer: None,
        source: source(&location, compression).await?,
        location,
    }))
}

/// The rows: id, then content.
pub(super) async fn read(context: &SessionContext, file: &Arc<InputFile>) -> Result<Batches> {
    let object = file.location.to_string();
    let failed = |error| EngineError::query(object.clone())(error);
    let table = match file.format {
        Format::Csv(compression) => csv(context, &file.location, compression).await?,
        Format::Json(compression) => json(context, file, compression).await?,
        Format::Parquet => return Err(file.bad_data("read as rows, but it is Parquet".into())),
    };
    let columns = vec![
        ident(&file.columns.id),
        ident(file.columns.content.column()),
    ];
    let stream = table
        .select(columns)
        .map_err(failed)?
        .execute_stream()
        .await
        .map_err(failed)?;
    let object = object.clone();
    Ok(stream
        .map_err(move |error| EngineError::query(object.clone())(error))
        .boxed())
}

async fn csv(
    context: &SessionContext,
    location: &Location,
    compression: FileCompressionType,
) -> Result<DataFrame> {
    let extension = extension(location);
    let options = CsvReadOptions::new()
        .has_header(true)
        .newlines_in_values(true)
        // Every column as text, by the header's names.
        .schema_infer_max_records(0)
        .file_extension(&extension)
        .file_compression_type(compression);
    let read = context.read_csv(url(context, location), options).await;
    read.map_err(EngineError::query(location.to_string()))
}

async fn json(
    context: &SessionContext,
    file: &InputFile,
    compression: FileCompressionType,
) -> Result<DataFrame> {
    let content = match &file.columns.content {
        Content::Text(name) => Field::new(name, DataType::Utf8, true),
        // Wide enough for signed and unsigned.
        Content::Fingerprint(name) => Field::new(name, DataType::Decimal128(20, 0), true),
    };
    let schema = Schema::new(vec![
        Field::new(&file.columns.id, file.id_type.data_type(), true),
        content,
    ]);
    let extension = extension(&file.location);
    let options = JsonReadOptions::default()
        .schema(&schema)
        .file_extension(&extension)
        .file_compression_type(compression);
    let read = context
        .read_json(url(context, &file.location), options)
        .await;
    read.map_err(EngineError::query(file.location.to_string()))
}

/// As a URL, in which no character is a pattern. The session is told which store that is.
fn url(context: &SessionContext, location: &Location) -> String {
    let runtime = context.runtime_env();
    runtime.register_object_store(location.root(), Arc::clone(location.store()));
    location.url().into()
}

/// The whole ending of the name, which DataFusion compares.
fn extension(location: &Location) -> String {
    let name = location.name();
    let known = super::EXTENSIONS
        .iter()
        .filter(|extension| name.ends_with(**extension));
    known
        .max_by_key(|extension| extension.len())
        .map_or(name.clone(), |extension| (*extension).to_owned())
}

/// The first line that is not blank, decompressed; `None` when there is none.
async fn first_line(
    location: &Location,
    compression: FileCompressionType,
) -> Result<Option<Vec<u8>>> {
    if let Some(local) = location.local() {
        let failed = |source| EngineError::Io {
            path: location.to_string(),
            source,
        };
        let file = std::fs::File::open(local).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() == 0 {
            return Ok(None);
        }
        return line_of(location, file, compression);
    }
    // More and more of the object, until a line of it is whole.
    let size = location.size().await?;
    let mut length = FIRST_BYTES.min(size);
    loop {
        if length == 0 {
            return Ok(None);
        }
        let head = location.store().get_range(location.path(), 0..length).await;
        let head = head.map_err(|error| ArchiveError::stored(location, error))?;
        let line = line_of(location, head.reader(), compression);
        let whole = matches!(&line, Ok(Some(line)) if line.ends_with(b"\n"));
        if whole || length == size || length >= RECORD_LIMIT {
            return line;
        }
        length = (length * 8).min(size).min(RECORD_LIMIT);
    }
}

fn line_of(
    location: &Location,
    bytes: impl std::io::Read + Send + 'static,
    compression: FileCompressionType,
) -> Result<Option<Vec<u8>>> {
    let reader = compression
        .convert_read(bytes)
        .map_err(EngineError::query(location.to_string()))?;
    let mut reader = BufReader::new(std::io::Read::take(reader, RECORD_LIMIT));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| EngineError::BadData {
                object: location.to_string(),
                reason: error.to_string(),
            })?;
        if read == 0 {
            return Ok(None);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
    }
}
