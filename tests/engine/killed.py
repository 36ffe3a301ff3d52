"""A crawl that is killed with SIGKILL at random instants and resumed, again and again, against the truth.

    python -m tests.engine.killed '{"kills": 20, "frontier": "irlbot", …}'

prints what was found as one JSON object. The crawls are forked from this process, which has everything imported and
no threads: so a kill may come at any instant from the first line of the recovery on. Half of the kills come at a
random time, the others at a random system call of a recovery, a checkpoint or a close, in the midst of a write.

The web has redirects of every kind, servers that are busy at first and some that are slow. After each kill the journal
is read: what it has must not be asked for again.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType

from barkspider import crawl, load_settings
from barkspider.core.events import PageFetched, RobotsFetched
from barkspider.core.records import Flag
from barkspider.engine import resume, verify_job
from barkspider.engine.checkpoint import JOURNAL
from barkspider.engine.harvest import Harvest
from barkspider.lab.synthweb import LoggedRequest, RunningWeb, Web, WebSpec, read_log, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.journal import journal_files, read_records
from tests.engine.deadly import PHASES, Phase
from tests.engine.warcs import check_warcs

# What must be 0 in every result.
NONE = (
    "missing",
    "not_in_truth",
    "archived_twice",
    "disallowed",
    "too_soon",
    "sent_although_known",
    "sent_although_busy",
)
DEFAULTS: dict[str, Any] = {
    "kills": 10,
    "seed": 1,
    "frontier": "irlbot",
    "pages": 1_500,
    "hazards": ["redirects", "throttled", "slow"],
    "host_delay": 0.1,
    "server_delay": 0.01,
    "crawl_delay": 0.3,
    "slow_delay": 0.03,  # seconds; drop by drop takes ten times as long
    "retry_after": 0.3,  # seconds that a busy server is left alone, whatever it asks for
    "checkpoint": 0.4,
    "longest": 1.5,  # seconds from a start to its kill
}
_AT_CALLS = 0.5  # the share of kills that come at a system call
_MOST_CALLS = {"recovery": 40, "checkpoint": 60, "closing": 80}  # before a kill
_NOT_DONE = 3  # the exit code of a crawl that a limit ended
_ANSWERS = WarcRecordType.response | WarcRecordType.revisit


def main() -> None:
    """Run as the order on the command line says."""
    order = DEFAULTS | json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="killed-") as folder:
        print(json.dumps(run(order, Path(folder))))


def run(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Kill a crawl as often as ordered, let it end, and compare all there is with the truth."""
    spec = WebSpec(
        seed=order["seed"],
        pages=order["pages"],
        domains=order["pages"] // 8,
        page_bytes=3_000,
        crawl_delay=order["crawl_delay"],
        hazards=frozenset(order["hazards"]),
        slow_delay=order["slow_delay"],
        retry_after=1,
    )
    with running_web(spec, log_path=folder / "requests.log") as served:
        job, random, phase = folder / "job", Random(order["seed"]), Phase()
        circles, problems, phases = circles_of(served.web), list[str](), Counter(dict.fromkeys(PHASES, 0))
        known = Known(order["retry_after"], circles)
        starts, ended = 0, ""
        while ended != "done":
            starts += 1
            limit, at = _plan(order, random, phases.total())
            child = _fork(served, job, crawl_options(served, order), at, phase, folder / "output.txt")
            try:
                ended = _wait(child, limit)
            except RuntimeError as error:
                output = (folder / "output.txt").read_text()[-3000:]
                raise RuntimeError(f"{error} after {phases.total()} kills: {output}") from error
            if ended == "killed":
                phases[phase.get()] += 1
                known.look(job)
            if (job / "settings.toml").exists():
                found = [problem for problem in verify_job(job) if problem.kind == "damage"]
                problems += [f"after start {starts}: {problem}" for problem in found]
        assert served.log_path is not None
        requests, truth = read_log(served.log_path), pages_of(served)
        return {
            "kills": phases.total(),
            **{f"kills_in_{name}": count for name, count in phases.items()},
            "starts": starts,
            "truth": len(truth),
            **compare_archive(job, truth, circles),
            **compare_requests(served, requests, order, truth),
            "sent_although_known": len(again := known.sent_again(requests)),
            "again": again[:5],
            "sent_although_busy": known.disturbed(requests),
            "records": check_warcs(job),
            "problems": problems[:20],
            "output": (folder / "output.txt").read_text()[-2000:],
        }


def pages_of(served: RunningWeb) -> set[str]:
    """Every URL that answers with a page, as a crawl archives it."""
    # Here nobody is busy, so that all links are there at once.
    web = Web(replace(served.spec, retry_after=0))
    truth = web.reachable_urls(web.seeds(1))
    for name, hazard in web.hazards.items():
        if name == "redirects":
            home, index, bare, session, cookie = hazard.names
            truth |= {f"http://www.{home}/", f"http://www.{home}/chain-0"}
            truth |= {f"http://www.{home}/target-{number}.html" for number in range(1, 7)}
            truth |= {f"http://{index}/index.html", f"http://{bare}/", f"http://{cookie}/"}
            to_session = dict(web.page(f"http://{session}/").headers)["Location"]
            truth.add(f"http://{session}{to_session}")
            for domain in (index, bare, session, cookie):
                truth |= {f"http://{domain}/page-{number}.html" for number in range(1, 6)}
        else:
            found = hazard.entries()
            while found:
                url = found.pop()
                if url not in truth:
                    truth.add(url)
                    found += web.links(url)
    return truth


def circles_of(web: Web) -> set[str]:
    """URLs to which their own redirects lead back, without their scheme: they are fetched once more, as written."""
    if "redirects" not in web.hazards:
        return set()
    home, _, bare, _, cookie = web.hazards["redirects"].names
    return {f"www.{home}/{name}" for name in ("loop-a", "loop-b", "self")} | {f"{bare}/", f"{cookie}/"}


class Known:
    """What the journal had at the kills: whatever is in it has an outcome, and no other is to be asked for."""

    def __init__(self, retry_after: float, circles: set[str]) -> None:
        self._retry_after, self._circles = retry_after, circles
        # URLs without their scheme, whether as a redirect wrote them, and when they were known to have ended.
        self._ends: dict[tuple[str, bool], float] = {}
        self._busy: set[tuple[str, float]] = set()  # hosts, and when they said so

    def look(self, job: Path) -> None:
        """Read the journal of a crawl that has just been killed."""
        now, env = time.time(), Env()
        for path in journal_files(env, job / JOURNAL):
            for _, record, _ in read_records(env, path):
                harvest = Harvest.decode(record)
                for outcome in harvest.outcomes:
                    if isinstance(outcome, PageFetched):
                        self._page(outcome, harvest.time, now)
                    elif isinstance(outcome, RobotsFetched):
                        self._ends.setdefault((_place(outcome.asked.url), False), now)

    def _page(self, outcome: PageFetched, received: float, now: float) -> None:
        place = _place(outcome.asked.row.url.decode())
        if outcome.status in (429, 503):
            self._busy.add((place.partition("/")[0], received))
        to_itself = outcome.redirect is not None and _place(outcome.redirect.exact.decode()) == place
        if not outcome.temporary and not to_itself:  # which may be to https, or with a cookie
            self._ends.setdefault((place, bool(outcome.asked.row.flags & Flag.EXACT)), now)

    def sent_again(self, requests: list[LoggedRequest]) -> list[str]:
        """What was asked for although it was known to have ended."""
        asked = ((f"{entry.host}{entry.path}", entry.time) for entry in requests)
        return [
            place for place, time in asked if time > self._ends.get((place, place in self._circles), math.inf)
        ]

    def disturbed(self, requests: list[LoggedRequest]) -> int:
        """Requests to servers that had asked to be left alone."""
        busy: dict[str, list[float]] = {}
        for host, since in self._busy:
            busy.setdefault(host, []).append(since)
        return sum(
            any(since < entry.time < since + self._retry_after for since in busy.get(entry.host, ()))
            for entry in requests
        )


def _place(url: str) -> str:
    return url.partition("://")[2]


def _plan(order: dict[str, Any], random: Random, kills: int) -> tuple[float, tuple[str, int] | None]:
    """After how many seconds to kill, and at which system call of which phase, whatever comes first."""
    if kills >= order["kills"]:
        return math.inf, None
    if random.random() >= _AT_CALLS:
        return random.uniform(0.0, order["longest"]), None
    phase = random.choice([*_MOST_CALLS])
    return 2 * order["longest"], (phase, random.randint(1, _MOST_CALLS[phase]))


def crawl_options(served: RunningWeb, order: dict[str, Any]) -> list[str]:
    frontier, _, seen = order["frontier"].partition("-")
    return [
        *(f"{name}={value}" for name, value in served.settings().items()),
        "scope.level=web",
        f"frontier={frontier}",
        f"sydney.seen={seen or 'memory'}",
        f"seed={order['seed']}",
        "budget.base=3",
        f"politeness.host_delay={order['host_delay'] * 1000:g}ms",
        f"politeness.server_delay={order['server_delay'] * 1000:g}ms",
        "politeness.slow_factor=0",
        f"politeness.max_retry_after={order['retry_after'] * 1000:g}ms",
        "politeness.max_back_off=200ms",
        "politeness.park_after=1000",
        "politeness.retry_delay=1200ms",  # by then a busy server has time
        f"checkpoint={order['checkpoint'] * 1000:g}ms",
        "limits.grace=300ms",
        "memory=64MB",
    ]


def _fork(
    served: RunningWeb, job: Path, options: list[str], at: tuple[str, int] | None, phase: Phase, output: Path
) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        phase.follow()
        if at is not None:
            phase.die_at(*at)
        limit = "limits.time=400ms" if at is not None and at[0] == "closing" else "limits.time=0s"
        if (job / "settings.toml").exists():
            statistics = resume(job, [limit])
        else:  # not begun, or killed while it was made
            statistics = crawl(served.web.seeds(1), job, load_settings(options=[*options, limit]))
        code = 0 if statistics.stopped_by == "done" else _NOT_DONE
    except BaseException as error:
        os.write(2, f"{error!r}\n{traceback.format_exc()}".encode())
    finally:
        os._exit(code)


def _wait(child: int, seconds: float) -> str:
    """How it ended: done, stopped by a limit, or killed, by itself or else after this time."""
    end = time.monotonic() + min(seconds, 300.0)
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ends = {0: "done", _NOT_DONE << 8: "stopped", int(signal.SIGKILL): "killed"}
            if status not in ends:
                raise RuntimeError(f"a crawl ended with status {status}")
            return ends[status]
        time.sleep(0.003)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if math.isinf(seconds):
        raise RuntimeError("a crawl did not end")
    return "killed"


def compare_archive(job: Path, truth: set[str], circles: set[str], robots: int = 1) -> dict[str, Any]:
    """Each answer once, a robots.txt so often; a page may have been refused, or have led elsewhere, before it came."""
    answers = Counter[tuple[str, int | None]]()
    for path in sorted((job / "archive").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=_ANSWERS):
                answers[record.headers["WARC-Target-URI"], record.http_headers.status_code] += 1
    pages = {url for url, status in answers if status == 200 and "robots" not in url}
    twice = [
        (url, status)
        for (url, status), count in answers.items()
        if count > (robots if url.endswith("/robots.txt") else 1) + (status == 302 and _place(url) in circles)
    ]
    return {
        "missing": len(truth - pages),
        "not_in_truth": len(pages - truth),
        "archived_twice": len(twice),
        "examples": [*sorted(truth - pages)[:5], *sorted(pages - truth)[:5], *sorted(twice)[:5]],
    }


def compare_requests(
    served: RunningWeb, requests: list[LoggedRequest], order: dict[str, Any], truth: set[str]
) -> dict[str, Any]:
    last: dict[str, float] = {}
    too_soon = 0
    for entry in requests:
        delays = {
            entry.host: max(order["host_delay"], served.web.crawl_delay(entry.host) or 0.0),
            entry.address: order["server_delay"],
        }
        too_soon += any(entry.time - last.get(name, -math.inf) < delay for name, delay in delays.items())
        last |= dict.fromkeys(delays, entry.time)
    allowed = {_place(url) for url in truth}
    sites = {host: served.web.site(host) for host in {entry.host for entry in requests}}
    regular = [entry for entry in requests if (site := sites[entry.host]) is None or site.hazard is None]
    pages = [f"{entry.host}{entry.path}" for entry in regular if "robots" not in entry.path]
    return {
        "requests": len(requests),
        "sent_again": len(requests) - len({(entry.host, entry.path) for entry in requests}),
        "disallowed": sum(page not in allowed for page in pages),
        "too_soon": too_soon,
    }


if __name__ == "__main__":
    main()
