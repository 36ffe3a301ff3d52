"""An archive after a crash at any moment: every journalled row once, every journalled exchange, no other."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from barkspider.archive import WarcFile, count_kept, open_table, recover, warc_files
from barkspider.archive.cdxj import index_lines, index_name
from barkspider.archive.reader import warc_number
from barkspider.archive.verify import verify_archive
from barkspider.archive.views import ask
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.archive.journalled import KEYS, Crawl, Journalled, check_warcs
from tests.storage.faulty import FaultyEnv

JOB = Path("/job")
SMALL = {"warc_size": "2KB", "recent_digests": 0, "duplicates": False}


def work(crawl: Crawl, steps: int, random: Random) -> list[int]:
    """Some outcomes, applied now and then, and commits; how many operations were done at each journal record."""
    marks = []
    env = crawl.env
    assert isinstance(env, FaultyEnv)
    for number in range(steps):
        random.choice((crawl.page, crawl.page, crawl.page, crawl.robots, crawl.error))(number)
        marks.append(len(env.operations))
        if random.random() < 0.5:
            crawl.apply()
        if random.random() < 0.2:
            crawl.archive.tick(100.0 * number)
        if number % 5 == 4:
            crawl.store.commit()
    return marks


@pytest.fixture(autouse=True)
def merging_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barkspider.archive.tables._MANY", 3)


def survivor(disk: Any, how: str, random: Random, journal: list[Journalled], **chosen: Any) -> Crawl:
    """The crawl that goes on, checked before and after it has replayed the journal."""
    env = FaultyEnv(disk.after_power_loss(how, random))
    crawl = Crawl(env, JOB, journal, **SMALL, **chosen)
    names = env.list(crawl.archive_folder)
    assert not [name for name in names if name.endswith((".open", ".new"))]
    crawl.apply()
    crawl.check()
    return crawl


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_after_a_kill_at_any_moment_everything_journalled_is_there_once(compression: str) -> None:
    env, random = FaultyEnv(), Random(compression)
    crawl = Crawl(env, JOB, **SMALL, compression=compression)
    marks = work(crawl, 11, random)
    crawl.close()
    # What the packing changes shows in a part of the moments.
    for done, disk in islice(env.crashes(), 0, None, 1 if compression == "gzip" else 5):
        journal = crawl.journal[: sum(mark <= done for mark in marks)]
        assert survivor(disk, "keep", random, journal, compression=compression).journal == journal


def test_after_a_power_loss_what_counts_of_the_journal_is_there_once() -> None:
    env, random = FaultyEnv(), Random(1)
    crawl = Crawl(env, JOB, **SMALL)
    marks = work(crawl, 13, random)
    crawl.close()
    lost = 0
    for done, disk in islice(env.crashes(), 0, None, 2):
        journal = crawl.journal[: sum(mark <= done for mark in marks)]
        after = survivor(disk, random.choice(("drop", "random")), random, journal)
        lost += len(journal) - len(after.journal)
    assert lost > 5


def test_a_crash_during_or_after_recovery_is_a_crash_like_any_other() -> None:
    env, random = FaultyEnv(), Random(2)
    crawl = Crawl(env, JOB, **SMALL)
    work(crawl, 8, random)
    crashes = 0
    for how in ("keep", "random", "random"):
        again = env.crash(how, random)
        second = Crawl(again, JOB, crawl.journal, **SMALL)
        begun = len(second.journal)
        marks = work(second, 5, random)
        for done, disk in islice(again.crashes(), 0, None, 6):
            journal = [
                *second.journal[:begun],
                *second.journal[begun:][: sum(mark <= done for mark in marks)],
            ]
            after = survivor(disk, ("keep", "random")[done % 2], random, journal)
            after.page(99)
            after.close()
            after.check()
            crashes += 1
    assert crashes > 20


@pytest.mark.parametrize("forgotten", ["sync", "sync_folder"])
def test_a_missing_sync_would_be_noticed(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.storage.faulty.FaultyCalls." + forgotten, lambda calls, _: None)
    env, random = FaultyEnv(), Random(4)
    crawl = Crawl(env, JOB, **SMALL)
    marks = work(crawl, 18, random)
    with pytest.raises((AssertionError, StorageError, pa.ArrowInvalid)):  # noqa: PT012 - whichever shows it
        for done, disk in env.crashes():
            survivor(disk, "random", random, crawl.journal[: sum(mark <= done for mark in marks)])


def test_only_committed_files_are_merged_while_the_crawl_runs(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **SMALL)
    table = open_table(Env(), crawl.archive_folder, "pages")
    for number in range(3):
        crawl.page(number)
        crawl.apply()
        crawl.archive.prepare()()
    assert [part.name for part in table.parts()] == [f"00000{n}-00000{n}.parquet" for n in range(3)]
    crawl.store.commit()
    crawl.page(3)
    crawl.apply()
    crawl.archive.prepare()()
    assert [part.name for part in table.parts()] == ["000000-000002.parquet", "000003-000003.parquet"]
    again = Crawl(Env(), tmp_path, crawl.journal, **SMALL)
    assert [part.name for part in table.parts()] == ["000000-000002.parquet"]
    again.apply()
    again.check()
    (table.folder / "000002-000003.parquet").touch()
    with pytest.raises(StorageError, match="merged beyond the last commit: write 2"):
        Crawl(Env(), tmp_path, again.journal, **SMALL)


def test_a_file_completed_behind_the_last_journalled_place_is_cut(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **{**SMALL, "warc_size": "1GB"})
    for number in range(3):
        crawl.page(number)
    crawl.apply()
    crawl.store.commit()
    crawl.archive.close()  # which completes the file and makes the index
    folder = crawl.archive_folder
    (warc,) = warc_files(Env(), folder)
    state = Store.open(Env(), tmp_path).state("kept")
    recovered = recover(Env(), folder, state, crawl.journal[1].warc_ends)
    assert (
        recovered.warc_ends["pages"]
        == (warc.name, warc.stat().st_size)
        == crawl.journal[1].warc_ends["pages"]
    )
    assert not (folder / "index.cdxj").exists()
    check_warcs(Env(), folder, [row for entry in crawl.journal[:2] for row in entry.rows])


def test_a_power_loss_while_a_complete_file_is_cut_leaves_no_line_of_what_is_gone() -> None:
    env, random = FaultyEnv(), Random(5)
    crawl = Crawl(env, JOB, **{**SMALL, "warc_size": "1GB"})
    for number in range(4):
        crawl.page(number)
    crawl.close()
    again, folder = env.crash("keep", random), crawl.archive_folder
    state = Store.open(again, JOB).state("kept")
    recover(again, folder, state, crawl.journal[1].warc_ends)
    for _, disk in again.crashes():
        for _ in range(4):
            found = FaultyEnv(disk.after_power_loss("random", random))
            recover(found, folder, state, crawl.journal[1].warc_ends)
            check_warcs(found, folder, [row for entry in crawl.journal[:2] for row in entry.rows])
            assert "index.cdxj" not in found.list(folder)


def test_earlier_files_that_a_failing_disk_left_open_are_completed_or_removed(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **SMALL)
    for number in range(9):
        crawl.page(number)
    crawl.apply()
    crawl.close()
    first, second, *_ = warc_files(Env(), crawl.archive_folder)
    whole = first.read_bytes()
    with WarcFile(Env(), second) as file:
        info = next(iter(file)).end
    for path, data in ((first, whole + b"torn"), (second, second.read_bytes()[: info + 3])):
        path.with_suffix(".gz.open").write_bytes(data)
        path.unlink()
        (path.parent / index_name(path.name)).unlink()
    Crawl(Env(), tmp_path, crawl.journal, **SMALL)
    assert first.read_bytes() == whole
    assert (first.parent / index_name(first.name)).read_bytes() == b"".join(index_lines(Env(), first))
    assert not list(second.parent.glob(f"{second.name}*"))


def test_damage_within_a_file_costs_none_of_what_lies_behind_it(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **SMALL)
    crawl.page(1)
    crawl.apply()
    crawl.store.commit()
    (warc,) = warc_files(Env(), crawl.archive_folder)
    data = bytearray(warc.read_bytes())
    data[20] ^= 255  # within its first record
    warc.write_bytes(data)
    again = Crawl(Env(), tmp_path, crawl.journal, **SMALL)
    (closed,) = warc_files(Env(), crawl.archive_folder)
    assert (closed.name, closed.read_bytes()) == (warc.name.removesuffix(".open"), data)
    assert [problem.kind for problem in verify_archive(Env(), again.archive_folder)] == ["damage"]


def test_files_that_were_moved_away_are_missed_by_nobody(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **SMALL)
    for number in range(9):
        crawl.page(number)
    folder = crawl.archive_folder
    *closed, growing = warc_files(Env(), folder)
    assert len(closed) > 1
    assert growing.name.endswith(".open")
    for path in closed:
        path.unlink()
    places = [entry.warc_ends for entry in crawl.journal]
    assert count_kept(Env(), folder, None, places) == 9
    # The last one was never complete: if it is gone, so are its exchanges.
    growing.rename(tmp_path / "elsewhere")
    names = [place["pages"][0] for place in places]
    assert count_kept(Env(), folder, None, places) == names.index(names[-1]) > 0
    (tmp_path / "elsewhere").rename(growing)
    crawl.apply()
    crawl.close()
    for path in warc_files(Env(), folder):
        path.unlink()
    again = Crawl(Env(), tmp_path, crawl.journal, **SMALL)
    assert again.archive.warc_ends() == places[-1]
    again.page(9)
    (name, _) = again.archive.warc_ends()["pages"]
    assert name.endswith(f"-{len(closed) + 1:05d}.warc.gz")  # numbers go on
    again.close()
    index = (folder / "index.cdxj").read_text().splitlines()
    assert len(index) == 10


def test_an_ended_crawl_can_go_on_and_end_again(tmp_path: Path) -> None:
    chosen = {**SMALL, "duplicates": True, "table_memory": "100KB"}
    journal: list[Journalled] = []
    for turn in range(3):
        crawl = Crawl(Env(), tmp_path, journal, **chosen)
        assert crawl.journal == journal
        for number in range(4):
            crawl.page(10 * turn + number)
        crawl.page(0)  # again: no duplicate of itself
        crawl.page(100 + turn, content=3)
        crawl.robots(turn)
        crawl.close()
        journal = crawl.journal
        crawl.check()
        folder = crawl.archive_folder
        pages = ask(Env(), [folder], "SELECT url, duplicate_of FROM pages").to_pylist()
        assert len(pages) == 6 * (turn + 1)
        same = {row["url"]: row["duplicate_of"] for row in pages if row["duplicate_of"]}
        third = KEYS.of("http://a.example/3")
        assert same == {f"http://a.example/{100 + each}": third for each in range(turn + 1)}
        index = (folder / "index.cdxj").read_text().splitlines()
        assert index == sorted(index)
        assert len(index) == 7 * (turn + 1)
        for table in ("pages", "links", "domains"):
            assert len(open_table(Env(), folder, table).parts()) == 1
        domains = open_table(Env(), folder, "domains").read().to_pylist()
        assert sum(row["pages"] for row in domains) == len(pages)
        numbers = [warc_number(path.name) for path in warc_files(Env(), folder, "pages-")]
        assert sorted(numbers) == list(range(len(numbers)))


def test_an_end_without_a_commit_derives_nothing_that_recovery_would_take_back(tmp_path: Path) -> None:
    chosen = {**SMALL, "duplicates": True}
    crawl = Crawl(Env(), tmp_path, **chosen)
    crawl.page(0)
    crawl.apply()
    crawl.store.commit()
    crawl.page(1, content=0)
    crawl.apply()
    crawl.archive.close()
    again = Crawl(Env(), tmp_path, crawl.journal[:1], **chosen)  # a power loss took the end of the journal
    again.check()
    again.page(2, content=0)
    again.close()
    again.check()
    pages = ask(Env(), [again.archive_folder], "SELECT url, duplicate_of FROM pages ORDER BY url").to_pylist()
    assert [tuple(row.values()) for row in pages] == [
        ("http://a.example/0", None),
        ("http://a.example/2", KEYS.of("http://a.example/0")),
    ]
    assert list(verify_archive(Env(), again.archive_folder)) == []


def test_an_archive_that_was_never_committed_begins_anew(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **{**SMALL, "duplicates": True})
    crawl.page(1)
    crawl.apply()
    crawl.archive.close()
    recovered = recover(Env(), crawl.archive_folder, None)
    assert recovered == (None, {"pages": ("", 0), "robots": ("", 0)})
    assert not [path for path in crawl.archive_folder.rglob("*.*") if "seen" not in path.parts]
    again = Crawl(Env(), tmp_path, **{**SMALL, "duplicates": True})
    again.page(1)
    again.close()
    again.check()
