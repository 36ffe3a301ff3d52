"""Pauses: how long a host and its server are left alone after each answer.

Pure arithmetic, told the time. A pause begins when an outcome arrives (docs/decisions/0001). The pause of a
host is the longest of

    its delay       τ_h, shorter for domains with a large budget where the settings say so (IRLbot, 6.1)
    Crawl-delay     as its robots.txt asks, up to a cap beyond which the host is not crawled at all
    Retry-After     with 429 and 503, within bounds
    back-off        the delay doubled for each trouble, halved again by each answer without
    parking         from so many troubles on, much longer, and doubling too

and that of a server the longer of its delay τ_s, by the mean budget of its domains, and a multiple of the
time that its answers take. Budgets shorten the two delays and nothing else, and are looked up when a pause begins: a
domain that falls back to B_0 has its delay in full again from its next answer on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from barkspider.core.events import PageFetched, RobotsFetched
from barkspider.core.settings import Politeness

_LEAST_RETRY_AFTER = 1.0  # seconds: zero and dates in the past mean "soon", not "at once"
_MOST_DOUBLINGS = 10  # a host parked for ten minutes at first is asked once a week in the end
_LARGEST_POWER = 64  # of two; any delay that is doubled so often is beyond every cap
_MOST_MULTIPLES = 100_000  # domains: some 10 MB, and ten times the `top_domains` of the paper
_MULTIPLE = np.dtype([("domain", "<u8"), ("multiple", "<f8")])
_WEIGHT = 0.25  # of the newest answer in the moving average: the last handful decides


class Multiples:
    """Budgets of domains above B_0, in multiples of it, as they were last heard of; of all others it is 1.

    When there are too many, those are forgotten that were heard of longest ago: they have the full delay.

    >>> known = Multiples()
    >>> known.learn([7, 8], [3.0, 5.0]); known.learn([7], [1.0])
    >>> known.of(7), known.of(8), known.of(9), len(known)
    (1.0, 5.0, 1.0, 1)
    """

    def __init__(self, most: int = _MOST_MULTIPLES) -> None:
        self._most = most
        self._above: dict[int, float] = {}

    def __len__(self) -> int:
        """Domains above B_0."""
        return len(self._above)

    def of(self, domain: int) -> float:
        """The budget of a domain."""
        return self._above.get(domain, 1.0)

    def learn(self, domains: Iterable[int], multiples: Iterable[float]) -> None:
        """These are the budgets now."""
        for domain, multiple in zip(domains, multiples, strict=True):
            self._above.pop(domain, None)
            if multiple > 1.0:
                self._above[domain] = multiple
                if len(self._above) > self._most:
                    del self._above[next(iter(self._above))]

    def save(self) -> Callable[[], npt.NDArray[np.void]]:
        """All of it, for `load` of a later run; any thread may call what is returned."""
        above = self._above.copy()
        return lambda: np.array(list(above.items()), _MULTIPLE)

    def items(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
        """Domains, those heard of last at the end, and their budgets."""
        return np.array(list(self._above), np.uint64), np.array(list(self._above.values()), np.float64)

    def load(self, saved: bytes) -> None:
        """Begin with what an earlier run knew."""
        found = np.frombuffer(saved, _MULTIPLE)
        self.learn(found["domain"].tolist(), found["multiple"].tolist())


class HostPace:
    """What the pauses of a host depend on. `next_time` is when it may be asked again."""

    __slots__ = ("budget", "crawl_delay", "domain", "next_time", "trouble")

    def __init__(self) -> None:
        self.next_time = -math.inf
        self.crawl_delay = 0.0
        self.trouble = 0  # one up with each trouble, one down with each answer without
        self.domain = 0  # the key of its pay-level domain; 0 where budgets do not count
        self.budget = 1.0  # of its domain, in multiples of B_0

    def wait_until(self, time: float) -> None:
        """Make the pause longer, never shorter."""
        self.next_time = max(self.next_time, time)


class ServerPace:
    """What the pauses of a server depend on, with the budgets of the domains that have hosts on it."""

    __slots__ = ("average", "domains", "hosts", "next_time", "total")

    def __init__(self) -> None:
        self.next_time = -math.inf
        self.average = 0.0  # seconds that an answer took lately
        self.hosts = 0
        # Budget and number of hosts by the domain's key; None where budgets do not count, as a dictionary is large.
        self.domains: dict[int, tuple[float, int]] | None = None
        self.total = 0.0  # sum of the budgets in `domains`

    def join(self, host: HostPace) -> None:
        """A host was found to be on this server."""
        self.hosts += 1
        if host.domain:
            if self.domains is None:
                self.domains = {}
            budget, hosts = self.domains.get(host.domain, (0.0, 0))
            self.domains[host.domain] = (host.budget, hosts + 1)
            self.total += host.budget - budget

    def leave(self, host: HostPace) -> None:
        """A host moved away or was forgotten."""
        self.hosts -= 1
        if host.domain:
            assert self.domains is not None
            budget, hosts = self.domains.pop(host.domain)
            if hosts > 1:
                self.domains[host.domain] = (budget, hosts - 1)
            else:
                self.total -= budget

    def mean_budget(self) -> float:
        """The average budget of the domains on this server, each counted once (IRLbot, 6.1)."""
        return self.total / len(self.domains) if self.domains else 1.0


class Pauses:
    """The rules of a crawl, applied to the pace of one host and one server at a time.

    >>> pauses, host, server = Pauses(Politeness(host_delay=2.0)), HostPace(), ServerPace()
    >>> pauses.host_delay(host), pauses.server_delay(server)
    (2.0, 1.0)
    >>> host.trouble = 3
    >>> pauses.host_delay(host)
    16.0
    """

    def __init__(self, politeness: Politeness) -> None:
        self._politeness = politeness
        self.multiples = Multiples()

    def answered(
        self,
        host: HostPace,
        server: ServerPace,
        outcome: PageFetched | RobotsFetched,
        trouble: bool,
        now: float,
    ) -> None:
        """The end of a request: both pauses begin.

        `trouble` says that the server could not answer as it should: 429, 5xx, a time-out, no connection. An
        outcome with neither trouble nor a status says nothing about the server.
        """
        politeness = self._politeness
        if trouble:
            host.trouble = min(host.trouble + 1, politeness.park_after + _MOST_DOUBLINGS)
        elif outcome.status:
            host.trouble = max(host.trouble - 1, 0)
        # A connection that is refused is refused quickly: no reason to come back sooner.
        if outcome.seconds and not (trouble and outcome.seconds < server.average):
            weight = _WEIGHT if server.average else 1.0
            server.average += weight * (outcome.seconds - server.average)
        host.wait_until(now + self.host_delay(host))
        server.next_time = now + self.server_delay(server)
        if outcome.retry_after is not None and outcome.status in (429, 503):
            pause = max(outcome.retry_after, _LEAST_RETRY_AFTER)
            host.wait_until(now + min(pause, politeness.max_retry_after))
        if trouble and host.trouble >= politeness.park_after:
            host.wait_until(now + politeness.park_time * 2 ** (host.trouble - politeness.park_after))

    def host_delay(self, host: HostPace) -> float:
        """The pause of a host after an answer, by its budget, its Crawl-delay and its troubles."""
        politeness = self._politeness
        if not (host.trouble or host.crawl_delay) and host.budget <= 1.0:  # as nearly all are
            return politeness.host_delay
        delay = _scaled(politeness.host_delay, politeness.host_delay_floor, host.budget)
        back_off = 0.0
        if host.trouble:
            doubled = politeness.host_delay * 2.0 ** min(host.trouble, _LARGEST_POWER)
            back_off = min(doubled, max(politeness.max_back_off, politeness.host_delay))
        return max(delay, back_off, min(host.crawl_delay, politeness.max_crawl_delay))

    def server_delay(self, server: ServerPace) -> float:
        """The pause of a server after an answer, by its domains' budgets and the time its answers take."""
        politeness = self._politeness
        delay = politeness.server_delay
        if server.domains:
            delay = _scaled(delay, politeness.server_delay_floor, server.mean_budget())
        return max(delay, min(politeness.slow_factor * server.average, politeness.max_slow_delay))

    def follow_budget(self, host: HostPace, server: ServerPace | None, domain: int) -> None:
        """Let a host of this domain have the budget that is known now; ignored unless it may shorten delays."""
        if not self._politeness.scale_by_budget:
            return
        budget = self.multiples.of(domain)
        if (host.domain, host.budget) == (domain, budget):
            return
        if server is not None:
            server.leave(host)
        host.domain, host.budget = domain, budget
        if server is not None:
            server.join(host)


def _scaled(delay: float, floor: float, budget: float) -> float:
    """A delay in full for budgets up to B_0, then in inverse proportion, down to the floor."""
    return min(delay, max(delay / budget, floor)) if budget > 1.0 else delay


def retry_pause(politeness: Politeness, tries: int) -> float:
    """How long what failed so often waits for its next try.

    >>> retry_pause(Politeness(retry_delay=10.0), 0), retry_pause(Politeness(retry_delay=10.0), 2)
    (10.0, 40.0)
    """
    return politeness.retry_delay * 2.0 ** min(tries, _LARGEST_POWER)
