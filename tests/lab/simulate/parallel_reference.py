"""Parallel crawls with sets and dictionaries, one page after the other: slow, and as the paper tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from barkspider.lab.simulate.parallel import Setup


@dataclass
class Process:
    """A crawling process: what it knows, what it fetched, what it has to send."""

    number: int
    waiting: dict[int, int] = field(default_factory=dict)  # page to backlinks, in order of discovery
    fetched: set[int] = field(default_factory=set)
    outbox: list[int] = field(default_factory=list)
    since: int = 0

    def hear(self, page: int, links: int = 1) -> None:
        if page not in self.fetched:
            self.waiting[page] = self.waiting.get(page, 0) + links

    def best(self, owners: list[int], by_backlinks: bool, keeps_apart: bool) -> int:
        def rank(page: int) -> tuple[bool, int]:
            return keeps_apart and owners[page] == self.number, self.waiting[page] if by_backlinks else 0

        return max(self.waiting, key=rank)  # the first of the best, which is known longest


@dataclass
class Found:
    times: Counter[int] = field(default_factory=Counter)
    first: dict[int, int] = field(default_factory=dict)
    by_tick: list[int] = field(default_factory=list)
    sent: int = 0


def crawl(
    links: list[list[int]], setup: Setup, owners: list[int], seeds: list[list[int]], replicated: set[int]
) -> Found:
    """The same as `simulate.parallel.Simulation.crawl`, if all goes well; replicated pages must be seeds too."""
    limit = setup.pages or len(links) * setup.processes
    exchanges = setup.exchanges or 0
    marks = [limit * number // (exchanges + 1) for number in range(1, exchanges + 1)]
    meets = setup.exchanges is not None
    processes = [Process(number) for number in range(setup.processes)]
    by_backlinks = setup.order == "backlinks"
    for process, pages in zip(processes, seeds, strict=True):
        for page in pages:
            process.waiting.setdefault(page, 1)
    found, fetched = Found(), 0
    while fetched < limit:
        active = [process for process in processes if process.waiting]
        if setup.mode in ("independent", "cross-over") and fetched + len(active) > limit:
            break
        active = active[: limit - fetched]
        for process in active:
            page = process.best(owners, by_backlinks, setup.mode != "independent")
            del process.waiting[page]
            process.fetched.add(page)
            process.since += 1
            found.times[page] += 1
            found.first.setdefault(page, len(found.by_tick))
            for target in links[page]:
                is_own = owners[target] == process.number
                if is_own or setup.mode in ("independent", "cross-over"):
                    process.hear(target)
                elif setup.mode == "exchange" and target not in replicated:
                    process.outbox.append(target)
        fetched += len(active)
        has_sent = False
        if not meets:
            due = [
                each for each in processes if each.since >= setup.batch or (not each.waiting and each.since)
            ]
        elif marks and (fetched >= marks[0] or not active):
            due = processes
            del marks[0]
        else:
            due = []
        for process in due:
            has_sent = True
            for page, count in Counter(process.outbox).items():
                found.sent += 1
                processes[owners[page]].hear(page, count)
            process.outbox, process.since = [], 0
        if not active and not has_sent:
            break
        found.by_tick.append(len(active))
    return found
