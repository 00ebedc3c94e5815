"""Makes labelled documents for `bench external`: labelled_texts.py WHEEL OUT_DIR.

WHEEL is that of ua-gec 2.1.3 (UA-GEC: Syvokon and Nahorna, arXiv 2103.16997, CC BY 4.0): Ukrainian texts, and what one or two
proofreaders made of each. Writes gec-only.parquet, where they corrected errors, and gec-fluency.parquet, where they also mended the
style. A text and its corrections have one label in the column doc; sources that differ only in white space share it.
"""

import pathlib
import re
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

PATH = re.compile(r"ua_gec/data/(gec-only|gec-fluency)/(?:train|test)/(?:source|target)/((\d+)\.(src|a\d+))\.txt")


def main():
    if len(sys.argv) != 3:
        sys.exit(f"{__doc__.splitlines()[0]}\nThe wheel: pip download --no-deps ua-gec==2.1.3")
    wheel, out = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
    layers = {"gec-only": [], "gec-fluency": []}
    for path in sorted(wheel.namelist()):
        if found := PATH.fullmatch(path):
            layer, name, number, author = found.groups()
            layers[layer].append((name, number, author, wheel.read(path).decode().strip()))
    out.mkdir(parents=True, exist_ok=True)
    for layer, rows in layers.items():
        # The least number of those whose text is the same.
        first = {}
        label = {
            number: first.setdefault(" ".join(text.split()), number)
            for _, number, author, text in sorted(rows) if author == "src"
        }
        table = pa.table({
            "id": [name for name, *_ in rows],
            "text": [text for *_, text in rows],
            "doc": [label[number] for _, number, *_ in rows],
        })
        pq.write_table(table, out / f"{layer}.parquet", compression="zstd")
        print(f"{layer}.parquet: {len(rows):,} texts of {len(set(label.values())):,} labels")


main()
