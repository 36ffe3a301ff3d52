"""Batches by links to files, acknowledgements, ranks, and turns that several processes share."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np

from barkspider.core.load import load_settings
from barkspider.core.settings import Settings
from barkspider.frontier.batches import NAME, batch_name, inbox
from barkspider.model.budgets import Distribution
from barkspider.parallel.post import Post
from barkspider.parallel.turns import Turns
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import write_snapshot


def settings(part: int) -> Settings:
    return load_settings(options=["parallel.processes=2", f"parallel.part={part}", "seed=7"])


def posts(job: Path) -> tuple[Post, Post]:
    job.mkdir(exist_ok=True)
    one, two = (Post(Env(), job / f"part-{part:04d}", settings(part)) for part in (0, 1))
    return one, two


def made(job: Path, number: int) -> Path:
    folder = job / "part-0000" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / batch_name(1, number)
    write_snapshot(Env(), path, {"scope": [f"http://{number}.example/"]}, {})
    return path


def test_batches_arrive_in_order_and_once(tmp_path: Path) -> None:
    one, two = posts(tmp_path / "job")
    for number in (1, 2, 3):
        made(tmp_path / "job", number)
    one.deliver([(1, 1), (1, 3)])
    assert [batch.number for batch in two.arrived([0, 0])] == [1]
    one.deliver([(1, 1), (1, 2), (1, 3)])  # once more, as after a restart
    found = two.arrived([0, 0])
    assert [(batch.sender, batch.number) for batch in found] == [(0, 1), (0, 2), (0, 3)]
    assert two.scope_of(found[1]) == ["http://2.example/"]
    assert two.arrived([2, 0]) == found[2:]
    one.close(), two.close()


def test_what_is_acknowledged_is_gone_and_not_sent_again(tmp_path: Path) -> None:
    one, two = posts(tmp_path / "job")
    made(tmp_path / "job", 1)
    one.deliver([(1, 1)])
    two.acknowledge([1, 0])
    assert one.acknowledged() == [0, 1]
    one.deliver([(1, 1)])
    assert two.arrived([0, 0]) == []
    one.close(), two.close()


def test_what_arrived_outlives_the_copy_of_its_sender(tmp_path: Path) -> None:
    one, two = posts(tmp_path / "job")
    path = made(tmp_path / "job", 1)
    one.deliver([(1, 1)])
    before = two.arrived([0, 0])
    path.unlink()
    assert two.arrived([0, 0]) == before
    assert (inbox(path.parents[1], 1) / batch_name(0, 1)).exists()
    one.close(), two.close()


def test_ranks_of_others_are_told_when_they_are_new(tmp_path: Path) -> None:
    one, two = posts(tmp_path / "job")
    assert two.ranks() is None
    one.publish(Distribution(np.array([1, 5]), np.array([7, 1])))
    found = two.ranks()
    assert found is not None
    assert (found.degrees.tolist(), found.counts.tolist()) == ([1, 5], [7, 1])
    assert two.ranks() is None
    one.publish(Distribution(np.array([2, 5]), np.array([7, 1])))
    assert two.ranks() is not None
    assert one.ranks() is None
    one.close(), two.close()


def test_a_turn_is_one_process_s_until_it_rests_or_its_lease_ends(tmp_path: Path) -> None:
    now = [1000.0]
    one, two = (Turns(tmp_path / "turns", 7, 60.0, lambda: now[0]) for _ in range(2))
    assert one.take("192.0.2.1") == 0.0
    assert 0 < two.take("192.0.2.1") < 1  # soon enough to see how long it will rest
    one.rest("192.0.2.1", 3.0)
    assert two.take("192.0.2.1") == 3.0
    now[0] += 3.0
    assert two.take("192.0.2.1") == 0.0
    now[0] += 59.0
    assert one.take("192.0.2.1") > 0
    now[0] += 1.0  # whoever had it has died
    assert one.take("192.0.2.1") == 0.0
    one.close(), two.close()


def test_many_addresses_have_a_turn_each(tmp_path: Path) -> None:
    now = [1000.0]
    turns = Turns(tmp_path / "turns", 7, 60.0, lambda: now[0])
    addresses = [f"192.0.{number // 256}.{number % 256}" for number in range(5_000)]
    assert all(turns.take(address) == 0.0 for address in addresses)
    assert all(turns.take(address) > 0.0 for address in addresses)
    now[0] += 61.0
    assert all(turns.take(address) == 0.0 for address in reversed(addresses))
    turns.close()


def _take_many(path: str, taken: multiprocessing.Queue[int]) -> None:
    turns = Turns(Path(path), 7, 60.0)
    taken.put(sum(turns.take(f"192.0.2.{number % 250}") == 0.0 for number in range(2_000)))


def test_processes_that_race_for_turns_get_each_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    taken: multiprocessing.Queue[int] = context.Queue()
    racers = [context.Process(target=_take_many, args=(str(tmp_path / "turns"), taken)) for _ in range(3)]
    for racer in racers:
        racer.start()
    counts = [taken.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join()
    assert sum(counts) == 250
