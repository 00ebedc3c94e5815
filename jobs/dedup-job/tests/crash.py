"""Reads a Delta table for each path on standard input, without code of this project.

Prints one line of JSON per path: the number of rows of each day.
"""

import collections
import json
import sys

from deltalake import DeltaTable

for line in sys.stdin:
    table = DeltaTable(line.strip()).to_pyarrow_table(columns=["day", "id"])
    days = collections.Counter(str(day) for day in table["day"].to_pylist())
    assert len(set(table["id"].to_pylist())) == table.num_rows, "an id twice"
    print(json.dumps(days), flush=True)
