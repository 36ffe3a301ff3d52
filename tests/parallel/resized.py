"""A crawl that is divided anew in the middle, by resizes that are killed again and again, against the truth.

    python -m tests.parallel.resized '{"kills": 20, "sizes": [3, 5, 2, 1], …}'

prints what was found as one JSON object; with "together" the parts run on one loop, in one process. Each crawl but the last is ended by a SIGKILL for all of its processes, so that
there are journals to be replayed, batches under way and URLs that are done. The resizes are forked from this process; each
is killed at a random one of the system calls that it makes to change the disk, in the midst of a write.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import uvloop
from fastwarc.warc import ArchiveIterator, WarcRecordType

from barkspider import load_settings, open_job
from barkspider.engine import Job, verify_job
from barkspider.engine.checkpoint import how_far
from barkspider.engine.folder import archive_folders, part_folders
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.parallel.generations import tidy
from barkspider.parallel.resize import resize
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from tests.engine.deadly import CHANGES
from tests.engine.killed import circles_of, compare_requests, crawl_options, pages_of
from tests.parallel.killed import DEFAULTS as KILLED
from tests.parallel.killed import children, in_degrees, kill
from tests.parallel.together import crawl_together, create

NONE = ("missing", "not_in_truth", "archived_twice", "disallowed", "too_soon", "robots_too_often")
DEFAULTS: dict[str, Any] = KILLED | {"kills": 6, "sizes": [3, 5, 2, 1], "together": False}
DEFAULTS["partition"] = "domain"
_ANSWERS = WarcRecordType.response | WarcRecordType.revisit
_SHARES = 0.2  # of the requests that a whole crawl takes, between two resizes


class _Deadly:
    """Counts the system calls of forked processes that change the disk, in memory that they share, and ends one of them."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)

    @property
    def count(self) -> int:
        """Those that the last process made."""
        return int.from_bytes(self._shared[:8], "little")

    def follow(self, last: int) -> None:
        """In the process: count from now on, and end with the one of this number; 0 for never."""
        self._shared[:8] = bytes(8)

        def deadly(name: str) -> Any:
            call = getattr(Calls, name)

            def made(calls: Calls, *given: Any) -> Any:
                self._shared[:8] = (self.count + 1).to_bytes(8, "little")
                if self.count == last:
                    if name == "write":
                        descriptor, views = given
                        data = b"".join(views)
                        os.write(descriptor, data[: len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(calls, *given)

            return made

        for name in CHANGES:
            setattr(Calls, name, deadly(name))


def main() -> None:
    """Run as the order on the command line says."""
    order = DEFAULTS | json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="resized-") as folder:
        print(json.dumps(run(order, Path(folder))))


def run(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Resize a crawl as ordered, kill the resizes, let the crawl end, and compare all there is with the truth."""
    spec = WebSpec(
        seed=order["seed"],
        pages=order["pages"],
        domains=order["pages"] // 8,
        page_bytes=3_000,
        crawl_delay=order["crawl_delay"],
        hazards=frozenset(order["hazards"]),
    )
    with running_web(spec, log_path=folder / "requests.log") as served:
        job, random, deadly = folder / "job", Random(order["seed"]), _Deadly()
        truth, kills, problems, sums = pages_of(served), Counter[str](), list[str](), list[bool]()
        sizes, number = order["sizes"], 0
        # A kill after job.toml was replaced is the last of its resize: there may have to be further ones, to 2 and 1.
        while number < len(sizes) - 1 or kills.total() < order["kills"]:
            number += 1
            if number < len(sizes):
                size, wanted = sizes[number], order["kills"] * number // (len(sizes) - 1) - kills.total()
                _crawl(served, job, order, number * _SHARES * len(truth))
            else:
                size, wanted = 1 + len(part_folders(job)) % 2, order["kills"] - kills.total()
            old = part_folders(job)
            while wanted > 0 and len(part_folders(job)) != size:
                wanted -= 1
                last = random.randint(1, _calls_of(job, size, deadly, folder))
                assert _resize(job, size, deadly, last, folder / "output.txt") == -signal.SIGKILL, _output(
                    folder
                )
                kills["new" if len(part_folders(job)) == size else "old"] += 1
                problems += [f"{problem}" for problem in verify_job(job) if problem.kind == "damage"]
            if len(part_folders(job)) != size:
                assert _resize(job, size, deadly, 0, folder / "output.txt") == 0, _output(folder)
            tidied = Job.open(job, Env())
            tidy(tidied)
            tidied.close()
            problems += [f"{problem}" for problem in verify_job(job)]
            sums.append(_counted(part_folders(job)) == _counted(old))
        code = _crawl(served, job, order, None)
        assert served.log_path is not None
        requests = read_log(served.log_path)
        problems += [f"{problem}" for problem in verify_job(job)]
        return {
            "code": code,
            "kills": kills.total(),
            "kills_before": kills["old"],
            "kills_after": kills["new"],
            "truth": len(truth),
            **_compare(job, truth, circles_of(served.web), order["partition"] == "url"),
            **compare_requests(served, requests, order, truth),
            "sums_agree": sums,
            "in_degrees": in_degrees(job) if order["frontier"] == "irlbot" else {},
            "in_degrees_of_links": _in_degrees(job),
            "problems": problems[:20],
            "output": _output(folder),
        }


def _counted(folders: Sequence[Path]) -> dict[str, Any]:
    """What parts have counted by their last checkpoints; those that were handed on have one that has everything."""
    known = how_far(Env(), folders)
    waiting = known.pop("deferred") + known.pop("queued") + known.pop("in_flight")
    return {**known, "waiting": waiting, "cpu_seconds": 0.0}  # which is rounded


def _crawl(served: RunningWeb, job: Path, order: dict[str, Any], requests: float | None) -> int:
    """Crawl until the servers have had so many requests, then kill every process; or to the end."""
    options = [*crawl_options(served, order), "memory=192MB", "parallel.interval=200ms"]
    options.append(f"parallel.partition={order['partition']}")
    output = job.parent / "output.txt"
    if order["together"]:
        if not job.exists():
            processes = f"parallel.processes={order['sizes'][0]}"
            create(job, load_settings(options=[*options, processes]), served.web.seeds(1))
        leader = _fork(lambda: asyncio.run(crawl_together(job)), output)
    else:
        leader = _start(served, job, order, options, output)
    end = time.monotonic() + order["patience"]
    code: int | None = None
    try:
        while code is None:
            assert time.monotonic() < end, f"the crawl did not end: {_output(job.parent)}"
            time.sleep(0.02)
            assert served.log_path is not None
            if requests is not None and served.log_path.read_bytes().count(b"\n") >= requests:
                break
            code = _ended(leader)
    finally:
        if code is None:
            for victim in (*children(leader), leader):
                kill(victim)
            os.waitpid(leader, 0)
    for part in part_folders(job) if code is None else ():  # which the system may take a moment to end
        while (lock := Env().lock(part / "job.lock")) is None:
            assert time.monotonic() < end, "a part did not end"
            time.sleep(0.01)
        lock.release()
    return code or 0


def _start(served: RunningWeb, job: Path, order: dict[str, Any], options: list[str], output: Path) -> int:
    """The supervisor of a crawl by several processes."""
    command = [sys.executable, "-m", "barkspider.cli"]
    if job.exists():
        command += ["resume", str(job)]
    else:
        command += ["crawl", *served.web.seeds(1), "--job", str(job), "--processes", str(order["sizes"][0])]
        command += [word for option in options for word in ("--set", option)]
    return _fork(lambda: os.execv(command[0], command), output)


def _ended(process: int) -> int | None:
    pid, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


def _fork(work: Callable[[], object], output: Path) -> int:
    """A process that does something, as it is now, and ends; it is written down what it says."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        work()
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _calls_of(job: Path, size: int, deadly: _Deadly, folder: Path) -> int:
    """How many system calls a resize of a copy of the job takes."""
    copy = folder / "copy"
    shutil.copytree(job, copy, ignore=shutil.ignore_patterns("control.sock"))
    assert _resize(copy, size, deadly, 0, folder / "output.txt") == 0, _output(folder)
    shutil.rmtree(copy)
    return deadly.count


def _resize(job: Path, size: int, deadly: _Deadly, last: int, output: Path) -> int:
    """Resize the job in a process that is killed at a system call; how it ended, as `subprocess` says it."""

    def work() -> None:
        deadly.follow(last)
        held = Job.open(job, Env())
        uvloop.run(resize(held, size))
        held.close()

    return os.waitstatus_to_exitcode(os.waitpid(_fork(work, output), 0)[1])


def _compare(job: Path, truth: set[str], circles: set[str], by_url: bool) -> dict[str, Any]:
    """Each answer once in all archives; a robots.txt as often as the crawl was divided, at most, or by each part that there
    ever was."""
    answers, robots, folders = Counter[tuple[str, int | None]](), Counter[str](), archive_folders(job)
    for path in [path for folder in folders for path in (folder / "archive").glob("*.warc.gz")]:
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=_ANSWERS):
                url, status = record.headers["WARC-Target-URI"], record.http_headers.status_code
                if path.name.startswith("robots"):
                    robots[url] += 1
                else:
                    answers[url, status] += 1
    pages = {url for url, status in answers if status == 200}
    twice = [
        (url, status)
        for (url, status), count in answers.items()
        if count > 1 + (status == 302 and url.partition("://")[2] in circles)
    ]
    divisions = len(folders if by_url else {folder.parent if folder != job else job for folder in folders})
    return {
        "missing": len(truth - pages),
        "not_in_truth": len(pages - truth),
        "archived_twice": len(twice),
        # Once more for each time that it was killed while the answer was on its way.
        "robots_too_often": sum(count > 2 * divisions for count in robots.values()),
        "examples": [*sorted(truth - pages)[:5], *sorted(pages - truth)[:5], *sorted(twice)[:5]],
    }


def _in_degrees(job: Path) -> dict[str, int]:
    """How many domains have which in-degree, by the links that all archives have."""
    rows = open_job(job).query(
        "SELECT domains_in AS degree, count(*) AS n FROM domains WHERE degree > 0 GROUP BY ALL"
    )
    return {str(row["degree"]): row["n"] for row in sorted(rows.to_pylist(), key=lambda row: row["degree"])}


def _output(folder: Path) -> str:
    return (folder / "output.txt").read_text()[-3000:]


if __name__ == "__main__":
    main()
