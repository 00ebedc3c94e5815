"""Prints the records of WARC files as warcio, an independent reader, reads them: a line of JSON for each. Usage:
warcio_records.py FILE...

offset: where the record, or its gzip member, starts; null in a file that is one gzip member, which warcio reads decompressed
type, id, uri: of the record, without angle brackets; null if the record has none
block: the bytes of the block, in hexadecimal
content: the body of a response without its chunks and content encoding, in hexadecimal; null for other records
"""

import gzip
import io
import json
import sys
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed


def read(data, parse):
    """The headers, the offset, and the block or the content of each record."""
    records = ArchiveIterator(io.BytesIO(data), no_record_parse=not parse)
    for record in records:
        stream = record.content_stream() if parse else record.raw_stream
        content = stream.read()
        # This reads on to the end of the record.
        yield record.rec_headers, records.get_record_offset(), content


def blocks(data):
    return list(read(data, parse=False))


for path in map(Path, sys.argv[1:]):
    data, is_whole = path.read_bytes(), False
    try:
        records = blocks(data)
    except ArchiveLoadFailed:
        data, is_whole = gzip.decompress(data), True
        records = blocks(data)
    contents = [content for _, _, content in read(data, parse=True)]
    for (headers, offset, block), content in zip(records, contents, strict=True):
        value = lambda name: (headers.get_header(name) or "").strip("<>") or None
        line = {
            "file": path.name,
            "offset": None if is_whole else offset,
            "type": value("WARC-Type"),
            "id": value("WARC-Record-ID"),
            "uri": value("WARC-Target-URI"),
            "block": block.hex(),
            "content": content.hex() if value("WARC-Type") == "response" else None,
        }
        print(json.dumps(line))
