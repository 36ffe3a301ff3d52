"""Sums over rows of equal keys, in bounded memory: what does not fit waits on disk, in order of its keys.

rows ─► grouped as they come ─► sorted runs on disk, when they are too many ─► merged by ranges of keys ─► results
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive.tables import ArrowFile, Sink
from barkspider.storage.env import Env

KEY = "key"
_MOST = 32  # runs that are merged together
# Rows of a run that are in memory at a time: all runs together have the memory that there is, at so many bytes a row.
_MOST_ROWS, _FEWEST_ROWS, _ROW = 8192, 64, 64


class Grouping:
    """Rows with a text `key` and columns to sum up. One thread.

    `functions` says for each column what to do with its values: `sum`, `min` or `max`; nulls count for nothing.
    At most about twice `memory` bytes are held.

    >>> import tempfile
    >>> words = Grouping(Env(), Path(tempfile.mkdtemp()), "words", {"n": "sum"}, memory=1 << 20)
    >>> words.add(pa.table({"key": ["b", "a", "b"], "n": [1, 2, 3]}))
    >>> [table.to_pylist() for table in words.results()]
    [[{'key': 'a', 'n': 2}, {'key': 'b', 'n': 4}]]
    """

    def __init__(self, env: Env, folder: Path, name: str, functions: Mapping[str, str], memory: int) -> None:
        """Runs lie in `folder` under names that begin with `name` and end in `.new`."""
        self._env, self._folder, self._name, self._memory = env, folder, name, memory
        self._functions = dict(functions)
        self._rows = min(_MOST_ROWS, max(memory // (_MOST * _ROW), _FEWEST_ROWS))
        self._parts: list[pa.Table] = []  # grouped each by itself
        self._bytes = self._joined = 0  # of all parts, and of what they were when they last became one
        self._runs: list[Path] = []
        self._count = 0

    def add(self, rows: pa.Table) -> None:
        """Take rows in; their columns are the key and those that have a function."""
        if not len(rows):
            return
        part = self._grouped([rows])
        self._parts.append(part)
        self._bytes += part.nbytes
        if self._bytes > self._memory or self._bytes > 2 * self._joined + self._memory // 8:
            self._parts = [self._grouped(self._parts)]
            self._bytes = self._joined = self._parts[0].nbytes
            if 2 * self._bytes > self._memory:
                self._spill()

    def results(self) -> Iterator[pa.Table]:
        """All keys in order, each once; nothing can be added any more."""
        if not self._runs:
            parts, self._parts = self._parts, []
            if parts:
                yield self._grouped(parts).sort_by(KEY)
            return
        try:
            if self._parts:
                self._spill()
            while len(self._runs) > _MOST:
                first, self._runs = self._runs[:_MOST], self._runs[_MOST:]
                self._write(self._merged(first))
                for path in first:
                    self._env.remove(path)
            yield from self._merged(self._runs)
        finally:
            for path in self._runs:
                self._env.remove(path)

    def _grouped(self, tables: list[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(tables).group_by(KEY, use_threads=False)
        found = rows.aggregate([(column, function) for column, function in self._functions.items()])
        return found.select([KEY, *(f"{c}_{f}" for c, f in self._functions.items())]).rename_columns(
            [KEY, *self._functions]
        )

    def _spill(self) -> None:
        rows = self._grouped(self._parts).sort_by(KEY)
        self._parts, self._bytes, self._joined = [], 0, 0
        self._write([rows])

    def _write(self, tables: Iterable[pa.Table]) -> None:
        path = self._folder / f"{self._name}-{self._count}.new"
        self._count += 1
        self._env.remove(path)
        self._runs.append(path)
        with self._env.append(path) as file:
            writer = None
            for table in tables:
                if writer is None:
                    options = pa.ipc.IpcWriteOptions(compression="zstd")
                    writer = pa.ipc.new_stream(Sink(file), table.schema, options=options)
                writer.write_table(table, self._rows)
            if writer is not None:
                writer.close()

    def _merged(self, runs: list[Path]) -> Iterator[pa.Table]:
        """The rows of sorted runs by ranges of keys: each up to the least key that ends what is read of a run."""
        waiting = {path: self._batches(path) for path in runs}
        heads: dict[Path, pa.Table] = {}
        while True:
            for path in list(waiting):
                while path in waiting and not len(heads.get(path, ())):
                    heads.pop(path, None)
                    with suppress(StopIteration):
                        heads[path] = next(waiting[path])
                        continue
                    del waiting[path]
            if not heads:
                return
            bound = min(head[KEY][-1].as_py() for head in heads.values())
            taken = []
            for path, head in list(heads.items()):
                count = pc.sum(pc.less_equal(head[KEY], bound)).as_py()
                taken.append(head.slice(0, count))
                heads[path] = head.slice(count)
                if not len(heads[path]):
                    del heads[path]
            yield self._grouped(taken).sort_by(KEY)

    def _batches(self, path: Path) -> Iterator[pa.Table]:
        with self._env.open(path) as file, pa.ipc.open_stream(ArrowFile(file)) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
