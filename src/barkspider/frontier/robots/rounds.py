"""Q_R of IRLbot (figure 2) in rounds: URLs that wait for a robots.txt, and when they are to be checked again.

A round is a number of items of a disk queue, behind those of the rounds before it. It takes items in until it is
closed, and it is read back, in portions, when everything that was asked for its sake is settled, or when the
patience with it is over.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.core.texts import Texts
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_LONG_AGO = -1e18


@dataclass(slots=True)
class _Round:
    items: int  # that are still in the queue
    opened: float
    undecided: int  # origins of which it is not known yet whether they have to be asked
    mark: int  # asks below this number are those it waits for, once all are decided


class Rounds:
    """See the module. Filled and emptied by `Permits`, in one thread.

    Invariant: the items of the rounds, the first one first, are the items of the queue.
    """

    def __init__(
        self, env: Env, folder: Path, name: str, patience: float, block: int, state: dict[str, Any] | None
    ) -> None:
        self._patience = patience
        self._rounds: list[_Round] = []
        self._number = 0  # of the first round
        self._is_open = False  # whether the last one takes items in
        self._queue = DiskQueue(
            env, folder, name, block=block, state=None if state is None else state["queue"]
        )
        if state is not None:
            self._number = int(state["number"])
            self._rounds = [_Round(*fields) for fields in state["rounds"]]
            if sum(each.items for each in self._rounds) != len(self._queue):
                raise StorageError(f"the state of {name} is damaged: its rounds do not have its items")

    def __len__(self) -> int:
        """Rounds that were not read to the end."""
        return len(self._rounds)

    @property
    def items(self) -> int:
        """What waits in all of them."""
        return len(self._queue)

    def enter(self, items: Texts, now: float) -> int:
        """Let items wait, each for one origin; the number of their round."""
        if not self._is_open:
            self._rounds.append(_Round(0, now, 0, 0))
            self._is_open = True
        self._queue.append_batch(items.to_arrow())
        last = self._rounds[-1]
        last.items += len(items)
        last.undecided += len(items)
        return self._number + len(self._rounds) - 1

    def close_round(self) -> None:
        """What enters from now on belongs to the next round."""
        self._is_open = False

    def decided(self, number: int, count: int, mark: int) -> None:
        """So many origins of a round have been asked, or had been before: all asks are below `mark`."""
        place = number - self._number
        if place < 0:
            return  # it was read already, because it had waited for too long
        found = self._rounds[place]
        found.undecided -= count
        found.mark = mark
        if place == len(self._rounds) - 1:
            self._is_open = False

    def read(self, now: float, settled: int) -> Texts:
        """The next portion of a round that is due, or nothing; asks below `settled` are settled."""
        if not self._rounds:
            return Texts.of([])
        due = self._rounds[0]
        if now < due.opened + self._patience and (due.undecided or settled < due.mark):
            return Texts.of([])
        if len(self._rounds) == 1:
            self._is_open = False
        found = Texts.from_arrow(self._queue.pop_batch(due.items))
        due.items -= len(found)
        if due.items == 0:
            del self._rounds[0]
            self._number += 1
        return found

    def hurry(self) -> None:
        """All that wait now are due."""
        for each in self._rounds:
            each.opened = _LONG_AGO

    def impatient(self) -> float:
        """When the patience with the first round is over."""
        return self._rounds[0].opened + self._patience if self._rounds else float("inf")

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        prepared, number = self._queue.prepare(), self._number
        rounds = [astuple(each) for each in self._rounds]

        def describe() -> dict[str, Any]:
            queue = prepared()
            return {"queue": queue, "rounds": rounds, "number": number, "files": queue["files"]}

        return describe

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._queue.committed()

    def validate(self) -> None:
        """Check the invariants."""
        assert sum(each.items for each in self._rounds) == len(self._queue)
        assert all(each.items > 0 and each.undecided >= 0 for each in self._rounds)
        assert self._rounds or not self._is_open
        self._queue.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        self._queue.close()
