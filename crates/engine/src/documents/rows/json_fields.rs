//! Reads fields of a JSON object, at its top or by their paths inside of other objects, and skips all others.
//!
//! A path has the names of the levels, joined by dots. A field whose own name is the same text wins over the one at the path.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The fields to read.
pub(super) struct Fields {
    fields: Vec<Field>,
    top: Node,
}

/// A field to read.
struct Field {
    /// Its name, or its path.
    name: String,
    kind: Kind,
}

/// What the value of a field may be, and how it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string. Its bytes need not be UTF-8: that is checked later.
    Text,
    /// A number, or a string that may be one.
    Number,
    /// A string, a number, or a boolean, which becomes 1 or 0.
    Any,
    /// Anything: of a string its content, and other values as they are written. The line must be UTF-8.
    AsWritten,
    /// Anything. Only its presence counts: its value is empty.
    Presence,
}

/// A place in the object.
#[derive(Default)]
struct Node {
    /// Number of the field whose value is here.
    field: Option<usize>,
    /// Whether the field's own name leads here, and not a path.
    is_own: bool,
    /// What is below, if here is an object, by name.
    children: Vec<(String, Node)>,
}

/// The values of the fields in one object.
pub(super) struct Record<'a>(Vec<Value<'a>>);

/// The value of a field.
#[derive(Clone, Default)]
struct Value<'a> {
    /// `None` if the field is missing or null; a number is in decimal.
    content: Option<Cow<'a, [u8]>>,
    /// Whether the field's own name led to it.
    is_own: bool,
}

impl Node {
    /// The place of the member `name` of the object here. Adds the place if it is missing.
    fn child(&mut self, name: &str) -> &mut Self {
        let found = self.children.iter().position(|(child, _)| child == name);
        let at = found.unwrap_or_else(|| {
            self.children.push((name.to_owned(), Self::default()));
            self.children.len() - 1
        });
        &mut self.children[at].1
    }
}

impl Fields {
    /// The fields of these names, which differ, each of a kind.
    pub(super) fn new<'n>(named: impl IntoIterator<Item = (&'n str, Kind)>) -> Self {
        let field = |(name, kind): (&str, Kind)| Field {
            name: name.to_owned(),
            kind,
        };
        let fields: Vec<Field> = named.into_iter().map(field).collect();
        let mut top = Node::default();
        for (number, field) in fields.iter().enumerate() {
            let own = top.child(&field.name);
            own.field = Some(number);
            own.is_own = true;
            if field.name.contains('.') {
                let levels = field.name.split('.');
                let at_path = levels.fold(&mut top, |node, level| node.child(level));
                at_path.field = Some(number);
            }
        }
        Self { fields, top }
    }

    /// Reads the fields of the object in `line`.
    pub(super) fn parse<'a>(&self, line: &'a [u8]) -> serde_json::Result<Record<'a>> {
        let mut record = Record(vec![Value::default(); self.fields.len()]);
        let mut json = serde_json::Deserializer::from_slice(line);
        json.deserialize_map(Place {
            fields: &self.fields,
            node: &self.top,
            record: &mut record,
        })?;
        json.end()?;
        Ok(record)
    }
}

impl Record<'_> {
    /// The values, in the order of the fields: missing and null ones as `None`.
    pub(super) fn values(&self) -> Vec<Option<&[u8]>> {
        let values = self.0.iter();
        values.map(|value| value.content.as_deref()).collect()
    }
}

/// A place that is being read, and where its values go.
struct Place<'f, 'r, 'de> {
    fields: &'f [Field],
    node: &'f Node,
    record: &'r mut Record<'de>,
}

impl<'f, 'de> Place<'f, '_, 'de> {
    fn field(&self) -> Option<&'f Field> {
        let fields = self.fields;
        self.node.field.map(|number| &fields[number])
    }

    /// How the field here is read; `None` if no field was asked for here.
    fn kind(&self) -> Option<Kind> {
        self.field().map(|field| field.kind)
    }

    /// The value below, by name.
    fn below(&mut self, node: &'f Node) -> Place<'f, '_, 'de> {
        Place {
            fields: self.fields,
            node,
            record: &mut *self.record,
        }
    }

    /// Sets the value of the field here, if there is one.
    fn set(&mut self, content: Option<Cow<'de, [u8]>>) {
        let Some(number) = self.node.field else {
            return;
        };
        let (value, is_own) = (&mut self.record.0[number], self.node.is_own);
        if is_own || !value.is_own {
            *value = Value { content, is_own };
        }
    }

    fn set_number(&mut self, number: impl fmt::Display) {
        self.set(Some(Cow::Owned(number.to_string().into_bytes())));
    }

    /// Stores the value as it is written, and reads the fields inside it that were asked for.
    fn read_as_written<D: Deserializer<'de>>(mut self, value: D) -> Result<(), D::Error> {
        let custom = <D::Error as de::Error>::custom::<serde_json::Error>;
        let raw = <&'de RawValue as Deserialize<'de>>::deserialize(value)?;
        let written = raw.get();
        if written.starts_with('{') && !self.node.children.is_empty() {
            let node = self.node;
            let mut json = serde_json::Deserializer::from_str(written);
            let read = json.deserialize_map(self.below(node));
            read.map_err(custom)?;
        }
        let content = match written.as_bytes().first() {
            Some(b'n') => None,
            Some(b'"') => Some(string_content(written).map_err(custom)?),
            _ => Some(Cow::Borrowed(written.as_bytes())),
        };
        self.set(content);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.kind() {
            Some(Kind::Text | Kind::Number | Kind::Any) => value.deserialize_option(self),
            Some(Kind::AsWritten) => self.read_as_written(value),
            Some(Kind::Presence) => value.deserialize_ignored_any(self),
            None => value.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Place<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Field { name, kind }) = self.field() else {
            return f.write_str("a JSON object");
        };
        let kind = match kind {
            Kind::Text => "a string",
            Kind::Number => "an integer",
            Kind::Any => "a string or a number",
            Kind::AsWritten | Kind::Presence => "a value",
        };
        write!(f, "{kind} in column {name:?}")
    }

    fn visit_none<E: de::Error>(mut self) -> Result<(), E> {
        self.set(None);
        Ok(())
    }

    fn visit_unit<E: de::Error>(mut self) -> Result<(), E> {
        let is_present = self.kind() == Some(Kind::Presence);
        self.set(is_present.then_some(Cow::Borrowed(&b""[..])));
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.kind() {
            Some(Kind::Text) => value.deserialize_bytes(self),
            _ => value.deserialize_any(self),
        }
    }

    fn visit_borrowed_bytes<E: de::Error>(mut self, text: &'de [u8]) -> Result<(), E> {
        self.set(Some(Cow::Borrowed(text)));
        Ok(())
    }

    fn visit_bytes<E: de::Error>(mut self, text: &[u8]) -> Result<(), E> {
        self.set(Some(Cow::Owned(text.to_owned())));
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_f64<E: de::Error>(mut self, number: f64) -> Result<(), E> {
        if self.kind() == Some(Kind::Number) {
            return Err(E::invalid_type(de::Unexpected::Float(number), &self));
        }
        self.set_number(number);
        Ok(())
    }

    fn visit_bool<E: de::Error>(mut self, value: bool) -> Result<(), E> {
        if self.kind() == Some(Kind::Number) {
            return Err(E::invalid_type(de::Unexpected::Bool(value), &self));
        }
        self.set_number(u8::from(value));
        Ok(())
    }

    fn visit_i64<E: de::Error>(mut self, number: i64) -> Result<(), E> {
        self.set_number(number);
        Ok(())
    }

    fn visit_u64<E: de::Error>(mut self, number: u64) -> Result<(), E> {
        self.set_number(number);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        if self.node.field.is_some() {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        }
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        if matches!(self.kind(), Some(Kind::Text | Kind::Number | Kind::Any)) {
            return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
        }
        let node = self.node;
        while let Some(found) = values.next_key_seed(Key(&node.children))? {
            match found {
                Some(below) => values.next_value_seed(self.below(below))?,
                None => {
                    values.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the name of the next field, and tells which place it leads to; `None` if nothing there is read.
struct Key<'f>(&'f [(String, Node)]);

impl<'f, 'de> DeserializeSeed<'de> for Key<'f> {
    type Value = Option<&'f Node>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl<'f> Visitor<'_> for Key<'f> {
    type Value = Option<&'f Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let found = self.0.iter().find(|(child, _)| child == name);
        Ok(found.map(|(_, node)| node))
    }
}

/// The content of a string that is written as JSON. It need not be Unicode: an escape may be half of a character.
fn string_content(written: &str) -> serde_json::Result<Cow<'_, [u8]>> {
    serde_json::Deserializer::from_str(written).deserialize_bytes(Content)
}

/// Reads the bytes of a string.
struct Content;

impl<'de> Visitor<'de> for Content {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, text: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields `id` and `text` of a line, or what is wrong with it.
    fn parse(kinds: [Kind; 2], line: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
        parse_fields(&[("id", kinds[0]), ("text", kinds[1])], line)
    }

    fn parse_fields(fields: &[(&str, Kind)], line: &[u8]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let fields = Fields::new(fields.iter().copied());
        let record = fields.parse(line).map_err(|error| error.to_string())?;
        let values = record.values().into_iter();
        Ok(values.map(|value| value.map(<[u8]>::to_vec)).collect())
    }

    #[test]
    fn two_fields_of_an_object_are_read() {
        let row = |id: &[u8], text: &[u8]| Ok(vec![Some(id.to_vec()), Some(text.to_vec())]);
        let read = |line: &[u8]| parse([Kind::Text; 2], line);
        assert_eq!(read(br#"{"id":"a","text":"b"}"#), row(b"a", b"b"));
        assert_eq!(
            read(br#" {"x":[{"id":1}],"te\u0078t":"\u00e9\n\"","y":null,"id":"\ud83d\ude00"} "#),
            row("\u{1f600}".as_bytes(), "\u{e9}\n\"".as_bytes())
        );
        // Bytes that are no UTF-8, and a tab that is not escaped.
        assert_eq!(
            read(b"{\"id\":\"a\tb\",\"text\":\"\xff\xfe\"}"),
            row(b"a\tb", b"\xff\xfe")
        );
        assert_eq!(read(br#"{"id":null,"text":null}"#), Ok(vec![None, None]));
        assert_eq!(read(b"{}"), Ok(vec![None, None]));
        for bad in [
            &br#"{"id":"a","text":"b""#[..],
            br#"{"id":"a"} {"id":"b"}"#,
            br#"{"id":1}"#,
            br#"{"text":["b"]}"#,
            br#"{"text":{"b":1}}"#,
            br#"[1]"#,
            br#"{"x":[1,}"#,
        ] {
            read(bad).unwrap_err();
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let row = |id: &str, text: &str| Ok(vec![value(id), value(text)]);
        let read = |line: &str| parse([Kind::Number; 2], line.as_bytes());
        assert_eq!(
            read(r#"{"id":-7,"text":18446744073709551615}"#),
            row("-7", "18446744073709551615")
        );
        assert_eq!(read(r#"{"id":"12","text":"x"}"#), row("12", "x"));
        for bad in ["1.5", "true", "[1]", "18446744073709551616"] {
            let error = read(&format!("{{\"id\":{bad}}}")).unwrap_err();
            assert!(error.contains("integer in column \"id\""), "{error}");
        }
    }

    #[test]
    fn other_values_are_read_as_they_are_written() {
        let fields = [("a", Kind::AsWritten), ("a.b", Kind::AsWritten)];
        let read = |line: &str| {
            let values = parse_fields(&fields, line.as_bytes()).unwrap();
            let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
            let texts: Vec<_> = values.into_iter().map(|value| value.map(text)).collect();
            texts
        };
        let texts = |a: &str, b: Option<&str>| vec![Some(a.to_owned()), b.map(str::to_owned)];
        for (value, expected) in [
            ("1.50", "1.50"),
            ("184467440737095516160", "184467440737095516160"),
            ("true", "true"),
            (r#""x\"y""#, "x\"y"),
            ("[1, null]", "[1, null]"),
            // Half of a character.
            (r#""\ud83d""#, "\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(read(&format!("{{\"a\":{value}}}")), texts(expected, None));
        }
        let nested = r#"{"b": "c", "d": {"b": 1}}"#;
        assert_eq!(
            read(&format!("{{\"a\":{nested}}}")),
            texts(nested, Some("c"))
        );
        assert_eq!(read(r#"{"a":null}"#), [None, None]);
    }

    #[test]
    fn a_path_leads_into_objects() {
        let fields = [
            ("meta.url", Kind::Text),
            ("meta.x.score", Kind::Any),
            ("text", Kind::Text),
        ];
        let read = |line: &str| parse_fields(&fields, line.as_bytes());
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(
            read(r#"{"meta":{"url":"u","x":{"score":2,"y":[3]},"text":"z"},"text":"t"}"#),
            Ok(vec![some("u"), some("2"), some("t")])
        );
        // A field of this name wins over the one at the path, wherever it stands.
        for line in [
            r#"{"meta.url":"own","meta":{"url":"u"}}"#,
            r#"{"meta":{"url":"u"},"meta.url":"own"}"#,
        ] {
            assert_eq!(read(line), Ok(vec![some("own"), None, None]));
        }
        // Where there is no object on the way, there is no value.
        for meta in ["1", "null", "\"u\"", "[{\"url\":\"u\"}]", "{\"x\":[1]}"] {
            let line = format!("{{\"meta\":{meta}}}");
            assert_eq!(read(&line), Ok(vec![None, None, None]), "{meta}");
        }
        let error = read(r#"{"meta":{"url":1}}"#).unwrap_err();
        assert!(error.contains("a string in column \"meta.url\""), "{error}");
    }

    #[test]
    fn presence_is_told_from_absence() {
        let fields = [("a.b", Kind::Presence), ("c", Kind::Presence)];
        let read = |line: &[u8]| parse_fields(&fields, line).unwrap();
        assert_eq!(read(br#"{"a":{"b":[1]}}"#), [Some(vec![]), None]);
        assert_eq!(read(b"{\"a\":1,\"c\":\"\xff\"}"), [None, Some(vec![])]);
    }

    #[test]
    fn deep_nesting_is_skipped() {
        let depth = 200_000;
        let line = format!(
            "{{\"x\":{}{},\"id\":\"a\"}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let row = vec![Some(b"a".to_vec()), None];
        assert_eq!(parse([Kind::Text; 2], line.as_bytes()), Ok(row));
    }
}
