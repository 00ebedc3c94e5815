//! Helpers that run the program, and read and write its files.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Int64Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The exit code and the output of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Asserts that the program failed with `code`, and that its message contains each of `parts`.
    #[track_caller]
    pub fn fails(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in {:?}",
                self.stderr
            );
        }
        self
    }

    /// The one line of JSON on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

pub fn command() -> Command {
    thread_local! {
        /// Each test has a working directory of its own: a run that names no output writes one there.
        static WORKING: tempfile::TempDir = tempfile::tempdir().unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dedup-job"));
    WORKING.with(|directory| command.current_dir(directory.path()));
    command
}

/// Runs the program with `arguments`.
pub fn dedup_job<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::of(command().args(arguments).output().unwrap())
}

/// Runs the program with a line of arguments, split at spaces; paths in a test's directory have
/// none.
pub fn dedup(line: &str) -> Ran {
    dedup_job(line.split_whitespace())
}

/// As [`dedup`], and asserts that the program succeeds.
#[track_caller]
pub fn dedup_ok(line: &str) -> Ran {
    dedup(line).ok()
}

/// As [`dedup_ok`]; returns the JSON that the program prints.
#[track_caller]
pub fn dedup_json(line: &str) -> serde_json::Value {
    dedup_ok(line).json()
}

pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path in the directory as text.
    pub fn at(&self, name: &str) -> String {
        self.join(name).to_str().unwrap().to_owned()
    }

    /// Creates an archive of this name in the directory, with these options; returns its path.
    #[track_caller]
    pub fn archive(&self, name: &str, options: &str) -> String {
        let path = self.at(name);
        dedup_ok(&format!("archive create {path} {options}"));
        path
    }

    /// The names of all entries of the directory, including hidden ones.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// An output of an earlier run, which a run may replace.
pub const EARLIER_OUTPUT: &[u8] = b"new_id,base_id,distance,base_day\nan,earlier,1,\n";

pub type Hit = (String, String, i32, Option<i32>);

/// The rows of an output; ids that are numbers become text.
pub fn read_hits(path: impl AsRef<Path>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for batch in read_parquet(path) {
        let names: Vec<_> = batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(names, ["new_id", "base_id", "distance", "base_day"]);
        let (new, base) = (texts(batch.column(0)), texts(batch.column(1)));
        let distances = batch.column(2).as_primitive::<Int32Type>();
        let days = batch.column(3).as_primitive::<Date32Type>();
        for row in 0..batch.num_rows() {
            let day = days.is_valid(row).then(|| days.value(row));
            hits.push((
                new[row].clone(),
                base[row].clone(),
                distances.value(row),
                day,
            ));
        }
    }
    hits
}

/// The rows of an output without the days.
pub fn read_pairs(path: impl AsRef<Path>) -> Vec<(String, String, i32)> {
    let hits = read_hits(path).into_iter();
    hits.map(|hit| (hit.0, hit.1, hit.2)).collect()
}

pub fn read_parquet(path: impl AsRef<Path>) -> Vec<RecordBatch> {
    let file = File::open(path.as_ref())
        .unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()));
    ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

pub fn texts(column: &ArrayRef) -> Vec<String> {
    match column.data_type() {
        DataType::Utf8 => column
            .as_string::<i32>()
            .iter()
            .map(|id| id.unwrap().to_owned())
            .collect(),
        DataType::Int64 => column
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .map(ToString::to_string)
            .collect(),
        other => panic!("{other}"),
    }
}

pub fn write_parquet(path: impl AsRef<Path>, columns: Vec<(&str, ArrayRef)>) {
    write_parquet_in_groups(path, columns, 1 << 20);
}

/// Writes a Parquet file with row groups of `rows` rows.
pub fn write_parquet_in_groups(
    path: impl AsRef<Path>,
    columns: Vec<(&str, ArrayRef)>,
    rows: usize,
) {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

pub fn strings<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(
        values
            .into_iter()
            .map(|value| Some(value.as_ref().to_owned()))
            .collect::<StringArray>(),
    )
}

pub fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// Writes documents with texts as Parquet.
pub fn write_documents(path: impl AsRef<Path>, documents: &[(&str, &str)]) {
    write_parquet(
        path,
        vec![
            ("id", strings(documents.iter().map(|d| d.0))),
            ("text", strings(documents.iter().map(|d| d.1))),
        ],
    );
}

/// As [`write_documents`], with row groups of `rows` rows.
pub fn write_texts(path: &str, documents: &[(String, String)], rows: usize) {
    let columns = vec![
        ("id", strings(documents.iter().map(|d| &d.0))),
        ("text", strings(documents.iter().map(|d| &d.1))),
    ];
    write_parquet_in_groups(path, columns, rows);
}

/// Writes documents as JSON Lines.
pub fn write_lines(path: &str, documents: &[serde_json::Value]) {
    let lines: Vec<String> = documents.iter().map(ToString::to_string).collect();
    std::fs::write(path, lines.join("\n")).unwrap();
}

/// Writes ready fingerprints as Parquet.
pub fn write_fingerprints(path: impl AsRef<Path>, rows: &[(String, u64)]) {
    write_parquet(
        path,
        vec![
            ("id", strings(rows.iter().map(|r| &r.0))),
            ("fp", numbers(rows.iter().map(|r| r.1.cast_signed()))),
        ],
    );
}

/// Starts a command with a line of arguments. [`Ran::of`] takes its output.
pub fn start(command: Command, line: &str) -> Child {
    start_with_output(command, line, Stdio::piped)
}

/// As [`start`], for a command whose output nobody reads.
pub fn start_unheard(command: Command, line: &str) -> Child {
    start_with_output(command, line, Stdio::null)
}

fn start_with_output(mut command: Command, line: &str, output: fn() -> Stdio) -> Child {
    command
        .args(line.split_whitespace())
        .stdout(output())
        .stderr(output())
        .spawn()
        .unwrap()
}

/// Sends a signal to a process.
pub fn signal(child: &Child, name: &str) {
    let line = format!("kill -{name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &line]).status().unwrap();
    assert!(sent.success());
}

/// `PYTHON`, or `python3`, if it has the packages. Without them, a test is skipped; under `CI` it fails.
pub fn python_with(packages: &str) -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", &format!("import {packages}")])
        .output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(std::env::var("CI").is_err(), "{python} lacks {packages}");
    say(&format!("SKIPPED: {python} lacks {packages}"));
    None
}

/// Random numbers below an end; a seed fixes them.
pub fn numbers_below(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |end| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % end
    }
}

/// Prints a line even when the test passes: the harness captures only the print macros.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// All files below a directory, each with its path and bytes.
pub fn contents(directory: impl AsRef<Path>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![directory.as_ref().to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// As [`contents`], with the paths below the directory.
pub fn contents_below(directory: impl AsRef<Path>) -> Vec<(String, Vec<u8>)> {
    let directory = directory.as_ref();
    let below = |path: PathBuf| path.strip_prefix(directory).unwrap().display().to_string();
    let files = contents(directory).into_iter();
    files.map(|(path, bytes)| (below(path), bytes)).collect()
}
