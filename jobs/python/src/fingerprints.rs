//! Fingerprints and sketches of texts.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, UInt64Array};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use pyo3::prelude::*;
use simhash::Fingerprinter;

use crate::error::Failed;
use crate::export::Array;
use crate::interrupt::{for_each, thread_count};
use crate::model::Model;
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

/// Make the fingerprints of texts: 64-bit unsigned integers, null for a text without one.
#[pyfunction]
pub(crate) fn fingerprint(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    texts: &Bound<'_, PyAny>,
    column: Option<String>,
    threads: Option<usize>,
) -> PyResult<Array> {
    let model = &model.get().model;
    let texts = Texts::from_python(texts, column.as_deref())?;
    let mut values = vec![0_u64; texts.rows()];
    let mut valid = vec![false; texts.rows()];
    let make = || Fingerprinter::new(model.clone());
    let threads = thread_count(threads);
    let pieces = pieces(&texts, threads, &mut values, &mut valid, 1);
    for_each(
        py,
        pieces.into_iter(),
        threads,
        make,
        |fingerprinter, piece, stop| {
            let mut places = piece.values.iter_mut().zip(piece.valid);
            for_each_text(&piece.texts, |text| {
                // Texts may be long.
                if stop.is_set() {
                    return;
                }
                let made = text.and_then(|text| fingerprinter.fingerprint(text));
                if let (Some((value, valid)), Some(made)) = (places.next(), made) {
                    (*value, *valid) = (made, true);
                }
            });
            Ok(())
        },
    )?;
    let values = UInt64Array::new(ScalarBuffer::from(values), nulls(valid));
    Ok(Array::new(Arc::new(values)))
}

/// Make the sketches of texts: the bytes that the spec asks for, null for a text without a fingerprint.
#[pyfunction]
pub(crate) fn sketch(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    texts: &Bound<'_, PyAny>,
    column: Option<String>,
    threads: Option<usize>,
) -> PyResult<Array> {
    let model = &model.get().model;
    let bytes = model.spec().sketch.bytes();
    if bytes == 0 {
        let message = "the spec has no sketches: give bits=64, 128 or 256, or a spec with sketch=";
        return Err(Failed::usage(message).into());
    }
    let texts = Texts::from_python(texts, column.as_deref())?;
    let mut values = vec![0_u8; texts.rows() * bytes];
    let mut valid = vec![false; texts.rows()];
    let make = || (Fingerprinter::new(model.clone()), Vec::<u8>::new());
    let threads = thread_count(threads);
    let pieces = pieces(&texts, threads, &mut values, &mut valid, bytes);
    for_each(
        py,
        pieces.into_iter(),
        threads,
        make,
        |(fingerprinter, sketch), piece, stop| {
            let mut places = piece.values.chunks_exact_mut(bytes).zip(piece.valid);
            for_each_text(&piece.texts, |text| {
                if stop.is_set() {
                    return;
                }
                sketch.clear();
                let made = text.and_then(|text| fingerprinter.fingerprint_and_sketch(text, sketch));
                if let (Some((value, valid)), Some(_)) = (places.next(), made) {
                    value.copy_from_slice(sketch);
                    *valid = true;
                }
            });
            Ok(())
        },
    )?;
    let (length, rows) = (bytes as i32, valid.len());
    let values = Buffer::from_vec(values);
    let values = FixedSizeBinaryArray::try_new_with_len(length, values, nulls(valid), rows);
    Ok(Array::new(Arc::new(values.map_err(Failed::from)?)))
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

/// The nulls of an array; `None` if all values are valid.
fn nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0)
}
