"""What every URL passes on its way into `Ready`: limits, what an earlier run has done, Q_W."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.core.records import Flag, UrlRow
from barkspider.frontier.decisions import RETRY
from barkspider.frontier.gate import Gate, form
from barkspider.storage.env import Env
from barkspider.url.partition import slots, slotted
from tests.frontier.virtual import batch, row

Make = Callable[..., Gate]
A, B = row("http://a.example/"), row("http://b.example/")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Make]:
    """Makes gates that have begun, with changed settings."""
    made = []

    def make(begun: bool = True, **changes: Any) -> Gate:
        names = {"seed": 1, **{name.replace("__", "."): value for name, value in changes.items()}}
        made.append(Gate(load_settings(overrides=names), Env(), tmp_path / str(len(made)), lambda _: None))
        made[-1].begun = begun
        return made[-1]

    yield make
    for each in made:
        each.validate()
        each.close()


def put(gate: Gate, row: UrlRow, now: float = 0.0) -> None:
    """A URL that was just discovered."""
    gate.counters.discovered += 1
    gate.put(row, now)


def test_a_url_goes_into_ready_with_the_redirects_that_led_to_it(gate: Make) -> None:
    here = gate()
    here.trails.put(A.key, (7, 8))
    put(here, A)
    put(here, B)
    assert [entry.trail for host in here.ready.hosts() for entry in host.queued_urls()] == [(7, 8), ()]
    assert (here.counters.queued, here.counters.deferred) == (2, 0)


def test_shares_of_sites_and_domains_are_counted_and_refused_beyond(gate: Make) -> None:
    here = gate(limits__site_urls=2, limits__domain_urls=3)
    urls = [f"http://{name}.example.com/{n}" for name in ("a", "b") for n in range(3)]
    admitted = []
    for found in batch(*urls).rows():
        here.counters.discovered += 1
        if here.admits(found, 0.0):
            admitted.append(found.url.decode())
            here.put(found, 0.0)
    assert admitted == [urls[0], urls[1], urls[3]]
    assert here.counters.refused == {"site_limit": 1, "domain_limit": 2}
    counts = here.shares.counters()
    assert sorted(counts["hosts"].values()) == [1, 2]  # one that its domain refused counts for nobody
    assert list(counts["domains"].values()) == [3]


def test_without_limits_nothing_is_counted(gate: Make) -> None:
    here = gate()
    assert all(here.admits(A, 0.0) for _ in range(10))
    assert not any(here.shares.counters().values())


@pytest.mark.parametrize("known", [False, True])
def test_a_share_is_neither_exceeded_nor_cut_short_by_a_crash(gate: Make, known: bool) -> None:
    """One URL of a site was fetched after the last checkpoint; it had come up by then, or it had not."""
    here = gate(limits__site_urls=2)
    first, second, third, done = batch(*(f"http://a.example/{n}" for n in range(4))).rows()
    if known:  # it is in Q_W then, or in RAM
        here.shares.count(done)
    here.counters.ahead += 1
    here.counters.pages += 1
    here.add_done(done)
    here.counters.discovered += 1
    if not known:
        assert here.admits(first, 0.0)
        here.put(first, 0.0)
        here.counters.discovered += 1
    assert not here.admits(second, 0.0)  # nobody can tell yet
    here.write_off()
    assert here.counters.refused == {}
    assert here.come_back(0.5).rows() == []
    here.counters.discovered += 1
    if not known:
        assert here.admits(done, 0.0)
    here.put(done, 0.0)
    assert here.counters.ahead == 0
    back = here.come_back(1.0).rows()
    assert back == ([second] if known else [])
    here.counters.deferred -= len(back)
    for each in back:
        here.put(each, 1.0)
    assert here.counters.refused == ({} if known else {"site_limit": 1})
    here.counters.discovered += 1
    assert not here.admits(third, 1.0)
    assert here.counters.refused == {"site_limit": 1 if known else 2}
    assert list(here.shares.counters()["hosts"].values()) == [2]
    assert not here.shares.counters()["hosts ahead"]


def test_what_is_done_is_dropped_once_in_its_form(gate: Make) -> None:
    here = gate()
    again = A._replace(tries=1)
    here.counters.ahead += 1
    here.counters.pages += 1
    here.add_done(again)
    put(here, A)
    assert (here.counters.queued, here.counters.ahead) == (1, 1)
    put(here, again._replace(flags=int(Flag.SEED)))  # how it was found is no form of its own
    assert (here.counters.queued, here.counters.ahead) == (1, 0)
    assert not here.done
    put(here, again)
    assert here.counters.queued == 2


def test_before_the_first_step_nothing_goes_into_ready(gate: Make) -> None:
    """The outcome of what is put may be yet to be replayed."""
    here = gate(begun=False)
    here.now = 5.0
    put(here, A, 5.0)
    put(here, B, 5.0)
    here.write_off()
    here.add_done(B)
    here.counters.pages += 1
    here.counters.ahead += 1
    here.validate()
    assert (here.counters.queued, here.counters.deferred) == (0, 2)
    here.begun = True
    back = here.come_back(5.0)
    here.counters.deferred -= len(back)
    for found in back.rows():
        here.put(found, 5.0)
    assert (here.counters.queued, here.counters.deferred, here.counters.ahead) == (1, 0, 0)


def test_forms_of_a_url_are_told_apart() -> None:
    forms = {form(A._replace(tries=tries, flags=flags)) for tries in (0, 1) for flags in (0, 16, 32, 128)}
    assert len(forms) == 8
    assert form(A) == form(A._replace(flags=int(Flag.SEED | Flag.LINKED)))


def test_what_is_done_tells_the_slots_of_domains() -> None:
    found = batch("http://www.a.example/1", "http://a.example/2", "http://b.example/3")
    keys = [form(each)[0] for each in found.rows()]
    assert keys == slotted(found.key, found.pld_key).tolist()
    assert [key % 4096 for key in keys] == slots(found.pld_key).tolist()


def test_what_is_put_off_comes_back_at_its_time(gate: Make) -> None:
    here = gate()
    assert here.next_time() == math.inf
    here.counters.discovered += 2
    here.put_off(40.0, A, (9,), RETRY)
    here.put_off(20.0, B, (), RETRY)
    assert here.next_time() == 20.0  # though it is not written yet
    assert len(here.come_back(50.0)) == 0
    here.write_off()
    assert here.next_time() == 20.0
    assert here.come_back(19.0).rows() == []
    assert here.come_back(30.0).rows() == [B]
    assert here.next_time() == 40.0
    assert here.counters.deferred == 2  # until it is put somewhere else
    here.counters.deferred -= 1
    here.put(B, 30.0)
    assert here.trails.pop(A.key) == (9,)


def test_only_some_come_back_at_once(gate: Make) -> None:
    here = gate()
    pages = batch(*(f"http://a.example/{n}" for n in range(4_500)), flags=Flag.AGAIN)
    here.put_again(pages, 3.0)
    assert (here.counters.discovered, here.counters.deferred) == (4_500, 4_500)
    assert [len(here.come_back(3.0)) for _ in range(4)] == [2_000, 2_000, 500, 0]


def test_a_gate_that_goes_on_leaves_every_host_alone_for_its_delay(gate: Make) -> None:
    here = gate(politeness__host_delay="7s")
    here.resume(100.0)
    put(here, A, 100.0)
    assert here.now == 100.0
    assert here.ready.next_time() == 107.0
