//! A JSON object: what a structure is read from, and no array of its fields.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// What is read from a JSON object.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: u32,
        y: Option<u32>,
    }

    #[test]
    fn an_array_is_no_object() {
        let read = |json: &str| serde_json::from_str::<Object<Point>>(json).map(|read| read.0);
        let point = |x, y| Point { x, y };
        assert_eq!(read(r#"{"y": 2, "x": 1}"#).unwrap(), point(1, Some(2)));
        assert_eq!(read(r#"{"x": 1}"#).unwrap(), point(1, None));
        for wrong in ["[1, 2]", "[]", "1", "{}", r#"{"x": 1, "z": 1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
