"""What one process has collected for another, and the batch that becomes of it.

A batch has links, equal ones once, with the number of links that they stand for; different edges between domains; the trails
and cookies of redirects; what belongs to the scope from now on; and news (`budget.hearsay`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Trail
from barkspider.frontier.standing import Standing
from barkspider.frontier.trails import Trails
from barkspider.url.partition import KeyColumn, slotted

Cookies: TypeAlias = list[
    tuple[str, tuple[str, ...]]
]  # URLs, and the values of Set-Cookie that their answers had
_NO_EDGES = np.empty((2, 0), np.uint64)


class Outbox:
    """See the module; in RAM. One thread."""

    def __init__(self, slot_of: str = "pld_key") -> None:
        """`slot_of` is the column that tells the slot of a URL."""
        self._slot_of = slot_of
        self.links: list[UrlBatch] = []
        self.edges: list[tuple[KeyColumn, KeyColumn]] = []
        self.trails: dict[int, Trail] = {}
        self.cookies: dict[int, Cookies] = {}  # of the redirects that led to a URL, by its key
        self.scope: list[str] = []  # what redirects of seeds have added to it
        # Processes of hosts (`assigning`), which make no batch by themselves.
        self.assigned: dict[int, int] = {}
        self.standing = Standing()
        self._saved: list[KeyColumn] = []  # keys of links that need not be sent
        self.size = 0  # bytes of links
        self.since = math.inf  # when the first of it came

    def __len__(self) -> int:
        """URLs, those that the scope is extended by included."""
        return sum(map(len, self.links)) + len(self.scope) + len(self.standing)

    def __bool__(self) -> bool:
        """Whether there is anything to send."""
        return bool(self.links or self.edges or self.scope or len(self.standing))

    def put(self, links: UrlBatch, now: float) -> None:
        """Take links."""
        self.links.append(links)
        self.size += int(links.packed.lengths().sum())
        self.since = min(self.since, now)

    def put_edges(self, sources: KeyColumn, targets: KeyColumn, now: float) -> None:
        """Take links between domains."""
        self.edges.append((sources, targets))
        self.since = min(self.since, now)

    def extend_scope(self, url: str, now: float) -> None:
        """Take what a seed leads to."""
        self.scope.append(url)
        self.since = min(self.since, now)

    def save_sending(self, keys: KeyColumn) -> None:
        """Count links that their owner has known from the beginning."""
        self._saved.append(keys)

    @property
    def saved(self) -> int:
        """How many URLs the batch would have more without replicas."""
        return len(np.unique(np.concatenate(self._saved))) if self._saved else 0

    def __copy__(self) -> Outbox:
        """What is in it now, while more comes into the other."""
        other = Outbox(self._slot_of)
        other.links, other.edges, other.scope = list(self.links), list(self.edges), list(self.scope)
        other.trails, other.cookies, other._saved = dict(self.trails), dict(self.cookies), list(self._saved)
        other.size, other.since, other.standing = self.size, self.since, copy(self.standing)
        other.assigned = dict(self.assigned)
        return other

    def head(self) -> dict[str, Any]:
        """What of it is for JSON."""
        assigned = {"assigned": list(self.assigned.items())} if self.assigned else {}
        return {"scope": self.scope, "cookies": list(self.cookies.items()), **assigned}

    def save(self) -> dict[str, Any]:
        """The arrays of it as they came, for `load`: then the same batch is made of them."""
        trails = Trails(len(self.trails))
        for key, trail in self.trails.items():
            trails.put(key, trail)
        pairs = np.concatenate([np.stack(edge) for edge in self.edges] or [_NO_EDGES], axis=1)
        saved = np.unique(np.concatenate(self._saved or [_NO_EDGES[0]]))
        links = UrlBatch.join(self.links).encode()
        standing = self.standing.save()
        return {"links": links, "edges": pairs, "trails": trails.save(), "saved": saved, **standing}

    def batch(self) -> dict[str, Any]:
        """The arrays of it as others get them: equal links once, with their number, and different edges."""
        raw = self.save()
        del raw["saved"]
        links = UrlBatch.join(self.links)
        # Here, because it takes a second to compile, and a crawl of one process has no outbox.
        from barkspider.frontier.modes import bundle

        counts = bundle(slotted(links.key, getattr(links, self._slot_of)))
        first, edges = counts > 0, raw["edges"]
        edges = np.ascontiguousarray(np.unique(edges[:, edges[0] != edges[1]], axis=1))
        made = {"links": links.where(first).encode(), "counts": counts[first], "edges": edges}
        return raw | made | self.standing.save(once=True)

    def load(self, head: Mapping[str, Any], saved: Mapping[str, bytes], now: float) -> None:
        """Take what `head` and `save` gave."""
        links, edges = UrlBatch.decode(saved["links"]), edges_of(saved["edges"])
        self.links, self.edges = [links] if len(links) else [], [edges] if len(edges[0]) else []
        self.trails = dict(Trails.pairs(np.frombuffer(saved["trails"], np.uint64)))
        self.cookies, self.scope = cookies_in(head), list(head["scope"])
        self.assigned = assigned_in(head)
        self._saved = [np.frombuffer(saved["saved"], np.uint64)]
        self.standing = Standing.read(saved)
        self.size, self.since = int(links.packed.lengths().sum()), now


def load_boxes(boxes: list[Outbox], head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
    """Fill boxes from what `saved_boxes` gave."""
    for number, about in head["boxes"].items():
        start = f"{number} "
        saved = {name.removeprefix(start): data for name, data in arrays.items() if name.startswith(start)}
        boxes[int(number)].load(about, saved, 0.0)


def saved_boxes(boxes: Mapping[int, Outbox]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is in boxes, by their numbers: something for JSON, and arrays."""
    arrays = {f"{number} {name}": data for number, box in boxes.items() for name, data in box.save().items()}
    return {"boxes": {str(number): box.head() for number, box in boxes.items()}}, arrays


def edges_of(saved: bytes) -> tuple[KeyColumn, KeyColumn]:
    """The sources and targets of edges in a batch."""
    sources, targets = np.frombuffer(saved, np.uint64).reshape(2, -1)
    return sources, targets


def cookies_in(head: Mapping[str, Any]) -> dict[int, Cookies]:
    """The cookies of redirects in what `Outbox.head` gave, by the keys of the URLs that these led to."""
    return {
        int(key): [(str(url), tuple(map(str, values))) for url, values in cookies]
        for key, cookies in head["cookies"]
    }


def assigned_in(head: Mapping[str, Any]) -> dict[int, int]:
    """The processes of hosts in what `Outbox.head` gave."""
    return {int(host): int(process) for host, process in head.get("assigned", ())}
