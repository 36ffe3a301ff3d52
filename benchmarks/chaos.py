"""200 kills with SIGKILL in one crawl with the IRLbot frontier, 40 in one with Sydney's, 50 of one by four processes; power
that fails after every operation of two processes.

Half of the kills come at a random time, the others at a random system call of a recovery, a checkpoint or a close, in
the midst of a write (tests/engine/killed.py). The web has servers that are busy or slow, and redirects of every kind.
After each kill the job is verified, and in the end everything is compared with the truth. Of several processes any is
killed at a random time, the supervisor too (tests/parallel/killed.py); in-degrees are compared with those of a crawl that
nobody disturbed. One of them is stopped for a minute, during which the others must go on. Two processes on a disk in RAM lose
power, both or one of them, after every operation (tests/parallel/powerless.py).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.engine.deadly import PHASES
from tests.engine.killed import DEFAULTS, NONE
from tests.engine.killed import run as kill
from tests.parallel.killed import DEFAULTS as SEVERAL
from tests.parallel.killed import NONE as NONE_OF_SEVERAL
from tests.parallel.killed import run as kill_several
from tests.parallel.powerless import power_losses, without_turns

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
    targets += _several(quick, figures, totals)
    targets += _powerless(quick, figures)
    targets += [
        {"name": name, "value": value, "target": 0, "holds": value == 0} for name, value in totals.items()
    ]
    return {"figures": figures, "targets": targets}


def _several(quick: bool, figures: dict[str, Any], totals: dict[str, int]) -> list[dict[str, Any]]:
    """A crawl by several processes, undisturbed and with kills."""
    order: dict[str, Any] = {"seed": 7, "processes": 3 if quick else 4, "pages": 150 if quick else 3_000}
    order |= {"patience": 120.0 if quick else 1_500.0}
    found: dict[Any, dict[str, Any]] = {}
    for kills in (0, 3 if quick else 50):
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            found[kills] = kill_several(SEVERAL | order | {"kills": kills}, Path(folder))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        stopped = kill_several(
            SEVERAL | order | {"kills": 0, "stopped": 4.0 if quick else 60.0}, Path(folder)
        )
    figures["requests_of_others_while_one_is_stopped"] = stopped["requests_while_stopped"]
    calm, killed = found.values()
    found["stopped"] = stopped
    for each in found.values():
        for name in NONE_OF_SEVERAL:
            totals[name] += each[name]
        totals["problems_of_verify"] += len(each["problems"])
    figures |= {
        f"processes_{name}": killed[name]
        for name in ("kills", "kills_of_supervisor", "truth", "requests", "examples")
    }
    same = killed["in_degrees"] == stopped["in_degrees"] == calm["in_degrees"]
    went_on = stopped["requests_while_stopped"]
    return [
        {
            "name": "a process goes on while another is stopped",
            "value": went_on,
            "target": 1,
            "holds": went_on > 0,
        },
        {
            "name": "kills with several processes",
            "value": None if quick else killed["kills"],
            "target": 50,
            "holds": None if quick else killed["kills"] >= 50,
        },
        {"name": "in-degrees are those without kills", "value": same, "target": True, "holds": same},
    ]


def _powerless(quick: bool, figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Power that fails after every operation of two processes, or after some of them."""
    with without_turns():
        losses = list(power_losses(every=100 if quick else 1))
    wrong = [about for about, survived in losses if not survived]
    figures |= {"power_losses": len(losses), "power_losses_examples": wrong[:5]}
    return [
        {"name": "power losses that lost or repeated", "value": len(wrong), "target": 0, "holds": not wrong}
    ]
