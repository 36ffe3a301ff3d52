"""What the frontier and the engine say to each other.

The frontier is a machine without I/O: `step(now, outcomes)` returns instructions and the time at which
it wants to be called again. Each instruction is answered by exactly one outcome:

    ResolveHost ─► HostResolved      FetchRobots ─► RobotsFetched      FetchPage ─► PageFetched
    ProbeDomain ─► DomainProbed
    Seal ─► Sealed                   or, where another process has the turn at the server, Denied
    Score ─► Scored
    CheckOut ─► CheckedOut           CheckIn ─► CheckedIn

`Rest` is the one instruction that nothing answers. `Seeds`, `Ruled`, `Received`, `Granted`, `Ranked` and `LeaseLost` are events
that answer nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from barkspider.core.records import UrlRow

if TYPE_CHECKING:  # they load kernels, which whoever only counts does not need
    import numpy as np
    import numpy.typing as npt

    from barkspider.core.batch import UrlBatch


TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500  # a status of HTTP, and the first of those for errors of servers


def is_temporary(status: int) -> bool:
    """Whether a server answers that it does not answer now: 429 and 5xx say nothing of what was asked for.

    >>> [is_temporary(status) for status in (0, 200, 404, 429, 503)]
    [False, False, False, True, True]
    """
    return status >= SERVER_ERROR or status == TOO_MANY_REQUESTS


@dataclass(frozen=True, slots=True)
class ResolveHost:
    """Find the address of a host; what is found `assigns` it for good, if several processes divide a crawl by addresses."""

    host: str
    host_key: int
    assigns: bool = False


@dataclass(frozen=True, slots=True)
class ProbeDomain:
    """Find whether a domain has addresses for any name: for `host`, an absurd one below it. The key is that of the domain, 0 of a
    top-level one."""

    host: str
    domain: str
    host_key: int


@dataclass(frozen=True, slots=True)
class FetchRobots:
    """Fetch the robots.txt of `origin` at `url`, which is elsewhere after a redirect."""

    origin: str
    url: str
    address: str
    host_key: int
    hops: int


Trail = tuple[int, ...]  # the keys of the redirects that led to a URL


@dataclass(frozen=True, slots=True)
class FetchPage:
    """Fetch a URL from exactly this address."""

    row: UrlRow
    address: str
    trail: Trail = ()


@dataclass(frozen=True, slots=True)
class Seal:
    """Let what was collected for another process be its batch of this number; see `frontier.exchange`. `news` goes with
    it: what depends on more than the journal, and so becomes a record of it (`frontier.budget.hearsay`)."""

    to: int
    number: int
    news: bytes = b""


@dataclass(frozen=True, slots=True)
class Rest:
    """A request to a server has ended, and nobody may send it another one for so many seconds; nor, if its key is given, a
    host, for so many as well."""

    address: str
    seconds: float
    host_key: int = 0
    host_seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Let those who own these domains know how many supporters they have; see `frontier.standing`.

    `in_force` says whether all go by supporters from now on, None if that stays as it is."""

    keys: npt.NDArray[np.uint64]
    supporters: npt.NDArray[np.uint32]
    in_force: bool | None


@dataclass(frozen=True, slots=True)
class CheckOut:
    """Get sites to crawl, at most so many; see `frontier.site_by_site`."""

    most: int


@dataclass(frozen=True, slots=True, eq=False)
class CheckIn:
    """Give back a site with what came of its visit, and the URLs of other sites that were found on it.

    `seen` are the keys of all its URLs that were ever found there, 8 bytes each; `failed_by` is why it could not be crawled,
    "" if it could. A `key` of 0 is no site: URLs that were given.
    """

    key: int
    fence: int
    found: UrlBatch
    seen: bytes = b""
    pages: int = 0
    failed: int = 0
    refused: int = 0
    failed_by: str = ""


Request = ResolveHost | ProbeDomain | FetchRobots | FetchPage  # what the network is asked for
Instruction = Request | Seal | Rest | Score | CheckOut | CheckIn


@dataclass(frozen=True, slots=True)
class HostResolved:
    """The addresses that may be contacted, or why there are none.

    `error` is "" or one of dns_no_name, dns_failure (temporary), refused_address.
    """

    asked: ResolveHost
    addresses: tuple[str, ...]
    error: str = ""
    ttl: float = 3600.0


@dataclass(frozen=True, slots=True)
class DomainProbed:
    """The addresses that nobody's name has; none is how it should be."""

    asked: ProbeDomain
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """An answer to a request for robots.txt.

    `status` is 0 when there was no answer; `redirect` the target of a 3xx; `stale` and `seconds` as for a page;
    `max_age` is for how many seconds the answer wants to be kept, None when it does not say; `cookies` as for a page.
    `links` are the sitemaps that it names, None where nobody reads them.
    """

    asked: FetchRobots
    status: int
    body: bytes = b""
    redirect: str = ""
    retry_after: float | None = None
    stale: bool = False
    max_age: float | None = None
    seconds: float = 0.0
    cookies: tuple[str, ...] = ()
    links: UrlBatch | None = None

    def with_links(self, links: UrlBatch) -> RobotsFetched:
        """The same with the sitemaps that it names."""
        return replace(self, links=links)


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where a page sends us: as a row to be crawled, and exactly as the server wrote it."""

    row: UrlRow
    exact: bytes


@dataclass(frozen=True, slots=True)
class PageFetched:
    """How the fetch of a page ended.

    `failure` is "" for a page, a page that is as it was (status 304) or a redirect, else a short name such as
    http_404 or timeout_connect;
    `temporary` says that another try may go better. `digest` is 64 bits of the payload's digest. `stale`
    says that an idle connection had died before it carried the request: nothing can be said of the page,
    it is asked for again at its host's next turn. `seconds` is how long the answer took, 0 when nobody knows.
    `cookies` are the values of Set-Cookie that count. `gist` is what a page says, as a number; 0 if nobody asks.
    """

    asked: FetchPage
    status: int = 0
    failure: str = ""
    temporary: bool = False
    retry_after: float | None = None
    links: UrlBatch | None = None
    redirect: Redirect | None = None
    digest: int = 0
    stale: bool = False
    seconds: float = 0.0
    cookies: tuple[str, ...] = ()
    gist: int = 0

    def with_links(self, links: UrlBatch) -> PageFetched:
        """The same with its links, in a third of the time of `dataclasses.replace`."""
        return PageFetched(
            self.asked,
            self.status,
            self.failure,
            self.temporary,
            self.retry_after,
            links,
            self.redirect,
            self.digest,
            self.stale,
            self.seconds,
            self.cookies,
            self.gist,
        )


@dataclass(frozen=True, slots=True)
class Denied:
    """Nothing was sent: another process has the turn at this server, or `at_host`, which may be free after so many
    seconds."""

    asked: FetchRobots | FetchPage
    wait: float
    at_host: bool = False


@dataclass(frozen=True, slots=True)
class Ruled:
    """What people have said about URLs: each change is what to do (block, allow, unblock, pardon) and about what."""

    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Seeds:
    """URLs given by the user."""

    batch: UrlBatch


@dataclass(frozen=True, slots=True)
class Sealed:
    """The place in the journal at which a batch ends: all that was found before is in it."""

    asked: Seal


@dataclass(frozen=True, slots=True)
class Scored:
    """A part of what a ranking has found is to be known from here on."""

    asked: Score


@dataclass(frozen=True, slots=True)
class Received:
    """A batch of another process has arrived; the checksum is that of its file."""

    sender: int
    number: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Granted:
    """How many pages this process may fetch in all, of those that the whole crawl may; None for any number."""

    pages: int | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """How many domains of other processes have which in-degree, as far as these have told; the newest counts."""

    degrees: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SiteLeased:
    """A site that this process has from now on, with the number of its visit; see `CheckIn` for what was `seen` in earlier
    ones. `links` are the URLs to begin with."""

    key: int
    fence: int
    seen: bytes
    links: UrlBatch


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """Sites to crawl; and whether there are any more, if only with other processes, which may find further ones."""

    sites: tuple[SiteLeased, ...]
    left: bool


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """A visit has ended, and `counts`: or another process has the site, or had it since."""

    key: int
    fence: int
    counts: bool


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """Sites, with the numbers of their visits, that this process does not have any more."""

    sites: tuple[tuple[int, int], ...]


Outcome = (
    HostResolved
    | DomainProbed
    | RobotsFetched
    | PageFetched
    | Denied
    | Seeds
    | Ruled
    | Sealed
    | Received
    | Granted
    | Ranked
    | Scored
    | CheckedOut
    | CheckedIn
    | LeaseLost
)


class Decision(NamedTuple):
    """One decision about a URL that is traced; see `frontier.decisions`. `until` is when it comes back, if that is known."""

    time: float
    decision: str
    rule: str
    key: int
    url: bytes
    until: float | None


@dataclass(slots=True)
class Counters:
    """What became of every URL. `discovered` equals the sum of all the others at every moment.

    `queued` URLs wait for their hosts, `deferred` ones on disk for their turn to be queued. `ahead` is 0 but after a
    crash: outcomes of URLs that are still, as the last checkpoint has it, somewhere on disk, maybe undiscovered.
    They count already, and `discovered` and `ahead` together equal the sum.

    A link that a full queue drops is not remembered as seen, so it counts again, in `discovered` and in
    `dropped`, each time it turns up.

    `decided` counts how often URLs were put off, held back and dropped, by decision and rule, such as `put_off.retry`;
    it is not part of the sum.
    """

    discovered: int = 0
    pages: int = 0
    redirects: int = 0
    queued: int = 0
    deferred: int = 0
    in_flight: int = 0
    dropped: int = 0
    ahead: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    decided: dict[str, int] = field(default_factory=dict)

    def balanced(self) -> bool:
        """Whether every URL is accounted for."""
        return self.discovered + self.ahead == (
            self.pages
            + self.redirects
            + self.queued
            + self.deferred
            + self.in_flight
            + self.dropped
            + sum(self.refused.values())
            + sum(self.failed.values())
        )


# Makes a state durable and describes it as JSON. It is called once, in any thread, while its structure goes on. `files` in
# what it returns names each file, relative to the folder of the whole, with the length that counts.
Prepared: TypeAlias = Callable[[], dict[str, Any]]


class Structure(Protocol):
    """Something with files whose state a checkpoint commits; see `storage.manifest`."""

    name: str

    def prepare(self) -> Prepared:
        """Hold on to the present state, as quickly as can be: its owner waits, and goes on when this returns."""
        ...

    def committed(self) -> None:
        """What was prepared is safe: files that it does not name may go."""
        ...


class Frontier(Protocol):
    """What the engine asks of a frontier. One thread calls it; it does no I/O but to its own files."""

    counters: Counters

    def step(self, now: float, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Take what happened, give out what to do now and when to be called again if nothing happens.

        The time is infinity when only an outcome can bring more to do.
        """
        ...

    def replay(self, time: float, outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of a step of an earlier run, which a journal kept, of that time: all before the first step."""
        ...

    def hold(self) -> None:
        """Give out nothing more; outcomes of what is under way are still taken."""
        ...

    def pause(self, on: bool) -> None:
        """Give out nothing until this is called again; outcomes of what is under way are still taken."""
        ...

    def structures(self) -> Sequence[Structure]:
        """What a checkpoint has to commit so that another frontier can go on from there."""
        ...

    def finished(self) -> bool:
        """Whether nothing is under way and nothing more will be given out."""
        ...

    def gauges(self) -> dict[str, int]:
        """Sizes of its queues by name, for people to watch."""
        ...

    def queues(self) -> dict[str, int]:
        """What waits, by the names of queues and stages, in the order in which URLs pass them."""
        ...

    def traffic(self) -> dict[str, dict[str, Any]]:
        """What it moved on disk since the job began, for the planner: `drum` has the counters of its DRUMs by name, with
        the keys and bytes they hold; `beast` what its queues moved, and what budgets are like; `ranking` what rankings
        moved. Parts that it does not have are left out."""
        ...

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What a person would want to know and has not been told: names of events, with details."""
        ...

    def traced(self) -> list[Decision]:
        """Take the decisions that were traced since the last call; see `Trace`."""
        ...

    def validate(self) -> None:
        """Check every invariant; raises AssertionError."""
        ...

    def close(self) -> None:
        """Let go of its files."""
        ...
