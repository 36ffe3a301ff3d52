"""What is to be said in tables about what came in: rows by the names of their columns, then batches of them.

    ArchiveWriter.describe_page … ─► Note ─► as_batch ─► the journal ─► ArchiveWriter.add ─► tables

A batch is written to the journal with the names and types of its columns, so that whoever reads it back, maybe with a
later version of the table, knows what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from barkspider.archive.records import micros
from barkspider.archive.schemas import SCHEMAS, conform

# Whose links go into the table `links`: `count` of a harvest's links from the number `first` on belong to the page
# `source`, and those `outside` of scope; `anchors` are their texts, if these were asked for.
LINKING = "linking"
LINKING_SCHEMA = pa.schema(
    [
        ("source", pa.uint64()),
        ("source_domain", pa.string()),
        ("first", pa.uint32()),
        ("count", pa.uint32()),
        ("anchors", pa.list_(pa.string())),
        ("outside", pa.list_(pa.string())),
        ("outside_anchors", pa.list_(pa.string())),
    ]
)


class Note(NamedTuple):
    """A row for a table; a column that it does not name is null."""

    table: str
    row: dict[str, Any]


def error_note(
    time: float,
    what: str,
    outcome: str,
    host: str,
    url: str = "",
    key: int | None = None,
    tries: int = 0,
) -> Note:
    """What came to nothing, for the table `errors`: `what` is page, robots or dns."""
    row = {"time": micros(time), "what": what, "outcome": outcome, "key": key, "url": url or None}
    return Note("errors", row | {"url_host_name": host, "tries": tries})


def batches_of(notes: Iterable[Note]) -> dict[str, pa.RecordBatch]:
    """Notes as columns, by the names of their tables."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for table, row in notes:
        rows.setdefault(table, []).append(row)
    return {table: as_batch(schema_of(table), found) for table, found in rows.items()}


def schema_of(table: str) -> pa.Schema:
    """The columns of what is noted for a table; KeyError where there is none of that name."""
    return LINKING_SCHEMA if table == LINKING else SCHEMAS[table]


def as_batch(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Columns of rows.

    >>> as_batch(pa.schema([("n", pa.int32()), ("s", pa.string())]), [{"n": 1}, {"s": "x"}]).to_pylist()
    [{'n': 1, 's': None}, {'n': None, 's': 'x'}]
    """
    columns = [(field.name, field.type) for field in schema]
    arrays = [_array([row.get(name) for row in rows], kind) for name, kind in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def encode_batch(batch: pa.RecordBatch) -> bytes:
    """A batch with the names and types of its columns; `decode_batch` reads it back."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_batch(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """What `encode_batch` wrote, maybe of another version, with the columns of a schema; ValueError for anything else.

    >>> decode_batch(encode_batch(as_batch(LINKING_SCHEMA, [{"source": 7}])), LINKING_SCHEMA)["source"].to_pylist()
    [7]
    """
    try:
        with pa.ipc.open_stream(data) as stream:
            batch = stream.read_next_batch()
    except (OSError, StopIteration) as error:  # how Arrow calls what is no message, and none at all
        raise ValueError(str(error)) from error
    batch.validate(full=True)
    return conform(batch, schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a text with half a surrogate pair is not UTF-8
        return pa.array([_whole(value) for value in values], kind)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_whole(each) for each in value] if isinstance(value, list) else value
