"""Copies the fingerprints of an archive in shuffled order to plain Parquet files: unsorted.py ARCHIVE OUT_DIR."""

import pathlib
import sys

import duckdb

source, target = map(pathlib.Path, sys.argv[1:])
connection = duckdb.connect()
for day in sorted(source.glob("day=*")):
    (target / day.name).mkdir(parents=True)
    connection.sql(f"select fp, id from '{day}/*.parquet' order by hash(fp)").write_parquet(
        str(target / day.name / "part.parquet"), row_group_size=1 << 20, compression="zstd"
    )
