"""Reads a table each time that its path comes in, with a program that shares no code with this project.

Answers each line with one line: the rows of each day, as JSON.
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
