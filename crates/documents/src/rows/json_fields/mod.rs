//! Reads fields of a JSON object, at its top or by their paths inside of other objects, and skips all others.
//!
//! A path has the names of the levels, joined by dots. A field whose own name is the same text wins over the one at the path.
//! Texts may be in arrays, too, which have no name in a path: the strings of a record are joined by newlines.

mod place;

use std::borrow::Cow;

use serde::de::Deserializer as _;

use super::json_numbers::without_nan;
pub(super) use place::Content;
use place::Place;

pub(super) struct Fields {
    fields: Vec<Field>,
    top: Node,
}

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
    /// As [`Self::Text`], or all strings in an array.
    Texts,
    /// A number, or a string that may be one.
    Number,
    /// A string, or an integer as its decimal digits.
    TextOrInteger,
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
pub(super) struct Record<'a> {
    values: Vec<Value<'a>>,
    reading: Reading,
    /// Whether an object has a name twice that leads to a field.
    has_repeated: bool,
}

/// How an object is read; the first way is the fastest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Any half of a character but in texts, and any number that is too large, is an error.
    Plain,
    /// Values on the way to fields, and those of [`Kind::Any`], are read from their JSON, which must be UTF-8.
    Raw,
    /// As [`Self::Raw`], and only the last member of each name is read in an object, and not all, one after the other.
    OnlyLast,
}

#[derive(Clone, Default)]
struct Value<'a> {
    /// `None` if the field is missing or null; a number is in decimal.
    content: Option<Cow<'a, [u8]>>,
    /// Whether the field's own name led to it.
    is_own: bool,
    /// Whether it has a string of an array.
    has_items: bool,
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

    /// Reads the fields of the object in `line`. If an object has a name twice, the last one counts, whatever the others are.
    pub(super) fn parse<'a>(&self, line: &'a [u8]) -> serde_json::Result<Record<'a>> {
        let read = match self.read(line, Reading::Plain) {
            // The caller puts null for numbers that JSON does not have.
            Err(error) if error.is_syntax() && without_nan(line).is_some() => return Err(error),
            Err(error) if error.is_syntax() => {
                let read = self.read(line, Reading::Raw);
                read.map_err(|other| if other.is_data() { other } else { error })
            }
            read => read,
        };
        match read {
            Ok(record) if !record.has_repeated => Ok(record),
            // This needs UTF-8.
            Ok(record) => Ok(self.read(line, Reading::OnlyLast).unwrap_or(record)),
            Err(error) => self.read(line, Reading::OnlyLast).map_err(|_| error),
        }
    }

    fn read<'a>(&self, line: &'a [u8], reading: Reading) -> serde_json::Result<Record<'a>> {
        let mut record = Record {
            values: vec![Value::default(); self.fields.len()],
            reading,
            has_repeated: false,
        };
        let mut json = serde_json::Deserializer::from_slice(line);
        json.deserialize_map(Place::top(self, &mut record))?;
        json.end()?;
        Ok(record)
    }
}

impl Record<'_> {
    /// The values, in the order of the fields: missing and null ones as `None`.
    pub(super) fn values(&self) -> Vec<Option<&[u8]>> {
        let values = self.values.iter();
        values.map(|value| value.content.as_deref()).collect()
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
        assert_eq!(read(r#"{"id":-0,"text":"x"}"#), row("0", "x"));
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
            ("1e400", "1e400"),
            // Half of a character.
            (r#""\ud83d""#, "\u{fffd}"),
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
        for meta in ["1", "null", "\"u\"", "[{\"uri\":\"u\"}]", "{\"x\":[1]}"] {
            let line = format!("{{\"meta\":{meta}}}");
            assert_eq!(read(&line), Ok(vec![None, None, None]), "{meta}");
        }
        let error = read(r#"{"meta":{"url":1}}"#).unwrap_err();
        assert!(error.contains("a string in column \"meta.url\""), "{error}");
    }

    #[test]
    fn strings_in_arrays_are_joined() {
        let read = |line: &[u8]| -> Result<Option<String>, String> {
            let values = parse_fields(&[("text", Kind::Texts)], line)?;
            let [value] = <[_; 1]>::try_from(values).unwrap();
            Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
        };
        let some = |text: &str| Ok::<_, String>(Some(text.to_owned()));
        for (line, expected) in [
            (r#"{"text":"a"}"#, "a"),
            (r#"{"text":["a"]}"#, "a"),
            (r#"{"text":["a",null,"\u00e9\n","b"]}"#, "a\n\u{e9}\n\nb"),
            (r#"{"text":[]}"#, ""),
            (r#"{"text":[null]}"#, ""),
            (r#"{"text":[""]}"#, ""),
            (r#"{"text":["","a"]}"#, "\na"),
            (r#"{"text":[["a","b"],null,[],[["c"]]]}"#, "a\nb\nc"),
            // As of other fields that come twice, the last counts.
            (r#"{"text":["a"],"text":["b"]}"#, "b"),
            (r#"{"text":["a"],"text":"b"}"#, "b"),
            (r#"{"text":"a","text":[]}"#, ""),
        ] {
            assert_eq!(read(line.as_bytes()), some(expected), "{line}");
        }
        assert_eq!(
            read(b"{\"text\":[\"\xff\",\"a\tb\"]}"),
            some("\u{fffd}\na\tb")
        );
        assert_eq!(read(br#"{"text":null}"#), Ok(None));
        assert_eq!(read(b"{}"), Ok(None));
        for bad in [
            &br#"{"text":["a",1]}"#[..],
            br#"{"text":[{"a":"b"}]}"#,
            br#"{"text":[["a",true]]}"#,
            br#"{"text":{"a":["b"]}}"#,
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("a string in column \"text\""), "{error}");
        }
        read(br#"{"text":["a",}"#).unwrap_err();
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let fields = [
            ("id", Kind::Text),
            ("m.t", Kind::Texts),
            ("m", Kind::AsWritten),
        ];
        let read = |line: &str| {
            let values = parse_fields(&fields, line.as_bytes())?;
            let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
            let [id, text_of_m, m] = <[_; 3]>::try_from(values).unwrap();
            assert_eq!(m.is_none(), !line.contains("\"m\""), "{line}");
            Ok::<_, String>((id.map(text), text_of_m.map(text)))
        };
        let some = |text: &str| Some(text.to_owned());
        for first in [r#"{"a":1}"#, "[1]", "7", "true", "null", r#""y""#] {
            let line = format!(r#"{{"id":{first},"id":"x"}}"#);
            assert_eq!(read(&line), Ok((some("x"), None)), "{line}");
            let line = format!(r#"{{"m":{{"t":{first},"t":"b"}},"id":"x"}}"#);
            assert_eq!(read(&line), Ok((some("x"), some("b"))), "{line}");
            let line = format!(r#"{{"m":{{"t":"a"}},"id":"x","m":{first}}}"#);
            let found = read(&line.replace("null", "0"));
            let items = if first == "[1]" { some("") } else { None };
            assert_eq!(found, Ok((some("x"), items)), "{line}");
        }
        // So it is in each object of an array.
        let line = r#"{"m":[{"t":"a","t":"b"},{"t":"c"}],"id":"x"}"#;
        assert_eq!(read(line), Ok((some("x"), some("b\nc"))));
        for bad in [r#"{"id":"x","id":{"a":1}}"#, r#"{"id":"x","id":[]}"#] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("a string in column \"id\""), "{error}");
        }
    }

    #[test]
    fn a_path_leads_into_arrays() {
        let fields = [("messages.content", Kind::Texts), ("id", Kind::Text)];
        let read = |line: &str| {
            let values = parse_fields(&fields, line.as_bytes()).unwrap();
            assert_eq!(values[1].as_deref(), Some(&b"i"[..]), "{line}");
            let text = |text: &Vec<u8>| String::from_utf8_lossy(text).into_owned();
            values[0].as_ref().map(text)
        };
        let some = |text: &str| Some(text.to_owned());
        for (messages, expected) in [
            (
                r#"[{"role":"x","content":"a"},{"content":"b","role":"y"}]"#,
                some("a\nb"),
            ),
            (
                r#"[null,{"role":"x"},{"content":null},{"content":"a"},"b",3]"#,
                some("a"),
            ),
            (
                r#"[[{"content":"a"}],[],[{"content":["b",["c"]]}]]"#,
                some("a\nb\nc"),
            ),
            (r#"{"content":["a","b"]}"#, some("a\nb")),
            (r#"{"content":[]}"#, some("")),
            (r#"{"content":"a"}"#, some("a")),
            ("[]", some("")),
            (r#"[{"role":"x"}]"#, some("")),
            ("null", None),
            ("7", None),
            ("{}", None),
        ] {
            for line in [
                format!(r#"{{"id":"i","messages":{messages}}}"#),
                format!(r#"{{"messages":{messages},"id":"i"}}"#),
            ] {
                assert_eq!(read(&line), expected, "{line}");
            }
        }
        // A field of this name wins, whatever it is, and wherever it stands.
        for (own, expected) in [
            (r#"["x","y"]"#, some("x\ny")),
            ("[]", some("")),
            (r#""x""#, some("x")),
            ("null", None),
        ] {
            let other = r#""messages":[{"content":"a"},{"content":"b"}]"#;
            for line in [
                format!(r#"{{"id":"i","messages.content":{own},{other}}}"#),
                format!(r#"{{"id":"i",{other},"messages.content":{own}}}"#),
            ] {
                assert_eq!(read(&line), expected, "{line}");
            }
        }
    }

    #[test]
    fn nothing_but_texts_may_be_in_arrays() {
        for kind in [Kind::Text, Kind::Number, Kind::Any] {
            let read = |line: &str| parse_fields(&[("a.b", kind)], line.as_bytes());
            let error = read(r#"{"a":[{"c":1},{"b":"x"}]}"#).unwrap_err();
            let expected = "column \"a.b\" is in a list; only texts can be in lists at line 1";
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(read(r#"{"a":[{"c":"x"}]}"#), Ok(vec![None]));
        }
        for kind in [Kind::Text, Kind::Number, Kind::Any] {
            let error = parse_fields(&[("a", kind)], br#"{"a":["x"]}"#).unwrap_err();
            let found = error.contains("sequence") && error.contains("column \"a\"");
            assert!(found, "{error}");
        }
        // What goes along to decisions counts as missing.
        let line = br#"{"a":[{"c":1},{"b":"x"}]}"#;
        let values = parse_fields(&[("a.b", Kind::AsWritten)], line);
        assert_eq!(values, Ok(vec![None]));
        // A text is also found inside a value that another field copies as JSON.
        let fields = [("a", Kind::AsWritten), ("a.b", Kind::Texts)];
        let values = parse_fields(&fields, br#"{"a":[{"b":"x"},{"b":"y"}]}"#).unwrap();
        let expected = [&br#"[{"b":"x"},{"b":"y"}]"#[..], b"x\ny"];
        assert_eq!(values, expected.map(|value| Some(value.to_vec())));
    }

    #[test]
    fn halves_of_characters_and_large_numbers_fail_nothing() {
        let fields = [
            ("id", Kind::Text),
            ("a.b", Kind::AsWritten),
            ("a.c", Kind::Any),
            ("t", Kind::Texts),
            ("x.y", Kind::Presence),
        ];
        let text = |value: Option<Vec<u8>>| Some(String::from_utf8_lossy(&value?).into_owned());
        let read = |a: &str| {
            let line = format!(
                "{{\"x\":1e400,\"id\":\"\\udc00\",\"a\":{a},\"t\":[\"a\tb\",\"\\ud800\"]}}"
            );
            let values = parse_fields(&fields, line.as_bytes()).unwrap();
            let [id, b, c, t, _] = <[_; 5]>::try_from(values).unwrap();
            assert_eq!(id.unwrap(), b"\xed\xb0\x80", "{line}");
            assert_eq!(t.unwrap(), b"a\tb\n\xff", "{line}");
            [text(b), text(c)]
        };
        let texts = |b: &str, c: &str| [Some(b.to_owned()), Some(c.to_owned())];
        for a in [r#""x\ud800y""#, r#"["\ud83d",[1e400]]"#, "1e400", "-1e400"] {
            assert_eq!(read(a), [None, None], "{a}");
        }
        let half = r#"{"b":"x\ud800y","c":"\udc00\ud83d\ude00"}"#;
        assert_eq!(read(half), texts("x\u{fffd}y", "\u{fffd}\u{1f600}"));
        let large = r#"{"b":[1e400],"c":-1e400,"d":"\ud800"}"#;
        assert_eq!(read(large), texts("[1e400]", "-1e400"));
        for (c, expected) in [("true", "1"), ("0.50", "0.5"), ("\"é\"", "é")] {
            let a = format!("{{\"b\":1e999,\"c\":{c}}}");
            assert_eq!(read(&a), texts("1e999", expected));
        }
        let null = r#"{"b":null,"c":null}"#;
        assert_eq!(read(null), [None, None]);
        // In what comes twice, too.
        let line = br#"{"id":"i","a":"\ud800","t":1e400,"t":"\ud800","a":1e400,"a":{"c":1e400}}"#;
        let values = parse_fields(&fields[1..], line).unwrap();
        let expected = [None, Some(b"1e400".to_vec()), Some(b"\xff".to_vec()), None];
        assert_eq!(values, expected);
        // Deep arrays do not end the program.
        let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
        let line = format!("{{\"a\":{open}1e400{close}}}");
        parse_fields(&fields, line.as_bytes()).unwrap_err();
    }

    #[test]
    fn presence_is_told_from_absence() {
        let fields = [("a.b", Kind::Presence), ("c", Kind::Presence)];
        let read = |line: &[u8]| parse_fields(&fields, line).unwrap();
        assert_eq!(read(br#"{"a":{"b":[1]}}"#), [Some(vec![]), None]);
        assert_eq!(read(b"{\"a\":1,\"c\":\"\xff\"}"), [None, Some(vec![])]);
        assert_eq!(read(br#"{"a":[{"b":null}]}"#), [Some(vec![]), None]);
        // Nothing is known of the items of an empty array.
        assert_eq!(read(br#"{"a":[],"c":[]}"#), [Some(vec![]), Some(vec![])]);
        assert_eq!(read(br#"{"a":[{"x":1}]}"#), [None, None]);
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
