"""What frontiers hold when their crawl is divided anew: nothing is lost, and everything has the owner of its slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.core.events import Seal, Sealed
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.batches import NAME, batch_name
from barkspider.frontier.dividing import Dividing, _waiting
from barkspider.frontier.gate import form
from barkspider.frontier.ownership import slot_of
from barkspider.frontier.politeness.pauses import HostPace
from barkspider.frontier.source import Found
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url.partition import by_hash
from tests.frontier.virtual import VirtualWeb, batch, random_web, row

LATER = 1000.0
KINDS = ("irlbot", "irlbot site", "irlbot url", "irlbot backlinks", "sydney", "sydney url", "sydney-disk")
SLOTS = {"domain": "pld_key", "site": "host_key", "url": "key"}


def settings_of(kind: str, processes: int = 1, part: int = 0, **more: Any) -> Settings:
    name, _, chosen = kind.partition(" ")
    frontier, _, seen = name.partition("-")
    names = {
        "frontier": frontier,
        "order": chosen if chosen == "backlinks" else "budget",
        "parallel.partition": chosen if chosen in SLOTS else "domain",
        "sydney.seen": seen or "memory",
        "seed": 1,
        "memory": "64MB",
        "sydney.sample": 2,
    }
    names |= {
        "budget.base": 2,
        "politeness.scale_by_budget": True,
        "limits.site_urls": 1000,
        "fetch.in_flight": 1,
    }
    return load_settings(overrides=names | {"parallel.processes": processes, "parallel.part": part} | more)


class Job:
    """The folder of a frontier, which is opened again and again."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings

    def open(self, now: float | None = LATER) -> Driver:
        """As of the last commit."""
        self._store = Store.open(Env(), self.folder)
        frontier = open_frontier(
            self.settings,
            Env(),
            self.folder,
            state=self._store.state,
            resumed=now,
            background=False,
            part=True,
        )
        for structure in frontier.structures():
            self._store.add(structure)
        return frontier

    def commit(self, frontier: Driver) -> None:
        """Keep what it holds."""
        self._store.commit()
        frontier.close()


Make = Callable[[int], list[Job]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, tmp_path: Path) -> Make:
    """Makes the jobs of so many processes."""
    generations = 0

    def made(count: int) -> list[Job]:
        nonlocal generations
        generations += 1
        home = tmp_path / str(generations)
        return [Job(home / f"part-{part:04d}", settings_of(kind, count, part)) for part in range(count)]

    return made


def half_crawled(job: Job) -> None:
    """A crawl that was stopped in the middle, with URLs everywhere."""
    web = VirtualWeb(random_web(hosts=12, pages=300, links=12, seed=3))
    frontier = job.open(None)
    web.run(frontier, batch("http://h0.example/0"), until=30.0)
    assert not frontier.finished()
    job.commit(frontier)


def divided(old: list[Job], new: list[Job]) -> list[int]:
    """Hand on all that the old ones hold; how many rows were moved, lot by lot."""
    moved = list[int]()
    heirs = [job.open() for job in new]
    dividing = Dividing(heirs, new[0].settings, moved.append)
    for job in old:
        frontier = job.open()
        frontier.holdings[1].complete(LATER)
        dividing.take(frontier)
        frontier.close()
    dividing.finish()
    for job, heir in zip(new, heirs, strict=True):
        heir.validate()
        job.commit(heir)
    return moved


def things(job: Job) -> Counter[tuple[Any, ...]]:
    """All that a frontier holds, one by one, with its place and what goes with it."""
    found = Counter[tuple[Any, ...]]()
    frontier = job.open()
    gate, source = frontier.holdings
    source.complete(LATER)
    for lot in chain(source.lots(), _waiting(gate.delays)):
        values = [None] * len(lot.keys) if lot.values is None else np.asarray(lot.values).tolist()
        rows = lot.urls.rows() if len(lot.urls) else lot.keys.tolist()
        if lot.shared and slot_of(job.settings.parallel) != "pld_key":
            continue  # what is known of a domain is for all who have URLs of it
        keys = getattr(lot.urls, slot_of(job.settings.parallel)) if len(lot.urls) else lot.keys
        assert (by_hash(keys, job.settings.parallel.processes) == job.settings.parallel.part).all()
        place = 0 if lot.kind == "left over" else lot.place  # how many queues there are
        found.update((lot.kind, place, each, str(value)) for each, value in zip(rows, values, strict=True))
    frontier.close()
    return found


def test_nothing_is_lost_however_often_a_crawl_is_divided(make: Make, kind: str) -> None:
    (first,) = make(1)
    half_crawled(first)
    frontier = first.open()
    frontier.holdings[1].complete(LATER)
    before = frontier.counters
    frontier.close()
    three, two, (last,) = make(3), make(2), make(1)
    held = things(first)
    kinds = {"irlbot": {"seen", "star/edges", "star/indegree"}, "sydney": {"seen", "P", "S"}}
    waiting = {"irlbot backlinks": {"backlinks", "window"}, "irlbot": {"turn"}}.get(kind, set())
    assert {name for name, *_ in held} >= kinds[kind[:6]] | waiting
    moved = divided([first], three)
    assert sum(moved) >= held.total()
    assert sum((things(job) for job in three), Counter()) == held
    assert all(things(job).total() > 10 for job in three)
    counters = []
    for job in three:
        frontier = job.open()
        assert frontier.counters.balanced()
        counters.append(frontier.counters)
        frontier.close()
    for name in ("discovered", "pages", "deferred", "dropped", "ahead"):
        assert sum(getattr(each, name) for each in counters) == getattr(before, name), name
    divided(three, two)
    divided(two, [last])
    assert things(last) == held


def test_what_is_in_ram_goes_with_its_urls_or_hosts(make: Make, kind: str) -> None:
    (old,) = make(1)
    frontier = old.open()
    gate, _ = frontier.holdings
    urls = [f"http://www.d{number}.example/" for number in range(20)]
    rows = [row(url) for url in urls]
    gate.counters.discovered += len(rows)
    for each in rows:
        gate.shares.count(each)
        gate.put_off(LATER + 5, each, (77, each.key), "retry")
    gate.add_done(rows[3])
    gate.counters.ahead, gate.counters.pages = 1, 1
    pace = HostPace()
    pace.trouble, pace.next_time = 4, LATER + 500
    for each in rows:
        gate.ready.restore(each.host_key, pace, 2, each.pld_key)
    lost = row("http://nobody.example/")
    gate.ready.restore(lost.host_key, pace, 0)  # by a checkpoint that does not tell its domain
    gate.done[form(lost, slot_of(old.settings.parallel))] += 1  # which is in no queue
    gate.counters.ahead, gate.counters.pages = 2, 2
    gate.write_off()
    gate.validate()
    assert frontier.exchange is not None
    assert frontier.exchange.sorting.census is not None
    frontier.exchange.sorting.census.fetched.add(np.array([each.key for each in rows], np.uint64))
    old.commit(frontier)
    new = make(4)
    divided([old], new)
    fetched, came_up = Counter[int](), Counter[int]()
    for part, job in enumerate(new):
        heir = job.open()
        gate, _ = heir.holdings
        slot = slot_of(job.settings.parallel)
        own = [each for each in rows if _is_of(getattr(each, slot), part)]
        assert own
        assert all(gate.trails.pop(each.key) == (77, each.key) for each in own)
        done = [each for each in (rows[3], lost) if _is_of(getattr(each, slot), part)]
        assert gate.done == Counter(form(each, slot) for each in done)
        counts = gate.shares.counters()
        for each in rows:
            came_up[each.host_key] += counts["hosts"][each.host_key]
        assert counts["hosts ahead"] == Counter(each.host_key for each in own if each == rows[3])
        hosts = {host.key: host for host in gate.ready.hosts()}
        known = {each.host_key for each in (rows if slot == "key" else own)}
        assert hosts.keys() - {lost.host_key} == known
        assert lost.host_key in hosts or slot == "host_key"
        assert all((host.trouble, host.next_time) == (4, LATER + 500) for host in hosts.values())
        assert sum(len(urls) for _, urls in gate.delays.drain()) == len(own) == gate.counters.deferred
        assert heir.exchange is not None
        assert heir.exchange.sorting.census is not None
        fetched.update(heir.exchange.sorting.census.fetched.keys)
        heir.close()
    assert fetched == Counter(each.key for each in rows), "in two of them it would count as fetched twice"
    everybody = 4 if slot == "pld_key" else 1  # nobody can tell the domain of a host's key
    assert came_up == Counter({each.host_key: everybody for each in rows})


def _is_of(domain: int, part: int) -> bool:
    return bool(by_hash(np.array([domain], np.uint64), 4)[0] == part)


def test_what_was_under_way_between_parts_arrives(make: Make, kind: str) -> None:
    old, new = make(2), make(3)
    sender = old[0].open()
    assert sender.exchange is not None
    slot = slot_of(old[0].settings.parallel)
    owners = {each: by_hash(np.array([getattr(each, slot)], np.uint64), 2)[0] for each in _rows()}
    page = next(each for each, owner in owners.items() if owner == 0)
    others = [each for each, owner in owners.items() if owner == 1]
    redirected = others[0]._replace(flags=int(Flag.REDIRECT))
    sender.holdings[0].trails.put(redirected.key, (page.key,))
    links = batch(*(each.url.decode() for each in (*others[1:], others[1], others[1])))
    sender.exchange.sorting.split(
        [Found(page, links), Found(page, batch(redirected.url.decode()), target=redirected)], 0.0
    )
    sender.exchange.seal(Sealed(Seal(1, 1)), 1)
    old[0].commit(sender)
    receiver = old[1].open()
    old[1].commit(receiver)
    heirs = [job.open() for job in new]
    dividing = Dividing(heirs, new[0].settings)
    for job in old:
        frontier = job.open()
        dividing.take(frontier)
        frontier.close()
    dividing.finish()
    dividing.deliver(Env(), old[0].folder / NAME / batch_name(1, 1))
    totals = sum((Counter(heir.exchange.totals()) for heir in heirs if heir.exchange is not None), Counter())
    assert (totals["sent"], totals["received"], totals["batches"]) == (len(others), len(others), 1)
    for job, heir in zip(new, heirs, strict=True):
        job.commit(heir)
    found = sum((things(job) for job in new), Counter())
    waiting = {each.url for kind, _, each, _ in found if kind in ("turn", "P", "S")}
    assert waiting == {each.url for each in others}
    if kind in ("irlbot", "irlbot backlinks"):  # links are edges, redirects are none
        assert sum(kind == "star/edges" for kind, *_ in found) == len(others) - 1
    linked = Counter(value for kind, *_, value in found if kind == "backlinks")
    assert linked == ({"3": 1, "1": len(others) - 1} if kind == "irlbot backlinks" else {})


def _rows() -> Iterator[Any]:
    return (row(f"http://d{number}.example/") for number in range(30))
