//! Finds the leaf columns of a Parquet file by the names that options have for them.
//!
//! A column in structures has a path: the names of the structures and its own, joined by dots. Lists on the way have no name of
//! their own in it: `messages.content` is the column `content` of the structures in the list `messages`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf<'s> {
    /// Its index among all leaf columns.
    pub(super) index: usize,
    /// The names of the structures around it, the outermost first, and then its own name.
    pub(super) path: Vec<&'s str>,
    /// Its type; in lists, the type of an item.
    pub(super) data_type: &'s DataType,
    /// Whether it is in lists: it then has any number of values in a row.
    pub(super) is_in_lists: bool,
    /// Whether it is not the only one with its name, or in as many structures at its path.
    pub(super) is_repeated: bool,
}

/// Finds the leaf column that an option calls `column`: its name, or the names on its path, joined by dots. Names may have dots
/// themselves. If several columns are called so, the one in the fewest structures counts. Columns in maps are not found.
///
/// `schema` has the types of the file's columns in their order, with lists of the type [`DataType::List`].
pub(super) fn find<'s>(schema: &'s Schema, column: &str) -> Option<Leaf<'s>> {
    let mut found: Option<Leaf<'s>> = None;
    walk(schema, |path, index, data_type, is_in_lists| {
        let levels = found.as_ref().map_or(usize::MAX, |leaf| leaf.path.len());
        if path.len() > levels || !is_written(path, column) {
            return;
        }
        match &mut found {
            Some(found) if path.len() == levels => found.is_repeated = true,
            found => {
                *found = Some(Leaf {
                    index,
                    path: path.to_vec(),
                    data_type,
                    is_in_lists,
                    is_repeated: false,
                });
            }
        }
    });
    let mut found = found?;
    // A structure or a map may be called so, too.
    let fields = schema.fields().iter();
    let has_name = fields.filter(|field| field.name().as_str() == column);
    found.is_repeated |= found.path.len() == 1 && has_name.count() > 1;
    Some(found)
}

/// Whether `column` is the names of a path, joined by dots. A name may have dots.
fn is_written(path: &[&str], column: &str) -> bool {
    match path {
        [] => false,
        [name] => *name == column,
        [name, within @ ..] => {
            let rest = column.strip_prefix(*name);
            let rest = rest.and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| is_written(within, rest))
        }
    }
}

/// The paths of the leaf columns in structures, as options name them. Columns in maps cannot be read.
pub(super) fn nested_paths(schema: &Schema) -> Vec<String> {
    let mut paths = Vec::new();
    walk(schema, |path, _, _, _| {
        if path.len() > 1 {
            paths.push(path.join("."));
        }
    });
    paths
}

/// Calls `visit` for each leaf column that is in no map, in their order: with its path, its index, its type, and whether it is in
/// lists.
fn walk<'s>(schema: &'s Schema, visit: impl FnMut(&[&'s str], usize, &'s DataType, bool)) {
    let mut walk = Walk {
        path: Vec::new(),
        passed: 0,
        visit,
    };
    for field in schema.fields() {
        walk.field(field, Around::Nothing);
    }
}

/// What is around a column, beside structures; in several, the last of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Around {
    Nothing,
    Lists,
    Maps,
}

/// The state of [`walk`].
struct Walk<'s, V> {
    path: Vec<&'s str>,
    /// The number of leaf columns so far.
    passed: usize,
    visit: V,
}

impl<'s, V: FnMut(&[&'s str], usize, &'s DataType, bool)> Walk<'s, V> {
    /// A column of the file, or of a structure.
    fn field(&mut self, field: &'s Field, around: Around) {
        self.path.push(field.name());
        self.values(field.data_type(), around);
        self.path.pop();
    }

    fn values(&mut self, data_type: &'s DataType, around: Around) {
        match data_type {
            DataType::Struct(fields) => {
                for field in fields {
                    self.field(field, around);
                }
            }
            DataType::Map(entries, _) => self.values(entries.data_type(), Around::Maps),
            DataType::List(item) => {
                self.values(item.data_type(), around.max(Around::Lists));
            }
            leaf => {
                if around != Around::Maps {
                    (self.visit)(&self.path, self.passed, leaf, around == Around::Lists);
                }
                self.passed += 1;
            }
        }
    }
}

/// The schema in which the leaf column `leaf`, if it has bytes, has views of them.
pub(super) fn with_view(schema: &Schema, leaf: usize) -> Schema {
    let mut next = 0;
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field_with_view(field, leaf, &mut next));
    Schema::new(fields.collect::<Vec<FieldRef>>())
}

/// A field as by [`with_view`]. `next` is the index of its first leaf, and becomes that behind its last one.
fn field_with_view(field: &FieldRef, leaf: usize, next: &mut usize) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|field| field_with_view(field, leaf, next));
            DataType::Struct(fields.collect())
        }
        DataType::Map(entries, is_sorted) => {
            DataType::Map(field_with_view(entries, leaf, next), *is_sorted)
        }
        DataType::List(item) => DataType::List(field_with_view(item, leaf, next)),
        data_type => {
            let is_wanted = *next == leaf;
            *next += 1;
            match data_type {
                DataType::Binary if is_wanted => DataType::BinaryView,
                other => other.clone(),
            }
        }
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

#[cfg(test)]
mod tests {
    use ::parquet::arrow::parquet_to_arrow_schema;
    use ::parquet::schema::parser::parse_message_type;
    use ::parquet::schema::types::SchemaDescriptor;

    use super::*;

    /// Lists as current and older programs write them.
    const FILE: &str = "message file {
        optional binary id (UTF8);
        optional group tags (LIST) { repeated group list { optional binary element (UTF8); } }
        optional group messages (LIST) {
            repeated group list { optional group element { optional binary role (UTF8); optional binary content; } }
        }
        optional group pairs (LIST) { repeated group array { optional binary key; optional binary value; } }
        optional group old (LIST) { repeated binary array; }
        repeated binary plain;
        optional group entries (MAP) {
            repeated group key_value { required binary key (UTF8); optional group value (LIST) {
                repeated group list { optional binary element; }
            } }
        }
        optional group meta {
            optional group parts (LIST) { repeated group list {
                optional group element (LIST) { repeated group list { optional int64 element; } }
            } }
            optional binary url;
        }
        optional binary meta.url;
        optional group meta.x { optional binary y.z; optional group y { optional binary z; } }
    }";

    fn schema() -> Schema {
        let root = parse_message_type(FILE).unwrap();
        parquet_to_arrow_schema(&SchemaDescriptor::new(Arc::new(root)), None).unwrap()
    }

    #[test]
    fn columns_are_found_by_names_and_paths() {
        let schema = schema();
        let found = |column: &str| {
            find(&schema, column).map(|leaf| (leaf.index, leaf.path.join("/"), leaf.is_in_lists))
        };
        let some = |index, path: &str, is_in_lists| Some((index, path.to_owned(), is_in_lists));
        assert_eq!(found("id"), some(0, "id", false));
        assert_eq!(found("tags"), some(1, "tags", true));
        assert_eq!(found("messages.role"), some(2, "messages/role", true));
        assert_eq!(found("messages.content"), some(3, "messages/content", true));
        assert_eq!(found("pairs.value"), some(5, "pairs/value", true));
        assert_eq!(found("old"), some(6, "old", true));
        assert_eq!(found("plain"), some(7, "plain", true));
        assert_eq!(found("meta.parts"), some(10, "meta/parts", true));
        // The own name of a column comes first.
        assert_eq!(found("meta.url"), some(12, "meta.url", false));
        // Names of structures and of columns in them may have dots.
        assert_eq!(found("meta.x.y.z"), some(13, "meta.x/y.z", false));
        for none in [
            "messages",
            "messages.list.element.content",
            "tags.element",
            "entries",
            "entries.key",
            "entries.key_value.key",
            "entries.value",
            "meta",
            "",
        ] {
            assert_eq!(found(none), None, "{none}");
        }
        let parts = find(&schema, "meta.parts").unwrap();
        assert_eq!(parts.data_type, &DataType::Int64);
        assert_eq!(
            nested_paths(&schema),
            [
                "messages.role",
                "messages.content",
                "pairs.key",
                "pairs.value",
                "meta.parts",
                "meta.url",
                "meta.x.y.z",
                "meta.x.y.z"
            ]
        );
    }

    #[test]
    fn columns_of_one_name_are_repeated() {
        let file = "message file {
            optional binary id;
            optional binary m.t;
            optional group m { optional binary t; optional binary u; optional binary u; optional binary a.b; }
            optional group m.a { optional binary b; }
            optional binary twice;
            optional group twice { optional binary x; }
        }";
        let root = Arc::new(parse_message_type(file).unwrap());
        let schema = parquet_to_arrow_schema(&SchemaDescriptor::new(root), None).unwrap();
        for (column, expected) in [
            ("id", false),
            // The column of this name counts.
            ("m.t", false),
            ("m.u", true),
            ("m.a.b", true),
            ("twice", true),
            ("twice.x", false),
            ("none", false),
        ] {
            let is_repeated = find(&schema, column).is_some_and(|leaf| leaf.is_repeated);
            assert_eq!(is_repeated, expected, "{column}");
        }
    }

    #[test]
    fn one_column_of_bytes_gets_views() {
        let schema = schema();
        for column in ["messages.content", "old", "plain", "meta.url"] {
            let leaf = find(&schema, column).unwrap();
            let viewed = with_view(&schema, leaf.index);
            let types = |schema: &Schema| {
                let mut types = Vec::new();
                walk(schema, |_, _, data_type, _| types.push(data_type.clone()));
                types
            };
            let (mut expected, viewed_types) = (types(&schema), types(&viewed));
            let at = match column {
                // Two columns in a map come before it, which the walk leaves out.
                "meta.url" => leaf.index - 2,
                _ => leaf.index,
            };
            expected[at] = DataType::BinaryView;
            assert_eq!(viewed_types, expected, "{column}");
        }
        // Other types stay.
        let parts = find(&schema, "meta.parts").unwrap();
        assert_eq!(with_view(&schema, parts.index), schema);
    }
}
