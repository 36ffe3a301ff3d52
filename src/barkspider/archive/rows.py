"""Rows on their way to a table: batches, gathered in RAM and written by a thread, a row group at a time."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive.tables import NewTableFile, TableFolder
from barkspider.core.batch import UrlBatch
from barkspider.core.texts import ends
from barkspider.url import KeyMaker

_MANY = 64  # batches: each takes some 800 bytes a column beside its rows


Batch = TypeVar("Batch")


class Buffer(Generic[Batch]):
    """The rows of one table, in order. One thread adds; `pool` has one thread, which writes.

    Three times `most` bytes of rows at most wait: here, for the thread, and in its hands until they are enough for a row
    group of the file that is being written. That file is completed after `interval` seconds, by `write`, or when it is
    large.
    """

    def __init__(self, table: TableFolder, pool: ThreadPoolExecutor, most: int, interval: float) -> None:
        self._table, self._pool, self._most, self._interval = table, pool, most, interval
        self._batches: list[Batch] = []
        self._bytes = 0
        self._since = -1.0  # when the first row came that is in no complete file; -1 when there is none
        self._incomplete = False
        self._under_way: deque[tuple[Future[None], int]] = deque()
        # Of the thread:
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._part: NewTableFile | None = None

    def tick(self, now: float) -> None:
        """Write what has waited long enough."""
        if self._since < 0:
            self._since = now if self._incomplete else -1.0
        elif now - self._since >= self._interval:
            self.write()

    def write(self) -> None:
        """Begin to make a complete file of all rows."""
        self._since = -1.0
        if self._incomplete:
            self._incomplete = False
            self._hand_over(self._take_last)

    def writing(self) -> Callable[[], int]:
        """`write`; what is returned waits until it is done, in any thread, and gives the number of the last write."""
        self.write()
        self.wait(sys.maxsize)
        if not self._under_way:
            known = self._table.last()
            return lambda: known
        done, last = [future for future, _ in self._under_way], self._pool.submit(self._table.last)

        def wait() -> int:
            for each in done:
                each.result()
            return last.result()

        return wait

    def merge_committed(self, last: int) -> None:
        """The writes up to `last` are committed: begin to merge their files, if there are many."""
        self._under_way.append((self._pool.submit(self._table.merge_committed, last), 0))

    def last(self) -> int:
        """The number of the table's last write; nothing may be under way."""
        return self._table.last()

    def wait(self, most: int = 0) -> None:
        """Until what was begun is done, but for the last `most` bytes."""
        while self._under_way and (self._under_way[0][0].done() or self._waiting() >= most):
            self._under_way[0][
                0
            ].result()  # what failed stays: its rows are missing, so nothing may be committed
            self._under_way.popleft()

    def _put(self, batch: Batch, size: int) -> None:
        self._batches.append(batch)
        self._bytes += size
        self._incomplete = True
        if self._bytes >= self._most or len(self._batches) >= _MANY:
            self._hand_over(self._take)

    def _waiting(self) -> int:
        return sum(size for _, size in self._under_way)

    def _hand_over(self, what: Callable[[list[Batch]], None]) -> None:
        self.wait(self._most)
        batches, size = self._batches, self._bytes
        self._batches, self._bytes = [], 0
        self._under_way.append((self._pool.submit(what, batches), size))

    # ── in the thread ──────────────────────────────────────────────────────────────────────────

    def _rows(self, batches: list[Batch]) -> list[pa.RecordBatch]:
        """The rows of the table that batches stand for."""
        raise NotImplementedError

    def _take(self, batches: list[Batch]) -> None:
        """Hold rows as one table, which takes far less than the small batches that they came in."""
        if batches:
            rows = pa.Table.from_batches(self._rows(batches), self._table.schema).combine_chunks()
            batches.clear()
            self._held.append(rows)
            self._held_bytes += rows.nbytes
        if self._held_bytes >= self._most:
            self._write_group()
        if self._part is not None and self._part.size >= self._table.large:
            self._complete()

    def _take_last(self, batches: list[Batch]) -> None:
        self._take(batches)
        if self._held:
            self._write_group()
        self._complete()

    def _write_group(self) -> None:
        rows, self._held, self._held_bytes = pa.concat_tables(self._held), [], 0
        if self._part is None:
            self._part = self._table.begin()
        try:
            self._part.write(rows)
        except BaseException:
            part, self._part = self._part, None
            part.discard()
            raise

    def _complete(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.finish()


class RowBuffer(Buffer[pa.RecordBatch]):
    """Rows that come as they are."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Raises what went wrong with rows before them, if anything did."""
        if len(batch):
            self._put(batch, batch.get_total_buffer_size())

    def _rows(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return batches


class LinkBuffer(Buffer[tuple[pa.RecordBatch, UrlBatch]]):
    """The links of pages, which come as packed rows, a harvest at a time.

    `domain_of` gives the pay-level domain of a URL; the thread asks it, once for each domain of some harvests.
    """

    def __init__(
        self,
        table: TableFolder,
        pool: ThreadPoolExecutor,
        most: int,
        interval: float,
        domain_of: Callable[[str], str],
        keys: KeyMaker,
    ) -> None:
        super().__init__(table, pool, most, interval)
        self._domain_of, self._keys = domain_of, keys

    def add(self, linking: pa.RecordBatch, links: UrlBatch) -> None:
        """Add the links of some pages of a harvest; `linking` says whose they are (`notes.LINKING`). Raises what went wrong
        before them, if anything did."""
        if len(linking):
            self._put((linking, links), linking.get_total_buffer_size() + len(links.packed.data))

    # ── in the thread ──────────────────────────────────────────────────────────────────────────

    def _rows(self, batches: list[tuple[pa.RecordBatch, UrlBatch]]) -> list[pa.RecordBatch]:
        linking = pa.Table.from_batches([each for each, _ in batches]).combine_chunks().to_batches()[0]
        links = UrlBatch.join([each for _, each in batches])
        before = ends(np.array([len(each) for _, each in batches]))[:-1]  # links of earlier harvests
        first = linking["first"].to_numpy() + np.repeat(before, [len(each) for each, _ in batches])
        counts = linking["count"].to_numpy()
        pages = np.repeat(np.arange(len(linking)), counts)
        chosen = np.arange(len(pages)) + np.repeat(first - ends(counts)[:-1], counts)
        if len(chosen) < len(links):
            links = links.take(chosen)
        urls = links.url.to_arrow().cast(pa.string())
        domains = self._domains(links.pld_key, urls)
        texts = _texts(linking["anchors"], counts)
        inside = self._columns(linking, pages, links.key, domains, urls, texts, True)
        if linking["outside"].null_count == len(linking):
            return [inside]
        counts = pc.fill_null(pc.list_value_length(linking["outside"]), 0).to_numpy()
        pages, urls = np.repeat(np.arange(len(linking)), counts), linking["outside"].flatten()
        names = urls.to_pylist()
        keys = self._keys.column(name.encode() for name in names)
        domains = pa.array(map(self._domain_of, names), pa.string())
        texts = _texts(linking["outside_anchors"], counts)
        return [inside, self._columns(linking, pages, keys, domains, urls, texts, False)]

    def _columns(
        self,
        linking: pa.RecordBatch,
        pages: npt.NDArray[np.int64],
        targets: npt.NDArray[np.uint64],
        domains: pa.StringArray,
        urls: pa.StringArray,
        anchors: pa.StringArray,
        in_scope: bool,
    ) -> pa.RecordBatch:
        columns = [
            linking["source"].take(pages),
            pa.array(targets),
            linking["source_domain"].take(pages),
            domains,
            urls,
            anchors,
            pa.repeat(in_scope, len(pages)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._table.schema)

    def _domains(self, keys: npt.NDArray[np.uint64], urls: pa.StringArray) -> pa.StringArray:
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        names = list(map(self._domain_of, urls.take(first).to_pylist()))
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
