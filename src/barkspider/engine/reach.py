"""Whom a crawl could not reach, for people to see while it happens, and whether there is anybody whom it could."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barkspider.core.events import HostResolved, PageFetched, RobotsFetched, Seeds, is_temporary
from barkspider.engine.harvest import Reaped
from barkspider.engine.statistics import Problem

_SHOWN = 5  # problems remembered: what a person reads at a glance
_WISHES = ("unwanted_type",)  # failures that the settings ask for, so they are no problem


class Reach:
    """Looks at what comes in; on the loop.

    `untried` hosts are those of seeds from which nothing has come in yet, neither an answer nor a failure. While no
    host has ever answered there are no links and no redirects, so that the seeds are all there is: when each of their
    hosts has failed, whatever still waits does so for a retry.

    >>> reach = Reach([7])
    >>> reach.all_tried()
    False
    """

    def __init__(self, untried: Iterable[int] = ()) -> None:
        self._untried = set(untried)
        self._last: dict[tuple[str, str, str], int] = {}  # how often each problem came up, the newest last

    def take(self, reaped: Sequence[Reaped]) -> None:
        """Look at what came in."""
        for outcome, _, notes, _ in reaped:
            if isinstance(outcome, Seeds):
                self._untried.update(outcome.batch.host_key.tolist())
            elif isinstance(outcome, PageFetched):
                self._untried.discard(outcome.asked.row.host_key)
            elif isinstance(outcome, RobotsFetched) or (
                isinstance(outcome, HostResolved) and outcome.error and not outcome.asked.assigns
            ):
                self._untried.discard(outcome.asked.host_key)
            good = isinstance(outcome, PageFetched) and not outcome.failure
            for note in notes:
                why = note.value("outcome") if note.table == "errors" else ""
                if why == "classifier_error" or (why and not good and why not in _WISHES):
                    self._add(note.value("url_host_name"), note.value("what"), why)
                elif note.table == "robots" and is_temporary(note.value("fetch_status")):
                    self._add(note.value("url_host_name"), "robots", note.value("outcome"))

    def all_tried(self) -> bool:
        """Whether every host of a seed has answered or failed."""
        return not self._untried

    def problems(self) -> tuple[Problem, ...]:
        """The last ones, the newest last."""
        return tuple(Problem(*what, times) for what, times in self._last.items())

    def _add(self, host: str, what: str, why: str) -> None:
        times = self._last.pop((host, what, why), 0)
        self._last[host, what, why] = times + 1
        if len(self._last) > _SHOWN:
            del self._last[next(iter(self._last))]
