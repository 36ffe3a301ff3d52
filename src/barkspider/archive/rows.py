"""Rows on their way to a table: batches of columns, gathered in RAM and written as whole files by a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive.tables import TableFolder
from barkspider.core.batch import UrlBatch
from barkspider.core.settings import Archive
from barkspider.url import Keys


class RowBuffer:
    """The rows of one table, in order. One thread adds; `pool` has one thread, which writes."""

    def __init__(self, table: TableFolder, settings: Archive, pool: ThreadPoolExecutor) -> None:
        self._table, self._settings, self._pool = table, settings, pool
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._since = -1.0  # when the first row came that waits; -1 when none does
        self._writing: Future[None] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises what went wrong with rows before them, if anything did."""
        if len(batch):
            self._batches.append(batch)
            self._bytes += batch.nbytes
            if self._bytes >= self._settings.table_memory:
                self.write()

    def tick(self, now: float) -> None:
        """Write what has waited long enough."""
        if self._since < 0:
            self._since = now if self._batches else -1.0
        elif now - self._since >= self._settings.table_interval:
            self.write()

    def write(self) -> None:
        """Begin to write all rows; waits for the file before, if that is not yet done."""
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
        # In one piece: Parquet's writer would go through the columns batch by batch.
        self._table.write(pa.Table.from_batches(batches, self._table.schema).combine_chunks())


class LinkBuffer(RowBuffer):
    """The links of pages, which come as packed rows.

    `domain_of` gives the pay-level domain of a URL; it is asked once for each domain of a harvest.
    """

    def __init__(
        self,
        table: TableFolder,
        settings: Archive,
        pool: ThreadPoolExecutor,
        domain_of: Callable[[str], str],
        keys: Keys,
    ) -> None:
        super().__init__(table, settings, pool)
        self._domain_of, self._keys = domain_of, keys

    def add_links(self, linking: pa.RecordBatch, links: UrlBatch) -> None:
        """Add the links of some pages; `linking` says whose they are (`notes.LINKING`)."""
        counts = linking["count"].to_numpy()
        pages = np.repeat(np.arange(len(linking)), counts)
        within = np.arange(len(pages)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = linking["first"].to_numpy()[pages] + within
        if len(chosen) < len(links):
            links = links.take(chosen)
        urls = links.url.to_arrow().cast(pa.string())
        domains = self._domains(links.pld_key, urls)
        self._add(linking, pages, links.key, domains, urls, _texts(linking["anchors"], counts), True)
        if linking["outside"].null_count == len(linking):
            return
        counts = pc.fill_null(pc.list_value_length(linking["outside"]), 0).to_numpy()
        pages, urls = np.repeat(np.arange(len(linking)), counts), linking["outside"].flatten()
        names = urls.to_pylist()
        keys = self._keys.column(name.encode() for name in names)
        domains = pa.array(map(self._domain_of, names), pa.string())
        self._add(linking, pages, keys, domains, urls, _texts(linking["outside_anchors"], counts), False)

    def _add(
        self,
        linking: pa.RecordBatch,
        pages: npt.NDArray[np.int64],
        targets: npt.NDArray[np.uint64],
        domains: pa.StringArray,
        urls: pa.StringArray,
        anchors: pa.StringArray,
        in_scope: bool,
    ) -> None:
        columns = [
            linking["source"].take(pages),
            pa.array(targets),
            linking["source_domain"].take(pages),
            domains,
            urls,
            anchors,
            pa.repeat(in_scope, len(pages)),
        ]
        self.add(pa.RecordBatch.from_arrays(columns, schema=self._table.schema))

    def _domains(self, keys: npt.NDArray[np.uint64], urls: pa.StringArray) -> pa.StringArray:
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        names = [self._domain_of(urls[place].as_py()) for place in first.tolist()]
        return pa.array(names, pa.string()).take(pa.array(which))


def _texts(texts: pa.ListArray, counts: npt.NDArray[np.int64]) -> pa.StringArray:
    """The texts of all links one behind the other; null where a page has none."""
    if texts.null_count == len(texts):
        return pa.nulls(int(counts.sum()), pa.string())
    pieces = [
        pa.nulls(count, pa.string()) if each.values is None else each.values
        for each, count in zip(texts, counts.tolist(), strict=True)
    ]
    return pa.concat_arrays(pieces)
