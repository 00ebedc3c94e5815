//! Reads the value at a place of a JSON object.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Field, Fields, Kind, Node, Reading, Record, Value};
use crate::columns::ITEM_SEPARATOR;

/// The most arrays in arrays on the way to a field, as in the parser.
const MAX_DEPTH: usize = 128;

/// A place that is being read, and where its values go.
pub(super) struct Place<'f, 'r, 'de> {
    fields: &'f [Field],
    node: &'f Node,
    /// Number of the field whose value is here.
    field: Option<usize>,
    /// How many arrays are around it.
    arrays: usize,
    record: &'r mut Record<'de>,
}

impl<'f, 'r, 'de> Place<'f, 'r, 'de> {
    /// The object itself; the values of its `fields` go to `record`.
    pub(super) fn top(fields: &'f Fields, record: &'r mut Record<'de>) -> Self {
        Self {
            fields: &fields.fields,
            node: &fields.top,
            field: fields.top.field,
            arrays: 0,
            record,
        }
    }
}

impl<'f, 'de> Place<'f, '_, 'de> {
    fn field(&self) -> Option<&'f Field> {
        let fields = self.fields;
        self.field.map(|number| &fields[number])
    }

    fn is_in_array(&self) -> bool {
        self.arrays > 0
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
            field: node.field,
            arrays: self.arrays,
            record: &mut *self.record,
        }
    }

    /// An item of the array here.
    fn item(&mut self) -> Place<'f, '_, 'de> {
        Place {
            field: self.field,
            arrays: self.arrays + 1,
            ..self.below(self.node)
        }
    }

    /// Sets the value of the field here, if there is one.
    fn set(&mut self, content: Option<Cow<'de, [u8]>>) {
        if let Some(number) = self.field {
            self.set_field(number, self.node.is_own, content);
        }
    }

    /// Sets the value of a field, to which its own name led if `is_own`.
    fn set_field(&mut self, number: usize, is_own: bool, content: Option<Cow<'de, [u8]>>) {
        let value = &mut self.record.values[number];
        if is_own || !value.is_own {
            *value = Value {
                content,
                is_own,
                has_items: false,
            };
        }
    }

    fn set_number(&mut self, number: impl fmt::Display) {
        self.set(Some(Cow::Owned(number.to_string().into_bytes())));
    }

    /// Sets the values of all fields of this kind at `node` and below it to be empty.
    fn set_empty(&mut self, node: &Node, kind: Kind) {
        let field = node
            .field
            .filter(|&number| self.fields[number].kind == kind);
        if let Some(number) = field {
            self.set_field(number, node.is_own, Some(Cow::Borrowed(b"")));
        }
        for (_, below) in &node.children {
            self.set_empty(below, kind);
        }
    }

    /// Sets the value of the field here, if there is one, to a string; in an array, adds the string to it.
    fn set_text(&mut self, item: Cow<'de, [u8]>) {
        if !self.is_in_array() {
            return self.set(Some(item));
        }
        let Some(number) = self.field else {
            return;
        };
        let value = &mut self.record.values[number];
        if value.is_own && !self.node.is_own {
            return;
        }
        match &mut value.content {
            Some(text) if value.has_items => {
                let text = text.to_mut();
                text.push(ITEM_SEPARATOR);
                text.extend_from_slice(&item);
            }
            content => *content = Some(item),
        }
        value.has_items = true;
    }

    /// Reads the last of the members with the same name.
    fn read_last<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let node = self.node;
        let children = &node.children;
        let mut last: Vec<Option<&'de RawValue>> = vec![None; children.len()];
        while let Some(found) = members.next_key_seed(Key(children))? {
            match found {
                Some(at) => last[at] = Some(members.next_value()?),
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        for ((_, below), value) in children.iter().zip(last) {
            if let Some(value) = value {
                let mut json = serde_json::Deserializer::from_str(value.get());
                let read = self.below(below).deserialize(&mut json);
                read.map_err(<A::Error as de::Error>::custom)?;
            }
        }
        Ok(())
    }

    /// Reads the value from its JSON, which may have halves of characters and numbers beyond all.
    fn read_raw<D: Deserializer<'de>>(mut self, value: D) -> Result<(), D::Error> {
        let raw = <&'de RawValue as Deserialize<'de>>::deserialize(value)?.get();
        let is_field = self.field.is_some();
        let mut json = serde_json::Deserializer::from_str(raw);
        let read: serde_json::Result<()> = match raw.as_bytes().first() {
            // Each array that is read has a reader of its own, which does not count those around it.
            Some(b'[') if self.arrays > MAX_DEPTH => {
                Err(de::Error::custom("recursion limit exceeded"))
            }
            Some(b'"') if is_field => json.deserialize_bytes(self),
            Some(b'-' | b'0'..=b'9') if raw.parse::<f64>().is_ok_and(f64::is_infinite) => {
                self.set(Some(Cow::Borrowed(raw.as_bytes())));
                Ok(())
            }
            Some(b'[' | b'{') => json.deserialize_any(self),
            _ if is_field => json.deserialize_option(self),
            _ => Ok(()),
        };
        read.map_err(<D::Error as de::Error>::custom)
    }

    /// Copies the JSON of the value to the record, and reads the fields inside the value that columns name.
    fn read_as_written<D: Deserializer<'de>>(mut self, value: D) -> Result<(), D::Error> {
        let custom = <D::Error as de::Error>::custom::<serde_json::Error>;
        let raw = <&'de RawValue as Deserialize<'de>>::deserialize(value)?;
        let written = raw.get();
        if written.starts_with(['{', '[']) && !self.node.children.is_empty() {
            let node = self.node;
            let within = Place {
                field: None,
                ..self.below(node)
            };
            let mut json = serde_json::Deserializer::from_str(written);
            json.deserialize_any(within).map_err(custom)?;
        }
        let content = match written.as_bytes().first() {
            Some(b'n') => None,
            Some(b'"') => {
                let mut json = serde_json::Deserializer::from_str(written);
                // It need not be Unicode: an escape may be half of a character.
                Some(match json.deserialize_bytes(Content).map_err(custom)? {
                    Cow::Owned(text) => Cow::Owned(with_wrong_bytes(&text)),
                    text => text,
                })
            }
            _ => Some(Cow::Borrowed(written.as_bytes())),
        };
        self.set(content);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let is_raw = self.record.reading != Reading::Plain;
        let Some(Field { name, kind }) = self.field() else {
            return if is_raw {
                self.read_raw(value)
            } else {
                value.deserialize_any(self)
            };
        };
        match kind {
            Kind::Presence => value.deserialize_ignored_any(self),
            // It is read when all other work is done: too late for an error.
            Kind::AsWritten if self.is_in_array() => value.deserialize_ignored_any(self),
            Kind::AsWritten => self.read_as_written(value),
            Kind::Text | Kind::Number | Kind::TextOrInteger | Kind::Any if self.is_in_array() => {
                let reason = format!("column {name:?} is in a list; only texts can be in lists");
                Err(de::Error::custom(reason))
            }
            Kind::Any if is_raw => self.read_raw(value),
            _ => value.deserialize_option(self),
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
            Kind::Text | Kind::Texts => "a string",
            Kind::Number => "an integer",
            Kind::TextOrInteger => "a string or an integer",
            Kind::Any => "a string or a number",
            Kind::AsWritten | Kind::Presence => "a value",
        };
        write!(f, "{kind} in column {name:?}")
    }

    fn visit_none<E: de::Error>(mut self) -> Result<(), E> {
        if !self.is_in_array() {
            self.set(None);
        }
        Ok(())
    }

    fn visit_unit<E: de::Error>(mut self) -> Result<(), E> {
        let is_present = self.kind() == Some(Kind::Presence);
        self.set(is_present.then_some(Cow::Borrowed(&b""[..])));
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.kind() {
            Some(Kind::Text | Kind::Texts) => value.deserialize_bytes(self),
            _ => value.deserialize_any(self),
        }
    }

    fn visit_borrowed_bytes<E: de::Error>(mut self, text: &'de [u8]) -> Result<(), E> {
        self.set_text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_bytes<E: de::Error>(mut self, text: &[u8]) -> Result<(), E> {
        let text = match self.kind() {
            // Ids that differ in halves of characters stay different.
            Some(Kind::Text) => Cow::Owned(text.to_vec()),
            _ => Cow::Owned(with_wrong_bytes(text)),
        };
        self.set_text(text);
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_f64<E: de::Error>(mut self, number: f64) -> Result<(), E> {
        if !matches!(self.kind(), Some(Kind::Number | Kind::TextOrInteger)) {
            self.set_number(number);
        } else if number.to_bits() == (-0.0_f64).to_bits() {
            // So `-0` is read.
            self.set_number(0);
        } else {
            return Err(E::invalid_type(de::Unexpected::Float(number), &self));
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(mut self, value: bool) -> Result<(), E> {
        if matches!(self.kind(), Some(Kind::Number | Kind::TextOrInteger)) {
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

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        if !matches!(self.kind(), None | Some(Kind::Texts)) {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        }
        let node = self.node;
        if !self.is_in_array() {
            self.set_empty(node, Kind::Texts);
        }
        let mut is_empty = true;
        while values.next_element_seed(self.item())?.is_some() {
            is_empty = false;
        }
        if is_empty {
            // Other records may have in it what this one lacks.
            self.set_empty(node, Kind::Presence);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        if self.field.is_some() {
            return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
        }
        if self.record.reading == Reading::OnlyLast {
            return self.read_last(values);
        }
        let node = self.node;
        let mut seen = 0_u64;
        let mut seen_more = vec![0_u64; node.children.len() / 64];
        while let Some(found) = values.next_key_seed(Key(&node.children))? {
            let Some(at) = found else {
                values.next_value::<IgnoredAny>()?;
                continue;
            };
            let seen = match at / 64 {
                0 => &mut seen,
                more => &mut seen_more[more - 1],
            };
            let bit = 1_u64 << (at % 64);
            self.record.has_repeated |= *seen & bit != 0;
            *seen |= bit;
            values.next_value_seed(self.below(&node.children[at].1))?;
        }
        Ok(())
    }
}

/// A string with one byte that is not UTF-8 for each half of a character, for which the parser has three.
fn with_wrong_bytes(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(0xed, rest) {
        bytes.extend_from_slice(&rest[..at]);
        rest = match rest[at..] {
            [_, 0xa0..=0xbf, _, ..] => {
                bytes.push(0xff);
                &rest[at + 3..]
            }
            _ => {
                bytes.push(0xed);
                &rest[at + 1..]
            }
        };
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// Reads the name of the next field, and tells the number of the place it leads to; `None` if nothing there is read.
struct Key<'f>(&'f [(String, Node)]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        // An escape in a name may be half of a character.
        name.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        let is_name = |(child, _): &(String, Node)| child.as_bytes() == name;
        Ok(self.0.iter().position(is_name))
    }
}

/// Reads the bytes of a string.
pub(in crate::rows) struct Content;

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
