"""What the domains of URLs may spend, as the last checkpoint of a crawl has it: their in-degree, or their supporters where these are in
force, and the budget that follows among all domains that are known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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


def reputations(
    env: Env, parts: Mapping[Path, Mapping[str, Any]], settings: Budget, domains: Collection[int]
) -> dict[int, dict[str, int]]:
    """What is known of domains by their keys; {} of each in a crawl that goes by no budgets. `parts` are the states that manifests
    name, by folder. No function of the user's is called: a job may be another's. Reads all that is counted, 12 bytes a domain."""
    by_supporters = any(states.get(_RANKING, {}).get("in_force") for states in parts.values())
    in_force = "supporters" if by_supporters else "in_degree"
    found: dict[int, dict[str, int]] = {domain: {} for domain in domains}
    for name, drum in _COUNTED.items():
        holders = [(folder, states[drum]) for folder, states in parts.items() if drum in states]
        if not holders:
            continue
        scores, known = dict.fromkeys(domains, 0), Distribution.of([])
        for folder, state in holders:
            known = known.plus(Distribution.of(_passing(env, folder, drum, state, scores)))
        for domain, score in scores.items():
            found[domain][name] = score
            if name == in_force and settings.function in OURS:
                found[domain]["budget"] = int(Budgets(settings)(np.array([score]), known)[0])
    return found


def _passing(
    env: Env, folder: Path, drum: str, state: Mapping[str, Any], scores: dict[int, int]
) -> Iterator[npt.NDArray[np.uint32]]:
    """All numbers of a DRUM, block by block; those of the domains that are wanted go into `scores`."""
    wanted = np.array(list(scores), np.uint64)
    for keys, values in numbers(env, folder, drum, state):
        here = np.flatnonzero(np.isin(keys, wanted))
        for place in here.tolist():
            domain = int(keys[place])
            scores[domain] = max(scores[domain], int(values[place]))
        yield values
