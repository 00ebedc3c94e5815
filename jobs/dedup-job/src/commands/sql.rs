//! `dedup-job sql`: queries over documents and fingerprints, with the functions of the job.

use arrow::array::RecordBatch;
use arrow::json::LineDelimitedWriter;
use arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SQLOptions;
use engine::EngineError;
use engine::documents::{Columns, Documents};
use engine::progress::Stage;

use super::required;
use crate::args::{CommonArgs, SqlArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::print;

/// The object of errors of a query.
const QUERY: &str = "the query";

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
            let columns = Columns::default();
            let documents = Documents::open(context, &[path.to_owned()], &columns).await?;
            let id_type = documents.id_type().unwrap_or(::archive::IdType::String);
            let table = documents.table(context, id_type, partitions)?;
            context
                .register_table(name, table.into_view())
                .map_err(EngineError::query(format!("--table {name}")))?;
        }
        // No statement that writes.
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let answer = context.sql_with_options(&query, options).await;
        // A query that cannot be planned is a mistake of the user.
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

/// One JSON object per line and row.
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

fn as_text(batches: &[RecordBatch]) -> Result<String, Failure> {
    let table = pretty_format_batches(batches).map_err(failed)?;
    Ok(format!("{table}\n"))
}

fn failed(source: arrow::error::ArrowError) -> Failure {
    ::archive::ArchiveError::Arrow {
        object: QUERY.into(),
        source,
    }
    .into()
}
