"""Supporters where several processes divide a crawl: one ranks the domains of all, and all get to know what it finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.core.batch import NO_URLS
from barkspider.core.events import Score, Scored
from barkspider.engine.harvest import Harvest
from barkspider.frontier.budget.domain_redirects import NOWHERE
from barkspider.frontier.budget.star import Star
from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.source import Found
from tests.frontier.virtual import VirtualWeb, row
from tests.parallel.powerless import Machine, Part, without_turns
from tests.parallel.test_exchange import Process, batch, send
from tests.parallel.test_exchange import row as page
from tests.storage.faulty import FaultyEnv

BY_SUPPORTERS = ["budget.reputation=supporters"]
DOMAINS = [f"http://d{number}.example/" for number in range(24)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A graph of a few edges is ranked."""
    assert Star.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Star.__init__.__kwdefaults__, "first_ranking", 5)
    with without_turns():
        yield


def star_of(part: Part) -> Star:
    assert isinstance(part.frontier._source, Irlbot)
    return part.frontier._source._star


def known(star: Star, name: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for keys, values in star.drums[name].items():
        assert isinstance(values, np.ndarray)
        found |= dict(zip(keys.tolist(), values.tolist(), strict=True))
    return found


def chain() -> VirtualWeb:
    """Each domain has a page that links to the next: nobody has more than one supporter."""
    return VirtualWeb(dict(zip(DOMAINS, [*([url] for url in DOMAINS[1:]), []], strict=True)), latency=0.3)


def test_all_processes_get_to_know_the_supporters_of_their_domains() -> None:
    async def crawl() -> list[Any]:
        env = FaultyEnv()
        first = Machine(env, chain(), BY_SUPPORTERS)
        await first.run()
        first.end()
        # What was found last is found again when the crawl goes on, in case it has not reached everybody.
        machine = Machine(env, chain(), BY_SUPPORTERS, first.now)
        star_of(machine.parts[0]).merge()
        await machine.parts[0].turn(machine.now)
        await machine.run()
        found = []
        for part in machine.parts:
            star = star_of(part)
            star.merge()
            found.append((known(star, "star/supporters"), known(star, "star/indegree"), star.by_supporters))
        machine.end()
        return found

    keys = [row(url).pld_key for url in DOMAINS]
    (one, degrees, in_force), (two, more, too) = asyncio.run(crawl())
    assert in_force
    assert too
    assert len(one) > 5 < len(two)
    assert one | two == {key: int(number >= 2) for number, key in enumerate(keys)}  # two links away
    assert not one.keys() & two.keys()
    assert degrees | more == dict.fromkeys(keys[1:], 1)
    assert not degrees.keys() & more.keys()


def test_a_process_tells_the_ranker_of_all_its_edges_and_answers_once(tmp_path: Path) -> None:
    ranker, other = (
        Process(tmp_path, part, more=[*BY_SUPPORTERS, "budget.merge_redirects=true"]) for part in (0, 1)
    )
    links = batch(page(1, 5), page(2, 6), page(3, 7), page(2, 8))
    other.exchange.sorting.split([Found(page(1), links), Found(page(1, 9), batch(), target=page(3))], 0.0)
    (found,) = ranker.exchange.receive(send(other, ranker, other.seal(0), 1))
    assert found.standing is not None
    source = page(1).pld_key
    ((sources, targets),) = found.standing.edges
    assert sorted(zip(sources.tolist(), targets.tolist(), strict=True)) == [
        (source, page(2).pld_key),
        (source, page(3).pld_key),
    ]
    ((domains, leads),) = found.standing.answers
    assert sorted(zip(domains.tolist(), leads.tolist(), strict=True)) == [
        (source, NOWHERE),
        (source, page(3).pld_key),
    ]
    # The ranker has what it finds for others, too.
    own = ranker.exchange.sorting.split([Found(page(0), batch(page(0, 2), page(2, 3)))], 0.0)
    assert [each.edges for each in own if each.edges is not None] == [
        (np.array([page(0).pld_key]), np.array([page(2).pld_key]))
    ]


def test_what_a_ranking_finds_goes_to_the_owners_and_survives_a_checkpoint(tmp_path: Path) -> None:
    ranker, other = (Process(tmp_path, part, more=BY_SUPPORTERS) for part in (0, 1))
    keys = np.array([page(owner).pld_key for owner in (0, 1, 2)], np.uint64)
    (own,) = ranker.exchange.sorting.spread(Score(keys, np.array([7, 8, 9], np.uint32), None), 0.0)
    assert own.standing is not None
    assert [score.keys.tolist() for score in own.standing.scores] == [[page(0).pld_key]]
    ranker.store.commit()
    again = Process(tmp_path, 0, more=BY_SUPPORTERS)
    again.exchange.sorting.spread(Score(keys[:0], np.zeros(0, np.uint32), True), 0.0)
    (found,) = other.exchange.receive(send(again, other, again.seal(1), 1))
    assert found.standing is not None
    (score,) = found.standing.scores
    assert (score.keys.tolist(), score.supporters.tolist(), score.in_force) == ([page(1).pld_key], [8], True)


@pytest.mark.parametrize("in_force", [None, False, True])
def test_the_journal_has_what_a_ranking_found(in_force: bool | None) -> None:
    given = Score(np.array([3, 2**64 - 1], np.uint64), np.array([1, 2**32 - 1], np.uint32), in_force)
    (found,) = Harvest.decode(Harvest(1.0, [Scored(given)], NO_URLS).encode()).outcomes
    assert isinstance(found, Scored)
    assert found.asked.keys.tolist() == given.keys.tolist()
    assert found.asked.supporters.tolist() == given.supporters.tolist()
    assert found.asked.in_force is in_force


def test_behind_a_firewall_each_ranks_its_own() -> None:
    async def crawl() -> list[bool]:
        machine = Machine(FaultyEnv(), chain(), [*BY_SUPPORTERS, "parallel.mode=firewall"])
        ranks = [star_of(part).ranking_traffic() is not None for part in machine.parts]
        await machine.run()
        machine.end()
        return ranks

    assert asyncio.run(crawl()) == [True, True]
