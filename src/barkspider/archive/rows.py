"""Rows on their way to a table: gathered in RAM as columns, written as whole files by a thread.

Turning Python values into columns holds the GIL, so it is done on the caller's thread, a thousand rows at a
time (a few milliseconds); what the thread does with columns does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.archive.tables import TableFolder
from barkspider.core.batch import UrlBatch
from barkspider.core.settings import Archive

_ROWS = 1000  # that become columns at a time
_LINKS = 8000


class RowBuffer:
    """The rows of one table, in order. One thread adds; `pool` has one thread, which writes."""

    def __init__(self, table: TableFolder, settings: Archive, pool: ThreadPoolExecutor) -> None:
        self._table, self._settings, self._pool = table, settings, pool
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._since = -1.0  # when the first row came that waits; -1 when none does
        self._writing: Future[None] | None = None
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """Add a row. Raises what went wrong with rows before it, if anything did."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._gather()

    def tick(self, now: float) -> None:
        """Write what has waited long enough."""
        if self._since < 0:
            self._since = now if self._waiting() else -1.0
        elif now - self._since >= self._settings.table_interval:
            self.write()

    def write(self) -> None:
        """Begin to write all rows; waits for the file before, if that is not yet done."""
        self._gather(write=False)
        self.wait()
        batches, self._batches, self._bytes, self._since = self._batches, [], 0, -1.0
        if batches:
            self._writing = self._pool.submit(self._write, batches)

    def settle(self, last: int) -> None:
        """The writes up to `last` are committed: begin to merge their files, if there are many."""
        self.wait()
        self._writing = self._pool.submit(self._table.settle, last)

    def last(self) -> int:
        """The number of the table's last write; nothing may be under way."""
        return self._table.last()

    def wait(self) -> None:
        """Until what was begun is on disk."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, batches: list[pa.RecordBatch]) -> None:
        self._table.write(pa.Table.from_batches(batches, self._table.schema))

    def _waiting(self) -> bool:
        return bool(self._rows or self._batches)

    def _columns(self) -> pa.RecordBatch | None:
        """The rows that wait as columns, and forget them."""
        rows, self._rows = self._rows, []
        if not rows:
            return None
        columns = zip(*rows, strict=True)
        fields = zip(columns, self._table.schema, strict=True)
        arrays = [_array(column, field.type) for column, field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=self._table.schema)

    def _gather(self, write: bool = True) -> None:
        batch = self._columns()
        if batch is not None:
            self._batches.append(batch)
            self._bytes += batch.nbytes
        if write and self._bytes >= self._settings.table_memory:
            self.write()


class LinkBuffer(RowBuffer):
    """The links of pages, which come as whole columns.

    `domain_of` gives the pay-level domain of a URL; it is asked once for each domain of a few hundred pages.
    """

    def __init__(
        self,
        table: TableFolder,
        settings: Archive,
        pool: ThreadPoolExecutor,
        domain_of: Callable[[str], str],
    ) -> None:
        super().__init__(table, settings, pool)
        self._domain_of = domain_of
        self._pages: list[tuple[int, str, UrlBatch, Mapping[str, str]]] = []
        self._links = 0

    def add_links(self, source: int, domain: str, links: UrlBatch, anchors: Mapping[str, str]) -> None:
        """Add the links of a page, which has this key and lies in this domain; `anchors` are texts by URL."""
        if len(links):
            self._pages.append((source, domain, links, anchors))
            self._links += len(links)
            if self._links >= _LINKS:
                self._gather()

    def _waiting(self) -> bool:
        return bool(self._pages or self._batches)

    def _columns(self) -> pa.RecordBatch | None:
        pages, self._pages, self._links = self._pages, [], 0
        if not pages:
            return None
        batches = [links for _, _, links, _ in pages]
        counts = np.array([len(links) for links in batches])
        sources = np.repeat(np.array([source for source, _, _, _ in pages], np.uint64), counts)
        own = pa.array([domain for _, domain, _, _ in pages]).take(
            pa.array(np.repeat(np.arange(len(pages)), counts))
        )
        urls = UrlBatch.join(batches).url.to_arrow().cast(pa.string())
        targets = np.concatenate([links.key for links in batches])
        anchors = pa.concat_arrays([_anchors(links, texts) for _, _, links, texts in pages])
        return pa.RecordBatch.from_arrays(
            [pa.array(sources), pa.array(targets), own, self._domains(batches, urls), urls, anchors],
            schema=self._table.schema,
        )

    def _domains(self, batches: list[UrlBatch], urls: pa.StringArray) -> pa.StringArray:
        keys: npt.NDArray[np.uint64] = np.concatenate([links.pld_key for links in batches])
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        names = [self._domain_of(urls[place].as_py()) for place in first.tolist()]
        return pa.array(names).take(pa.array(which))


def _anchors(links: UrlBatch, texts: Mapping[str, str]) -> pa.StringArray:
    if not texts:
        return pa.nulls(len(links), pa.string())
    return _array(tuple(texts.get(url.decode()) for url in links.url.tolist()), pa.string())


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a text with half a surrogate pair is not UTF-8
        whole = [value if value is None else value.encode("utf-8", "replace").decode() for value in values]
        return pa.array(whole, kind)
