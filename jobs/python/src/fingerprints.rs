//! Fingerprints and sketches of texts.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, UInt64Array};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use pyo3::prelude::*;
use simhash::Fingerprinter;

use crate::error::Failed;
use crate::export::Array;
use crate::interrupt::{for_each, thread_count, unless_stopped};
use crate::model::Model;
use crate::progress::Progress;
use crate::texts::{Texts, for_each_text};

/// The most texts that a thread takes at once: few enough that the threads end at about the same time.
const PIECE: usize = 1024;
/// The fewest texts that a thread takes at once, unless there are fewer: starting a thread takes as long as some texts.
const SMALL_PIECE: usize = 16;

/// Texts, and the places of their results.
struct Piece<'a, T> {
    texts: ArrayRef,
    /// The results; the same number for each text.
    values: &'a mut [T],
    /// Whether the text of each row has a fingerprint.
    valid: &'a mut [bool],
}

/// Make the fingerprints of texts: 64-bit unsigned integers, null for a text without one. progress is called now and then,
/// and at the end, with the stage, the number of texts done, the number of all, and 0.
#[pyfunction]
pub(crate) fn fingerprint(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    texts: &Bound<'_, PyAny>,
    column: Option<String>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Array> {
    let model = &model.get().model;
    let texts = Texts::from_python(texts, column.as_deref())?;
    let progress = Progress::new(progress, "fingerprinting", texts.rows());
    let model = model.clone();
    let start = move || Fingerprinter::new(model.clone());
    let (values, nulls) = each_text(
        py,
        &progress,
        &texts,
        threads,
        1,
        start,
        |fingerprinter, text, value| {
            let made = fingerprinter.fingerprint(text);
            value[0] = made.unwrap_or_default();
            made.is_some()
        },
    )?;
    let values = UInt64Array::new(ScalarBuffer::from(values), nulls);
    Ok(Array::new(Arc::new(values)))
}

/// Make the sketches of texts: the bytes that the spec asks for, null for a text without a fingerprint. progress is as in
/// fingerprint.
#[pyfunction]
pub(crate) fn sketch(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    texts: &Bound<'_, PyAny>,
    column: Option<String>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Array> {
    let model = &model.get().model;
    let bytes = model.spec().sketch.bytes();
    if bytes == 0 {
        let message = "the spec has no sketches: give bits=64, 128 or 256, or a spec with sketch=";
        return Err(Failed::usage(message).into());
    }
    let texts = Texts::from_python(texts, column.as_deref())?;
    let progress = Progress::new(progress, "sketching", texts.rows());
    let model = model.clone();
    let start = move || (Fingerprinter::new(model.clone()), Vec::new());
    let make = move |(fingerprinter, sketch): &mut (Fingerprinter, Vec<u8>),
                     text: &str,
                     value: &mut [u8]| {
        sketch.clear();
        let made = fingerprinter.fingerprint_and_sketch(text, sketch);
        if made.is_some() {
            value.copy_from_slice(sketch);
        }
        made.is_some()
    };
    let (values, nulls) = each_text(py, &progress, &texts, threads, bytes, start, make)?;
    let (length, values) = (bytes as i32, Buffer::from_vec(values));
    let values = FixedSizeBinaryArray::try_new_with_len(length, values, nulls, texts.rows());
    Ok(Array::new(Arc::new(values.map_err(Failed::from)?)))
}

/// Bytes of a text that takes so long that a signal must end it.
const LONG: usize = 4 << 20;

/// Calls `make` with each text and the place of its result, of `width` values, on several threads; `start` makes the state
/// of a thread. Returns the results, and the nulls: texts that are null, and those for which `make` returned false.
fn each_text<T: Copy + Default + Send + 'static, State>(
    py: Python<'_>,
    progress: &Progress,
    texts: &Texts,
    threads: Option<usize>,
    width: usize,
    start: impl Fn() -> State + Clone + Send + Sync + 'static,
    make: impl Fn(&mut State, &str, &mut [T]) -> bool + Clone + Send + Sync + 'static,
) -> PyResult<(Vec<T>, Option<NullBuffer>)> {
    let mut values = vec![T::default(); texts.rows() * width];
    let mut valid = vec![false; texts.rows()];
    let threads = thread_count(threads);
    let pieces = pieces(texts, threads, &mut values, &mut valid, width);
    let bytes = pieces
        .iter()
        .map(|piece| piece.texts.to_data().get_slice_memory_size());
    let is_short = bytes.map(|bytes| bytes.unwrap_or(LONG)).sum::<usize>() < LONG;
    for_each(
        py,
        progress,
        pieces.into_iter(),
        is_short,
        threads,
        &start,
        |state, piece, stop| {
            let rows = piece.valid.len();
            let mut places = piece.values.chunks_exact_mut(width).zip(piece.valid);
            for_each_text(&piece.texts, |text| {
                // Texts may be long.
                if stop.is_set() {
                    return;
                }
                if let (Some((value, valid)), Some(text)) = (places.next(), text) {
                    if text.len() < LONG {
                        *valid = make(state, text, value);
                        return;
                    }
                    let (start, make, text) = (start.clone(), make.clone(), text.to_owned());
                    let made = unless_stopped(stop, move || {
                        let mut value = vec![T::default(); width];
                        let is_valid = make(&mut start(), &text, &mut value);
                        (is_valid, value)
                    });
                    if let Some((is_valid, made)) = made {
                        *valid = is_valid;
                        value.copy_from_slice(&made);
                    }
                }
            });
            progress.advance(rows);
            Ok(())
        },
    )?;
    progress.report(py)?;
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    Ok((values, nulls))
}

/// Cuts texts into several pieces for each thread, each with the places of its results; a text has `width` of `values`.
fn pieces<'a, T>(
    texts: &Texts,
    threads: usize,
    mut values: &'a mut [T],
    mut valid: &'a mut [bool],
    width: usize,
) -> Vec<Piece<'a, T>> {
    let rows = texts.rows().div_ceil(8 * threads).clamp(SMALL_PIECE, PIECE);
    let pieces = texts.pieces(rows).map(|texts| {
        let rows = arrow::array::Array::len(&texts);
        let (own_values, later_values) = std::mem::take(&mut values).split_at_mut(rows * width);
        let (own_valid, later_valid) = std::mem::take(&mut valid).split_at_mut(rows);
        (values, valid) = (later_values, later_valid);
        Piece {
            texts,
            values: own_values,
            valid: own_valid,
        }
    });
    pieces.collect()
}
