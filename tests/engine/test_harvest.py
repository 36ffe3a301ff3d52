"""Harvests: bound from what answers brought, written as one record, read back as they were."""

from __future__ import annotations

import json
import struct
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.archive import Note, as_batch, batches_of, decode_batch, encode_batch, error_note
from barkspider.archive.notes import LINKING, LINKING_SCHEMA, schema_of
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Outcome,
    PageFetched,
    Redirect,
    ResolveHost,
    RobotsFetched,
    Seeds,
)
from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.engine.harvest import Harvest, Reaped, is_harvest, warc_ends_of
from barkspider.engine.links import LinkMaker
from barkspider.engine.outcomes import SCHEMA, as_rows, from_rows
from tests.core.test_batch import rows as url_rows

WARC_ENDS = {"pages": ("pages-1.warc.gz", 2**40), "robots": ("", 0)}
_row = url_rows.filter(bool).map(lambda rows: rows[0])
_text = st.text(st.characters(codec="utf-8"), max_size=8)
_seconds = st.floats(0, 1e9)
_maybe = st.none() | _seconds
_cookies = st.lists(_text, max_size=2).map(tuple)
_trail = st.lists(st.integers(0, 2**64 - 1), max_size=3).map(tuple)
_pages = st.builds(
    PageFetched,
    st.builds(FetchPage, _row, _text, _trail),
    st.integers(0, 999),
    _text,
    st.booleans(),
    _maybe,
    st.none() | url_rows.map(UrlBatch.from_rows),
    st.none() | st.builds(Redirect, _row, st.binary(max_size=9)),
    st.integers(0, 2**64 - 1),
    st.booleans(),
    _seconds,
    _cookies,
)
_robots = st.builds(
    RobotsFetched,
    st.builds(FetchRobots, _text, _text, _text, st.integers(0, 2**64 - 1), st.integers(0, 5)),
    st.integers(0, 999),
    st.binary(max_size=9),
    _text,
    _maybe,
    st.booleans(),
    _maybe,
    _seconds,
    _cookies,
)
_seeds = url_rows.map(lambda rows: Seeds(UrlBatch.from_rows(rows)))
_names = st.builds(HostResolved, st.builds(ResolveHost, _text, st.integers(0, 9)), st.just(("192.0.2.1",)))


def plain(outcome: Outcome) -> Any:
    """An outcome that can be compared: batches are their rows."""
    if isinstance(outcome, Seeds):
        return outcome.batch.rows()
    if isinstance(outcome, PageFetched) and outcome.links is not None:
        return replace(outcome, links=None), outcome.links.rows()
    return outcome


@settings(deadline=None, max_examples=200)
@given(st.lists(_pages | _robots | _seeds | _names, max_size=5))
def test_what_must_be_kept_of_a_harvest_survives_being_written_and_read(outcomes: list[Outcome]) -> None:
    links = [each.links for each in outcomes if isinstance(each, PageFetched) and not each.stale]
    joined = UrlBatch.join([each for each in links if each is not None])
    record = Harvest(12.5, outcomes, joined, {}, WARC_ENDS, {"pages": 7}).encode()
    found = Harvest.decode(record)
    kept = [each for each in outcomes if isinstance(each, Seeds) or not getattr(each, "stale", True)]
    assert [plain(each) for each in found.outcomes] == [plain(each) for each in kept]
    assert (found.time, found.warc_ends, found.tally) == (12.5, WARC_ENDS, {"pages": 7})
    assert found.links.rows() == joined.rows()
    assert warc_ends_of(record) == WARC_ENDS
    assert is_harvest(record)
    assert Harvest(0.0, outcomes).is_news == bool(kept)


def page(url: str) -> FetchPage:
    maker = LinkMaker(load_settings(options=["seed=7", "scope.level=web"]), [url])
    return FetchPage(maker.seeds().rows()[0], "192.0.2.1")


def test_links_of_a_harvest_are_one_batch_and_each_page_has_its_own() -> None:
    maker = LinkMaker(load_settings(options=["seed=7", "scope.level=web"]), ["http://a.example/"])
    asked = [page(f"http://{name}.example/") for name in "abc"]
    reaped = []
    for number, each in enumerate(asked):
        base = each.row.url.decode()
        links = maker.links([f"/{count}" for count in range(number)], base, each.row) if number else None
        notes = [Note(LINKING, (each.row.key, "x", 0, 0, None, None, None))]
        reaped.append(Reaped(PageFetched(each, 200), links, notes if links is not None else []))
    reaped.append(Reaped(PageFetched(asked[0], 0), None, [error_note(5.0, "page", "reset", "a.example")]))
    harvest = Harvest.of(3.0, reaped, maker, WARC_ENDS, {})
    found = [each.links for each in harvest.outcomes if isinstance(each, PageFetched)]
    assert found[0] is None
    assert found[3] is None
    assert [each.url.tolist() for each in found[1:3] if each is not None] == [
        [b"http://b.example/0"],
        [b"http://c.example/0", b"http://c.example/1"],
    ]
    assert [row.parent for row in harvest.links.rows()] == [asked[1].row.key, *[asked[2].row.key] * 2]
    linking = Harvest.decode(harvest.encode()).batches[LINKING].to_pylist()
    assert [(row["first"], row["count"]) for row in linking] == [(0, 1), (1, 2)]
    assert harvest.batches["errors"]["outcome"].to_pylist() == ["reset"]


def test_bodies_that_were_packed_on_the_wire_take_little_of_the_journal() -> None:
    """Two hundred bytes that unpack to half a megabyte of robots.txt would fill a disk a thousand times over."""
    asked = FetchRobots("http://a.example", "http://a.example/robots.txt", "192.0.2.1", 1, 0)
    outcomes = [RobotsFetched(asked, 200, b"#" * 500_000) for _ in range(10)]
    written = encode_batch(as_rows(outcomes))
    assert len(written) < 20_000
    assert from_rows(decode_batch(written, SCHEMA), UrlBatch.from_rows([])) == outcomes


def test_a_harvest_of_names_alone_is_not_written() -> None:
    resolved = HostResolved(ResolveHost("a.example", 1), ("192.0.2.1",))
    maker = LinkMaker(load_settings(options=["seed=7"]), ["http://a.example/"])
    assert not Harvest.of(1.0, [Reaped(resolved)], maker, WARC_ENDS, {}).is_news
    failed = [error_note(5.0, "dns", "dns_no_name", "a.example")]
    assert Harvest.of(1.0, [Reaped(resolved, None, failed)], maker, WARC_ENDS, {}).is_news


def test_a_record_that_is_no_harvest_is_refused_in_one_line() -> None:
    good = Harvest(
        1.0, [RobotsFetched(FetchRobots("http://a", "u", "x", 1, 0), 200)], warc_ends=WARC_ENDS
    ).encode()
    text = json.dumps({"kind": "seeds"}).encode()
    older = struct.pack("<III", len(text), 0, 0) + text
    newer = good[:4] + struct.pack("<I", 99) + good[8:]
    for record, message in (
        (older, "no harvest"),
        (b"", "no harvest"),
        (newer, "newer barkspider"),
        (good[:-1], "cannot be read"),
        (good[:12] + b"[" + good[13:], "cannot be read"),
        (good.replace(b"robots", b"robotx"), "cannot be read"),
    ):
        with pytest.raises(StorageError, match=message):
            Harvest.decode(record)
    assert not is_harvest(older)


def test_columns_that_an_older_version_did_not_write_are_null() -> None:
    asked = FetchRobots("http://a", "u", "x", 1, 0)
    older = as_rows([RobotsFetched(asked, 200, max_age=5.0)]).drop_columns(["max_age"])
    assert from_rows(decode_batch(encode_batch(older), SCHEMA), UrlBatch.of([])) == [
        RobotsFetched(asked, 200)
    ]
    linking = as_batch(pa.struct(list(LINKING_SCHEMA)), [{"source": 7, "outside": ["http://b.example/"]}])
    for table, batch in (
        (LINKING, linking),
        ("errors", batches_of([error_note(5.0, "page", "x", "h")])["errors"]),
    ):
        data = encode_batch(batch.drop_columns([batch.schema.names[-2]]))
        found = decode_batch(data, schema_of(table))
        assert found.schema == batch.schema
        assert found.column(found.num_columns - 2).null_count == 1


def test_an_outcome_with_links_differs_in_nothing_else() -> None:
    asked = FetchPage(UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/"), "192.0.2.1")
    every: dict[str, Any] = {each.name: object() for each in fields(PageFetched)} | {"asked": asked}
    outcome, links = PageFetched(**every), UrlBatch.from_rows([asked.row])
    assert outcome.with_links(links) == replace(outcome, links=links)
