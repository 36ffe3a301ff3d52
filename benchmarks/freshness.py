"""How fresh copies of 100,000 pages are by the policy of `recrawl --budget`, over 30 days of a virtual clock, beside the formula.

The pages are those of the synthetic web, which change by known rates: 0.5 times a day on average, some a thousand times as often as others.
Half as many visits are made a day as there are pages. What is measured is what `engine.choosing` chooses; once more with the rates that
the visits have shown so far instead of the true ones. Quick: 5,000 pages.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tests.engine.ageing import Ageing

from barkspider.lab.synthweb.changes import Changes
from barkspider.model.freshness import POLICIES, age, frequencies, freshness

_MEAN, _VISITS = 0.5, 0.5  # changes and visits a day, of a page on average
_WARM, _DAYS, _ROUND = 2.0, 30.0, 1 / 24
_LEARNING = 12.0  # of these days until what is learned counts: six visits to a page
_RELEARN = 5.0  # days from one look at what was seen to the next
_NEAR = 0.02


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    pages = 5_000 if quick else 100_000
    budget = round(_VISITS * pages)
    rates = Changes(1, _MEAN).rates(np.arange(pages))
    figures: dict[str, Any] = {"pages": pages, "visits_a_day": budget}
    targets, measured = [], {}
    for policy in POLICIES:
        often = frequencies(policy, rates, budget)
        formula = float(freshness(rates, often).mean())
        before = time.process_time()
        found, old = Ageing(pages, _MEAN, policy, budget).run(_WARM, _WARM + _DAYS, _ROUND)
        measured[policy] = found
        figures[policy] = {
            "freshness": round(found, 4),
            "formula": round(formula, 4),
            "age_days": round(old, 3),
            "age_formula": round(float(age(rates, often).mean()), 3),
            "never_visited": int((often == 0).sum()),
            "cpu_seconds": round(time.process_time() - before, 1),
        }
        targets.append(
            _target(f"{policy}: from the formula", abs(found - formula), _NEAR, abs(found - formula) <= _NEAR)
        )
    learned, old = Ageing(pages, _MEAN, "optimal", budget, learns=_RELEARN).run(
        _LEARNING, _WARM + _DAYS, _ROUND
    )
    figures["optimal, learned"] = {"freshness": round(learned, 4), "age_days": round(old, 3)}
    optimal, uniform, proportional = measured["optimal"], measured["uniform"], measured["proportional"]
    targets.append(_target("optimal less uniform", optimal - uniform, 0.0, optimal >= uniform))
    targets.append(_target("uniform less proportional", uniform - proportional, 0.0, uniform >= proportional))
    targets.append(_target("optimal, learned, less uniform", learned - uniform, 0.0, learned >= uniform))
    return {"figures": figures, "targets": targets}


def _target(name: str, value: float, target: float, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": round(value, 4), "target": target, "holds": holds}
