"""Reads the sketches of an archive with programs that share no code with this project, then adds rows that lack one.

Usage: sketches.py ARCHIVE FINGERPRINTS. FINGERPRINTS is the file of fingerprints whose rows the archive has.
"""

import datetime
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

archive, fingerprints = sys.argv[1:]
expected = sorted((row["id"], row["sketch"]) for row in pq.read_table(fingerprints).to_pylist() if row["fp"] is not None)
assert all(len(sketch) == 16 for _, sketch in expected)

table = DeltaTable(archive)
assert {field.name: str(field.type) for field in table.schema().fields}["sketch"] == 'PrimitiveType("binary")'
rows = table.to_pyarrow_table()
assert pa.types.is_binary(rows.schema.field("sketch").type) or pa.types.is_binary_view(rows.schema.field("sketch").type)
assert sorted((row["id"], row["sketch"]) for row in rows.to_pylist()) == expected

files = [uri.removeprefix("file://") for uri in table.file_uris()]
found = duckdb.sql(f"select id, sketch from read_parquet({files!r}) order by id").fetchall()
assert found == expected, (len(found), len(expected))
for file in files:
    column = pq.ParquetFile(file).metadata.row_group(0).column(2)
    assert column.path_in_schema == "sketch" and column.physical_type == "BYTE_ARRAY" and column.has_offset_index

# Another program does not know how sketches are made.
own = rows.slice(0, 1).to_pylist()[0]
columns = {"fp": [own["fp"]], "id": ["foreign"], "day": [datetime.date(2026, 1, 1)], "sketch": [None]}
types = [("fp", pa.int64()), ("id", pa.string()), ("day", pa.date32()), ("sketch", pa.binary())]
write_deltalake(table, pa.table(columns, schema=pa.schema(types)), mode="append")
print(own["id"])
