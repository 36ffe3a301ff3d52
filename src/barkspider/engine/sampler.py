"""What a crawl knows of itself, taken down every second for its history."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.neighbours import Correspondence
from barkspider.engine.recovery import Components
from barkspider.engine.statistics import Statistics
from barkspider.storage.drum.counters import moved_and_predicted

_PAGE = os.sysconf("SC_PAGESIZE")
_COUNTED = (
    *("seconds", "pages", "unchanged", "bytes", "links", "unique_urls", "discovered", "redirects", "queued"),
    *("deferred", "in_flight", "dropped", "ahead", "robots_files", "cpu_seconds"),
)
_REASONS = ("refused", "failed", "out_of_scope", "robots_failed", "rejected", "phases")
_OF_DRUMS = (
    "rows",
    "rows_merged",
    "unique",
    "sifted",
    "aux_bytes",
    "merges",
    "merge_microseconds",
    "keys",
    "ram",
)
# Gauges that are not told as queues or counters.
_GAUGES = ("hosts", "domains", "edges", "origins", "over_budget", "rescans", "largest", "loop_held")


def sample_of(
    time: float,
    now: Statistics,
    queues: Mapping[str, int],
    traffic: Mapping[str, Mapping[str, Any]],
    others: dict[str, float],
) -> dict[str, float]:
    """One moment as numbers by name; those of a group are named `group.member`."""
    about = now.as_dict()
    sample: dict[str, float] = {"time": time, **{name: about[name] for name in _COUNTED}}
    for group in _REASONS:
        sample |= {f"{group}.{name}": value for name, value in about[group].items()}
    sample |= {name: now.gauges[name] for name in _GAUGES if name in now.gauges}
    sample |= {f"queues.{name}": length for name, length in queues.items()}
    for name, drum in traffic.get("drum", {}).items():
        sample |= {f"drums.{name}.{each}": drum[each] for each in _OF_DRUMS}
        moved, predicted = moved_and_predicted(drum)
        sample |= {f"drums.{name}.moved": moved, f"drums.{name}.predicted": predicted}
    if "beast" in traffic:
        beast = traffic["beast"]
        sample |= {"drums.beast.moved": beast["read"] + beast["written"], "budget": beast["budget"]}
    return sample | others


class Sampler:
    """Takes the samples of one crawl, on its loop: a third of a millisecond each.

    `others` is asked for the processes with which the crawl is divided, which are told to it after it was made.
    """

    def __init__(
        self,
        components: Components,
        checkpointer: Checkpointer,
        statistics: Callable[[], Statistics],
        others: Callable[[], Correspondence | None],
    ) -> None:
        self._components, self._checkpointer = components, checkpointer
        self._statistics, self._others = statistics, others

    def take(self, disk_free: int) -> None:
        """Add the present moment to the history."""
        components, traffic = self._components, self._components.frontier.traffic()
        held, share = components.worker.received()
        used = {name: (drum["ram"], drum["ram_share"]) for name, drum in traffic.get("drum", {}).items()}
        used["received"] = held, share
        if "ready" in traffic:
            used["ready"] = traffic["ready"]["ram"], traffic["ready"]["ram_share"]
        about = {
            "rss": _resident(),
            "disk_free": disk_free,
            "checkpoints": components.ledger.checkpoints,
            "checkpoint_seconds": self._checkpointer.held_in_all,
            "checkpoint_written_seconds": self._checkpointer.written_in_all,
            **{f"ram.{name}": float(now) for name, (now, _) in used.items()},
            **{f"ram_share.{name}": float(most) for name, (_, most) in used.items()},
            **{f"fetches.{name}": number for name, number in components.tally.timings.sample().items()},
            **self._exchanged(),
        }
        sample = sample_of(
            components.clock.wall(), self._statistics(), components.frontier.queues(), traffic, about
        )
        components.history.add(sample)

    def _exchanged(self) -> dict[str, float]:
        """Batches by pair: sent to each other part, taken from each."""
        others = self._others()
        if others is None:
            return {}
        me, told = self._components.job.settings.parallel.part, others.state()
        sent = {f"exchange.{me}>{to}": count for to, count in enumerate(told["sealed"]) if to != me}
        taken = {
            f"exchange.{who}>{me} taken": count for who, count in enumerate(told["applied"]) if who != me
        }
        return sent | taken


def _resident() -> int:
    """Bytes of RAM that this process has at this moment."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (a tenth of the time of Path)
        return int(file.read().split()[1]) * _PAGE
