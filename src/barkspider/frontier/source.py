"""Where URLs come from when `Ready` wants more, and where new links go: what tells frontiers apart.

outcomes of a step ─► driver ─ Found ─► take ─► source ─► give ─► instructions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import UrlRow
from barkspider.frontier.gate import Saved
from barkspider.frontier.lots import Lot
from barkspider.frontier.standing import Standing
from barkspider.model.budgets import Distribution
from barkspider.url.partition import KeyColumn


class Found(NamedTuple):
    """What one outcome brought in.

    | | page | links | target | barred |
    | --- | --- | --- | --- | --- |
    | seeds | None | the seeds | None | |
    | a page | the page | its links | None | those within a site that has shown too many duplicates |
    | a redirect in scope | the page | its target; nothing if it is not followed | its target | |
    | a batch of another process | None | its links to us | None | |

    `edges` are links between domains, by their keys, sources and targets, that are to be counted here: of other
    processes, or of the page instead of those that its links would make. `standing` is what another process says of
    domains where all go by supporters. `cookies` are those that a redirect has set, `news` what came with a batch
    (`budget.hearsay`), `counts` for how many links each of the links stands.
    """

    page: UrlRow | None
    links: UrlBatch
    target: UrlRow | None = None
    barred: UrlBatch = NO_URLS
    edges: tuple[KeyColumn, KeyColumn] | None = None
    standing: Standing | None = None
    cookies: tuple[str, ...] = ()
    news: bytes = b""
    counts: npt.NDArray[np.uint32] | None = None


def edge_sources(found: Sequence[Found]) -> KeyColumn:
    """For each link the domain of its page, 0 where it makes no edge: a redirect recommends nobody, and where edges are given
    they are all there are."""
    domains = [
        0 if each.page is None or each.target is not None or each.edges is not None else each.page.pld_key
        for each in found
    ]
    return np.repeat(np.array(domains, np.uint64), [len(each.links) for each in found])


class Source(Protocol):
    """A source of URLs: two queues in RAM and on disk, the stages of IRLbot, or a list. One thread calls it.

    It is made with a `Gate`, and hands its URLs on through `gate.put`, those that come back from Q_W included; it counts
    `discovered`, and `deferred` for what it holds itself. Its files are its `structures`, what it has in RAM is kept by
    `save`. The driver does the rest: it applies outcomes, limits pages, and keeps what is in RAM.
    """

    @property
    def structures(self) -> Sequence[Structure]:
        """What a checkpoint has to commit so that another source can go on from there, in this order."""
        ...

    def take(self, found: Sequence[Found], now: float) -> None:
        """Take what the outcomes of one step brought in, in order, after all of them were applied.

        It is called once a step, and only when there is something; `now` is the present, also for what is replayed.
        """
        ...

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """At most `room` instructions, and when to be called again if nothing happens: also when a URL may come back
        from Q_W, as long as there is space for it."""
        ...

    def waiting(self) -> bool:
        """Whether it holds anything that may become a URL to fetch and is not counted as queued or deferred."""
        ...

    def save(self) -> Saved:
        """Hold on to what it has in RAM at this moment."""
        ...

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what was saved, among what others did."""
        ...

    def ranks(self) -> Distribution | None:
        """The in-degrees of the domains that it knows, if it goes by them."""
        ...

    def news(self, to: int) -> bytes:
        """What another process is to hear with the next batch, if anything; it counts as said."""
        ...

    def hear(self, sender: int, news: bytes) -> None:
        """What another process has said so."""
        ...

    def learn_ranks(self, elsewhere: Distribution) -> None:
        """The in-degrees of the domains that other processes count."""
        ...

    def complete(self, now: float) -> None:
        """For a crawl that is divided anew: wait until all that was taken lies somewhere and nothing is being found out."""
        ...

    def lots(self) -> Iterator[Lot]:
        """Give away all that it knows and holds, after `complete`; its files are as the last checkpoint has them."""
        ...

    def adopt(self, lot: Lot) -> None:
        """Take what one of the same class gave away, before anything else is done; the caller counts the URLs."""
        ...

    def gauges(self) -> dict[str, int]:
        """See `core.events.Frontier`."""
        ...

    def queues(self) -> dict[str, int]:
        """See `core.events.Frontier`; Q_W and what is in `Ready` are the driver's to tell."""
        ...

    def traffic(self) -> dict[str, dict[str, Any]]:
        """See `core.events.Frontier`."""
        ...

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """See `core.events.Frontier`."""
        ...

    def validate(self) -> None:
        """Check every invariant of its own; raises AssertionError."""
        ...

    def close(self) -> None:
        """Let go of its files; what was committed stays."""
        ...
