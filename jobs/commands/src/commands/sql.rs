//! `dedup-job sql`: queries over documents and fingerprints, with the functions `simhash` and
//! `hamming_distance`.

use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::DataType;
use arrow::json::LineDelimitedWriter;
use arrow::util::pretty::pretty_format_batches;
use datafusion::logical_expr::{ColumnarValue, Volatility};
use datafusion::prelude::{DataFrame, SQLOptions, col, create_udf};
use documents::{Columns, Documents};
use engine::EngineError;
use engine::progress::Stage;

use super::required;
use crate::args::{CommonArgs, SqlArgs};
use crate::exit::Failure;
use crate::printing::print;
use crate::process::{self, Process};

/// The query's name in errors.
const QUERY: &str = "the query";
const TEXT: &str = "text";

pub fn run(common: &CommonArgs, args: &SqlArgs) -> Result<(), Failure> {
    let query = required(args.query.clone(), "a query")?;
    let tables: Result<Vec<(&str, &str)>, Failure> = args
        .table
        .iter()
        .map(|table| {
            table.split_once('=').ok_or_else(|| {
                Failure::Usage(format!(
                    "--table {table} is not of the form NAME=PATH; see --help"
                ))
            })
        })
        .collect();
    let tables = tables?;
    let batches = process::run(common, async |process: &Process| {
        let context = &process.context;
        process.resources.progress.enter(Stage::Fingerprint);
        let partitions = context.state().config().target_partitions();
        for (name, path) in tables {
            let mut columns = Columns {
                without_options: true,
                ..Columns::default()
            };
            let path = [path.to_owned()];
            let mut documents = Documents::open(context, &path, &columns).await?;
            let known = documents.known_columns().iter();
            columns.carried = known.map(|name| (*name).to_owned()).collect();
            if !columns.carried.is_empty() {
                documents = Documents::open(context, &path, &columns).await?;
            }
            let id_type = documents.id_type().unwrap_or(::archive::IdType::String);
            let table = documents.table_with_carried(context, id_type, partitions)?;
            let table = if documents.has_fingerprints() {
                Ok(table)
            } else {
                with_decoded_texts(table)
            };
            table
                .and_then(|table| context.register_table(name, table.into_view()))
                .map_err(EngineError::query(format!("--table {name}")))?;
        }
        // Statements that change something are refused.
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let answer = context.sql_with_options(&query, options).await;
        // A query that cannot be planned is the user's mistake, not the program's.
        let answer = answer.map_err(|error| Failure::Usage(error.strip_backtrace()))?;
        let batches = answer.collect().await.map_err(EngineError::query(QUERY))?;
        Ok(batches)
    })?;
    print(&if common.json {
        as_json(&batches)?
    } else {
        as_text(&batches)?
    })
}

/// Converts the column of texts from bytes to text: documents need not be UTF-8, and SQL's
/// functions and output take text.
fn with_decoded_texts(documents: DataFrame) -> datafusion::error::Result<DataFrame> {
    let decode = create_udf(
        "decode_text",
        vec![DataType::BinaryView],
        DataType::Utf8View,
        Volatility::Immutable,
        Arc::new(decode_text),
    );
    documents.with_column(TEXT, decode.call(vec![col(TEXT)]))
}

/// Converts bytes to text; bytes that are not UTF-8 become replacement characters.
fn decode_text(arguments: &[ColumnarValue]) -> datafusion::error::Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let texts = columns[0].as_binary_view();
    let decoded = match texts.clone().to_string_view() {
        Ok(valid) => valid,
        Err(_) => texts
            .iter()
            .map(|text| text.map(String::from_utf8_lossy))
            .collect(),
    };
    Ok(ColumnarValue::Array(Arc::new(decoded)))
}

/// Formats rows as JSON, one object per line.
fn as_json(batches: &[RecordBatch]) -> Result<String, Failure> {
    let mut lines = Vec::new();
    let mut writer = LineDelimitedWriter::new(&mut lines);
    let written = batches
        .iter()
        .try_for_each(|batch| writer.write(batch))
        .and_then(|()| writer.finish());
    written.map_err(failed)?;
    Ok(String::from_utf8_lossy(&lines).into_owned())
}

/// Formats rows as a table for people.
fn as_text(batches: &[RecordBatch]) -> Result<String, Failure> {
    let table = pretty_format_batches(batches).map_err(failed)?;
    Ok(format!("{table}\n"))
}

fn failed(source: arrow::error::ArrowError) -> Failure {
    ::archive::ArchiveError::arrow(QUERY)(source).into()
}
