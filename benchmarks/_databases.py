"""Databases that a crawler might use instead of a DRUM, each as fast as its own means allow."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Keys = npt.NDArray[np.uint64]

# Given sorted keys to load, gives back a function that adds keys and counts the new.
Peer = Callable[[Path, Keys], Callable[[Keys], int]]


def _rocksdb(folder: Path, known: Keys) -> Callable[[Keys], int]:
    rocksdict = importlib.import_module("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    writer = rocksdict.SstFileWriter(options=options)
    writer.open(str(folder / "bulk.sst"))
    for key in _big_endian(known):
        writer[key] = b""
    writer.finish()
    database = rocksdict.Rdict(str(folder / "db"), options)
    database.ingest_external_file([str(folder / "bulk.sst")])

    def check(keys: Keys) -> int:
        texts = _big_endian(np.unique(keys))
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, found in zip(texts, database.get(texts), strict=True):
            if found is None:
                batch.put(key, b"")
        new = len(batch)
        database.write(batch)
        return int(new)

    return check


def _lmdb(folder: Path, known: Keys) -> Callable[[Keys], int]:
    lmdb = importlib.import_module("lmdb")
    database = lmdb.open(str(folder / "db"), map_size=1 << 36, sync=False, metasync=False, writemap=True)
    with database.begin(write=True) as writing:
        writing.cursor().putmulti(((key, b"") for key in _big_endian(known)), append=True)

    def check(keys: Keys) -> int:
        with database.begin(write=True) as writing:
            pairs = ((key, b"") for key in _big_endian(np.unique(keys)))
            return int(writing.cursor().putmulti(pairs, overwrite=False)[1])

    return check


def _sqlite(folder: Path, known: Keys) -> Callable[[Keys], int]:
    database = sqlite3.connect(folder / "db")
    for setting in ("journal_mode=off", "synchronous=off", "cache_size=-1000000", "locking_mode=exclusive"):
        database.execute(f"pragma {setting}")
    database.execute("create table known (key integer primary key) without rowid")
    insert = "insert or ignore into known values (?)"
    database.executemany(insert, ((key,) for key in _signed(known)))
    database.commit()

    def check(keys: Keys) -> int:
        before = database.total_changes
        database.executemany(insert, ((key,) for key in _signed(np.unique(keys))))
        database.commit()
        return database.total_changes - before

    return check


def _duckdb(folder: Path, known: Keys) -> Callable[[Keys], int]:
    duckdb = importlib.import_module("duckdb")
    database = duckdb.connect(str(folder / "db"))
    database.execute("set enable_progress_bar = false")
    database.register("bulk", pa.table({"key": known}))
    database.execute("create table known as select key from bulk")
    database.unregister("bulk")

    def check(keys: Keys) -> int:
        database.register("batch", pa.table({"key": keys}))
        done = database.execute(
            "insert into known select distinct key from batch anti join known using (key)"
        ).fetchone()
        database.unregister("batch")
        return int(done[0])

    return check


def _big_endian(keys: Keys) -> list[bytes]:
    data = keys.astype(">u8").tobytes()
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def _signed(keys: Keys) -> list[int]:
    numbers: list[int] = (keys ^ np.uint64(1 << 63)).view(np.int64).tolist()
    return numbers


PEERS: dict[str, Peer] = {"rocksdb": _rocksdb, "lmdb": _lmdb, "sqlite": _sqlite, "duckdb": _duckdb}
