"""Reads an archive and the pairs of a run with programs that share no code with this project.

Usage: interop.py DATA HITS. DATA holds day.parquet and archive/ (the day appended), as `dedup-job generate
fingerprints` and `run --append` leave them.
"""

import hashlib
import json
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable

data, hits = Path(sys.argv[1]), sys.argv[2]
table = DeltaTable(str(data / "archive"))
archive = table.to_pyarrow_table()
assert archive.num_rows == 32000, archive.num_rows
assert str(archive.schema.field("fp").type) == "int64"
assert {str(day) for day in archive["day"].to_pylist()} == {"2026-01-28", "2026-01-29", "2026-01-30", "2026-01-31"}
assert "dedup-job.spec" in table.metadata().configuration
assert json.loads(table.metadata().configuration["dedup-job.spec"])["bits"] == 64

# The day in the archive is the day that was given.
given = {row["id"]: row["fp"] for row in pq.read_table(data / "day.parquet").to_pylist()}
committed = {row["id"]: row["fp"] for row in archive.to_pylist() if str(row["day"]) == "2026-01-31"}
assert given == committed and len(given) == 2000

# Every data file: named in the log with its SHA-256, sorted, delta-encoded, with an offset index.
adds = 0
for entry in sorted((data / "archive" / "_delta_log").glob("*.json")):
    for line in entry.read_text().splitlines():
        if add := json.loads(line).get("add"):
            adds += 1
            path = data / "archive" / add["path"]
            assert hashlib.sha256(path.read_bytes()).hexdigest() == add["tags"]["sha256"], path
            file = pq.ParquetFile(path)
            fingerprints = file.read(columns=["fp"])["fp"].to_pylist()
            assert fingerprints == sorted(fingerprints)
            column = file.metadata.row_group(0).column(0)
            assert "DELTA_BINARY_PACKED" in column.encodings, column.encodings
            assert column.has_offset_index
            assert json.loads(add["stats"])["numRecords"] == len(fingerprints)
assert adds == 4, adds

# The hits, found again by DuckDB from the rows alone, are the rows of the output.
query = """
    select a.id as new_id, b.id as base_id, bit_count(xor(a.fp, b.fp))::int as distance, b.day as base_day
    from new_day a join archive b on bit_count(xor(a.fp, b.fp)) <= 3
    where b.day < '2026-01-31' order by new_id, distance, base_id, base_day
"""
new_day = pq.read_table(data / "day.parquet")
expected = duckdb.sql(query).fetchall()
found = duckdb.sql(f"select * from read_parquet('{hits}')").fetchall()
assert found == expected, (len(found), len(expected))
assert [field.name for field in pq.read_schema(hits)] == ["new_id", "base_id", "distance", "base_day"]
print(f"{archive.num_rows} rows, {len(found)} hits")
