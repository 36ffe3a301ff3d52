"""A table on disk: a folder of immutable Parquet files, written whole and later merged into larger ones.

A file is named by the numbers of the writes whose rows it holds: `000007-000007.parquet` as written,
`000000-000015.parquet` when the first sixteen were merged. A file whose numbers lie within another's is left
over, its rows are in the other: so a merged file takes the place of its parts in the one step of its rename,
and a reader never sees a row twice, or none of it.

A file says by which version of the columns it was written. Rows of older and of newer files come with the columns
of the table as it is now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from barkspider.archive.schemas import SCHEMAS, UNIQUE, VERSION, conform
from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile, Env, ReadFile
from barkspider.storage.raw import Data, as_bytes

_NAME = re.compile(r"(\d{6,})-(\d{6,})\.parquet")
_LARGE = 64_000_000  # bytes; files of this size are not merged again
# Times the size of a row group, unpacked: a file has no more of them than some hundred, since who writes or reads it has to
# hold a kilobyte about every column of every group.
_MANY_GROUPS = 16
_MANY = 16  # files of one write each: so many are merged while the table grows
_BOUNDED = ("fetch_time", "time")  # columns that come nearly sorted: bounds let a reader leave parts out
_VERSION = b"barkspider.schema"  # in the metadata of a file; the oldest files have none, and are of version 1
_GROUP = 250_000  # most rows of a row group
_GROUP_BYTES = 8_000_000  # of rows in memory, of which two copies exist while they are packed
# Rows that are read at a time: as many as make a row group, by what a column takes of a row, and no more than these.
_BATCH, _SMALLEST_BATCH, _COLUMN = 8192, 64, 24


class TableFile(NamedTuple):
    """A file of a table that counts: its name and the writes whose rows it holds."""

    first: int
    last: int
    name: str


class TableFolder:
    """One table. One thread writes; readers in any process list the files anew when one is gone.

    >>> import tempfile
    >>> table = TableFolder(Env(), Path(tempfile.mkdtemp()) / "t", pa.schema([("n", pa.int32())]))
    >>> for n in range(3):
    ...     table.write(pa.table({"n": pa.array([n], pa.int32())}))
    >>> table.compact(); [part.name for part in table.parts()], table.read()["n"].to_pylist()
    (['000000-000002.parquet'], [0, 1, 2])
    """

    def __init__(self, env: Env, folder: Path, schema: pa.Schema, group_bytes: int = _GROUP_BYTES) -> None:
        """Merging takes about three times `group_bytes` of memory, the size of a row group before it is packed."""
        self._env, self.folder, self.schema, self._group_bytes = env, folder, schema, group_bytes
        self.large = min(_LARGE, _MANY_GROUPS * group_bytes)

    def parts(self) -> list[TableFile]:
        """The files that count, in order."""
        return visible(self._env.list(self.folder))

    def files(self) -> list[Path]:
        """The files that count, in order, as paths."""
        return [self.folder / part.name for part in self.parts()]

    def read(self) -> pa.Table:
        """All rows, in memory."""
        while True:
            parts = self.parts()
            try:
                return pa.Table.from_batches(self._batches(parts, self.schema), self.schema)
            except StorageError:
                if parts == self.parts():  # else a merge has just taken one away: its rows are in another
                    raise

    def batches(
        self, columns: list[str], skip: int = 0, parts: list[TableFile] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows behind the first `skip`, of some files or of all that count.

        They come a few at a time; nobody may write meanwhile.
        """
        chosen = pa.schema([self.schema.field(name) for name in columns])
        return self._batches(self.parts() if parts is None else parts, chosen, skip)

    def length(self, part: TableFile) -> int:
        """How many rows a file has."""
        with self._opened(part) as parquet:
            return int(parquet.metadata.num_rows)

    def fits(self, part: TableFile) -> bool:
        """Whether a file has the columns of its version.

        Columns are only ever appended: an older file has the first of ours, and ours are the first of a newer one.
        """
        with self._opened(part) as parquet:
            version, found = self._version(part, parquet), list(parquet.schema_arrow)
        known = list(self.schema)
        if version < VERSION:
            known = known[: len(found)]
        elif version > VERSION:
            found = found[: len(known)]
        return found == known

    def begin(self) -> NewTableFile:
        """A further file, to be filled."""
        number = self.last() + 1
        if number == 0:
            self._env.make_folder(self.folder)
        return NewTableFile(self._env, self.folder / _name(number, number), self.schema)

    def write(self, table: pa.Table) -> None:
        """Add rows, as one file; when this returns they survive a power loss."""
        with self.begin() as part:
            part.write(table)

    def replace(self, tables: Iterable[pa.Table]) -> None:
        """Put rows in the place of all that the table had."""
        self._env.make_folder(self.folder)
        self._put(0, self.last() + 1, tables)
        self._tidy()

    def compact(self, last: int | None = None) -> None:
        """Merge small files that lie side by side: those of the writes up to `last`, or all.

        A file of a newer version stays as it is: its columns that are not known here would be lost.
        """
        self._tidy()  # what a crash left between a merge and the end of its parts
        run: list[TableFile] = []
        size = 0
        for part in self.parts():
            if last is not None and part.last > last:
                break
            length = self._env.size(self.folder / part.name)
            small = length < self.large and not self._newer(part)
            if small and size + length < 2 * self.large:
                run.append(part)
                size += length
                continue
            self._merge(run)
            run, size = ([part], length) if small else ([], 0)
        self._merge(run)

    def merge_committed(self, last: int) -> None:
        """Merge files when there are many: what a crawl calls when the writes up to `last` are committed."""
        if sum(part.first == part.last <= last for part in self.parts()) >= _MANY:
            self.compact(last=last)

    def cut(self, last: int) -> None:
        """Go back to the writes up to `last`: remove later ones, and what a crash left half done."""
        names = self._env.list(self.folder)
        found = {
            name: TableFile(int(match[1]), int(match[2]), name)
            for name in names
            if (match := _NAME.fullmatch(name))
        }
        for part in found.values():
            if part.first <= last < part.last:
                raise StorageError(
                    f"{self.folder / part.name} was merged beyond the last commit: write {last}"
                )
        gone = [name for name in names if name not in found or found[name].last > last]
        for name in gone:
            self._env.remove(self.folder / name)
        if gone:
            self._env.sync_folder(self.folder)

    def last(self) -> int:
        """The number of the last write, -1 when there was none."""
        parts = self.parts()
        return parts[-1].last if parts else -1

    def _merge(self, run: list[TableFile]) -> None:
        if len(run) >= 2:
            self._put(run[0].first, run[-1].last, map(pa.table, self._batches(run, self.schema)))
            self._tidy()

    def _put(self, first: int, last: int, tables: Iterable[pa.Table]) -> None:
        """Write rows as one file, in as few row groups as memory allows."""
        group, rows, size = list[pa.Table](), 0, 0
        with NewTableFile(self._env, self.folder / _name(first, last), self.schema) as part:
            for table in tables:
                if rows + len(table) > _GROUP or size + table.nbytes > self._group_bytes:
                    part.write(pa.concat_tables(group)) if group else None
                    group, rows, size = [], 0, 0
                group.append(table)
                rows, size = rows + len(table), size + table.nbytes
            part.write(pa.concat_tables(group)) if group else None

    def _batches(self, parts: list[TableFile], schema: pa.Schema, skip: int = 0) -> Iterator[pa.RecordBatch]:
        rows = min(_BATCH, max(self._group_bytes // (_COLUMN * len(schema)), _SMALLEST_BATCH))
        for part in parts:
            with self._opened(part) as parquet:
                if skip >= parquet.metadata.num_rows:
                    skip -= parquet.metadata.num_rows
                    continue
                for batch in parquet.iter_batches(rows, columns=schema.names, use_threads=False):
                    if skip < len(batch):
                        yield conform(batch.slice(skip), schema)
                    skip = max(skip - len(batch), 0)

    def _newer(self, part: TableFile) -> bool:
        with self._opened(part) as parquet:
            return self._version(part, parquet) > VERSION

    def _version(self, part: TableFile, parquet: pq.ParquetFile) -> int:
        said: bytes = (parquet.metadata.metadata or {}).get(_VERSION, b"1")
        if not said.isdigit():
            raise StorageError(f"{self.folder / part.name} is damaged: its version is {said!r}")
        return int(said)

    @contextmanager
    def _opened(self, part: TableFile) -> Iterator[pq.ParquetFile]:
        path = self.folder / part.name
        try:
            with (
                self._env.open(path) as file,
                pq.ParquetFile(ArrowFile(file), pre_buffer=False, page_checksum_verification=True) as parquet,
            ):
                yield parquet
        except (pa.ArrowException, OSError) as error:
            raise StorageError(f"{path} is damaged: {error}") from error

    def _tidy(self) -> None:
        names = self._env.list(self.folder)
        kept = {part.name for part in visible(names)}
        for name in names:
            if name not in kept:
                self._env.remove(self.folder / name)


class NewTableFile:
    """A file of a table while it is written, a row group at a time; it counts once it is whole.

    Used by `with`, it is complete at the end, or never was when something went wrong.
    """

    def __init__(self, env: Env, path: Path, schema: pa.Schema) -> None:
        self._env, self._path, self._new = env, path, path.with_name(f"{path.name}.new")
        env.remove(self._new)
        self._file = env.append(self._new)
        self._writer = pq.ParquetWriter(
            Sink(self._file),
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in UNIQUE],
            write_statistics=[name for name in schema.names if name in _BOUNDED],
            write_page_checksum=True,
        )
        self._writer.add_key_value_metadata({_VERSION: str(VERSION)})

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._file.size

    def write(self, table: pa.Table) -> None:
        """Add rows, as a row group."""
        # In one piece: Parquet's writer would go through the columns batch by batch.
        self._writer.write_table(table.combine_chunks(), row_group_size=_GROUP)

    def finish(self) -> None:
        """Complete the file: when this returns, its rows survive a power loss."""
        try:
            self._writer.close()
            self._file.sync()
            self._file.close()
        except BaseException:
            self.discard()
            raise
        self._env.rename(self._new, self._path)

    def discard(self) -> None:
        """Give the file up; what there is of it never counts."""
        with suppress(StorageError):
            self._writer.close()
        with suppress(StorageError):
            self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()


def open_table(env: Env, archive: Path, name: str, group_bytes: int = _GROUP_BYTES) -> TableFolder:
    """A table of an archive, one of `SCHEMAS`."""
    return TableFolder(env, archive / "tables" / name, SCHEMAS[name], group_bytes)


def visible(names: Iterable[str]) -> list[TableFile]:
    """Which of the names in the folder of a table count: those whose numbers lie within no other's.

    >>> [part.name for part in visible(["000000-000001.parquet", "000001-000001.parquet", "x.new"])]
    ['000000-000001.parquet']
    """
    found = [
        TableFile(int(match[1]), int(match[2]), name) for name in names if (match := _NAME.fullmatch(name))
    ]
    kept: list[TableFile] = []
    for part in sorted(found, key=lambda part: (part.first, -part.last)):
        if not kept or part.last > kept[-1].last:
            kept.append(part)
    return kept


def _name(first: int, last: int) -> str:
    return f"{first:06d}-{last:06d}.parquet"


class Sink(RawIOBase):
    """An `AppendFile` as Arrow's writers want it; it is closed by whoever opened it."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Data, /) -> int:
        view = as_bytes(data)
        self._file.write(view)
        return view.nbytes

    def tell(self) -> int:
        return self._file.size


class ArrowFile(RawIOBase):
    """A `ReadFile` as Arrow's readers want it; closing it closes the file."""

    def __init__(self, file: ReadFile) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Data, /) -> int:
        done = self._file.pread_into(self._place, buffer)
        self._place += done
        return done

    def seek(self, offset: int, whence: int = SEEK_SET, /) -> int:
        self._place = offset + {SEEK_SET: 0, SEEK_CUR: self._place, SEEK_END: self._file.size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        self._file.close()
        super().close()
