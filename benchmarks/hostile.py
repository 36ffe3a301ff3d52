"""What good hosts lose while every hazard of tests/hostile is crawled beside them, and under each attack alone.

Three crawls of the synthetic web, each for the same time: alone, with all hazards and 200 silent hosts, alone
again. The crawler has one core for itself, the servers share the other. Each hazard is met once, with the
deadlines of a real crawl, so slow ones last as long as the crawl. Good pages are counted, per second and per
CPU-second of the crawler; alone is the better one of before and after. A crawl before them does not count: a web that
makes its sites for the first time gave 1,282 pages a second where it later gave 2,249, and the crawl between the two would
be compared with the later one. Then `_attacks`: ten honest hosts and each attack by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.warcs import archived
from tests.hostile.attacks.attack import NOBODY
from tests.hostile.attacks.table import ATTACKS
from tests.hostile.certificates import server_context
from tests.hostile.hazard import DOMAIN, Hazard
from tests.hostile.names import Script
from tests.hostile.server import ADDRESS, Line, Request, Serve, hostile_server, ok
from tests.hostile.silent import mute
from tests.hostile.table import CRAWLS, FETCHES

from barkspider import crawl, load_settings
from barkspider.lab.synthweb import Web, WebSpec, running_web
from barkspider.lab.synthweb.dns import respond
from benchmarks import _attacks

_SPEC = WebSpec(seed=1, pages=200_000, servers=250, page_bytes=23_000)
_CROWDS = (31, 32)  # endless names: what a domain takes from others is a matter of budgets, not of hazards
_HAZARDS: list[Hazard] = [
    hazard
    for hazard in (*FETCHES, *CRAWLS)
    if hazard.scripts and hazard.connects and hazard.number not in _CROWDS
]
_SILENT = [f"127.77.0.{number}" for number in range(1, 201)]
_LONG = 30.0  # seconds of each crawl
_SHORT = 8.0
_LEAST_SHARE = 0.9
_MOST_HELD = 100  # milliseconds, on a quiet machine


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    cores = sorted(os.sched_getaffinity(0))
    with running_web(_SPEC) as served, _hostile_process() as (process, ports):
        for pid in (served.process.pid, process.pid):
            os.sched_setaffinity(pid, {cores[-1]})
        order = ports | {
            "http_port": served.http_port,
            "good": served.web.seeds(2_000),
            "seconds": _SHORT if quick else _LONG,
        }
        _, before, together, after = (
            _crawl(order | {"hostile": hostile}, cores[0]) for hostile in (False, False, True, False)
        )
    figures: dict[str, Any] = {"hazards": len(_HAZARDS), "silent_hosts": len(_SILENT)}
    for name, found in (("before", before), ("together", together), ("after", after)):
        figures |= {f"{name}_{key}": value for key, value in found.items()}
    growth = together["peak_rss_mib"] - max(before["peak_rss_mib"], after["peak_rss_mib"])
    figures["peak_rss_growth_mib"] = round(growth, 1)
    targets = []
    for name in ("pages_per_second", "pages_per_cpu_second"):
        share = round(together[name] / max(before[name], after[name]), 3)
        figures[f"share_of_{name}"] = share
        # In a short crawl one meeting with every hazard is a tenth of all work: that says nothing of a long one.
        targets.append(
            {
                "name": f"good {name.replace('_', ' ')}: share",
                "value": None if quick else share,
                "target": _LEAST_SHARE,
                "holds": None if quick else share >= _LEAST_SHARE,
            }
        )
    _measure_attacks(quick, figures, targets)
    return {"figures": figures, "targets": targets}


def _measure_attacks(quick: bool, figures: dict[str, Any], targets: list[dict[str, Any]]) -> None:
    """Each attack alone; a quick run has one of them, for too short a time to judge by."""
    alone = _attacks.measure(NOBODY, 5.0 if quick else 20.0)
    figures |= {f"{NOBODY.name}: {key}": value for key, value in alone.items()}
    for number, attack in enumerate(ATTACKS):
        share, held = None, None
        if number == 0 or not quick:
            found = _attacks.measure(attack, 5.0 if quick else 20.0)
            figures |= {f"{attack.name}: {key}": value for key, value in found.items()}
            if not quick:
                share = round(found["good_per_second"] / alone["good_per_second"], 3)
                held = found["loop_held"]
        targets += [
            {
                "name": f"{attack.name}: share of good requests",
                "value": share,
                "target": _LEAST_SHARE,
                "holds": None if share is None else share >= _LEAST_SHARE,
            },
            {
                "name": f"{attack.name}: loop held, ms",
                "value": held,
                "target": _MOST_HELD,
                "holds": None if held is None else held <= _MOST_HELD,
            },
        ]


# ── the crawler, in a process of its own ──────────────────────────────────────────────────────────


def _crawl(order: dict[str, Any], core: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.hostile", "crawl", json.dumps(order)]
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})
    )
    if done.returncode:
        raise RuntimeError(f"the crawl failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _crawl_main(order: dict[str, Any]) -> None:
    real = ",".join(
        f"{network}:{port}={order[key]}"
        for network, port, key in (
            ("127.16.0.0/16", 80, "http_port"),
            ("127.66.0.0/16", 80, "hostile_port"),
            ("127.66.0.0/16", 443, "tls_port"),
            ("127.77.0.0/16", 80, "silent_port"),
        )
    )
    options = [
        "network.allow=127.16.0.0/16,127.66.0.0/16,127.77.0.0/16",
        f"network.ports={real}",
        f"dns.servers=127.0.0.1:{order['dns_port']}",
        f"fetch.tls_authority={order['authority']}",
        f"limits.time={order['seconds']:g}s",
        *("scope.level=web", "seed=5", "limits.grace=0s", "fetch.in_flight=1000"),
        *("politeness.host_delay=100ms", "politeness.server_delay=0s", "sydney.sample=0"),
    ]
    seeds = [*order["good"], *(order["seeds"] if order["hostile"] else ())]
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        statistics = crawl(seeds, job, load_settings(options=options))
        hostile = {seed.split("/")[2] for seed in order["seeds"]}
        hosts = [url.split("/")[2] for url in archived(job, "pages")]
        good = sum(host not in hostile and not host.endswith(DOMAIN) for host in hosts)
    print(
        json.dumps(
            {
                "good_pages": good,
                "other_pages": statistics.pages - good,
                "cpu_seconds": round(statistics.cpu_seconds, 2),
                "pages_per_second": round(good / statistics.seconds, 1),
                "pages_per_cpu_second": round(good / statistics.cpu_seconds, 1),
                "peak_rss_mib": round(statistics.peak_rss / 2**20, 1),
            }
        )
    )


# ── the hazards, in a process of their own ────────────────────────────────────────────────────────


@contextmanager
def _hostile_process() -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    command = [sys.executable, "-m", "benchmarks.hostile", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


def _after_robots(serve: Serve) -> Serve:
    """The hazard at every path but that of robots.txt, so that a crawl gets to it."""

    async def both(line: Line, request: Request) -> None:
        if request.target == "/robots.txt":
            return await line.send(ok(b"", status="404 Not Found"))
        return await serve(line, request)

    return both


def _serve_main() -> None:
    scripts: dict[str, Serve] = {}
    records: dict[str, Script] = {}
    for hazard in _HAZARDS:
        secure = any(url.startswith("https") for url in (hazard.url, *hazard.seeds))
        for host, serve in hazard.scripts.items():
            # An address for each host, so that as many requests are under way as there are hazards.
            number = len(scripts)
            records[host] = [[ADDRESS if secure else f"127.66.{number // 250 + 1}.{number % 250 + 1}"]]
            scripts[host] = _after_robots(serve) if hazard.url else serve
    addresses = {answers[0][0] for answers in records.values()}
    for hazard in _HAZARDS:
        records |= hazard.records
    silent = {f"silent-{number}.{DOMAIN}": [[address]] for number, address in enumerate(_SILENT)}
    seeds = [seed for hazard in _HAZARDS for seed in (hazard.seeds or (hazard.url,))]
    web = Web(_SPEC)
    with tempfile.TemporaryDirectory() as folder, mute(_SILENT) as silent_port:
        authority = Path(folder) / "authority.pem"
        context = server_context(Path(folder), authority)
        with hostile_server(
            scripts, {**records, **silent}, {ADDRESS, *addresses}, context, lambda query: respond(web, query)
        ) as server:
            told = {
                "hostile_port": server.http_port,
                "tls_port": server.https_port,
                "dns_port": server.dns_port,
                "silent_port": silent_port,
                "authority": str(authority),
                "seeds": [*seeds, *(f"http://{name}/" for name in silent)],
            }
            print(json.dumps(told), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve_main()
    else:
        _crawl_main(json.loads(sys.argv[2]))
