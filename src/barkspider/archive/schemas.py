"""The tables of a crawl and their columns.

Where Common Crawl's index has a column for something it has the same name here, so that queries can be
shared. docs/formats/tables.md says what each column means.

A column is added by appending it to its table here and raising `VERSION`. Files of crawls before that stay as they
are: whoever reads them sees nulls in the new column.
"""

from __future__ import annotations

import pyarrow as pa

VERSION = 6  # of the columns of all tables together; every file has the one it was written with

_TIME = pa.timestamp("us")  # in UTC; without a zone, which readers would each show in another way
_URL = [
    ("url", pa.string()),
    ("url_surtkey", pa.string()),
    ("url_protocol", pa.string()),
    ("url_host_name", pa.string()),
    ("url_host_registered_domain", pa.string()),
    ("url_host_tld", pa.string()),
    ("url_port", pa.uint16()),
    ("url_path", pa.string()),
    ("url_query", pa.string()),
]
_FETCH = [
    ("fetch_time", _TIME),
    ("fetch_seconds", pa.float32()),
    ("fetch_status", pa.int16()),
    ("fetch_redirect", pa.string()),
    ("outcome", pa.string()),
]
_RECORD = [
    ("content_digest", pa.string()),
    ("content_length", pa.uint64()),
    ("content_mime_type", pa.string()),
    ("content_truncated", pa.string()),
    ("warc_filename", pa.string()),
    ("warc_record_offset", pa.uint64()),
    ("warc_record_length", pa.uint64()),
]
_REPAIRED = ("fetch_repaired", pa.string())

SCHEMAS: dict[str, pa.Schema] = {
    "pages": pa.schema(
        [
            ("key", pa.uint64()),
            *_URL,
            *_FETCH,
            *_RECORD,
            ("content_mime_detected", pa.string()),
            ("content_charset", pa.string()),
            ("content_languages", pa.string()),
            ("revisit", pa.bool_()),
            ("parent", pa.uint64()),
            ("depth", pa.uint16()),
            ("hops", pa.uint8()),
            ("tries", pa.uint8()),
            ("links", pa.uint32()),
            ("links_cut", pa.bool_()),
            ("body_cut", pa.bool_()),
            ("title", pa.string()),
            ("description", pa.string()),
            ("simhash", pa.uint64()),
            ("content_decoded_digest", pa.string()),
            _REPAIRED,
            ("fetch_address", pa.string()),
        ]
    ),
    "links": pa.schema(
        [
            ("source", pa.uint64()),
            ("target", pa.uint64()),
            ("source_domain", pa.string()),
            ("target_domain", pa.string()),
            ("target_url", pa.string()),
            ("anchor", pa.string()),
            ("in_scope", pa.bool_()),
        ]
    ),
    "robots": pa.schema([("origin", pa.string()), *_URL, *_FETCH, *_RECORD, _REPAIRED]),
    "errors": pa.schema(
        [
            ("time", _TIME),
            ("what", pa.string()),
            ("outcome", pa.string()),
            ("key", pa.uint64()),
            ("url", pa.string()),
            ("url_host_name", pa.string()),
            ("tries", pa.uint8()),
        ]
    ),
    "listings": pa.schema(
        [
            ("source", pa.uint64()),
            ("url", pa.string()),
            ("modified", pa.string()),
            ("frequency", pa.string()),
            ("priority", pa.string()),
        ]
    ),
    "batches": pa.schema(
        [
            ("time", _TIME),
            ("sender", pa.uint16()),
            ("number", pa.uint32()),
            ("urls", pa.uint32()),
            ("links", pa.uint64()),
            ("edges", pa.uint32()),
            ("bytes", pa.uint64()),
        ]
    ),
    "decisions": pa.schema(
        [
            ("time", _TIME),
            ("decision", pa.string()),
            ("rule", pa.string()),
            ("key", pa.uint64()),
            ("url", pa.string()),
            ("until", _TIME),
        ]
    ),
    "domains": pa.schema(
        [
            ("domain", pa.string()),
            ("pages", pa.uint64()),
            ("bytes", pa.uint64()),
            ("hosts", pa.uint64()),
            ("links_out", pa.uint64()),
            ("links_in", pa.uint64()),
            ("domains_out", pa.uint64()),
            ("domains_in", pa.uint64()),
            ("first_time", _TIME),
            ("last_time", _TIME),
        ]
    ),
    "duplicates": pa.schema([("key", pa.uint64()), ("duplicate_of", pa.uint64())]),
}

# Made from the others, when the crawl ends; to find duplicates takes a folder of its own.
DERIVED = ("domains", "duplicates")
DIGESTS = "digests"

# Columns in which nearly every value is another: a dictionary of them would be larger than they are.
UNIQUE = frozenset(
    (
        *(
            "key",
            "url",
            "url_surtkey",
            "url_path",
            "title",
            "description",
            "simhash",
            "fetch_time",
            "fetch_seconds",
        ),
        *(
            "content_digest",
            "content_decoded_digest",
            "content_length",
            "warc_record_offset",
            "warc_record_length",
        ),
        *("duplicate_of", "time", "until"),
    )
)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """All rows of a batch with the columns of a schema: one that the batch lacks is null, others are left out.

    >>> old = pa.record_batch({"gone": [True, False], "n": [1, 2]})
    >>> conform(old, pa.schema([("n", pa.int64()), ("added", pa.string())])).to_pylist()
    [{'n': 1, 'added': None}, {'n': 2, 'added': None}]
    """
    known = set(batch.schema.names)
    columns = [
        batch[field.name] if field.name in known else pa.nulls(batch.num_rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
