"""Inputs that nobody means well with: pages, HTTP messages, robots.txt, answers of name servers, links, files of jobs.

Each fuzzer of tests/fuzz changes real data, where it is at hand, or samples of its own, and makes some from scratch; it
runs for a minute in a process of its own, whose memory is bounded, so that a crash or a request for gigabytes is seen
too. Nothing but the project's own errors may come of it (links by
kernels and one by one are compared), and no input may take more CPU time than its bytes allow: a page
50 ms a megabyte and 20 ms more. Every failure is printed with the command that repeats it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzers import FUZZERS

_LONG, _SHORT = 60.0, 5.0  # seconds of each
_MEMORY = 12 << 30  # bytes of address space: numba, Arrow and DuckDB reserve far more than they use
_SHOWN = 5


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    figures: dict[str, Any] = {}
    exceptions, slow, above, idle = 0, 0, 0.0, []
    for name in FUZZERS:
        found = _play(name, _SHORT if quick else _LONG)
        for line in (*found["exceptions"][:_SHOWN], *found["slow"][:_SHOWN]):
            print(f"   {line}", file=sys.stderr)
        figures |= {
            f"{name}_rounds": found["rounds"],
            f"{name}_megabytes": round(found["size"] / 1e6, 1),
            f"{name}_own_errors": found["errors"],
        }
        exceptions += len(found["exceptions"])
        slow += len(found["slow"])
        above += found["seconds_above"]
        if not found["rounds"]:
            idle.append(name)
    figures["inputs_above_the_bound"] = slow
    targets = [
        {"name": "exceptions", "value": exceptions, "target": 0, "holds": not exceptions},
        {"name": "seconds above the bound", "value": round(above, 3), "target": 0, "holds": not slow},
        {"name": "fuzzers without a round", "value": len(idle), "target": 0, "holds": not idle},
    ]
    return {"figures": figures, "targets": targets}


def _play(name: str, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "round"
        options = ["--seconds", str(seconds), "--progress", str(progress)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", name, *options],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY)),
        )
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found
        number = progress.read_text() if progress.exists() else "0"
        why = f"python -m tests.fuzz {name} {number}: ended by {done.returncode}: {done.stderr[-2000:]}"
        return {
            "rounds": int(number),
            "size": 0,
            "errors": 0,
            "exceptions": [why],
            "slow": [],
            "seconds_above": 0.0,
        }
