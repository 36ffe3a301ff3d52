"""Supporters in a crawl that several processes divide: one of them ranks the domains of all.

    links of a process ─► edges, answers of pages ─► batch for the ranker ─► its graph of domains
    what a ranking finds ─► Score ─► Scored, a record of the journal ─► own domains, and batches for the owners of the others

Domains at a distance of two are known to nobody who has only the links to his own. So every different edge of a batch goes to
the ranker, with what pages say of redirects where these count, 16 bytes each; what it finds comes back with batches, 12 bytes a
domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barkspider.core.events import Score
from barkspider.url.partition import KeyColumn

Pairs = tuple[KeyColumn, KeyColumn]
_NOBODY = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
_DECISIONS = (None, False, True)  # how `Score.in_force` is kept
_ARRAYS = ("ranked", "answers", "scored", "supporters", "decision")


class Standing:
    """What a batch has about domains for another process: `edges` and `answers` for the ranker, `scores` from it.

    Answers are domains and where their pages lead (`budget.domain_redirects`).

    >>> standing = Standing()
    >>> standing.report((np.array([1, 1], np.uint64), np.array([9, 9], np.uint64)), (np.array([1], np.uint64), np.array([0], np.uint64)))
    >>> len(standing), Standing.read({name: bytes(data) for name, data in standing.save(once=True).items()}).edges
    (1, [(array([1], dtype=uint64), array([9], dtype=uint64))])
    """

    def __init__(self) -> None:
        self.edges: list[Pairs] = []
        self.answers: list[Pairs] = []
        self.scores: list[Score] = []

    def __len__(self) -> int:
        """1 if there is anything: a batch of nothing else is due too."""
        return int(bool(self.edges or self.answers or self.scores))

    def __copy__(self) -> Standing:
        """What is in it now."""
        other = Standing()
        other.edges, other.answers, other.scores = list(self.edges), list(self.answers), list(self.scores)
        return other

    def report(self, edges: Pairs, answers: Pairs) -> None:
        """For the ranker: edges between domains, and answers."""
        self.edges += [edges] if len(edges[0]) else []
        self.answers += [answers] if len(answers[0]) else []

    def save(self, once: bool = False) -> dict[str, Any]:
        """As arrays; `once` leaves out what is said twice. Nothing where there is nothing."""
        if not len(self):
            return {}
        scores = [(score.keys, score.supporters) for score in self.scores] or [_NOBODY]
        decisions = [score.in_force for score in self.scores if score.in_force is not None]
        return {
            "ranked": _joined(self.edges, once),
            "answers": _joined(self.answers, once),
            "scored": np.concatenate([keys for keys, _ in scores]),
            "supporters": np.concatenate([counts for _, counts in scores]),
            "decision": np.array([_DECISIONS.index(decisions[-1] if decisions else None)], np.uint8),
        }

    @classmethod
    def read(cls, arrays: Mapping[str, bytes]) -> Standing:
        """What `save` gave, among other arrays."""
        found = cls()
        if all(name in arrays for name in _ARRAYS):
            found.report(_split(arrays["ranked"]), _split(arrays["answers"]))
            keys = np.frombuffer(arrays["scored"], np.uint64)
            decision = _DECISIONS[arrays["decision"][0]]
            if len(keys) or decision is not None:
                found.scores.append(Score(keys, np.frombuffer(arrays["supporters"], np.uint32), decision))
        return found


def _joined(pairs: Sequence[Pairs], once: bool) -> Any:
    both = np.concatenate([np.stack(pair) for pair in pairs] or [np.zeros((2, 0), np.uint64)], axis=1)
    return np.ascontiguousarray(np.unique(both, axis=1)) if once else both


def _split(saved: bytes) -> Pairs:
    first, second = np.frombuffer(saved, np.uint64).reshape(2, -1)
    return first, second
