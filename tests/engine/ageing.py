"""A crawl of the synthetic web that is kept fresh on a virtual clock: its pages change by known rates, a budget is spent on them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from barkspider.engine.choosing import DAY, Budget, Choice, Rated
from barkspider.lab.synthweb.changes import Changes, move_on
from barkspider.model.freshness import Numbers, estimate, frequencies

_LONG = 1_000.0  # days that it has gone on: more than any page waits


@dataclass
class Ageing:
    """Copies of so many pages; times are in days, and it begins as if it had gone on for long: each copy is as old as it may be by then. With `learns` the rates are those that visits have shown so far, looked at
    anew every `learns` days, or 0 for the true ones."""

    pages: int
    mean: float
    policy: str
    budget: int
    learns: float = 0.0
    seed: int = 1
    visits: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def run(self, start: float, end: float, step: float) -> tuple[float, float]:
        """Spend the budget of a day in rounds until a time; the mean freshness and age from `start` on."""
        numbers = np.arange(self.pages)
        changes = Changes(self.seed, self.mean)
        rates = changes.rates(numbers)
        known = np.full(self.pages, np.nan) if self.learns else rates
        policy = "uniform" if self.learns else self.policy  # before anything is known
        waits = 1 / np.maximum(frequencies(policy, rates, self.budget), 1 / _LONG)
        last = _LONG - np.random.default_rng(self.seed).random(self.pages) * waits
        versions, nexts = np.full(self.pages, -1), np.zeros(self.pages)
        move_on(self.seed, self.mean, last, numbers, versions, nexts)
        start, end = start + _LONG, end + _LONG
        fresh = old = 0.0
        rounds, spent, learned = round((end - _LONG) / step), 0, _LONG
        for number in range(1, rounds + 1):
            now = _LONG + number * step
            pages = Rated(numbers.astype(np.uint64), known / DAY, last * DAY, numbers)
            due = round(self.budget * (now - _LONG)) - spent
            spent += due
            choice = Choice(Budget(due, due * DAY / self.budget, self.policy), now * DAY)
            choice.count(pages)
            choice.decide()
            chosen = np.ones(self.pages, bool) if number == rounds else choice.due(pages)
            some, before = numbers[chosen], last[chosen]
            fresh += float(np.maximum(np.minimum(nexts[chosen], now) - np.maximum(before, start), 0.0).sum())
            since = np.maximum(nexts[chosen], 0.0)
            late, early = np.maximum(now - since, 0.0), np.maximum(np.maximum(before, start) - since, 0.0)
            old += float((late**2 - np.minimum(early, late) ** 2).sum() / 2)
            there, coming = versions[some], nexts[some]
            move_on(self.seed, self.mean, np.full(len(some), now), some, there, coming)
            self.visits.append((some, now - before, there > versions[some]))
            versions[some], nexts[some], last[some] = there, coming, now
            if self.learns and now - learned >= self.learns:
                learned = now
                known = self.seen()
        return fresh / (self.pages * (end - start)), old / (self.pages * (end - start))

    def seen(self) -> Numbers:
        """The rates of pages as visits have shown them."""
        page, waits, changed = (np.concatenate(column) for column in zip(*self.visits, strict=True))
        order = np.argsort(page, kind="stable")
        page, waits, changed = page[order], waits[order], changed[order]
        firsts = np.flatnonzero(np.append(True, page[1:] != page[:-1]))
        found = np.full(self.pages, np.nan)
        found[page[firsts]] = estimate(firsts, waits, changed)[0]
        return found
