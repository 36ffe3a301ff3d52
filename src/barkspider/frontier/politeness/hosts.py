"""Hosts (names) and their origins, the servers (addresses) they are on, and the URLs that wait for them.

There may be a million hosts, most with a URL or two, so each is one object without containers of its own:
even an empty deque would take more memory than all the rest. `Roster` moves them from state to state.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator
from enum import Enum

from barkspider.core.events import Trail
from barkspider.core.records import UrlRow
from barkspider.frontier.politeness.pauses import HostPace, ServerPace
from barkspider.frontier.politeness.rotation import Rotation
from barkspider.frontier.politeness.slots import BOUNDS, NEW, SLOW
from barkspider.url import DISALLOW_ALL, RobotsRules, origin, split


class State(Enum):
    """Where a host is; see `barkspider.frontier.politeness.roster`."""

    IDLE = "idle"
    WAITING = "waiting"
    UNNAMED = "unnamed"
    DUE = "due"
    BUSY = "busy"
    BLOCKED = "blocked"


class Server(ServerPace):
    """An address, and the hosts on it whose own pause is over."""

    __slots__ = ("address", "busy", "cost", "due", "listed")

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.busy = False
        self.listed = False  # whether it is in the heap of servers, or in line for a slot
        self.cost = NEW  # see `slots`
        self.due = Rotation[Host]()

    def rank(self, host: Host) -> int:
        """That of a request to a host on it; see `slots`."""
        if self.cost == NEW and host.trouble:  # in an earlier run, or at another address
            return SLOW
        return bisect(BOUNDS, self.cost)


class Origin:
    """What is known of the robots.txt of one origin, a scheme, name and port; `robots.rules` says how it changes.

    Its rules are in force `until` a time; it is `asking` while its robots.txt is under way.
    """

    __slots__ = ("asking", "failures", "learned", "name", "refusal", "rules", "until")

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules = DISALLOW_ALL
        self.refusal = ""  # the reason that counters give for what the rules refuse, once they are in force
        self.learned = -math.inf  # when the site gave the rules; never for those that it did not give
        self.until = -math.inf
        self.asking = False
        self.failures = 0  # in a row


class QueuedUrl:
    """A URL in the queue of its host, with its origin where robots.txt counts, and the rules that have allowed it."""

    __slots__ = ("behind", "origin", "row", "rules", "trail")

    def __init__(self, row: UrlRow, trail: Trail, origin: Origin | None, rules: RobotsRules | None) -> None:
        self.row, self.trail, self.origin, self.rules = row, trail, origin, rules
        self.behind: QueuedUrl | None = None


Asked = tuple[str, str, int]  # a robots.txt to fetch: origin, URL, hops
MOST_ORIGINS = 32  # of a host: more than sites have, fewer than a scan of all its ports would make
# Answers since the last look-up that speak for a host's name servers: as quick answers do for a server.
_FEW_ANSWERS, _MANY_ANSWERS = 6, 16


class Host(HostPace):
    """A name: its queue (filled by `Ready.put`, emptied by `Ready.take`) and what we know of it.

    The queue is a chain of entries, from `first` to `last`.
    """

    __slots__ = (
        "address_until",
        "answers",
        "duplicates",
        "errands",
        "error",
        "first",
        "flying",
        "key",
        "last",
        "last_turn",
        "length",
        "lookups",
        "origins",
        "pld",
        "robots",
        "server",
        "state",
    )

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key
        self.pld = 0  # the key of its pay-level domain, once there is anything to ask
        self.state = State.IDLE
        self.first: QueuedUrl | None = None
        self.last: QueuedUrl | None = None
        self.length = 0  # of the queue
        self.flying: QueuedUrl | Asked | None = None  # what is under way
        self.last_turn = -math.inf  # of what was put off
        self.robots: tuple[Asked, ...] = ()  # of its own domain: go before pages; rarely any
        self.errands: tuple[Asked, ...] = ()  # of other domains, which sent us here: go after pages
        self.answers = 0  # since its address was looked up
        self.origins: tuple[Origin, ...] = ()  # rarely more than two
        self.address_until = -math.inf
        self.server: Server | None = None
        self.lookups = 0  # failed ones in a row
        self.error = ""  # why it has no address, until its pause is over
        self.duplicates = 0  # pages whose content was seen before

    def push(self, entry: QueuedUrl) -> None:
        """Queue a URL behind the others."""
        if self.first is None or self.last is None:
            self.first = entry
        else:
            self.last.behind = entry
        self.last = entry
        self.length += 1

    def push_first(self, entry: QueuedUrl) -> None:
        """Queue a URL before the others."""
        entry.behind = self.first
        if self.first is None:
            self.last = entry
        self.first = entry
        self.length += 1

    def pop(self, entry: QueuedUrl) -> None:
        """Take the first entry out of the queue."""
        self.first = entry.behind
        self.length -= 1
        if self.first is None:
            self.last = None

    def queued_urls(self) -> Iterator[QueuedUrl]:
        """The queue, in order."""
        entry = self.first
        while entry is not None:
            yield entry
            entry = entry.behind

    def is_wanted(self) -> bool:
        """Whether there is anything to ask it."""
        return self.first is not None or bool(self.robots or self.errands)

    def name(self) -> str:
        """The host's name, which whatever is queued begins with."""
        for _, url, _ in (*self.robots, *self.errands):
            return split(url).host
        assert self.first is not None
        return split(self.first.row.url.decode()).host

    def lookup_rank(self) -> int:
        """That of looking up its address; see `slots`."""
        if self.answers >= _FEW_ANSWERS:
            return 0 if self.answers >= _MANY_ANSWERS else 1
        if self.answers:
            return 2
        return SLOW if self.lookups or self.trouble else 3

    def find_origin(self, url: str) -> Origin | None:
        """What is known of the origin of one of its URLs."""
        for known in self.origins:
            name = known.name
            if url.startswith(name) and url.startswith("/", len(name)):
                return known
        if "@" in url:
            name = origin(url)
            return next((known for known in self.origins if known.name == name), None)
        return None

    def origin_of(self, url: str) -> Origin | None:
        """As `find_origin`, for one that is made when it is new; None when there are too many."""
        return self.find_origin(url) or self.origin(origin(url))

    def origin(self, name: str) -> Origin | None:
        """What is known of one of its origins, made when it is new; None when there are too many.

        Others can link to as many ports of a host as they like, but not shut out those of http and https.
        """
        for known in self.origins:
            if known.name == name:
                return known
        port = name.partition("://")[2].rpartition("]")[2].partition(":")[2]
        if port and len(self.origins) >= MOST_ORIGINS:
            return None
        known = Origin(name)
        self.origins += (known,)
        return known
