//! Fuzzes the decoders of the messages between a cluster's processes: tasks, operators, answers,
//! receipts, headers and error texts.
#![no_main]

use std::sync::LazyLock;

use cluster::fuzzing;
use inputs::{Input, block_on, edited, json_edits, run};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Valid messages, which inputs then edit.
struct Messages {
    task: Vec<u8>,
    operators: Vec<Vec<u8>>,
    answer: Vec<u8>,
    receipt: Value,
    headers: Vec<Value>,
}

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let parsed = |text: String| serde_json::from_str(&text).expect("JSON");
    Messages {
        task: fuzzing::sample_task().expect("a task"),
        operators: fuzzing::sample_operators().expect("operators"),
        answer: fuzzing::sample_answer().expect("an answer"),
        receipt: parsed(fuzzing::sample_receipt()),
        headers: fuzzing::sample_headers().map(parsed).to_vec(),
    }
});

fuzz_target!(|bytes: &[u8]| run(|| {
    let messages = &*MESSAGES;
    let mut input = Input::new(bytes);
    match input.byte() % 8 {
        0 | 1 => {
            let task = edited(&messages.task, &mut input);
            if let Err(reason) = fuzzing::read_task(&task) {
                assert!(!reason.is_empty());
            }
        }
        2 => decode_operator(messages, input),
        3..=5 => {
            let cut = input.two_bytes();
            let mut first = edited(&messages.answer, &mut input);
            let second = first.split_off(cut.min(first.len()));
            let read = block_on(fuzzing::read_answer([first, second]));
            // An input of three bytes chooses the decoder and the cut, and edits nothing.
            if bytes.len() == 3 {
                read.expect("an unedited answer decodes");
            }
        }
        6 => {
            let receipt = json_edits::edited(&messages.receipt, &mut input).to_string();
            let _ = fuzzing::read_receipt(&receipt);
        }
        _ => {
            let which = input.below(messages.headers.len());
            let header = json_edits::edited(&messages.headers[which], &mut input).to_string();
            fuzzing::read_header(&header);
            let text = String::from_utf8_lossy(bytes);
            fuzzing::read_header(&text);
            fuzzing::read_error(&text);
            fuzzing::read_error(&fuzzing::encoded_error(&text));
        }
    }
}));

/// Decodes an edited operator: a mark that ends with a line feed, then JSON.
fn decode_operator(messages: &Messages, mut input: Input<'_>) {
    let which = input.below(messages.operators.len());
    let operator = &messages.operators[which];
    let mark = operator
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a mark")
        + 1;
    let bytes = match input.byte() % 4 {
        0 => edited(operator, &mut input),
        _ => {
            let fields: Value = serde_json::from_slice(&operator[mark..]).expect("JSON");
            let fields = json_edits::edited(&fields, &mut input).to_string();
            [&operator[..mark], fields.as_bytes()].concat()
        }
    };
    fuzzing::read_operator(&bytes);
}
