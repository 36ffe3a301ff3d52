"""Tables: whole files, merging that no reader notices, rows that wait, recent digests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.archive.notes import LINKING_SCHEMA, as_batch
from barkspider.archive.payloads import Payloads
from barkspider.archive.rows import LinkBuffer, RowBuffer
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.tables import TableFolder, visible
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.url import KeyMaker
from tests.storage.faulty import FaultyEnv

SCHEMA = pa.schema([("n", pa.int32()), ("url", pa.string())])
FOLDER = Path("/job/tables/t")


def rows(*numbers: int) -> pa.Table:
    return pa.table([pa.array(numbers, pa.int32()), [f"u{n}" for n in numbers]], schema=SCHEMA)


def numbers(env: Env, folder: Path = FOLDER) -> list[int]:
    found: list[int] = TableFolder(env, folder, SCHEMA).read()["n"].to_pylist()
    return found


def test_rows_come_back_in_order_through_writes_and_merges(tmp_path: Path) -> None:
    table = TableFolder(Env(), tmp_path / "t", SCHEMA)
    assert table.read().num_rows == 0
    for number in range(40):
        table.write(rows(2 * number, 2 * number + 1))
        table.merge_committed(number)
        assert numbers(Env(), tmp_path / "t") == list(range(2 * number + 2))
    assert len(table.parts()) < 20
    table.compact()
    assert [part.name for part in table.parts()] == ["000000-000039.parquet"]
    assert [path.name for path in table.folder.iterdir()] == ["000000-000039.parquet"]
    table.replace([rows(7)])
    assert numbers(Env(), tmp_path / "t") == [7]


def test_no_merged_file_reaches_over_a_commit_and_later_ones_can_be_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.tables._MANY", 3)
    table = TableFolder(Env(), tmp_path / "t", SCHEMA)
    assert table.last() == -1
    for number in range(6):
        table.write(rows(number))
    for last, expected in ((1, 6), (3, 3), (4, 3)):
        table.merge_committed(last)
        assert len(table.parts()) == expected
    assert [part.name[:13] for part in table.parts()] == ["000000-000003", "000004-000004", "000005-000005"]
    (table.folder / "000006-000006.parquet.new").touch()
    table.cut(4)
    assert sorted(path.name[:13] for path in table.folder.iterdir()) == ["000000-000003", "000004-000004"]
    table.write(rows(7))
    assert (numbers(Env(), table.folder), table.last()) == ([0, 1, 2, 3, 4, 7], 5)
    with pytest.raises(StorageError, match="merged beyond the last commit: write 2"):
        table.cut(2)
    table.cut(-1)
    assert list(table.folder.iterdir()) == []


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    table = TableFolder(Env(), tmp_path / "t", SCHEMA)
    for part in ([1], range(2, 3000), [3000], [3001]):
        table.write(rows(*part))
    table.large = 5000
    table.compact()
    assert [part.name[:13] for part in table.parts()] == ["000000-000000", "000001-000001", "000002-000003"]
    assert numbers(Env(), tmp_path / "t") == list(range(1, 3002))


def test_in_little_memory_files_are_smaller_and_few_rows_are_read_at_a_time(tmp_path: Path) -> None:
    usual, little = (TableFolder(Env(), tmp_path / "t", SCHEMA, size) for size in (8_000_000, 2_400))
    assert (usual.large, little.large) == (64_000_000, 16 * 2_400)
    usual.write(rows(*range(1000)))
    for table, most in ((usual, 1000), (little, 100)):
        sizes = [len(batch) for batch in table.batches(["n"])]
        assert (sum(sizes), max(sizes)) == (1000, most)


def test_a_file_within_another_does_not_count() -> None:
    names = [
        "000000-000003.parquet",
        "000000-000001.parquet",
        "000002-000002.parquet",
        "000004-000004.parquet",
    ]
    assert [part.name for part in visible([*names, "x.parquet", "000009-000009.parquet.new"])] == [
        names[0],
        names[3],
    ]


def test_at_every_crash_a_reader_sees_each_row_once_and_all_that_were_written() -> None:
    env, random = FaultyEnv(), Random(1)
    table = TableFolder(env, FOLDER, SCHEMA)
    written = []  # how many operations were done when so many rows were safe
    for number in range(5):
        table.write(rows(number))
        written.append(len(env.operations))
    table.compact()
    table.write(rows(5))
    written.append(len(env.operations))
    table.compact()
    crashes = 0
    for done, disk in env.crashes():
        for how in ("drop", "random"):
            found = numbers(FaultyEnv(disk.after_power_loss(how, random)))
            safe = sum(mark <= done for mark in written)
            assert found in (list(range(safe)), list(range(safe + 1)))
            crashes += 1
    assert crashes > 50


def test_whatever_operation_fails_the_rows_before_it_stay() -> None:
    failures = 0
    for number in range(100):
        env = FaultyEnv()
        table = TableFolder(env, FOLDER, SCHEMA)
        table.write(rows(0))
        env.faults[len(env.operations) + number] = "ENOSPC"
        try:
            table.write(rows(1))
        except StorageError:
            failures += 1
        assert numbers(env) in ([0], [0, 1])
    assert failures > 3


def batch(*values: tuple[int, str | None]) -> pa.RecordBatch:
    """Rows of `SCHEMA`."""
    return as_batch(pa.struct(list(SCHEMA)), values)


def test_rows_wait_for_each_other_but_not_too_long(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        table = TableFolder(Env(), tmp_path / "t", SCHEMA)
        buffer = RowBuffer(table, pool, 1_000_000, 60.0)
        for number in range(0, 2500, 10):
            buffer.add(batch(*((each, "u") for each in range(number, number + 10))))
        buffer.tick(100.0)
        buffer.tick(159.0)
        assert table.parts() == []
        buffer.tick(160.0)
        buffer.wait()
        assert numbers(Env(), tmp_path / "t") == list(range(2500))
        buffer.tick(1000.0)
        assert len(table.parts()) == 1


def test_rows_beyond_the_memory_are_written_at_once_and_errors_come_out(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        table = TableFolder(Env(), tmp_path / "t", SCHEMA)
        buffer = RowBuffer(table, pool, 100_000, 60.0)
        for number in range(0, 30_000, 100):
            buffer.add(batch(*((each, "some words") for each in range(number, number + 100))))
        buffer.wait()
        assert table.parts() == []  # they are in a file that is not complete
        assert [path.suffix for path in (tmp_path / "t").iterdir()] == [".new"]
        buffer.write()
        buffer.wait()
        assert numbers(Env(), tmp_path / "t") == list(range(30_000))
        (part,) = table.files()
        groups = pq.ParquetFile(part).metadata
        assert groups.num_row_groups >= 5
        assert max(groups.row_group(n).num_rows for n in range(groups.num_row_groups)) < 10_000
        env = FaultyEnv()
        env.kinds["sync"] = "EIO"
        buffer = RowBuffer(TableFolder(env, FOLDER, SCHEMA), pool, 100_000, 60.0)
        buffer.add(batch((1, "u")))
        buffer.write()
        for _ in range(2):  # nothing may be committed from then on
            with pytest.raises(StorageError, match="cannot sync"):
                buffer.wait()


def test_a_large_file_is_completed_while_rows_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.tables._LARGE", 20_000)
    with ThreadPoolExecutor(1) as pool:
        table = TableFolder(Env(), tmp_path / "t", SCHEMA)
        buffer = RowBuffer(table, pool, 100_000, 60.0)
        for number in range(0, 30_000, 100):
            buffer.add(batch(*((each, "some words") for each in range(number, number + 100))))
        buffer.wait()
        assert len(table.parts()) > 1
        buffer.write()
        buffer.wait()
        assert numbers(Env(), tmp_path / "t") == list(range(30_000))


def test_merging_holds_a_row_group_at_a_time(tmp_path: Path) -> None:
    table = TableFolder(Env(), tmp_path / "t", SCHEMA, group_bytes=200_000)
    for number in range(0, 60_000, 10_000):
        table.write(
            pa.Table.from_batches([batch(*((n, "some words") for n in range(number, number + 10_000)))])
        )
    table.compact()
    (part,) = table.files()
    groups = pq.ParquetFile(part).metadata
    assert numbers(Env(), tmp_path / "t") == list(range(60_000))
    assert 4 < groups.num_row_groups < 20


def test_a_text_that_is_not_unicode_costs_only_its_bad_characters(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        table = TableFolder(Env(), tmp_path / "t", SCHEMA)
        buffer = RowBuffer(table, pool, 100_000, 60.0)
        buffer.add(batch((1, "good"), (2, "half \ud800"), (3, None)))
        buffer.write()
        buffer.wait()
    assert table.read()["url"].to_pylist() == ["good", "half ?", None]


def test_links_get_the_domains_of_both_ends(tmp_path: Path) -> None:
    urls = [b"http://a.example.com/", b"http://b.example.org/x", b"http://example.com/y"]
    links = UrlBatch.of(urls, key=[5, 6, 7], host_key=[1, 2, 3], pld_key=[8, 9, 8], depth=1)
    linking = [
        {
            "source": 11,
            "source_domain": "home.net",
            "first": 0,
            "count": 3,
            "anchors": [None, "B’s own", None],
        },
        {"source": 12, "source_domain": "home.net", "first": 3, "count": 0},
        {"source": 13, "source_domain": "other.net", "first": 4, "count": 1, "outside": ["http://c.net/"]},
    ]
    with ThreadPoolExecutor(1) as pool:
        table = TableFolder(Env(), tmp_path / "links", SCHEMAS["links"])
        asked = []

        def domain_of(url: str) -> str:
            asked.append(url)
            return ".".join(url.split("/")[2].split(".")[-2:])

        buffer = LinkBuffer(table, pool, 100_000, 60.0, domain_of, KeyMaker(7))
        # A page whose links count, but not for the table, lies between the two.
        harvest = UrlBatch.join([links, links.slice(0, 1), links.slice(1, 2)])
        buffer.add(as_batch(pa.struct(list(LINKING_SCHEMA)), linking), harvest)
        buffer.add(as_batch(pa.struct(list(LINKING_SCHEMA)), linking[1:2]), UrlBatch.of([]))
        buffer.write()
        buffer.wait()
    found = [tuple(row.values()) for row in table.read().to_pylist()]
    assert found == [
        (11, 5, "home.net", "example.com", urls[0].decode(), None, True),
        (11, 6, "home.net", "example.org", urls[1].decode(), "B’s own", True),
        (11, 7, "home.net", "example.com", urls[2].decode(), None, True),
        (13, 6, "other.net", "example.org", urls[1].decode(), None, True),
        (13, KeyMaker(7).of("http://c.net/"), "other.net", "c.net", "http://c.net/", None, False),
    ]
    assert len(asked) == 3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**63), max_size=100, unique=True), st.integers(1, 12), st.integers(0, 3))
def test_places_of_payloads_are_all_found_whatever_was_written_when(
    keys: list[int], most: int, reopened: int
) -> None:
    env = FaultyEnv()
    payloads = Payloads(env, Path("/a"), "pages", most)
    places = {key | 1: number for number, key in enumerate(keys)}
    for number, key in enumerate(keys):
        payloads.put(key, number)
        if reopened and number % 30 == reopened:
            payloads.spill()
            Payloads(env, Path("/a"), "robots", most).put(key, 10**6)
            payloads = Payloads(env, Path("/a"), "pages", most)
            assert payloads.until == number
    for key in keys:
        assert payloads.find(key) == places[key | 1]
    assert payloads.find(2**64 - 2) == -1
    runs = [name for name in env.list(Path("/a/payloads")) if name.startswith("pages")]
    assert len(runs) <= 2 + len(keys).bit_length()


def test_a_crash_while_payloads_are_noted_loses_none_that_were_noted_before() -> None:
    env = FaultyEnv()
    payloads = Payloads(env, Path("/a"), "pages", 4)
    for number in range(40):
        payloads.put(number << 40, number)
    for _, disk in env.crashes():
        crashed = FaultyEnv(disk.after_power_loss("keep", Random(0)))
        again = Payloads(crashed, Path("/a"), "pages", 4)
        assert all(again.find(number << 40) == number for number in range(again.until + 1))
