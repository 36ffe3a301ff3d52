"""Which domains only redirect to another one (Sparkman, Lee and Loguinov, section V-D), one number a domain.

    answers of pages ─► gathered by domain ─► DRUM redirects ─ a ranking begins ─► aliases ─► reputation

A domain leads to the one other domain that its redirects named, or to 0: it has a page of its own, or leads to
several. Redirects within a domain say nothing, for the page at their end will speak; neither do failures. What is
said twice changes nothing, so outcomes may be replayed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barkspider.core.events import Prepared
from barkspider.storage.columns import Keys
from barkspider.storage.drum.repository import UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env

NAME = "star/redirects"
NOWHERE = 0  # where a domain leads that does not only redirect to one other
_GATHERED = 4_096  # domains: the DRUM takes them as one batch


class Leads(NamedTuple):
    """Domains that lead to another, by key and ascending, and where; `left_out` more had no room."""

    keys: Keys
    targets: Keys
    left_out: int


NO_LEADS = Leads(np.zeros(0, np.uint64), np.zeros(0, np.uint64), 0)


class DomainRedirects:
    """See the module. A structure of the store; one thread owns it.

    Filled with answers; a ranking reads it. Invariant: what is gathered in RAM is in the DRUM before a commit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     redirects = DomainRedirects(Env(), Path(folder))
    ...     for source, target in ((1, 9), (2, 9), (2, 8), (3, 9), (3, NOWHERE), (1, 9)):
    ...         redirects.add(source, target)
    ...     redirects.merged(wait=True), redirects.leads(most=100), redirects.close()
    (True, Leads(keys=array([1], dtype=uint64), targets=array([9], dtype=uint64), left_out=0), None)
    """

    name = NAME

    def __init__(
        self,
        env: Env,
        folder: Path,
        *,
        sizing: Sizing | Allowance | None = None,
        background: bool = True,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.drum = Drum(
            env,
            folder,
            NAME,
            value=np.dtype("<u8"),
            update=_agreed,
            sizing=sizing,
            background=background,
            state=state,
        )
        self._gathered: dict[int, int] = {}
        self._merging = False  # whether a merge was begun for a ranking that waits for it

    def add(self, source: int, target: int) -> None:
        """A page of the domain `source` redirects into the domain `target`, or with NOWHERE is a page."""
        if self._gathered.setdefault(source, target) != target:
            self._gathered[source] = NOWHERE
        if len(self._gathered) >= _GATHERED:
            self._feed()

    def merged(self, wait: bool) -> bool:
        """Have all that was added so far merged; whether that is done, and `leads` can be asked.

        It is called until it is: what is added meanwhile need not be in.
        """
        if not self._merging and (wait or not self.drum.merging):
            self._feed()
            self.drum.merge(wait=False)
            self._merging = True
        if self.drum.merging and not wait:
            return False
        self._merging = False
        self.drum.wait()
        return True

    def leads(self, most: int) -> Leads:
        """Who leads where, as of the last merge: the first `most` domains in order of keys, which is random."""
        keys, targets = [NO_LEADS.keys], [NO_LEADS.targets]
        room, left_out = most, 0
        for found, values in self.drum.items():
            assert isinstance(values, np.ndarray)
            rows = np.flatnonzero(values != NOWHERE)
            taken = rows[:room]
            keys.append(found[taken])
            targets.append(values[taken])
            room, left_out = room - len(taken), left_out + len(rows) - len(taken)
        return Leads(np.concatenate(keys), np.concatenate(targets), left_out)

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        self._feed()
        return self.drum.prepare()

    def committed(self) -> None:
        """The manifest with the prepared state is safe."""
        self.drum.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self.drum.validate()
        assert len(self._gathered) < _GATHERED

    def close(self) -> None:
        """Close the files; what was committed stays."""
        self.drum.close()

    def _feed(self) -> None:
        if self._gathered:
            keys = np.fromiter(self._gathered.keys(), np.uint64, len(self._gathered))
            targets = np.fromiter(self._gathered.values(), np.uint64, len(self._gathered))
            self.drum.feed(UPDATE, keys, targets)
            self._gathered = {}


def _agreed(old: Keys, new: Keys) -> Keys:
    return np.where(old == new, old, np.uint64(NOWHERE))
