//! Edits of JSON that leave valid JSON, so that inputs pass the parser and reach the code that reads the fields.

use serde_json::{Value, json};

use crate::{Input, edited as edited_bytes};

/// Limit on the edits of one value.
const MAX_EDITS: usize = 16;
/// In a value with this many nested values, [`edited`] copies none of them.
const MAX_VALUES: usize = 2000;

/// Names and values that some reader treats specially.
const WORDS: [&str; 40] = [
    "",
    "..",
    "/etc/passwd",
    "s3://other/x",
    "file:///x",
    "a%2Fb",
    "%",
    "day=2026-01-01/x.parquet",
    "2026-02-30",
    "-0001-01-01",
    "9223372036854775808",
    "-1",
    "NaN",
    "none",
    "name",
    "\0",
    "\u{e9}\u{1d11e}",
    "add",
    "remove",
    "metaData",
    "protocol",
    "txn",
    "commitInfo",
    "domainMetadata",
    "sidecar",
    "checkpointMetadata",
    "deletionVector",
    "deletionVectors",
    "columnMapping",
    "delta.columnMapping.mode",
    "readerFeatures",
    "writerFeatures",
    "tags",
    "stats",
    "path",
    "size",
    "version",
    "partitionValues",
    "long",
    "string",
];

/// Returns `base` with the edits that the input describes. An empty input edits nothing.
pub fn edited(base: &Value, input: &mut Input<'_>) -> Value {
    let mut value = base.clone();
    for _ in 0..MAX_EDITS {
        if input.is_empty() {
            break;
        }
        let count = count(&value);
        let other = nth(&mut value, &mut input.below(count)).map(|other| other.clone());
        let Some(node) = nth(&mut value, &mut input.below(count)) else {
            break;
        };
        match input.byte() % 8 {
            0 => *node = scalar(input),
            1 => *node = json!(word(input)),
            2 => edit_text(node, input),
            3 => remove(node, input),
            4 => insert(node, input),
            5 if count < MAX_VALUES => *node = other.unwrap_or_default(),
            6 => *node = nested(input.byte()),
            _ => {
                let length = usize::from(input.byte());
                *node = json!(String::from_utf8_lossy(input.bytes(length)));
            }
        }
    }
    value
}

/// Returns lines of JSON with edits: a line removed, repeated, or edited itself.
pub fn edited_lines(base: &str, input: &mut Input<'_>) -> String {
    let mut lines: Vec<String> = base.lines().map(str::to_owned).collect();
    for _ in 0..4 {
        if input.is_empty() || lines.is_empty() {
            break;
        }
        let at = input.below(lines.len());
        match input.byte() % 8 {
            0 => drop(lines.remove(at)),
            1 => lines.push(lines[at].clone()),
            _ => {
                let parsed: Value = serde_json::from_str(&lines[at]).unwrap_or_default();
                lines[at] = edited(&parsed, input).to_string();
            }
        }
    }
    lines.join("\n")
}

/// Counts a value and all values nested in it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns nested value `number` in depth-first order; 0 is `value` itself.
fn nth<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(values) => values.iter_mut().find_map(|value| nth(value, number)),
        Value::Object(fields) => fields.values_mut().find_map(|value| nth(value, number)),
        _ => None,
    }
}

/// Picks one of [`WORDS`].
fn word(input: &mut Input<'_>) -> &'static str {
    WORDS[usize::from(input.byte()) % WORDS.len()]
}

/// Picks a scalar: null, a boolean, or a number at a limit.
fn scalar(input: &mut Input<'_>) -> Value {
    match input.byte() % 12 {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(1),
        4 => json!(-1),
        5 => json!(i64::MAX),
        6 => json!(i64::MIN),
        7 => json!(u64::MAX),
        8 => json!(u32::MAX),
        9 => json!(1e308),
        10 => json!(input.two_bytes()),
        _ => json!(-0.5),
    }
}

/// Edits a text: as JSON if it contains JSON, as some fields of Delta's log do, otherwise as bytes.
fn edit_text(node: &mut Value, input: &mut Input<'_>) {
    let Value::String(text) = node else {
        *node = scalar(input);
        return;
    };
    let inner = serde_json::from_str::<Value>(text).ok();
    *text = match inner.filter(|inner| inner.is_object() || inner.is_array()) {
        Some(inner) => edited(&inner, input).to_string(),
        None => {
            let length = usize::from(input.byte());
            let mut edits = Input::new(input.bytes(length));
            String::from_utf8_lossy(&edited_bytes(text.as_bytes(), &mut edits)).into_owned()
        }
    };
}

/// Removes an element or field; replaces a scalar by null.
fn remove(node: &mut Value, input: &mut Input<'_>) {
    match node {
        Value::Array(values) if !values.is_empty() => {
            let at = input.below(values.len());
            values.remove(at);
        }
        Value::Object(fields) if !fields.is_empty() => {
            let at = input.below(fields.len());
            if let Some(key) = fields.keys().nth(at).cloned() {
                fields.remove(&key);
            }
        }
        other => *other = Value::Null,
    }
}

/// Adds an element or field; wraps a scalar in an array.
fn insert(node: &mut Value, input: &mut Input<'_>) {
    match node {
        Value::Array(values) => values.push(scalar(input)),
        Value::Object(fields) => {
            let key = word(input).to_owned();
            fields.insert(key, scalar(input));
        }
        other => *other = json!([other.take()]),
    }
}

/// Returns `depth` nested arrays; the parser of serde_json refuses 128.
fn nested(depth: u8) -> Value {
    (0..depth).fold(Value::Null, |value, _| json!([value]))
}
