"""A crawl by several processes, any of which is killed with SIGKILL at random instants, against the truth.

    python -m tests.parallel.killed '{"kills": 20, "processes": 4, …}'

prints what was found as one JSON object. The supervisor is among those that are killed; then it is started again with
`resume`, while the parts that it left behind may still be ending.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from barkspider.core.settings import Settings
from barkspider.engine import verify_job
from barkspider.engine.folder import part_folders
from barkspider.engine.trust import read_settings
from barkspider.engine.visits import open_registry
from barkspider.frontier.budget.star import Star
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.sites import State
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.engine.killed import DEFAULTS as ALONE
from tests.engine.killed import NONE as NONE_ALONE
from tests.engine.killed import circles_of, compare_archive, compare_requests, crawl_options, pages_of

_PATIENT = 0.8  # how often a supervisor is spared until it has started a part, so that on a slow machine parts die, too
NONE = tuple(name for name in NONE_ALONE if not name.startswith("sent_although"))
DEFAULTS: dict[str, Any] = ALONE | {
    "processes": 3,
    "hazards": ["redirects"],
    "options": [],
    "robots": 1,  # times that each robots.txt may be asked for
    "longest": 2.0,
    "patience": 240.0,
    "stopped": 0.0,  # seconds for which one part is stopped, once, by SIGSTOP
}


def main() -> None:
    """Run as the order on the command line says."""
    order = DEFAULTS | json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="killed-") as folder:
        print(json.dumps(run(order, Path(folder))))


def run(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Kill processes of a crawl as often as ordered, let it end, and compare all there is with the truth."""
    spec = WebSpec(
        seed=order["seed"],
        pages=order["pages"],
        domains=order["pages"] // 8,
        page_bytes=3_000,
        crawl_delay=order["crawl_delay"],
        hazards=frozenset(order["hazards"]),
    )
    with running_web(spec, log_path=folder / "requests.log") as served:
        job, random, kills = folder / "job", Random(order["seed"]), Counter[str]()
        end = time.monotonic() + order["patience"]
        options = [
            *crawl_options(served, order),
            "memory=192MB",
            "parallel.interval=200ms",
            *order["options"],
        ]
        with (folder / "output.txt").open("ab") as output:
            process = _start(served, job, options, order["processes"], output)
            meanwhile = _stop_one(process.pid, served, job, order, random) if order["stopped"] else None
            while process.poll() is None or kills.total() < order["kills"]:
                assert time.monotonic() < end, "the crawl did not end"
                if process.poll() is not None:
                    break  # done before all kills
                if kills.total() >= order["kills"]:
                    time.sleep(0.05)
                    continue
                time.sleep(random.uniform(0.0, order["longest"]))
                patient = random.random() < _PATIENT
                while patient and process.poll() is None and not children(process.pid):
                    time.sleep(0.05)  # it begins, which may take longer than others are let live
                victims = [("part", pid) for pid in children(process.pid)] + [("supervisor", process.pid)]
                kind, victim = random.choice(victims)
                if process.poll() is None and kill(victim):
                    kills[kind] += 1
                    if kind == "supervisor":
                        process.wait()
                        process = _start(served, job, options, order["processes"], output)
        assert served.log_path is not None
        requests, truth = read_log(served.log_path), pages_of(served)
        problems = [problem for problem in verify_job(job) if problem.kind == "damage"]
        return {
            "code": process.returncode,
            "kills": kills.total(),
            "kills_of_supervisor": kills["supervisor"],
            "truth": len(truth),
            **_compare(job, truth, circles_of(served.web), order["robots"]),
            **compare_requests(served, requests, order, truth),
            "in_degrees": in_degrees(job) if order["frontier"] == "irlbot" else {},
            "problems": problems[:20],
            "requests_while_stopped": meanwhile,
            "output": (folder / "output.txt").read_text()[-3000:],
        }


def _stop_one(supervisor: int, served: RunningWeb, job: Path, order: dict[str, Any], random: Random) -> int:
    """Let one part stand still for a while; how many requests the others made meanwhile, after the first second."""
    assert served.log_path is not None
    while not served.log_path.exists() or len(read_log(served.log_path)) < order["pages"] // 20:
        time.sleep(0.1)
    victims = children(supervisor)
    victim = random.choice(victims) if order["frontier"] != "site" else holder(job, victims)
    os.kill(victim, signal.SIGSTOP)
    time.sleep(1.0)
    before = len(read_log(served.log_path))
    time.sleep(order["stopped"] - 1.0)
    after = len(read_log(served.log_path))
    os.kill(victim, signal.SIGCONT)
    return after - before


def in_degrees(job: Path) -> dict[str, int]:
    """How many domains have which in-degree, over all parts."""
    found = Counter[int]()
    for folder in part_folders(job):
        store = Store.open(Env(), folder)
        star = Star(Env(), folder, Settings().budget, state=store.state, background=False)
        star.merge()
        known = star.distribution()
        found.update(dict(zip(known.degrees.tolist(), known.counts.tolist(), strict=True)))
        star.close()
    return {str(degree): count for degree, count in sorted(found.items())}


def _compare(job: Path, truth: set[str], circles: set[str], robots: int) -> dict[str, Any]:
    """`compare_archive` over all parts: links to one folder with the files of all."""
    with tempfile.TemporaryDirectory(dir=job.parent) as folder:
        whole = Path(folder) / "archive"
        whole.mkdir()
        for part in part_folders(job):
            for path in (part / "archive").glob("*.warc.gz"):
                os.link(path, whole / f"{part.name}-{path.name}")
        return compare_archive(whole.parent, truth, circles, robots)


def _start(
    served: RunningWeb, job: Path, options: list[str], processes: int, output: Any
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "barkspider.cli"]
    if (job / "settings.toml").exists():
        command += ["resume", str(job)]
    else:  # not begun, or killed while it was made
        command += ["crawl", *served.web.seeds(1), "--job", str(job), "--processes", str(processes)]
        command += [word for option in options for word in ("--set", option)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def children(process: int) -> list[int]:
    """Those that a process has started and that have not ended."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):  # each thread has its own
        with suppress(OSError):
            found += [int(pid) for pid in path.read_text().split()]
    return found


def holder(job: Path, processes: list[int]) -> int:
    """The process that has most sites, as soon as it has three and all have begun."""
    names = {part_of(process): process for process in processes}
    registry = open_registry(read_settings(Env(), job), job)
    try:
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            begun = all('"event"' in (job / name / "log.jsonl").read_text() for name in names)
            having = Counter(site["owner"][:9] for site in registry.sites([State.BEING_CRAWLED]))
            for name, count in having.most_common(1):
                if begun and count > 2:
                    return names[name]
            time.sleep(0.01)
        raise AssertionError("no process had three sites")
    finally:
        registry.close()


def part_of(process: int) -> str:
    """The name of the part that a process crawls."""
    return Path(Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[3].decode()).name


def kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
