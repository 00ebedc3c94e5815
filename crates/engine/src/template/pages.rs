//! Documents to pages: for each, its source, the keys of its passages, and a hash of its id and text.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use archive::schema::ID;
use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryBuilder, FixedSizeBinaryBuilder};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::utils::take_function_args;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::ident;
use sha2::{Digest as _, Sha256};
use simhash::Markup;
use simhash::hash::murmur3_low64;
use template::Page;

use crate::documents::{SOURCE, TEXT, visible};

/// Column of pages, as [`Page::to_bytes`] writes them; null for a document without a source or a text.
pub(super) const PAGE: &str = "page";
/// Column of hashes of documents: their id, their source, and their text with its template.
const DOCUMENT: &str = "document";
/// Bytes of a hash.
const HASH: i32 = 16;

/// The schema of pages.
pub(crate) fn pages_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(SOURCE, DataType::Utf8, true),
        Field::new(PAGE, DataType::Binary, true),
        Field::new(DOCUMENT, DataType::FixedSizeBinary(HASH), false),
    ]))
}

/// A table of documents as pages, whose `markup` is no text.
///
/// # Errors
/// When the table lacks the columns.
pub(crate) fn with_pages(documents: DataFrame, markup: Markup) -> Result<DataFrame> {
    let page = ScalarUDF::new_from_impl(PageOf {
        markup,
        signature: Signature::any(2, Volatility::Immutable),
    });
    let document = ScalarUDF::new_from_impl(DocumentHash {
        signature: Signature::any(3, Volatility::Immutable),
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
///
/// # Errors
/// When the table lacks the columns.
pub(super) fn counted(pages: DataFrame, digest: &Arc<DocumentsDigest>) -> Result<DataFrame> {
    let counted = ScalarUDF::new_from_impl(Counted {
        digest: Arc::clone(digest),
        signature: Signature::any(2, Volatility::Volatile),
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
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all = (all.0.wrapping_add(sum), all.1 + count);
    }

    /// The digest of the documents that were added.
    pub(super) fn finish(&self) -> String {
        let (sum, count) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut digest = Sha256::new_with_prefix(b"documents");
        digest.update(sum.to_le_bytes());
        digest.update(count.to_le_bytes());
        storage::hex(&digest.finalize())
    }
}

/// `counted(page, document)`: the page. Adds the hash of the document to the digest.
#[derive(Debug)]
struct Counted {
    digest: Arc<DocumentsDigest>,
    signature: Signature,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.digest, &other.digest)
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.digest).hash(state);
    }
}

impl ScalarUDFImpl for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [pages, documents] = take_function_args(self.name(), args.args)?;
        let documents = documents.into_array(rows)?;
        self.digest
            .add(documents.as_fixed_size_binary().iter().flatten());
        Ok(pages)
    }
}

/// `page(text, source)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PageOf {
    markup: Markup,
    signature: Signature,
}

impl ScalarUDFImpl for PageOf {
    fn name(&self) -> &str {
        "page"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [texts, sources] = take_function_args(self.name(), args.args)?;
        let (texts, sources) = (texts.into_array(rows)?, sources.into_array(rows)?);
        let (mut shown, mut bytes) = (String::new(), Vec::new());
        let mut pages = BinaryBuilder::new();
        for (text, source) in texts
            .as_binary_view()
            .iter()
            .zip(sources.as_string::<i32>())
        {
            bytes.clear();
            let page = text.filter(|_| source.is_some()).map(|text| {
                let text = visible(self.markup, text, &mut shown);
                Page::of_text(text).to_bytes(&mut bytes);
                &bytes
            });
            pages.append_option(page);
        }
        Ok(ColumnarValue::Array(Arc::new(pages.finish())))
    }
}

/// `document(id, text, source)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DocumentHash {
    signature: Signature,
}

impl ScalarUDFImpl for DocumentHash {
    fn name(&self) -> &str {
        "document"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::FixedSizeBinary(HASH))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [ids, texts, sources] = take_function_args(self.name(), args.args)?;
        let (ids, texts) = (ids.into_array(rows)?, texts.into_array(rows)?);
        let texts = texts.as_binary_view();
        let sources = sources.into_array(rows)?;
        let sources = sources.as_string::<i32>();
        let mut hashes = FixedSizeBinaryBuilder::with_capacity(rows, HASH);
        for row in 0..rows {
            let text = match texts.is_valid(row) {
                true => murmur3_low64(texts.value(row), 1),
                false => 0,
            };
            let id = id_hash(&ids, row);
            let source = match sources.is_valid(row) {
                true => murmur3_low64(sources.value(row).as_bytes(), 3),
                false => 0,
            };
            let mut hash = [0; HASH as usize];
            for (seed, half) in hash.chunks_exact_mut(8).enumerate() {
                let all = [id, text, source].map(u64::to_le_bytes).concat();
                half.copy_from_slice(&murmur3_low64(&all, seed as u32).to_le_bytes());
            }
            hashes.append_value(hash)?;
        }
        Ok(ColumnarValue::Array(Arc::new(hashes.finish())))
    }
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
