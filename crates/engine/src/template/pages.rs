//! Documents to pages: for each, its source, the keys of its passages, and a hash of its id and text.

use std::sync::{Arc, Mutex};

use archive::schema::ID;
use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryBuilder, FixedSizeBinaryBuilder};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::utils::take_function_args;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{Signature, Volatility};
use datafusion::prelude::ident;
use sha2::{Digest as _, Sha256};
use simhash::Markup;
use simhash::hash::murmur3_low64;
use template::Page;

use crate::udf::column_function;
use documents::{SOURCE, TEXT, visible};
use streams::locked;

/// Column of pages, as [`Page::to_bytes`] writes them; null for a document without a source or a text.
pub(super) const PAGE: &str = "page";
/// Column of hashes of documents: their id, their source, and their text with its template.
const DOCUMENT: &str = "document";
/// Bytes of a hash.
const HASH: i32 = 16;

pub(crate) fn pages_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(SOURCE, DataType::Utf8, true),
        Field::new(PAGE, DataType::Binary, true),
        Field::new(DOCUMENT, DataType::FixedSizeBinary(HASH), false),
    ]))
}

/// A table of documents as pages, whose `markup` is no text.
pub(crate) fn with_pages(documents: DataFrame, markup: Markup) -> Result<DataFrame> {
    let any = Signature::variadic_any(Volatility::Immutable);
    let page = column_function("page", any.clone(), DataType::Binary, move |args| {
        let [texts, sources] = take_function_args("page", args)?;
        pages(&texts, &sources, markup)
    });
    let hash = DataType::FixedSizeBinary(HASH);
    let document = column_function("document", any, hash, |args| {
        let [ids, texts, sources] = take_function_args("document", args)?;
        document_hashes(&ids, &texts, &sources)
    });
    documents.select(vec![
        ident(SOURCE),
        page.call(vec![ident(TEXT), ident(SOURCE)]).alias(PAGE),
        document
            .call(vec![ident(ID), ident(TEXT), ident(SOURCE)])
            .alias(DOCUMENT),
    ])
}

/// A table of pages without the hashes of documents, which are added to `digest` when its rows are read.
pub(super) fn counted(pages: DataFrame, digest: &Arc<DocumentsDigest>) -> Result<DataFrame> {
    let digest = Arc::clone(digest);
    let any = Signature::variadic_any(Volatility::Volatile);
    let counted = column_function("counted", any, DataType::Binary, move |args| {
        let [pages, documents] = take_function_args("counted", args)?;
        digest.add(documents.as_fixed_size_binary().iter().flatten());
        Ok(pages)
    });
    pages.select(vec![
        ident(SOURCE),
        counted.call(vec![ident(PAGE), ident(DOCUMENT)]).alias(PAGE),
    ])
}

/// The digest of documents, which are added in any order.
#[derive(Debug, Default)]
pub(super) struct DocumentsDigest(Mutex<(u128, u64)>);

impl DocumentsDigest {
    fn add<'h>(&self, hashes: impl Iterator<Item = &'h [u8]>) {
        let (mut sum, mut count) = (0_u128, 0);
        for hash in hashes {
            let mut bytes = [0; HASH as usize];
            bytes.copy_from_slice(hash);
            sum = sum.wrapping_add(u128::from_le_bytes(bytes));
            count += 1;
        }
        let mut all = locked(&self.0);
        *all = (all.0.wrapping_add(sum), all.1 + count);
    }

    /// The digest of the documents that were added.
    pub(super) fn finish(&self) -> String {
        let (sum, count) = *locked(&self.0);
        let mut digest = Sha256::new_with_prefix(b"documents");
        digest.update(sum.to_le_bytes());
        digest.update(count.to_le_bytes());
        storage::hex(&digest.finalize())
    }
}

/// The pages of texts, whose `markup` is no text.
fn pages(texts: &ArrayRef, sources: &ArrayRef, markup: Markup) -> Result<ArrayRef> {
    let (mut shown, mut bytes) = (String::new(), Vec::new());
    let mut pages = BinaryBuilder::new();
    let sources = sources.as_string::<i32>();
    for (text, source) in texts.as_binary_view().iter().zip(sources) {
        bytes.clear();
        let page = text.filter(|_| source.is_some()).map(|text| {
            let text = visible(markup, text, &mut shown);
            Page::of_text(text).to_bytes(&mut bytes);
            &bytes
        });
        pages.append_option(page);
    }
    Ok(Arc::new(pages.finish()))
}

fn document_hashes(ids: &ArrayRef, texts: &ArrayRef, sources: &ArrayRef) -> Result<ArrayRef> {
    let texts = texts.as_binary_view().iter();
    let sources = sources.as_string::<i32>();
    let mut hashes = FixedSizeBinaryBuilder::with_capacity(ids.len(), HASH);
    for (row, (text, source)) in texts.zip(sources).enumerate() {
        let text = text.map_or(0, |text| murmur3_low64(text, 1));
        let id = id_hash(ids, row);
        let source = source.map_or(0, |source| murmur3_low64(source.as_bytes(), 3));
        let mut hash = [0; HASH as usize];
        for (seed, half) in hash.chunks_exact_mut(8).enumerate() {
            let all = [id, text, source].map(u64::to_le_bytes).concat();
            half.copy_from_slice(&murmur3_low64(&all, seed as u32).to_le_bytes());
        }
        hashes.append_value(hash)?;
    }
    Ok(Arc::new(hashes.finish()))
}

fn id_hash(ids: &ArrayRef, row: usize) -> u64 {
    match ids.as_string_opt::<i32>() {
        Some(texts) => murmur3_low64(texts.value(row).as_bytes(), 0),
        None => {
            let id = ids.as_primitive::<Int64Type>().value(row);
            murmur3_low64(&id.to_le_bytes(), 2)
        }
    }
}
