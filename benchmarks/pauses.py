"""How often a crawl in real time asked a host or a server too soon: never, in the log of those who were asked.

A crawl of the synthetic web with the default delays of hosts and servers and many hosts, so that there is always one
whose turn it is, with the IRLbot frontier. In the middle it is stopped and resumed.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from barkspider import load_settings
from barkspider.core.settings import Politeness
from barkspider.engine import crawl, resume
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web

_SECONDS, _QUICK_SECONDS = 60, 20
_SPEC = WebSpec(seed=9, pages=50_000, domains=4_000, servers=400, page_bytes=4_000, crawl_delay=3.0)
_LEAST_REQUESTS = 1_000


def run(quick: bool) -> dict[str, Any]:
    """See the module; `quick` takes 20 seconds."""
    seconds = _QUICK_SECONDS if quick else _SECONDS
    with tempfile.TemporaryDirectory(prefix="pauses-") as name:
        folder = Path(name)
        with running_web(_SPEC, log_path=folder / "requests.log") as served:
            options = [f"{name}={value}" for name, value in served.settings().items()]
            options += ["scope.level=web", "seed=9", "frontier=irlbot", f"limits.time={seconds / 2:g}s"]
            settings = load_settings(options=options)
            crawl(served.web.seeds(1_000), folder / "job", settings)
            done = resume(folder / "job")
            figures = _look(served, settings.politeness)
    figures |= {"seconds": seconds, "pages": done.pages}
    requests, breaches = figures["requests"], figures["breaches"]
    targets = [
        {"name": "breaches", "value": breaches, "target": 0, "holds": breaches == 0},
        {
            "name": "requests",
            "value": None if quick else requests,
            "target": _LEAST_REQUESTS,
            "holds": None if quick else requests >= _LEAST_REQUESTS,
        },
    ]
    return {"figures": figures, "targets": targets}


def _look(served: RunningWeb, politeness: Politeness) -> dict[str, Any]:
    """The shortest pauses in the log, as multiples of what is due, and how many were shorter than that."""
    assert served.log_path is not None
    last: dict[str, float] = {}
    breaches = 0
    shortest = {"host": math.inf, "server": math.inf}
    requests = read_log(served.log_path)
    for entry in requests:
        due = {
            "host": (entry.host, max(politeness.host_delay, served.web.crawl_delay(entry.host) or 0.0)),
            "server": (entry.address, politeness.server_delay),
        }
        for kind, (name, delay) in due.items():
            pause = (entry.time - last.get(name, -math.inf)) / delay
            shortest[kind] = min(shortest[kind], pause)
            breaches += pause < 1.0
            last[name] = entry.time
    return {
        "requests": len(requests),
        "hosts": len({entry.host for entry in requests}),
        "servers": len({entry.address for entry in requests}),
        "breaches": breaches,
        **{f"shortest_pause_of_{kind}": round(pause, 4) for kind, pause in shortest.items()},
    }
