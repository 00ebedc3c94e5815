//! The footer of a Parquet file: its columns, its spec, and the sizes of its row groups.

use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::arrow::parquet_to_arrow_schema;
use ::parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use ::parquet::file::statistics::Statistics;
use ::parquet::schema::types::{BasicTypeInfo, SchemaDescriptor, Type, TypePtr};
use archive::schema::{FINGERPRINT, SKETCH, SPEC_KEY};
use archive::{ArchiveError, IdType, ObjectReader};
use arrow::datatypes::{DataType, Schema};
use simhash::Spec;
use storage::{ErrorKind, Location, UnchangedFile};

use super::leaf::{self, Leaf};
use crate::columns::{Columns, Content, Role};
use crate::error::{DocumentsError, Result};
use crate::file::{InputFile, Source};
use crate::rows::window;
use crate::unread::{START, why_no_parquet};
use streams::blocking;

/// Bytes that an item of a list takes in memory beside its own, which are all that it takes in the file: a view and two levels.
const ITEM_BYTES: u64 = 20;

/// Opens a file: reads its footer, and finds its columns.
pub(crate) async fn open(location: Location, columns: &Columns) -> Result<InputFile> {
    let (footer, source) = match location.local() {
        Some(local) => {
            let file = UnchangedFile::at(local)?;
            let opened = file.open()?;
            let read = move || ParquetMetaDataReader::new().parse_and_finish(&opened);
            let footer = blocking(move || Ok::<_, DocumentsError>(read())).await?;
            (footer, Source::Local(file))
        }
        None => {
            let mut object = ObjectReader::new(&location, location.size().await?);
            let footer = object.metadata().await;
            (footer, Source::Remote(object))
        }
    };
    match footer {
        Ok(footer) => input_file(location, &footer, source, columns),
        Err(error) => Err(no_footer(&location, error).await),
    }
}

/// The error of a file whose footer cannot be read. Its first bytes may say what the file is instead.
async fn no_footer(location: &Location, error: ParquetError) -> DocumentsError {
    let error = DocumentsError::from(ArchiveError::parquet(location.to_string())(error));
    if error.kind() != ErrorKind::Data {
        return error;
    }
    let start = match location.size().await {
        Ok(size) => window(location, size, 0, START).await.ok(),
        Err(_) => None,
    };
    let reason = start.and_then(|start| why_no_parquet(&start));
    reason.map_or(error, |reason| DocumentsError::bad_data(location, reason))
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
    let types = parquet_to_arrow_schema(schema, None).map_err(failed)?;
    let paths = leaf::nested_paths(&types);
    let names = types.fields().iter().map(|field| field.name().as_str());
    let names: Vec<&str> = names.chain(paths.iter().map(String::as_str)).collect();
    check_row_count(&name, footer)?;
    // The spec says that a column is one of ready fingerprints.
    let spec = declared_spec(&location, footer);
    let mut columns = columns.clone();
    if spec.is_some() && columns.text.is_none() && !columns.texts_only {
        let is_there = names.contains(&FINGERPRINT);
        columns.fingerprint = columns
            .fingerprint
            .or(is_there.then(|| FINGERPRINT.to_owned()));
    }
    let mut found = columns.find(&name, &names)?;
    let is_repeated =
        |column: &&str| leaf::find(&types, column).is_some_and(|leaf| leaf.is_repeated);
    if let Some(column) = found.names().into_iter().find(is_repeated) {
        return Err(bad_column(&name, column, "several columns are called so"));
    }
    // A column that is only called like one of URLs may have other values.
    found.source.take_if(|(name, _)| {
        columns.source.is_none() && leaf_for("", &types, name, Role::Source).is_err()
    });
    for (column, role) in found.roles() {
        leaf_for(&name, &types, column, role)?;
    }
    for column in &mut found.carried {
        let leaf = leaf_for(&name, &types, &column.name, Role::Carried(&DataType::Utf8))?;
        // Bytes that are said to be some kind of text become text.
        column.data_type = if is_text(schema.column(leaf.index).self_type().get_basic_info()) {
            DataType::Utf8
        } else {
            leaf.data_type.clone()
        };
    }
    let id_type = match &found.id {
        Some(column) => {
            let leaf = leaf_for(&name, &types, column, Role::Id)?;
            found.has_byte_ids = !is_text(schema.column(leaf.index).self_type().get_basic_info());
            id_type(&name, footer, column, leaf.index)?
        }
        None => IdType::String,
    };
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
    if found.sketches && leaf::find(&types, SKETCH).is_none_or(|leaf| leaf.is_in_lists) {
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
    let index = |name: &str| Some(leaf::find(&types, name)?.index);
    let texts: Vec<usize> = texts.filter_map(|(name, _)| index(name)).collect();
    let viewed = match &found.content {
        Some(Content::Text(name)) => index(name),
        _ => None,
    };
    let footer = strings_as_bytes(footer, &texts);
    let footer = footer.and_then(|footer| with_views(footer, viewed));
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

/// Refuses a footer that says another number of rows than its row groups have.
fn check_row_count(name: &str, footer: &ParquetMetaData) -> Result<()> {
    let said = footer.file_metadata().num_rows();
    let groups = footer.row_groups().iter();
    let rows: i64 = groups
        .map(|group| group.num_rows())
        .fold(0, i64::saturating_add);
    if said == rows {
        Ok(())
    } else {
        let reason = format!("its footer says {said} rows, but its row groups have {rows}");
        Err(DocumentsError::bad_data(name, reason))
    }
}

/// The spec of ready fingerprints that a file declares; of a data file of an archive, the archive's log does.
fn declared_spec<'f>(location: &'f Location, footer: &'f ParquetMetaData) -> Option<&'f str> {
    let pairs = footer.file_metadata().key_value_metadata();
    let mut pairs = pairs.into_iter().flatten();
    let spec = pairs.find(|pair| pair.key == SPEC_KEY);
    let spec = spec.and_then(|pair| pair.value.as_deref());
    spec.or(location.table_spec())
}

/// The leaf column of the file `object` that is called `column`, or is at that path, to be read for `role`.
fn leaf_for<'t>(object: &str, types: &'t Schema, column: &str, role: Role<'_>) -> Result<Leaf<'t>> {
    let Some(leaf) = leaf::find(types, column) else {
        return Err(bad_column(object, column, "nested or repeated values"));
    };
    if leaf.is_in_lists && !matches!(role, Role::Content(Content::Text(_))) {
        let reason = "values in lists; only texts can be in lists";
        return Err(bad_column(object, column, reason));
    }
    Ok(leaf)
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

/// The type of the ids in the column `column`, which is the leaf column number `leaf`.
fn id_type(name: &str, footer: &ParquetMetaData, column: &str, leaf: usize) -> Result<IdType> {
    let id = footer.file_metadata().schema_descr().column(leaf);
    let is_unsigned = match id.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed && integer.bit_width == 64,
        _ => id.converted_type() == ConvertedType::UINT_64,
    };
    match (id.physical_type(), id.logical_type_ref()) {
        // Some may have more than 63 bits.
        (PhysicalType::INT64, _) if is_unsigned && !fit_bigint(footer, leaf) => Ok(IdType::String),
        (PhysicalType::BYTE_ARRAY, _) => Ok(IdType::String),
        // The ids of an empty table may have no type.
        (
            PhysicalType::INT32 | PhysicalType::INT64,
            None | Some(LogicalType::Integer(_) | LogicalType::Unknown),
        ) => Ok(IdType::Bigint),
        (physical, logical) => {
            let found =
                logical.map_or_else(|| physical.to_string(), |logical| format!("{logical:?}"));
            let reason = format!("ids are text or integers, this is {found}");
            Err(bad_column(name, column, &reason))
        }
    }
}

/// Whether the statistics say that all values of a column of unsigned integers have at most 63 bits.
fn fit_bigint(footer: &ParquetMetaData, leaf: usize) -> bool {
    footer.row_groups().iter().all(|group| {
        let Some(Statistics::Int64(values)) = group.column(leaf).statistics() else {
            return false;
        };
        // A number with 64 bits is negative here, and is the least or the greatest, as the writer orders them.
        let bounds = [values.min_opt(), values.max_opt()];
        bounds
            .iter()
            .all(|bound| bound.is_some_and(|bound| *bound >= 0))
    })
}

fn bad_column(object: &str, column: &str, reason: &str) -> DocumentsError {
    DocumentsError::bad_data(format!("{object}, column {column:?}"), reason.to_owned())
}

/// The footer with the logical type removed from those of the leaf columns `leaves` that are byte arrays and no numbers, so
/// that text is read as bytes.
pub(super) fn strings_as_bytes(
    footer: &ParquetMetaData,
    leaves: &[usize],
) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let root = with_bytes(&file.schema_descr().root_schema_ptr(), leaves, &mut 0)?;
    let schema = Arc::new(SchemaDescriptor::new(root));
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

/// The metadata for a reader that reads the leaf column `text` as views of its pages.
fn with_views(
    footer: ParquetMetaData,
    text: Option<usize>,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let footer = Arc::new(footer);
    // An embedded Arrow schema would turn the bytes into text again, unchecked; and it has other types of lists.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options.clone())?;
    let Some(text) = text else {
        return Ok(metadata);
    };
    let schema = Arc::new(leaf::with_view(metadata.schema(), text));
    ArrowReaderMetadata::try_new(footer, options.with_schema(schema))
}

/// The leaf columns to read, in the order of `FoundColumns::names`.
fn leaves<'f>(
    file: &'f InputFile,
    footer: &'f ArrowReaderMetadata,
) -> impl Iterator<Item = Leaf<'f>> {
    let names = file.columns.names().into_iter();
    names.filter_map(move |column| leaf::find(footer.schema(), column))
}

/// Bytes of a row group's columns that are read, before compression.
pub(crate) fn bytes(file: &InputFile, footer: &ArrowReaderMetadata, row_group: usize) -> u64 {
    let group = footer.metadata().row_group(row_group);
    let bytes = leaves(file, footer).map(|leaf| {
        let column = group.column(leaf.index);
        let bytes = column.uncompressed_size().max(0).cast_unsigned();
        let items = if leaf.is_in_lists {
            column.num_values().max(0).cast_unsigned()
        } else {
            0
        };
        bytes.saturating_add(items.saturating_mul(ITEM_BYTES))
    });
    bytes.fold(0, u64::saturating_add)
}

/// The number of rows of a row group; `None` if its columns have other numbers of values.
pub(crate) fn rows(
    file: &InputFile,
    footer: &ArrowReaderMetadata,
    row_group: usize,
) -> Option<usize> {
    let group = footer.metadata().row_group(row_group);
    let agree = leaves(file, footer).all(|leaf| {
        let values = group.column(leaf.index).num_values();
        if leaf.is_in_lists {
            // A list without items counts as a value.
            values >= group.num_rows()
        } else {
            values == group.num_rows()
        }
    });
    usize::try_from(group.num_rows()).ok().filter(|_| agree)
}
