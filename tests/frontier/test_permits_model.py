"""robots.txt on disk against a few dictionaries: random operations, commits, reopenings and crashes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barkspider.frontier.robots.permit import Permit
from barkspider.url import RobotsRules
from tests.frontier.test_permits import opened, site, taken, urls
from tests.storage.faulty import FaultyEnv


@dataclass
class Model:
    """What a dict and a few sets know of all this."""

    now: float = 0.0
    checked: int = 0
    out: list[int] = field(default_factory=list)
    permits: dict[str, list[Permit]] = field(default_factory=dict)
    under_way: list[str] = field(default_factory=list)
    put_off: list[str] = field(default_factory=list)
    sites: list[int] = field(default_factory=list)


class Machine:
    """Permits and the model side by side."""

    def __init__(self) -> None:
        self.env, self.model = FaultyEnv(), Model()
        self.safe = copy.deepcopy(self.model)
        self.store, self.permits = opened(self.env, expiry=1e6, patience=5.0)

    def check(self, sites: list[int]) -> None:
        self.permits.check(urls(sites, self.model.checked))
        self.model.checked += len(sites)
        self.model.sites += sites

    def take(self) -> None:
        model = self.model
        for key, permit in taken(self.permits, model.now).items():
            assert permit in model.permits[site(model.sites[key])]
            model.out.append(key)
        assert self.permits.waiting == model.checked - len(model.out)

    def ask(self, most: int) -> None:
        model = self.model
        for name in self.permits.asks(most):
            assert name not in model.under_way + model.put_off
            known = model.permits.get(name, [])
            assert not known or known[-1].until <= model.now
            model.under_way.append(name)
        assert self.permits.asked == len(model.under_way)

    def learn(self, place: int, life: int) -> None:
        model = self.model
        waiting = model.under_way + model.put_off
        if waiting:
            name = waiting[place % len(waiting)]
            (model.under_way if name in model.under_way else model.put_off).remove(name)
            rules = RobotsRules([(False, f"/{life}")])
            permit = Permit.of(rules, model.now, model.now + life, unreachable=life % 2 == 1)
            model.permits.setdefault(name, []).append(permit)
            self.permits.learn(name, permit)

    def put_off(self, place: int) -> None:
        model = self.model
        if model.under_way:
            name = model.under_way.pop(place % len(model.under_way))
            model.put_off.append(name)
            self.permits.put_off(name)

    def commit(self) -> None:
        self.store.commit()
        self.safe = copy.deepcopy(self.model)

    def crash(self, how: str) -> None:
        self.permits.close()
        if how != "reopen":
            self.env = self.env.crash(how, Random(1))
        now = self.model.now
        self.model = copy.deepcopy(self.safe)
        self.model.now = now
        self.store, self.permits = opened(self.env, expiry=1e6, patience=5.0)
        again, self.model.under_way = self.model.under_way, []
        assert self.permits.asks(len(again)) == again
        self.model.under_way = again

    def step(self) -> None:
        """What a crawl does all the time, so that most scripts get somewhere."""
        self.permits.merge()
        self.take()
        self.permits.merge()
        self.ask(3)

    def drain(self) -> None:
        for _ in range(60):
            if not self.permits.waiting:
                break
            self.permits.merge()
            self.take()
            self.ask(100)
            while self.model.under_way or self.model.put_off:
                self.learn(0, 1000)
            self.model.now += 1


events = st.one_of(
    st.tuples(st.just("check"), st.lists(st.integers(0, 9), min_size=1, max_size=20)),
    st.tuples(st.just("ask"), st.integers(1, 5)),
    st.tuples(st.just("learn"), st.integers(0, 9), st.integers(1, 9)),
    st.tuples(st.just("put_off"), st.integers(0, 9)),
    st.tuples(st.just("crash"), st.sampled_from(["reopen", "drop", "keep", "random"])),
    st.tuples(st.sampled_from(["merge", "take", "tick", "commit", "step", "step"])),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=40))
def test_every_url_comes_out_once_with_rules_that_hold_whatever_happens(script: list[Any]) -> None:
    machine = Machine()
    for name, *arguments in script:
        if name == "merge":
            machine.permits.merge()
        elif name == "tick":
            machine.model.now += 1.5
        else:
            getattr(machine, name)(*arguments)
        machine.permits.validate()
    machine.drain()
    assert sorted(machine.model.out) == list(range(machine.model.checked))
    gauges = machine.permits.gauges()
    trips = [gauges[name] for name in ("no_trip", "one_trip", "two_trips", "more_trips")]
    assert sum(trips) == machine.model.checked
    assert gauges["waiting"] == gauges["asked"] == gauges["to_ask"] == 0
    machine.permits.close()
