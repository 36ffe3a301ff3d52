"""The table `domains`, made from pages and links: how many pages a domain has, and who links to whom.

    pages ─► by domain and host ─┐
    links ─► by pair of domains ─┴─► by domain ─► rows, in the order of their names

The view of the same name in `views` says the same in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive.grouping import KEY, Grouping
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.tables import open_table
from barkspider.storage.env import Env

_BETWEEN = "\t"  # the two halves of a key; no host has it
_TIMES = {"first_time": "min", "last_time": "max"}
_COUNTS = ("pages", "bytes", "hosts", "links_out", "links_in", "domains_out", "domains_in")


def domain_rows(env: Env, folder: Path, memory: int) -> Iterator[pa.Table]:
    """The rows of the table, some at a time; it takes about `memory` bytes, and disk beyond that."""
    schema = SCHEMAS["domains"]
    domains = Grouping(env, folder, "domains", {**dict.fromkeys(_COUNTS, "sum"), **_TIMES}, memory // 4)

    def add(names: pa.ChunkedArray, **columns: pa.ChunkedArray) -> None:
        known = {KEY: names, **columns}
        rows = [
            known[name] if name in known else pa.nulls(len(names), schema.field(name).type)
            for name in (KEY, *_COUNTS, *_TIMES)
        ]
        domains.add(pa.table(rows, names=[KEY, *_COUNTS, *_TIMES]))

    for rows in _by_host(env, folder, memory // 4):
        ones = pa.repeat(pa.scalar(1, pa.uint64()), len(rows))
        add(_half(rows[KEY], 0), hosts=ones, **{name: rows[name] for name in ("pages", "bytes", *_TIMES)})
    for rows in _by_pair(env, folder, memory // 4):
        ones = pa.repeat(pa.scalar(1, pa.uint64()), len(rows))
        add(_half(rows[KEY], 0), links_out=rows["links"], domains_out=ones)
        add(_half(rows[KEY], 1), links_in=rows["links"], domains_in=ones)
    for rows in domains.results():
        columns = [
            rows[KEY],
            *(pc.fill_null(rows[name], 0) for name in _COUNTS),
            *(rows[name] for name in _TIMES),
        ]
        yield pa.table(columns, names=schema.names).cast(schema)


def _by_host(env: Env, folder: Path, memory: int) -> Iterator[pa.Table]:
    hosts = Grouping(env, folder, "hosts", {"pages": "sum", "bytes": "sum", **_TIMES}, memory)
    names = ["url_host_registered_domain", "url_host_name", "fetch_status", "content_length", "fetch_time"]
    for batch in open_table(env, folder, "pages", memory).batches(names):
        domain, host, status, length, time = batch.columns
        answered = pc.and_(pc.greater_equal(status, 200), pc.less(status, 300))
        columns = [_joined(domain, host), answered.cast(pa.uint64()), length, time, time]
        hosts.add(pa.table(columns, names=[KEY, "pages", "bytes", *_TIMES]))
    return hosts.results()


def _by_pair(env: Env, folder: Path, memory: int) -> Iterator[pa.Table]:
    pairs = Grouping(env, folder, "pairs", {"links": "sum"}, memory)
    for batch in open_table(env, folder, "links", memory).batches(["source_domain", "target_domain"]):
        source, target = batch.filter(pc.field("source_domain") != pc.field("target_domain")).columns
        ones = pa.repeat(pa.scalar(1, pa.uint64()), len(source))
        pairs.add(pa.table([_joined(source, target), ones], names=[KEY, "links"]))
    return pairs.results()


def _joined(first: pa.Array, second: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(first, second, _BETWEEN)


def _half(keys: pa.ChunkedArray, which: int) -> pa.ChunkedArray:
    return pc.list_element(pc.split_pattern(keys, _BETWEEN, max_splits=1), which)
