"""What the domain of a URL may spend, as the last checkpoint of a crawl has it: its in-degree, or its supporters where these are in
force, and the budget that follows among all domains that are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.settings import Budget
from barkspider.model.budgets import OURS, Budgets, Distribution
from barkspider.storage.env import Env
from barkspider.storage.store.search import numbers

_COUNTED = {"in_degree": "star/indegree", "supporters": "star/supporters"}
_RANKING = "star/graph"


def reputation_of(
    env: Env, parts: Mapping[Path, Mapping[str, Any]], settings: Budget, domain: int
) -> dict[str, int]:
    """What is known of a domain by its key; {} in a crawl that goes by no budgets. `parts` are the states that manifests name, by
    folder. No function of the user's is called: a job may be another's. Reads all that is counted, 12 bytes a domain."""
    by_supporters = any(states.get(_RANKING, {}).get("in_force") for states in parts.values())
    in_force = "supporters" if by_supporters else "in_degree"
    found: dict[str, int] = {}
    for name, drum in _COUNTED.items():
        known = Distribution.of([])
        for folder, states in parts.items():
            if drum in states:
                found.setdefault(name, 0)
                wanted: list[int] = []
                known = known.plus(Distribution.of(_passing(env, folder, drum, states[drum], domain, wanted)))
                found[name] = max(found[name], *wanted, 0)
        if name == in_force and name in found and settings.function in OURS:
            found["budget"] = int(Budgets(settings)(np.array([found[name]]), known)[0])
    return found


def _passing(
    env: Env, folder: Path, drum: str, state: Mapping[str, Any], domain: int, wanted: list[int]
) -> Iterator[npt.NDArray[np.uint32]]:
    """All numbers of a DRUM, block by block; that of the domain is added to `wanted`."""
    for keys, values in numbers(env, folder, drum, state):
        place = int(np.searchsorted(keys, np.uint64(domain)))
        if place < len(keys) and int(keys[place]) == domain:
            wanted.append(int(values[place]))
        yield values
