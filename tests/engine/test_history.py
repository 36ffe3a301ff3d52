"""The time series of a crawl: bounded, true to the counters, and there after the crawl was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.core.errors import StorageError
from barkspider.engine import resume
from barkspider.engine.checkpoint import Checkpoint
from barkspider.engine.folder import events
from barkspider.engine.history import KEPT, History, is_kept, read_history
from barkspider.engine.samples import GROUPS, SCHEMA, Samples
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store


def options(served, *more: str):
    chosen = served.settings() | {
        "politeness.host_delay": "10ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "memory": "64MB",
        "checkpoint": "200ms",
    }
    return load_settings(options=[*(f"{name}={value}" for name, value in chosen.items()), *more])


def numbers(history: History) -> list[int]:
    return [int(row[0]) for row in history._rows]


def test_thinning_keeps_what_it_says_and_is_bounded(tmp_path: Path) -> None:
    history = History(Env(), tmp_path, None)
    for number in range(6000):
        history.add({"time": number})
    kept = numbers(history)
    assert kept == [number for number in range(6000) if is_kept(number, 5999)]
    assert kept[-KEPT:] == list(range(6000 - KEPT, 6000))
    assert kept[0] == 0
    # However long a crawl runs: half of `KEPT` for each doubling of its length.
    year = 365 * 86400
    levels = range(year.bit_length())
    most = sum(min(KEPT << level, year) // (2 << level) + 1 for level in levels)
    assert most < 3500
    assert len(kept) < KEPT + KEPT // 2 * 6


def test_what_was_committed_comes_back_and_the_next_run_goes_on(tmp_path: Path) -> None:
    env = Env()
    store, history = Store.open(env, tmp_path), History(env, tmp_path, None)
    store.add(history)
    history.add({"time": 1.5, "pages": 7})
    history.add({"time": 2.5, "pages": 9, "failed.dns": 2})
    store.commit()
    history.add({"time": 3.5, "pages": 11})  # which no checkpoint has

    found = read_history(env, tmp_path)
    assert found.column("pages").tolist() == [7, 9]
    assert found.column("failed.dns").tolist() == [0, 2]
    again = History(env, tmp_path, Store.open(env, tmp_path).state("history"))
    again.add({"time": 9.0, "pages": 12})
    assert [row[:2].tolist() for row in again._rows] == [[0, 1], [1, 1], [2, 2]]
    since = again.since(int(found.column("number")[-1]))
    joined = found.joined(Samples.of(since["names"], since["rows"]))
    assert joined.column("pages").tolist() == [7, 9, 12]
    assert joined.rate("pages").tolist() == [0, 2, 0]  # what happened between two runs is no rate


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    env = Env()
    store, history = Store.open(env, tmp_path), History(env, tmp_path, None)
    store.add(history)
    history.add({"time": 1.0})
    store.commit()
    (file,) = (tmp_path / "history").iterdir()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(StorageError, match=r"\.snapshot is damaged"):
        read_history(env, tmp_path)


def test_a_table_has_a_column_for_each_number_and_pairs_for_each_group() -> None:
    samples = Samples.of(
        ["time", "number", "pages", "failed.dns", "failed.timeout"], [[1.25, 0, 3, 1, 2], [2.0]]
    )
    table = samples.table()
    assert table.schema == SCHEMA
    assert table["pages"].to_pylist() == [3, 0]
    assert table["failed"].to_pylist()[0] == [("dns", 1.0), ("timeout", 2.0)]
    assert table["queues"].to_pylist() == [[], []]
    assert str(table["time"][0].as_py()) == "1970-01-01 00:00:01.250000"
    assert Samples.empty().table().num_rows == 0


def test_the_history_of_a_crawl_agrees_with_its_counters_and_goes_on_after_a_resume(tmp_path: Path) -> None:
    job = tmp_path / "job"
    with running_web(WebSpec(seed=3, pages=120, page_bytes=2_000)) as served:
        first = crawl(served.web.seeds(2), job, options(served, "limits.pages=25"))
        second = resume(job, ["limits.pages=60"])
    env = Env()
    found = read_history(env, job)
    checkpoint = Checkpoint.read(env, job)
    assert checkpoint is not None
    assert found.last("pages") == second.pages == checkpoint.counters(env, job).pages
    runs = found.column("run")
    assert found.column("pages")[runs == 1][-1] == first.pages
    assert set(runs) == {1, 2}
    assert (found.column("pages")[1:] >= found.column("pages")[:-1]).all()
    # What waits in queues is what the counters say waits, or more: rows that are not known to be new.
    assert found.last("queues.ready") == second.queued
    names = {name.partition(".")[0] for name in found.names}
    assert names & set(GROUPS) >= {"queues", "drums", "ram", "ram_share", "phases"}
    assert {"Q_1", "Q_F", "Q_R", "Q_L", "Q_D", "Q_W"} <= set(found.group("queues"))
    ended = [event for event in events(job) if event["event"] == "ended"][-1]
    seen = ended["drum"]["seen"]
    drums = found.group("drums")
    assert drums["seen.unique"][-1] == seen["unique"]
    assert drums["seen.merge_microseconds"][-1] > 0
    assert found.last("rss") > 10_000_000
    assert found.last("disk_free") > 0

    rows = (
        open_job(job)
        .query(
            "SELECT max(pages) AS pages, max(drums['seen.moved']) AS moved, count(DISTINCT run) AS runs FROM history"
        )
        .to_pylist()
    )
    assert rows == [{"pages": second.pages, "moved": drums["seen.moved"][-1], "runs": 2}]
