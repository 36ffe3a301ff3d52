"""Visiting duplicate hosts once more: whether they still are any (Viúva Negra, Table I).

    pairs of each heuristic ─► names that have no address any more ─► fifty pairs of the rest ─► three paths of both, fetched at once

robots.txt is obeyed, and each host is left alone between two requests for as long as a crawl would.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from barkspider.core.errors import UsageError
from barkspider.core.settings import Settings
from barkspider.engine.duphosts import DuplicateHosts, Pair
from barkspider.engine.explain import explain
from barkspider.engine.stored import StoredJob
from barkspider.fetch import Fetcher

SAMPLE = 50  # pairs of a heuristic that are visited, as in the paper
_PATHS = 3  # of a pair that are fetched from both, the home page among them
_KNOWN = 100  # paths of a host that are looked at for that
_AT_ONCE = 16  # pairs that are visited at the same time
_HOSTS = """
    WITH shown AS (
        SELECT url_host_name AS host, url_path || CASE WHEN url_query IS NULL THEN '' ELSE '?' || url_query END AS target,
            any_value(regexp_extract(url, '^[a-z]+://[^/]*')) AS origin
        FROM stored_pages WHERE fetch_status BETWEEN 200 AND 299 AND list_contains([{hosts}], url_host_name) GROUP BY ALL)
    SELECT host, origin, target FROM shown
    QUALIFY row_number() OVER (PARTITION BY host ORDER BY target <> '/', hash(target)) <= {known}
    ORDER BY host, target <> '/', hash(target)
"""
Item = TypeVar("Item")
Answer = TypeVar("Answer")
Fetched = tuple[int, str]  # a status, and what came with it: where it leads, or the digest of a body


@dataclass(frozen=True, slots=True)
class Revisited:
    """What became of the pairs of a heuristic: how many there are, those of which a name has no address, and, of so many
    that were `visited`, those that still serve the same."""

    pairs: int
    invalid: int
    visited: int
    same: int

    @property
    def precision(self) -> float | None:
        """The share of the visited that still are duplicates; None where there are none."""
        return self.same / self.visited if self.visited else None


async def revisit(
    found: DuplicateHosts, job: StoredJob, settings: Settings, most: int = SAMPLE
) -> dict[str, Revisited]:
    """Look up all hosts that are duplicates by any heuristic, and visit at most so many pairs of each."""
    everyone = {host for pairs in found.pairs.values() for pair in pairs for host in _names(pair)}
    async with aclosing(Fetcher(settings)) as fetcher:
        hosts = sorted(everyone)
        answers = await _each(fetcher.resolve, hosts, settings.dns.in_flight)
    if any(answer.error == "no_contact" for answer in answers):
        raise UsageError(
            "public hosts are visited by those who say who they are: give an address with --set agent.contact=…"
        )
    gone = {host for host, answer in zip(hosts, answers, strict=True) if not answer.addresses}
    # In one order for all, so that a pair which several heuristics have is visited once.
    chosen = {
        name: sorted((pair for pair in pairs if not gone.intersection(_names(pair))), key=_order)[:most]
        for name, pairs in found.pairs.items()
    }
    union = list(dict.fromkeys(pair for pairs in chosen.values() for pair in pairs))
    visits = _Visits(settings, _known(job, {host for pair in union for host in _names(pair)}))
    verdicts = dict(zip(union, await _each(visits.is_same, union, _AT_ONCE), strict=True))
    return {
        name: Revisited(
            len(pairs),
            sum(bool(gone.intersection(_names(pair))) for pair in pairs),
            len(chosen[name]),
            sum(verdicts[pair] for pair in chosen[name]),
        )
        for name, pairs in found.pairs.items()
    }


class _Visits:
    """Visits pairs of hosts, each host politely. `known` are origins and targets by host."""

    def __init__(self, settings: Settings, known: dict[str, dict[str, str]]) -> None:
        self._settings, self._known = settings, known
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def is_same(self, pair: Pair) -> bool:
        """Whether at least half of what is asked of both is the same on both."""
        one, other = (self._known.get(host, {}) for host in _names(pair))
        targets = sorted(one.keys() | other.keys(), key=lambda t: (t != "/", t not in one or t not in other))
        same = 0
        for target in targets[:_PATHS]:
            both = await asyncio.gather(*(self._fetch(host, target) for host in _names(pair)))
            same += both[0] == both[1] and 200 <= both[0][0] < 400
        return bool(targets) and 2 * same >= len(targets[:_PATHS])

    async def _fetch(self, host: str, target: str) -> Fetched:
        origins = self._known.get(host, {})
        origin = origins.get(target) or next(iter(origins.values()), f"http://{host}")
        async with self._locks[host]:
            found = await explain(f"{origin}{target}", self._settings)
            await asyncio.sleep(self._settings.politeness.host_delay)
        if found.response is None:
            return 0, ""
        told = found.redirect or sha256(found.response.body).hexdigest()
        return found.response.exchange.status, told


def _known(job: StoredJob, hosts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Targets of hosts with their origins, the home page first."""
    quoted = ", ".join(f"'{host.replace(chr(39), chr(39) * 2)}'" for host in hosts)
    known: dict[str, dict[str, str]] = defaultdict(dict)
    if quoted:
        for row in job.query(_HOSTS.format(hosts=quoted, known=_KNOWN)).to_pylist():
            known[row["host"]][row["target"]] = row["origin"]
    return known


async def _each(
    ask: Callable[[Item], Awaitable[Answer]], items: Sequence[Item], at_once: int
) -> list[Answer]:
    """The answers for all, in order, so many at once."""
    room = asyncio.Semaphore(at_once)

    async def one(item: Item) -> Answer:
        async with room:
            return await ask(item)

    return await asyncio.gather(*map(one, items))


def _names(pair: Pair) -> tuple[str, str]:
    return pair.replica, pair.original


def _order(pair: Pair) -> bytes:
    return sha256(" ".join(_names(pair)).encode()).digest()
