"""Hosts (names), the servers (addresses) they are on, and the URLs that wait for them.

There may be a million hosts, most with a URL or two, so each is one object without containers of its own:
even an empty deque would take more memory than all the rest. `Ready` moves them from state to state.
"""

from __future__ import annotations

import math
from enum import Enum

from barkspider.core.events import Trail
from barkspider.core.records import UrlRow
from barkspider.frontier.politeness import HostPace, ServerPace
from barkspider.frontier.robots import Origin
from barkspider.url import split


class State(Enum):
    """Where a host is; see `barkspider.frontier.ready`."""

    IDLE = "idle"
    WAITING = "waiting"
    DUE = "due"
    BUSY = "busy"
    BLOCKED = "blocked"


class Server(ServerPace):
    """An address, and the hosts on it whose own pause is over."""

    __slots__ = ("address", "busy", "due", "listed")

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.busy = False
        self.listed = False  # whether the heap of servers holds it
        self.due: list[Host] = []  # few; a deque takes ten times the memory


class Entry:
    """A URL in the queue of its host."""

    __slots__ = ("behind", "row", "trail")

    def __init__(self, row: UrlRow, trail: Trail) -> None:
        self.row, self.trail = row, trail
        self.behind: Entry | None = None


class Host(HostPace):
    """A name: its queue (filled by `Ready.put`, emptied by `Ready.take`) and what we know of it.

    The queue is a chain of entries, from `first` to `last`.
    """

    __slots__ = (
        "address_until",
        "duplicates",
        "first",
        "key",
        "last",
        "lookups",
        "origins",
        "robots",
        "server",
        "state",
        "taken",
    )

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key
        self.state = State.IDLE
        self.first: Entry | None = None
        self.last: Entry | None = None
        self.robots: tuple[tuple[str, str, int], ...] = ()  # origin, URL, hops: go before pages; rarely any
        self.origins: tuple[Origin, ...] = ()  # rarely more than two
        self.address_until = -math.inf
        self.server: Server | None = None
        self.lookups = 0  # failed ones in a row
        self.taken = 0  # URLs ever put
        self.duplicates = 0  # pages whose content was seen before

    def push(self, row: UrlRow, trail: Trail) -> None:
        """Queue a URL behind the others."""
        entry = Entry(row, trail)
        if self.first is None or self.last is None:
            self.first = entry
        else:
            self.last.behind = entry
        self.last = entry

    def pop(self, entry: Entry) -> None:
        """Take the first entry out of the queue."""
        self.first = entry.behind
        if self.first is None:
            self.last = None

    def name(self) -> str:
        """The host's name, which whatever is queued begins with."""
        if self.robots:
            return split(self.robots[0][1]).host
        assert self.first is not None
        return split(self.first.row.url.decode()).host

    def origin(self, name: str) -> Origin:
        """What is known of one of its origins."""
        for known in self.origins:
            if known.name == name:
                return known
        known = Origin(name)
        self.origins += (known,)
        return known
