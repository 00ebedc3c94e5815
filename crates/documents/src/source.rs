//! Sources: where documents are from.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, StringArray};
use arrow::datatypes::DataType;
use template::{domain, source_of_url, source_said};

use super::columns::Says;

/// The sources of documents by the values of a column; null where it says none. The registrable domains of hosts if `domains`.
pub(super) fn sources(values: &ArrayRef, says: Says, domains: bool) -> StringArray {
    let texts = match values.data_type() {
        DataType::Binary => lossy_texts(values.as_binary::<i32>().iter()),
        DataType::BinaryView => lossy_texts(values.as_binary_view().iter()),
        // A column that has no text says nothing.
        _ => arrow::compute::cast(values, &DataType::Utf8)
            .unwrap_or_else(|_| arrow::array::new_null_array(&DataType::Utf8, values.len())),
    };
    let source = |value| {
        let source = match says {
            Says::Sources => source_said(value),
            Says::Urls | Says::Ids => source_of_url(value),
        }?;
        Some(match source {
            Cow::Borrowed(source) if domains => domain(source).into(),
            Cow::Owned(source) if domains => domain(&source).to_owned().into(),
            source => source,
        })
    };
    let texts = texts.as_string::<i32>().iter();
    texts.map(|text| text.and_then(source)).collect()
}

/// Texts of bytes. Those that are no UTF-8 become replacement characters.
pub(super) fn lossy_texts<'a>(texts: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let texts = texts.map(|text| text.map(String::from_utf8_lossy));
    Arc::new(texts.collect::<StringArray>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_say_sources() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![
            Some("http://a.example/1"),
            Some("shop"),
            Some(""),
            None,
        ]));
        let found = |says| {
            sources(&values, says, false)
                .iter()
                .map(|s| s.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let a = || Some("a.example".to_owned());
        assert_eq!(found(Says::Sources), [a(), Some("shop".into()), None, None]);
        assert_eq!(found(Says::Urls), [a(), None, None, None]);
        assert_eq!(found(Says::Ids), [a(), None, None, None]);
        let values: ArrayRef = Arc::new(StringArray::from(vec![
            "http://b.c.a.co.uk/1",
            "http://B.A.co.uk/",
            "b.a.co.uk",
        ]));
        let domains = sources(&values, Says::Sources, true);
        let domains: Vec<&str> = domains.iter().flatten().collect();
        assert_eq!(domains, ["a.co.uk", "a.co.uk", "a.co.uk"]);
        let numbers: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![7]));
        assert_eq!(sources(&numbers, Says::Sources, false).value(0), "7");
    }
}
