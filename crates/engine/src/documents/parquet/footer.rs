//! The footer of a Parquet file: its columns, its spec, and the sizes of its row groups.

use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::basic::{LogicalType, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use ::parquet::schema::types::{SchemaDescriptor, Type};
use archive::schema::{SKETCH, SPEC_KEY};
use archive::{ArchiveError, IdType, ObjectReader};
use arrow::datatypes::{DataType, Field, Schema};
use simhash::Spec;
use storage::{Location, UnchangedFile};

use crate::documents::columns::{Columns, Content};
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
    let failed = ArchiveError::parquet(name.clone());
    let schema = footer.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let mut found = columns.find(&name, &names)?;
    let preference = found.own_preference();
    let id = found.id.as_deref();
    for column in id
        .into_iter()
        .chain([found.content.column()])
        .chain(preference)
    {
        leaf(schema, column)
            .ok_or_else(|| bad_column(&name, column, "nested or repeated values"))?;
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
        (Content::Fingerprint(_), Some(text)) => {
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
    let footer = strings_as_bytes(footer, &found.names());
    let footer = footer.and_then(|footer| with_views(footer, &found.content));
    let footer = Some(footer.map_err(failed)?);
    Ok(InputFile {
        source,
        short_name: location.file_name(),
        location,
        columns: found,
        id_type,
        spec,
        footer,
    })
}

/// The type of the ids in the root column `column`, which is not nested.
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

/// Index of the leaf column of the root column `column`; `None` if the column is nested or repeated.
fn leaf(schema: &SchemaDescriptor, column: &str) -> Option<usize> {
    let leaf = schema
        .columns()
        .iter()
        .position(|c| c.path().parts() == [column])?;
    (schema.column(leaf).max_rep_level() == 0).then_some(leaf)
}

/// The footer with the logical type removed from `columns` that are byte arrays, so that text is read as bytes.
pub(super) fn strings_as_bytes(
    footer: &ParquetMetaData,
    columns: &[&str],
) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let fields = root.get_fields().iter().map(|field| {
        let text = field.is_primitive() && field.get_physical_type() == PhysicalType::BYTE_ARRAY;
        if !text || !columns.contains(&field.name()) {
            return Ok(Arc::clone(field));
        }
        let info = field.get_basic_info();
        Type::primitive_type_builder(field.name(), PhysicalType::BYTE_ARRAY)
            .with_repetition(info.repetition())
            .with_id(info.has_id().then(|| info.id()))
            .build()
            .map(Arc::new)
    });
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

/// The metadata for a reader that reads texts as views of their pages.
fn with_views(
    footer: ParquetMetaData,
    content: &Content,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let footer = Arc::new(footer);
    // An embedded Arrow schema would turn the bytes into text again, unchecked.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options.clone())?;
    let Content::Text(text) = content else {
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
pub(super) fn leaves(file: &InputFile, footer: &ArrowReaderMetadata) -> Vec<usize> {
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
