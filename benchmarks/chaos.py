"""200 kills with SIGKILL in one crawl with the IRLbot frontier, and 40 in one with Sydney's.

Half of the kills come at a random time, the others at a random system call of a recovery, a checkpoint or a close, in
the midst of a write (tests/engine/killed.py). The web has servers that are busy or slow, and redirects of every kind.
After each kill the job is verified, and in the end everything is compared with the truth.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.engine.deadly import PHASES
from tests.engine.killed import DEFAULTS, NONE
from tests.engine.killed import run as kill

_KILLS = {"irlbot": 200, "sydney": 40}
_QUICK_KILLS = {"irlbot": 8, "sydney": 4}
_PAGES = {"irlbot": 8_000, "sydney": 800}
_LONGEST = 0.8  # seconds from a start to its kill: a fast machine must not be done before the last one


def run(quick: bool) -> dict[str, Any]:
    """See the module; `quick` kills twelve times."""
    figures: dict[str, Any] = {}
    totals = dict.fromkeys((*NONE, "problems_of_verify"), 0)
    targets: list[dict[str, Any]] = []
    for frontier, kills in (_QUICK_KILLS if quick else _KILLS).items():
        started = time.monotonic()
        order = {"frontier": frontier, "kills": kills, "pages": 150 if quick else _PAGES[frontier], "seed": 7}
        order["longest"] = _LONGEST
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            found = kill(DEFAULTS | order, Path(folder))
        counts = (
            "kills",
            *(f"kills_in_{phase}" for phase in PHASES),
            "starts",
            "truth",
            "requests",
            "records",
        )
        figures |= {f"{frontier}_{name}": found[name] for name in counts}
        figures[f"{frontier}_examples"] = found["examples"] + found["again"] + found["problems"]
        figures[f"{frontier}_seconds"] = round(time.monotonic() - started, 1)
        for name in NONE:
            totals[name] += found[name]
        totals["problems_of_verify"] += len(found["problems"])
        done, wanted = found["kills"], _KILLS[frontier]
        targets.append(
            {
                "name": f"kills with {frontier}",
                "value": None if quick else done,
                "target": wanted,
                "holds": None if quick else done >= wanted,
            }
        )
    targets += [
        {"name": name, "value": value, "target": 0, "holds": value == 0} for name, value in totals.items()
    ]
    return {"figures": figures, "targets": targets}
