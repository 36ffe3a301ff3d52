"""What is to be said in tables about what came in: rows, then batches of them.

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

# Bytes of a batch above which it is packed: a robots.txt of a few bytes on the wire may have half a million.
_LARGE = 1 << 20
_KINDS = {name: pa.struct(list(schema)) for name, schema in (*SCHEMAS.items(), (LINKING, LINKING_SCHEMA))}


class Note(NamedTuple):
    """A row for a table: a value for each of its columns, in their order."""

    table: str
    row: tuple[Any, ...]

    def value(self, column: str) -> Any:
        """The value of one column."""
        return self.row[schema_of(self.table).get_field_index(column)]


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
    return Note("errors", (micros(time), what, outcome, key, url or None, host, tries))


def decision_note(time: float, decision: str, rule: str, key: int, url: bytes, until: float | None) -> Note:
    """What was decided about a URL, for the table `decisions`: a `core.events.Decision`."""
    return Note("decisions", (micros(time), decision, rule, key, url.decode(), until and micros(until)))


def trap_note(time: float, event: str, trap: Mapping[str, Any]) -> Note:
    """What became of a trap, for the table `traps`."""
    told = (trap[name] for name in ("site", "pattern", "reason", "pages", "repeated", "held"))
    return Note("traps", (micros(time), event, *told))


def located(linking: Note, first: int, count: int) -> Note:
    """A note for `LINKING` that says where the links of its page lie among those of the harvest."""
    source, domain, _, _, *rest = linking.row
    return Note(LINKING, (source, domain, first, count, *rest))


def batches_of(notes: Iterable[Note]) -> dict[str, pa.RecordBatch]:
    """Notes as columns, by the names of their tables."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for table, row in notes:
        rows.setdefault(table, []).append(row)
    return {table: as_batch(_KINDS[table], found) for table, found in rows.items()}


def schema_of(table: str) -> pa.Schema:
    """The columns of what is noted for a table; KeyError where there is none of that name."""
    return LINKING_SCHEMA if table == LINKING else SCHEMAS[table]


def as_batch(kind: pa.StructType, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Columns of rows, all made in one call: a call for each would take three times as long.

    >>> as_batch(pa.struct([("n", pa.int32()), ("s", pa.string())]), [(1, None), (None, "x")]).to_pylist()
    [{'n': 1, 's': None}, {'n': None, 's': 'x'}]
    """
    try:
        columns = pa.array(rows, kind)
    except UnicodeEncodeError:  # a text with half a surrogate pair is not UTF-8
        columns = pa.array([_whole(row) for row in rows], kind)
    return pa.RecordBatch.from_struct_array(columns)


def encode_batch(batch: pa.RecordBatch) -> bytes:
    """A batch with the names and types of its columns; `decode_batch` reads it back. A large one is packed."""
    sink = pa.BufferOutputStream()
    packing = "zstd" if batch.nbytes > _LARGE else None
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=packing)) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_batch(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """What `encode_batch` wrote, maybe of another version, with the columns of a schema; ValueError for anything else.

    >>> batch = batches_of([error_note(1e9, "dns", "dns_no_name", "a.example")])["errors"]
    >>> decode_batch(encode_batch(batch), SCHEMAS["errors"]) == batch
    True
    """
    try:
        with pa.ipc.open_stream(data) as stream:
            batch = stream.read_next_batch()
    except (OSError, StopIteration) as error:  # how Arrow calls what is no message, and none at all
        raise ValueError(str(error)) from error
    batch.validate(full=True)
    return conform(batch, schema)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return type(value)(map(_whole, value)) if isinstance(value, tuple | list) else value
