"""The Global Frontier in both databases, against a dictionary."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barkspider.core.errors import StorageError
from barkspider.sites import AwayError, Link, Registry, Row, State, Visit
from barkspider.sites.database import Postgres, Sqlite
from barkspider.sites.registry import AGAIN, FOUND, LATER, SEED
from tests.sites.conftest import MakeDatabase
from tests.sites.postgres import PostgresServer

LEASE, TRIES = 60.0, 3


def link(site: int, number: int, is_seed: bool = False) -> Link:
    key = (site * 1_000_003 + number) * 0x9E3779B97F4A7C15 % (1 << 64)
    return Link(site << 60 | site, f"s{site}.example", site, key, b"%d %d" % (site, number), is_seed)


def seen(*links: Link) -> bytes:
    return b"".join(each.key.to_bytes(8, "little") for each in links)


@dataclass
class Site:
    """A site as the model has it: `links` by key with the visit that had each."""

    turn: int
    added: int
    state: State = State.TO_CRAWL
    fence: int = 0
    answered: int = 0
    done: int = 0
    owner: str = ""
    tries: int = 0
    kills: int = 0
    seen: frozenset[int] = frozenset()
    links: dict[int, int] = field(default_factory=dict)


class Model:
    """`Registry`, slowly, in a dictionary."""

    def __init__(self) -> None:
        self.sites: dict[int, Site] = {}
        self.time = 0

    def add(self, links: Collection[Link]) -> None:
        self.time += 1
        seeds = {each.site for each in links if each.is_seed}
        for each in links:
            site = self.sites.setdefault(each.site, Site(SEED if each.site in seeds else FOUND, self.time))
            site.links.setdefault(each.key, 0)
        for key in {each.site for each in links}:
            site = self.sites[key]
            if site.state is State.CRAWLED and 0 in site.links.values():
                site.state, site.turn = State.TO_CRAWL, AGAIN

    def check_out(self, owner: str, most: int) -> dict[int, tuple[int, set[int]]]:
        taken: dict[int, tuple[int, set[int]]] = {}
        signed = [
            (site.turn, site.added, key - (1 << 64) if key >> 63 else key) for key, site in self.sites.items()
        ]
        for *_, number in sorted(signed):
            key = number % (1 << 64)
            site = self.sites[key]
            if site.state is not State.TO_CRAWL or len(taken) == most:
                continue
            site.fence += 1
            for each, visit in site.links.items():
                if visit == 0 or visit > site.done:
                    site.links[each] = site.fence
            fresh = {each for each, visit in site.links.items() if visit == site.fence} - site.seen
            if fresh:
                site.state, site.owner = State.BEING_CRAWLED, owner
                taken[key] = site.fence, fresh
            else:
                site.state, site.done = State.CRAWLED, site.fence
        return taken

    def free(self, key: int) -> None:
        site = self.sites[key]
        site.state, site.turn, site.fence, site.owner = State.TO_CRAWL, LATER, site.fence + 1, ""

    def check_in(
        self, key: int, fence: int, visit: Visit, known: frozenset[int], links: Collection[Link]
    ) -> bool:
        site = self.sites[key]
        if site.fence != fence:
            return False
        if site.answered == fence:
            return True
        site.answered, site.owner = fence, ""
        if visit.failed_by:
            site.tries += 1
            site.state, site.turn = State.LEFT if site.tries >= TRIES else State.TO_CRAWL, LATER
        else:
            site.state, site.done, site.seen, site.tries = State.CRAWLED, fence, known, 0
            site.kills = 0
            if 0 in site.links.values():
                site.state, site.turn = State.TO_CRAWL, AGAIN
        self.add(links)
        return True

    def blame(self, key: int, fence: int) -> bool:
        site = self.sites[key]
        if site.state is not State.BEING_CRAWLED or site.fence != fence:
            return False
        site.kills += 1
        if site.kills == 3:
            self.free(key)
            site.state = State.LEFT
        return site.kills == 3


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_calls_gives_what_a_dictionary_gives(make_database: MakeDatabase, seed: int) -> None:
    choose, model, time = random.Random(seed), Model(), [0.0]
    registries = [Registry(make_database(), LEASE, TRIES, lambda: time[0]) for _ in range(2)]
    held: list[tuple[int, int]] = []  # ever checked out
    outcomes = set[object]()
    for _ in range(400):
        time[0] += 1
        number = choose.randrange(2)
        registry, owner = registries[number], f"process {number}"
        what = choose.choices(
            ("add", "out", "in", "free", "blame", "renew", "repeat", "remove"), (8, 9, 14, 2, 6, 2, 1, 0.2)
        )[0]
        links = [link(choose.randrange(1, 12), choose.randrange(30)) for _ in range(choose.randrange(6))]
        if what == "add":
            links = [each._replace(is_seed=choose.random() < 0.3) for each in links]
            registry.add(links)
            model.add(links)
        elif what == "out":
            most = choose.randrange(1, 4)
            sites, left = registry.check_out(owner, most)
            wanted = model.check_out(owner, most)
            assert {site.key: (site.fence, set(site.rows)) for site in sites} == {
                key: (fence, {row_of(each) for each in fresh}) for key, (fence, fresh) in wanted.items()
            }
            assert left == any(
                site.state is State.TO_CRAWL or (site.state is State.BEING_CRAWLED and site.owner != owner)
                for site in model.sites.values()
            )
            held += [(site.key, site.fence) for site in sites]
        elif what == "in" and held:
            key, fence = choose.choice(held[-8:])
            known = model.sites[key].seen | {
                each for each, visit in model.sites[key].links.items() if visit == fence
            }
            failed = choose.choice(("", "", "dns_no_name"))
            visit = Visit(b"".join(each.to_bytes(8, "little") for each in known), pages=1, failed_by=failed)
            accepted = registry.check_in(key, fence, visit, links)
            assert accepted == model.check_in(key, fence, visit, known, links)
            outcomes.add(("in", accepted, bool(failed)))
        elif what == "blame" and held:
            key, fence = choose.choice(held[-4:])
            blamed = registry.blame(key, fence)
            assert blamed == model.blame(key, fence)
            outcomes.add(("blame", blamed))
        elif what == "renew":
            own = {key: site for key, site in model.sites.items() if site.owner == owner}
            kept = {key for key in own if choose.random() < 0.8}
            found = registry.renew(owner, {(key, own[key].fence) for key in kept})
            assert found == {key: own[key].fence for key in kept}
            for key in set(own) - kept:
                model.free(key)
        elif model.sites and what in ("free", "repeat", "remove"):
            key = choose.choice(list(model.sites))
            site, name = model.sites[key], f"s{key & 0xFF}.example"
            if what == "free":
                was = site.state is State.BEING_CRAWLED
                assert registry.free(name) == was
                if was:
                    model.free(key)
            elif what == "repeat":
                was = site.state in (State.CRAWLED, State.LEFT)
                assert registry.repeat(name) == was
                if was:
                    site.state, site.turn, site.done, site.seen = State.TO_CRAWL, AGAIN, 0, frozenset()
                    site.tries, site.kills, site.links = 0, 0, dict.fromkeys(site.links, 0)
            else:
                assert registry.remove(name) == (site.state is not State.LEFT)
                if site.state is not State.LEFT:
                    site.state, site.fence, site.owner = State.LEFT, site.fence + 1, ""
        states = [site.state for site in model.sites.values()]
        assert registry.counts() == {
            state.name.lower(): states.count(state) for state in State if state in states
        }
    assert {("in", True, True), ("in", True, False), ("in", False, False), ("blame", True)} <= outcomes


ROWS = {each.key: each.row for site in range(1, 12) for number in range(30) for each in [link(site, number)]}


def row_of(key: int) -> bytes:
    return ROWS[key]


def test_a_site_whose_lease_is_over_goes_to_another_and_what_its_first_owner_checks_in_is_refused(
    make_database: MakeDatabase,
) -> None:
    slow, other = Registry(make_database(), -1.0, TRIES), Registry(make_database(), LEASE, TRIES)
    slow.add([link(1, 1)])
    ((first,), _), ((second,), _) = slow.check_out("slow", 1), other.check_out("other", 1)
    assert first.key == second.key
    assert first.fence < second.fence
    assert slow.renew("slow") == {}
    assert not slow.check_in(first.key, first.fence, Visit(b"", pages=5), [link(2, 1)])
    assert other.check_in(second.key, second.fence, Visit(b"", pages=3), [])
    (site,) = other.sites()
    assert (site["pages"], site["visits"], site["lost"]) == (3, 1, 1)


def test_a_link_found_later_opens_a_site_again_unless_it_was_seen_there(make_database: MakeDatabase) -> None:
    registry = Registry(make_database(), LEASE, TRIES)
    registry.add([link(1, 1), link(2, 1)])
    (one, two), left = registry.check_out("me", 2)
    one, two = sorted((one, two), key=lambda site: site.name)
    assert not left
    assert registry.check_in(one.key, one.fence, Visit(seen(link(1, 1), link(1, 2)), pages=2), [])
    assert registry.check_in(two.key, two.fence, Visit(seen(link(2, 1)), pages=1), [link(1, 2)])
    assert registry.check_out("me", 1) == ([], False)  # it has seen that one
    registry.add([link(1, 3), link(1, 1)])
    (again,), _ = registry.check_out("me", 1)
    assert again == Row(one.key, again.fence, "s1.example", seen(link(1, 1), link(1, 2)), (link(1, 3).row,))


def test_seeds_come_first_then_what_was_found_and_what_failed_last(make_database: MakeDatabase) -> None:
    registry = Registry(make_database(), LEASE, TRIES, lambda: 1.0)
    registry.add([link(1, 1), link(2, 1, is_seed=True)])
    (seed,), _ = registry.check_out("me", 1)
    assert seed.name == "s2.example"
    assert registry.check_in(seed.key, seed.fence, Visit(b"", failed=1, failed_by="dns_failure"), [])
    names = [site.name for site in registry.check_out("me", 5)[0]]
    assert names == ["s1.example", "s2.example"]


def test_what_is_away_says_so_and_is_used_again_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "not yet"
    registry = Registry(Sqlite(folder / "sites.db"), LEASE, TRIES)
    with pytest.raises(AwayError, match=r"cannot be used now"):
        registry.counts()
    folder.mkdir()
    assert registry.counts() == {}
    (folder / "other.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="is damaged"):
        Registry(Sqlite(folder / "other.db"), LEASE, TRIES).counts()


def test_a_server_that_was_restarted_is_used_again(postgres: PostgresServer) -> None:
    registry = Registry(Postgres(postgres.url, "crawl_restarted"), LEASE, TRIES)
    registry.add([link(1, 1)])
    (site,), _ = registry.check_out("me", 1)
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(AwayError, match=r"does not answer"):
                registry.renew("me")
    finally:
        postgres.start()
    assert registry.renew("me") == {site.key: site.fence}
    assert registry.check_in(site.key, site.fence, Visit(b"", pages=1), [])
    registry.close()


def test_leases_of_sqlite_begin_anew_with_the_machine(tmp_path: Path) -> None:
    time = [1000.0]
    registry = Registry(Sqlite(tmp_path / "sites.db", lambda: time[0]), LEASE, TRIES)
    registry.add([link(1, 1)])
    (site,), _ = registry.check_out("me", 1)
    Sqlite(tmp_path / "sites.db").transact(
        lambda run: run("UPDATE about SET value = 'another' WHERE name = 'boot'")
    )
    registry.close()
    time[0] = 5.0  # the machine was started five seconds ago
    assert registry.check_out("you", 1) == ([], True)
    time[0] = 5.0 + LEASE
    ((again,), _) = registry.check_out("you", 1)
    assert again.fence > site.fence
