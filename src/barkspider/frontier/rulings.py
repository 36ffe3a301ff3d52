"""Rulings: what people have said about URLs that are to be left alone, and what follows from it where one comes up.

    barkspider block, allow, unblock ─► Ruled, a record of the journal ─┐
    files that are watched ─────────────────────────────────── follow ─┴─► Lists ─► judge, where URLs come up

The rules that were given one by one are part of a checkpoint; files are read by whoever watches them. Nobody searches
queues when rules change: what is queued is judged where it comes up. In a job whose scope was changed since it was begun,
what was found before is judged by scope there, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.url import Domains
from barkspider.url.lists import Lists, Rule, parse_rule

BLOCK, ALLOW, UNBLOCK, PARDON = "block", "allow", "unblock", "pardon"
# Rules that are counted each by itself; what further ones block counts together.
_COUNTED, _OTHERS = 1_000, "others"

ScopeJudge = Callable[[Sequence[UrlRow]], Sequence[str]]  # why URLs are not in scope, "" for those that are


class Rulings:
    """See the module. Part of `Gate`, in its thread. `number` grows with every change.

    >>> rulings = Rulings(Settings())
    >>> rulings.apply("block", "bad.example")
    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://www.bad.example/")
    >>> rulings.blocked([row]), rulings.counts, rulings.number
    (['domain:bad.example'], Counter({'domain:bad.example': 1}), 1)
    >>> rulings.apply("unblock", "bad.example"); rulings.blocked([row])
    ['']
    """

    def __init__(self, settings: Settings) -> None:
        self._domains = Domains(settings.url.private_suffixes)
        self._given: dict[Rule, str] = {}  # to block or to allow
        self._files: tuple[Mapping[Rule, str], Mapping[Rule, str]] = {}, {}
        self.counts = Counter[str]()  # URLs that came up and were blocked, by rule
        self.number = 0
        self.lists = Lists({}, {}, self._domains)
        self._scope = json.dumps(asdict(settings.scope))
        self._first_scope = self._scope
        self._scope_judge: ScopeJudge | None = None

    @property
    def judges(self) -> bool:
        """Whether there is anything to judge URLs by."""
        return self.lists.blocks or self.judges_scope

    @property
    def judges_scope(self) -> bool:
        """Whether what was found earlier may be out of scope now."""
        return self._scope_judge is not None and self._first_scope != self._scope

    def judge_scope_by(self, judge: ScopeJudge) -> None:
        """Let somebody say what is in scope."""
        self._scope_judge = judge

    def apply(self, what_to_do: str, about: str) -> None:
        """One change, as people gave it."""
        rule = parse_rule(about, self._domains)
        if what_to_do == UNBLOCK:
            self._given.pop(rule, None)
        else:
            self._given[rule] = what_to_do
        self._make()

    def follow(self, block: Mapping[Rule, str], allow: Mapping[Rule, str]) -> None:
        """What files say from now on, each rule with the file that it counts for."""
        self._files = block, allow
        self._make()

    def given(self) -> dict[str, str]:
        """What was given one by one: to block or to allow, by rule."""
        return {str(rule): what for rule, what in self._given.items()}

    def blocked(self, rows: Sequence[UrlRow], address: str = "") -> list[str]:
        """For each URL the rule that blocks it, "" if none does; those that are blocked are counted."""
        if not self.lists.blocks:
            return [""] * len(rows)
        names = self.lists.judge([row.url.decode() for row in rows], address)
        for name in filter(None, names):
            known = name in self.counts or len(self.counts) < _COUNTED
            self.counts[name if known else _OTHERS] += 1
        return names

    def out_of_scope(self, rows: Sequence[UrlRow]) -> Sequence[str]:
        """For each URL why it is not in scope any more, "" if it is."""
        if self._scope_judge is None or not self.judges_scope:
            return [""] * len(rows)
        return self._scope_judge(rows)

    def save(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"given": self.given(), "counts": dict(self.counts), "scope": self._first_scope}

    def load(self, saved: Mapping[str, Any]) -> None:
        """What a checkpoint has; {} of one of before, whose scope nobody knows."""
        self._first_scope = str(saved.get("scope", ""))
        self.counts.update(saved.get("counts", {}))
        self._given = {
            parse_rule(rule, self._domains): str(what) for rule, what in saved.get("given", {}).items()
        }
        self._make()

    def _make(self) -> None:
        block, allow = (
            {**files, **{rule: str(rule) for rule, what in self._given.items() if what == kind}}
            for files, kind in zip(self._files, (BLOCK, ALLOW), strict=True)
        )
        self.lists = Lists(block, allow, self._domains)
        self.number += 1
