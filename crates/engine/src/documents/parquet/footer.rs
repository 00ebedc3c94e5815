//! The footer of a Parquet file: its columns, its spec, and the sizes of its row groups.

use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::arrow::{ProjectionMask, parquet_to_arrow_schema_by_columns};
use ::parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use ::parquet::schema::types::{BasicTypeInfo, SchemaDescriptor, Type, TypePtr};
use archive::schema::{SKETCH, SPEC_KEY};
use archive::{ArchiveError, IdType, ObjectReader};
use arrow::datatypes::{DataType, Field, Schema};
use simhash::Spec;
use storage::{Location, UnchangedFile};

use crate::documents::columns::{Columns, Content, Role};
use crate::documents::file::{InputFile, Source};
use crate::error::{EngineError, Result};

/// Opens a file: reads its footer, and finds its columns.
pub(in crate::documents) async fn open(location: Location, columns: &Columns) -> Result<InputFile> {
    let name = location.to_string();
    let failed = ArchiveError::parquet(name);
    let (footer, source) = match location.local() {
        Some(local) => {
            let file = UnchangedFile::at(local)?;
            let opened = file.open()?;
            let read = move || ParquetMetaDataReader::new().parse_and_finish(&opened);
            let footer = tokio::task::spawn_blocking(read)
                .await
                .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            (footer.map_err(failed)?, Source::Local(file))
        }
        None => {
            let mut object = ObjectReader::new(&location, location.size().await?);
            let footer = object.metadata().await.map_err(failed)?;
            (footer, Source::Remote(object))
        }
    };
    input_file(location, &footer, source, columns)
}

fn input_file(
    location: Location,
    footer: &ParquetMetaData,
    source: Source,
    columns: &Columns,
) -> Result<InputFile> {
    let name = location.to_string();
    let failed = |error| ArchiveError::parquet(name.clone())(error);
    let schema = footer.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let paths = paths(schema);
    let names = fields.iter().map(|field| field.name());
    let names: Vec<&str> = names.chain(paths.iter().map(String::as_str)).collect();
    let mut found = columns.find(&name, &names)?;
    for column in found.names() {
        leaf(schema, column)
            .ok_or_else(|| bad_column(&name, column, "nested or repeated values"))?;
    }
    for column in &mut found.carried {
        let leaf = leaf(schema, &column.name).unwrap_or_default();
        column.data_type = carried_type(schema, leaf).map_err(failed)?;
    }
    let id_type = match &found.id {
        Some(column) => id_type(&name, schema, column)?,
        None => IdType::String,
    };
    let pairs = footer.file_metadata().key_value_metadata();
    let spec = pairs.and_then(|pairs| {
        pairs
            .iter()
            .find(|pair| pair.key == SPEC_KEY)?
            .value
            .as_deref()
    });
    // A data file of an archive does not declare its spec: the archive's log does.
    let spec = spec.or(location.table_spec());
    let spec = match (&found.content, spec) {
        (Some(Content::Fingerprint(_)), Some(text)) => {
            let spec = Spec::from_json(text).map_err(|source| ArchiveError::Spec {
                path: name.clone(),
                source,
            })?;
            Some(spec)
        }
        _ => None,
    };
    found.sketches = spec.as_ref().is_some_and(|spec| !spec.sketch.is_none());
    if found.sketches && leaf(schema, SKETCH).is_none() {
        return Err(bad_column(
            &name,
            SKETCH,
            "the file has no such column, but its spec has sketches",
        ));
    }
    let texts = found.roles().into_iter().filter(|(_, role)| match role {
        Role::Carried(data_type) => **data_type == DataType::Utf8,
        _ => true,
    });
    let texts: Vec<usize> = texts.filter_map(|(name, _)| leaf(schema, name)).collect();
    let footer = strings_as_bytes(footer, &texts);
    let footer = footer.and_then(|footer| with_views(footer, found.content.as_ref()));
    let footer = Some(footer.map_err(failed)?);
    Ok(InputFile {
        source,
        short_name: location.file_name(),
        location,
        carried: std::mem::take(&mut found.carried),
        columns: found,
        id_type,
        spec,
        footer,
    })
}

/// The paths of the columns in structures, as options name them: the names of the levels, joined by dots. Those in lists and
/// maps cannot be read.
fn paths(schema: &SchemaDescriptor) -> Vec<String> {
    let nested = schema.columns().iter();
    let nested = nested.filter(|column| column.path().parts().len() > 1);
    let single = nested.filter(|column| column.max_rep_level() == 0);
    single.map(|column| column.path().string()).collect()
}

/// The type that a carried column gets, which is the leaf column `leaf`: its Arrow type, or text if its bytes are said to be
/// some kind of text.
fn carried_type(schema: &SchemaDescriptor, leaf: usize) -> Result<DataType, ParquetError> {
    let column = schema.column(leaf);
    if is_text(column.self_type().get_basic_info()) {
        return Ok(DataType::Utf8);
    }
    let mask = ProjectionMask::leaves(schema, [leaf]);
    let schema = parquet_to_arrow_schema_by_columns(schema, mask, None)?;
    let mut field = schema.fields().first();
    while let Some(DataType::Struct(fields)) = field.map(|field| field.data_type()) {
        field = fields.first();
    }
    let data_type = field.map(|field| field.data_type().clone());
    data_type.ok_or_else(|| ParquetError::General("a column has no type".into()))
}

/// Whether the bytes of a column are said to be text.
fn is_text(info: &BasicTypeInfo) -> bool {
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(logical), _) => matches!(
            logical,
            LogicalType::String | LogicalType::Json | LogicalType::Enum
        ),
        (None, converted) => matches!(
            converted,
            ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM
        ),
    }
}

/// Whether the bytes of a column are those of numbers.
fn is_decimal(info: &BasicTypeInfo) -> bool {
    match info.logical_type_ref() {
        Some(logical) => matches!(logical, LogicalType::Decimal(_)),
        None => info.converted_type() == ConvertedType::DECIMAL,
    }
}

/// The type of the ids in the column `column`, which [`leaf`] finds.
fn id_type(name: &str, schema: &SchemaDescriptor, column: &str) -> Result<IdType> {
    let id = schema.column(leaf(schema, column).unwrap_or_default());
    match (id.physical_type(), id.logical_type_ref()) {
        (PhysicalType::BYTE_ARRAY, _) => Ok(IdType::String),
        (PhysicalType::INT32 | PhysicalType::INT64, None | Some(LogicalType::Integer(_))) => {
            Ok(IdType::Bigint)
        }
        (physical, logical) => {
            let found =
                logical.map_or_else(|| physical.to_string(), |logical| format!("{logical:?}"));
            let reason = format!("ids are text or integers, this is {found}");
            Err(bad_column(name, column, &reason))
        }
    }
}

fn bad_column(object: &str, column: &str, reason: &str) -> EngineError {
    EngineError::BadData {
        object: format!("{object}, column {column:?}"),
        reason: reason.to_owned(),
    }
}

/// The index of the leaf column that is called `column`, or else of the one at the path `column`. `None` if there is no such
/// column, or if it repeats in a row.
pub(super) fn leaf(schema: &SchemaDescriptor, column: &str) -> Option<usize> {
    let mut leaves = schema.columns().iter().map(|leaf| leaf.path().parts());
    let own = leaves.clone().position(|parts| parts == [column]);
    let is_at = |parts: &[String]| parts.iter().map(String::as_str).eq(column.split('.'));
    let leaf = own.or_else(|| leaves.position(is_at))?;
    (schema.column(leaf).max_rep_level() == 0).then_some(leaf)
}

/// The footer with the logical type removed from those of the leaf columns `leaves` that are byte arrays and no numbers, so
/// that text is read as bytes.
pub(super) fn strings_as_bytes(
    footer: &ParquetMetaData,
    leaves: &[usize],
) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let mut next = 0;
    let fields = root.get_fields().iter();
    let fields = fields.map(|field| with_bytes(field, leaves, &mut next));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let root = Type::group_type_builder(root.name())
        .with_fields(fields)
        .build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        schema,
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaDataBuilder::new(file)
        .set_row_groups(footer.row_groups().to_vec())
        .build())
}

/// A field with the logical type removed as by [`strings_as_bytes`]. `next` is the index of its first leaf, and becomes that
/// behind its last one.
fn with_bytes(
    field: &TypePtr,
    leaves: &[usize],
    next: &mut usize,
) -> Result<TypePtr, ParquetError> {
    let info = field.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if field.is_primitive() {
        let leaf = *next;
        *next += 1;
        let is_bytes = field.get_physical_type() == PhysicalType::BYTE_ARRAY;
        if !is_bytes || is_decimal(info) || !leaves.contains(&leaf) {
            return Ok(Arc::clone(field));
        }
        return Type::primitive_type_builder(field.name(), PhysicalType::BYTE_ARRAY)
            .with_repetition(info.repetition())
            .with_id(id)
            .build()
            .map(Arc::new);
    }
    let fields = field.get_fields().iter();
    let within = fields.map(|field| with_bytes(field, leaves, next));
    let within = within.collect::<Result<Vec<_>, _>>()?;
    let mut pairs = within.iter().zip(field.get_fields());
    if pairs.all(|(new, old)| Arc::ptr_eq(new, old)) {
        return Ok(Arc::clone(field));
    }
    let mut group = Type::group_type_builder(field.name())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_fields(within)
        .with_id(id);
    if info.has_repetition() {
        group = group.with_repetition(info.repetition());
    }
    group.build().map(Arc::new)
}

/// The metadata for a reader that reads texts as views of their pages. Those in structures are read as bytes.
fn with_views(
    footer: ParquetMetaData,
    content: Option<&Content>,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let footer = Arc::new(footer);
    // An embedded Arrow schema would turn the bytes into text again, unchecked.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options.clone())?;
    let Some(Content::Text(text)) = content else {
        return Ok(metadata);
    };
    let fields = metadata.schema().fields().iter().map(|field| {
        match field.name() == text && field.data_type() == &DataType::Binary {
            true => Arc::new(Field::clone(field).with_data_type(DataType::BinaryView)),
            false => Arc::clone(field),
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    ArrowReaderMetadata::try_new(footer, options.with_schema(schema))
}

/// Indexes of the leaf columns to read, in the order of `FoundColumns::names`.
fn leaves(file: &InputFile, footer: &ArrowReaderMetadata) -> Vec<usize> {
    let schema = footer.parquet_schema();
    let names = file.columns.names().into_iter();
    names
        .map(|column| leaf(schema, column).unwrap_or_default())
        .collect()
}

/// Bytes of a row group's columns that are read, before compression.
pub(in crate::documents) fn bytes(
    file: &InputFile,
    footer: &ArrowReaderMetadata,
    row_group: usize,
) -> u64 {
    let group = footer.metadata().row_group(row_group);
    let bytes = leaves(file, footer).into_iter().map(|leaf| {
        let size = group.column(leaf).uncompressed_size();
        size.max(0).cast_unsigned()
    });
    bytes.fold(0, u64::saturating_add)
}

/// The number of rows of a row group; `None` if its columns have other numbers of values.
pub(in crate::documents) fn rows(
    file: &InputFile,
    footer: &ArrowReaderMetadata,
    row_group: usize,
) -> Option<usize> {
    let group = footer.metadata().row_group(row_group);
    let leaves = leaves(file, footer).into_iter();
    let mut values = leaves.map(|leaf| group.column(leaf).num_values());
    let agree = values.all(|values| values == group.num_rows());
    usize::try_from(group.num_rows()).ok().filter(|_| agree)
}
