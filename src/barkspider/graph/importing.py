"""Graphs from files: npz (`indptr`, `indices`), edges (CSV, TSV, Parquet; numbers or names), our own folders."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from barkspider.core.errors import UsageError
from barkspider.graph.build import Edges, build_graph
from barkspider.graph.naming import LACKING, build_named
from barkspider.graph.store import Graph
from barkspider.storage.env import Env

_MEMORY = 256_000_000
_ROWS = 1 << 20  # edges at a time
_BLOCK = 1 << 24  # bytes of text at a time
_HEADERS = (
    *(("source", "target"), ("source", "destination"), ("src", "dst"), ("src", "dest"), ("from", "to")),
    *(("from_node", "to_node"), ("fromnodeid", "tonodeid"), ("u", "v")),
)
# Words that make a first line a header perhaps, beside those above.
_WORDS = frozenset(["id", "node", "name", "domain", "host", "site", "page", "url", "link"]).union(*_HEADERS)
_QUOTED = re.compile(rb'(^|[,\t])[ \t]*("(?:[^"\n]|"")*")[ \t]*(?=[,\t\r\n]|$)', re.MULTILINE)
_MARK = b"\xef\xbb\xbf"  # what editors of Windows put in front of UTF-8
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".edges": "\t"}


def read_graph(
    env: Env, path: Path, folder: Path, memory: int = _MEMORY, header: bool | None = None
) -> Graph:
    """The graph in `path`, whatever its form; unless it is a graph's folder it is built in `folder`.

    `header` says whether the first line of a list of edges in text is a header; None to find out, or to ask.
    """
    if header is not None and path.suffix not in _SEPARATORS:
        raise UsageError(f"{path} has no lines: --header and --no-header are for {', '.join(_SEPARATORS)}")
    if path.is_dir():
        return Graph(env, path)
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file or folder")
    try:
        if path.suffix == ".npz":
            return _read_npz(env, path, folder, memory)
        if path.suffix == ".parquet":
            return read_edges(env, folder, _parquet_batches(path), memory)
        if path.suffix in _SEPARATORS:
            return read_edges(env, folder, _text_batches(path, _SEPARATORS[path.suffix], header), memory)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    known = ", ".join(["a graph's folder", ".npz", ".parquet", *_SEPARATORS])
    raise UsageError(f"{path} is no graph that can be read: give one of {known}")


def read_npz(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.integer[Any]]]:
    """`indptr` and `indices` of an npz file, if they are the out-links of a graph."""
    try:
        with np.load(path, allow_pickle=False) as data:
            offsets, targets = data["indptr"], data["indices"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError("no npz file with arrays indptr and indices") from error
    for name, array in (("indptr", offsets), ("indices", targets)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise UsageError(f"{name} is not a row of whole numbers")
    if len(offsets) < 2:
        raise UsageError("the graph is empty: it has neither nodes nor edges")
    offsets, nodes = offsets.astype(np.int64), len(offsets) - 1
    if offsets[0] != 0 or offsets[-1] != len(targets) or (np.diff(offsets) < 0).any():
        raise UsageError("indptr does not rise from 0 to the length of indices")
    if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < nodes:
        wrong = int(targets.min()) if int(targets.min()) < 0 else int(targets.max())
        raise UsageError(f"indices names node {wrong}; the nodes are 0 to {nodes - 1}")
    return offsets, targets


def edges_of(offsets: npt.NDArray[np.int64], targets: npt.NDArray[np.integer[Any]]) -> Iterator[Edges]:
    """The edges of a graph in CSR form as sources and targets, some at a time."""
    for begin in range(0, len(targets), _ROWS):
        places = np.arange(begin, min(begin + _ROWS, len(targets)))
        yield np.searchsorted(offsets, places, "right") - 1, targets[begin : begin + _ROWS]


def _read_npz(env: Env, path: Path, folder: Path, memory: int) -> Graph:
    offsets, targets = read_npz(path)
    nodes, names = len(offsets) - 1, path.with_suffix(".names.txt")
    lines = _lines(names, nodes) if names.is_file() else None
    return build_graph(env, folder, edges_of(offsets, targets), lines, nodes, memory)


def _lines(path: Path, count: int) -> Iterator[bytes]:
    found = 0
    with path.open("rb") as file:
        for line in file:
            found += 1
            yield line.rstrip(b"\r\n")
    if found != count:
        raise UsageError(f"{path} has {found:,} names for {count:,} nodes")


def read_edges(env: Env, folder: Path, tables: Iterator[Any], memory: int = _MEMORY) -> Graph:
    """Build the graph of Arrow tables or batches of two columns, source and target, of numbers or of names."""
    first = next(tables, None)
    if first is None or first.num_rows == 0:
        raise UsageError("the graph is empty: it has neither nodes nor edges")

    def columns() -> Iterator[tuple[Any, Any]]:
        for table in _chain(first, tables):
            sources, targets = table.columns
            if sources.null_count or targets.null_count:
                raise UsageError(LACKING)
            yield sources, targets

    if not pa.types.is_integer(first.column(0).type):
        return build_named(env, folder, columns(), memory)
    edges = ((sources.to_numpy(), targets.to_numpy()) for sources, targets in columns())
    return build_graph(env, folder, edges, memory=memory)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _parquet_batches(path: Path) -> Iterator[Any]:
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise UsageError("not a Parquet file") from error
    schema = file.schema_arrow
    if len(schema) < 2:
        raise UsageError("edges take two columns, source and target")
    kinds = [schema.field(place).type for place in (0, 1)]
    if not all(map(pa.types.is_integer, kinds)) and not all(map(_is_text, kinds)):
        raise UsageError(f"the first two columns hold {kinds[0]} and {kinds[1]}, not numbers or names")
    yield from file.iter_batches(_ROWS, columns=schema.names[:2])


def _is_text(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _text_batches(path: Path, separator: str, header: bool | None) -> Iterator[Any]:
    """Tables of two columns from lines `source SEPARATOR target`.

    Between tabs or blanks, lines that begin with # or % are comments, as lists of edges in the field have them;
    between commas # is the beginning of a name like any other.
    """
    kind: Any = None
    for block in _text_blocks(path):
        lines = [line for line in block.splitlines() if line.strip()]
        if separator == "\t":
            lines = [line for line in lines if line[:1] not in b"#%"]
            if lines and b"\t" not in lines[0]:
                lines = [b"\t".join(line.split()) for line in lines]
        if kind is None and lines:
            if _has_header(lines, separator) if header is None else header:
                lines = lines[1:]
            kind = _kind_of(lines[0] if lines else b"", separator)
        if lines:
            yield _parsed(lines, separator, kind)


def _has_header(lines: list[bytes], separator: str) -> bool:
    """Whether the first line is a header that is known; one that may be another is for the user to judge."""
    first, *second = (
        tuple(
            field.strip(b' \t"').lower().decode("utf-8", "replace")
            for field in line.split(separator.encode())[:2]
        )
        for line in lines[:2]
    )
    if first in _HEADERS:
        return True
    if len(first) < 2 or all(map(str.isdigit, first)):
        return False
    words = {word for field in first if "." not in field for word in re.split(r"[^a-z]+", field)}
    dotted = any("." in field for field in first)
    is_unlike = any(
        all(map(str.isdigit, fields)) or (all("." in field for field in fields) and not dotted)
        for fields in second
    )
    if is_unlike or words & _WORDS:
        shown = lines[0][:60].decode("utf-8", "replace")
        raise UsageError(
            f"the first line, {shown!r}, may be a header or an edge: say --header or --no-header to `rank`,"
            " or write the header source and target"
        )
    return False


def _text_blocks(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        if file.read(len(_MARK)) != _MARK:
            file.seek(0)
        while block := file.read(_BLOCK):
            if b"\0" in block:
                raise UsageError("not text: it has a byte of value 0")
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                rest += block
                if len(rest) > _BLOCK:
                    raise UsageError(f"not an edge list: it has a line of more than {_BLOCK:,} bytes")
                continue
            yield rest + block[:cut]
            rest = block[cut:]
    if rest:
        yield rest


def _kind_of(line: bytes, separator: str) -> Any:
    fields = [field.strip() for field in line.split(separator.encode())]
    if len(fields) < 2:
        shown = line[:40].decode("utf-8", "replace")
        raise UsageError(f"not an edge list: {shown!r} is not a source and a target")
    return pa.int64() if all(field.lstrip(b"-").isdigit() for field in fields[:2]) else pa.binary()


def _parsed(lines: Iterable[bytes], separator: str, kind: Any) -> Any:
    text = b"\n".join(lines) + b"\n"
    if b'"' in text:
        text = _QUOTED.sub(rb"\1\2", text)  # quotes count only where a field begins with them
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=True, block_size=2 * _BLOCK),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={"f0": kind, "f1": kind}, include_columns=["f0", "f1"], null_values=[""]
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise UsageError(f"not an edge list: {str(error).splitlines()[0][:200]}") from error
    return table
