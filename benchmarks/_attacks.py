"""What the ten honest hosts of tests/hostile lose under each attack alone, with `python -m benchmarks._attacks NAME` for one.

The crawler has one core for itself; the honest hosts have a process on the other one, and so have the attackers, behind
them in priority. The crawl begins with the honest hosts; then the attackers come in as further seeds, and the requests
that reach the honest hosts are counted by these for as long as the attack goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hostile.attacks.attack import NOBODY, Attack, attacked
from tests.hostile.attacks.good import GOOD_ADDRESSES, GOOD_RECORDS, GOOD_SEEDS, LED, good
from tests.hostile.attacks.table import ATTACKS
from tests.hostile.server import hostile_server

from barkspider.engine import ask
from barkspider.engine.folder import events

_OPTIONS = (
    *("politeness.host_delay=200ms", "politeness.server_delay=100ms", "politeness.slow_factor=0"),
    *("scope.level=web", "limits.grace=0s", "seed=5", "agent.contact=https://example.org/"),
)
_WARM = 3  # requests of each honest host before the attack begins
_PATIENCE = 60.0  # seconds for that
_AT_ONCE = 2_000  # seeds in one message


def measure(attack: Attack, seconds: float) -> dict[str, Any]:
    """Requests a second that the honest hosts get during an attack, and what it does to the crawler."""
    cores = sorted(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory() as folder,
        _process("good") as good_hosts,
        _process("attack", attack.name, _asked(good_hosts, "port")) as attackers,
    ):
        for process in (good_hosts, attackers):
            os.sched_setaffinity(process.pid, {cores[-1]})
        os.setpriority(os.PRIO_PROCESS, attackers.pid, 10)
        told = _asked(attackers, "options")
        job = Path(folder) / "job"
        with _process("crawl", str(job), [*told["options"], *_OPTIONS, *attack.options]) as crawl:
            os.sched_setaffinity(crawl.pid, {cores[0]})
            before, began = _begin(good_hosts), time.monotonic()
            for first in range(0, len(told["seeds"]), _AT_ONCE):
                ask(job, "add", timeout=seconds, urls=told["seeds"][first : first + _AT_ONCE])
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            requests, took = sum(_asked(good_hosts, "count")) - before, time.monotonic() - began
            disk = sum(file.stat().st_size for file in job.rglob("*") if file.is_file())
            found = _asked(crawl, "stop")
            held_by = [event["where"] for event in events(job) if event["event"] == "loop_held"]
    return {
        "good_per_second": round(requests / took, 2),
        "cpu_share": round(found["cpu_seconds"] / found["seconds"], 2),
        "peak_rss_mib": round(found["peak_rss"] / 2**20, 1),
        "disk_mib": round(disk / 2**20, 1),
        "loop_held": found["gauges"].get("loop_held", 0),
        "held_by": held_by[-1] if held_by else "",
    }


def _begin(good_hosts: subprocess.Popen[str]) -> int:
    """How many requests the honest hosts had when all of them had some."""
    end = time.monotonic() + _PATIENCE
    while min(counts := _asked(good_hosts, "count")) < _WARM:
        if time.monotonic() > end:
            raise RuntimeError(f"the honest hosts were not crawled: {counts}")
        time.sleep(0.05)
    return sum(counts)


# ── processes: each answers a word a line on its standard input with a line of JSON ──────────────────


@contextmanager
def _process(role: str, *order: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks._attacks", f"--{role}", json.dumps(order)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()


def _asked(process: subprocess.Popen[str], word: str) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _answer(what: Any) -> None:
    print(json.dumps(what), flush=True)


def _serve_good() -> None:
    with hostile_server(dict.fromkeys(GOOD_RECORDS, good), {}, GOOD_ADDRESSES) as server:
        for word in sys.stdin:
            hosts = [request.host for request in server.requests if not request.target.startswith(LED)]
            _answer(server.http_port if word == "port\n" else [hosts.count(host) for host in GOOD_RECORDS])


def _serve_attack(name: str, good_port: int) -> None:
    attack = _find(name)
    attackers = attack.make(attack.many)
    with attacked(attackers, good_port) as options:
        for _ in sys.stdin:
            _answer({"options": options, "seeds": list(attackers.seeds)})


def _crawl(job: str, options: Sequence[str]) -> None:
    command = [sys.executable, "-m", "barkspider.cli", "crawl", *GOOD_SEEDS, "--job", job, "--json"]
    command += [part for option in options for part in ("--set", option)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            sys.stdin.readline()
            ask(Path(job), "stop", timeout=60.0)
            assert process.stdout is not None
            _answer(json.loads(process.stdout.readlines()[-1]))
        finally:
            process.kill()


def _find(name: str) -> Attack:
    return next(attack for attack in (NOBODY, *ATTACKS) if attack.name == name)


if __name__ == "__main__":
    if sys.argv[1] == "--good":
        _serve_good()
    elif sys.argv[1] == "--attack":
        _serve_attack(*json.loads(sys.argv[2]))
    elif sys.argv[1] == "--crawl":
        _crawl(*json.loads(sys.argv[2]))
    else:
        for each in (NOBODY, *map(_find, sys.argv[1:])):
            print(each.name, measure(each, 20.0))
