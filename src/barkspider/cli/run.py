"""Running a crawl for a person or a program: signals, the live picture, the summary."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import uvloop
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from barkspider.cli.terminal import complain, say, say_json, screen, styled
from barkspider.cli.wording import classifier, exchanged, loop_held, problem, reasons, volume
from barkspider.core.allotment import share_arenas
from barkspider.core.settings import Settings
from barkspider.engine import Crawl, Job, Statistics, check_hosts
from barkspider.storage.env import Env

if TYPE_CHECKING:
    from barkspider.parallel.supervisor import Supervisor

AnyCrawl: TypeAlias = "Crawl | Supervisor"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_PROGRESS = 10.0  # seconds between two lines of progress where there is no terminal to draw on


def run_crawl(
    settings: Settings, seeds: Sequence[str], folder: Path, as_json: bool, title: str, ends: bool = False
) -> Statistics:
    """Crawl into a new job and print the summary. `seeds` are canonical URLs; `ends` says that there is nothing to
    go on with, because the web that is crawled ends too."""

    if settings.parallel.processes > 1:
        from barkspider.parallel.division import check_share, create_parts, is_one_domain

        check_share(settings)
        if is_one_domain(settings, seeds):
            say(
                "all seeds are of one domain, and a domain has one process: the others will be idle",
                error=True,
            )

    async def make() -> Job:
        await check_hosts(settings, seeds)
        job = Job.create(folder, settings, seeds, Env())
        if settings.parallel.processes > 1:
            create_parts(job, seeds)
        return job

    return run_job(make, as_json, title, ends)


def run_job(
    make: Callable[[], Awaitable[Job]],
    as_json: bool,
    title: str,
    ends: bool = False,
    known: Mapping[str, Any] = _NOTHING,
) -> Statistics:
    """Run the crawl of a job, new or not, to its end and print the summary, as JSON with what else is known."""
    console = screen(error=as_json)
    # Functions that settings name may lie in the current folder; it comes last, so that it hides nothing.
    if "" not in sys.path:
        sys.path.append("")
    # What was imported stays for good and the queues hold few cycles: rare collections save a tenth of the CPU.
    gc.freeze()
    share_arenas()
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        return uvloop.run(_run(make, as_json, title, ends, console, known))
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()  # modules that clean up at the end look for what is theirs


async def _run(
    make: Callable[[], Awaitable[Job]],
    as_json: bool,
    title: str,
    ends: bool,
    console: Console,
    known: Mapping[str, Any],
) -> Statistics:
    job = await make()
    try:
        crawl = _open(job)
        if job.resumed and isinstance(crawl, Crawl):
            console.print(
                f"going on: {crawl.replayed:,} outcomes since the last checkpoint were applied again"
            )
        _handle_signals(crawl)
        running = asyncio.create_task(crawl.run())
        if console.is_terminal:
            await _watch(crawl, running, title, console)
        else:
            await _tell(crawl, running)
        statistics = await running
    finally:
        job.close()
    if as_json:
        facts = {"job": str(job.path), **known, "replayed": crawl.replayed}
        say_json({**facts, **statistics.as_dict()})
    else:
        console.print(summary(statistics, title))
        more = "" if ends else f"   Go on: barkspider resume {job.path}"
        archive = job.archive if isinstance(crawl, Crawl) else job.path / "part-*" / "archive"
        console.print(
            f"Archive: {archive}{more}",
            soft_wrap=True,
        )
    if crawl.fault is not None:
        raise crawl.fault
    return statistics


def _open(job: Job) -> AnyCrawl:
    """The crawl of a job, by this process or by several that it looks after."""
    if job.settings.parallel.processes == 1:
        return Crawl.open(job)
    from barkspider.parallel.supervisor import Supervisor

    return Supervisor(job, lambda line: say(line, error=True))


def _handle_signals(crawl: AnyCrawl) -> None:
    """The first Ctrl-C, SIGTERM or SIGHUP stops cleanly, a second one at once."""
    asked = 0

    def handle() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            crawl.stop("signal")
            say("stopping: waiting for what is in flight; once more to stop at once", error=True)
        else:
            crawl.abort()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, handle)


async def _watch(crawl: AnyCrawl, running: asyncio.Task[Statistics], title: str, console: Console) -> None:
    recent: deque[tuple[float, int]] = deque(maxlen=9)  # two seconds and a quarter
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not running.done():
            now = crawl.statistics()
            recent.append((time.monotonic(), now.pages))
            (start, before), (end, after) = recent[0], recent[-1]
            rate = (after - before) / (end - start) if end > start else 0.0
            live.update(picture(now, title, rate, crawl.state()))
            await asyncio.wait([running], timeout=0.25)


async def _tell(crawl: AnyCrawl, running: asyncio.Task[Statistics]) -> None:
    """A line now and then, apart from the summary: for a log, or whoever looks at one."""
    while not (await asyncio.wait([running], timeout=_PROGRESS))[0]:
        say(progress(crawl.statistics(), crawl.state()), error=True)


def progress(now: Statistics, state: str) -> str:
    """The crawl at this moment as a line."""
    line = f"{now.seconds:.0f} s: {now.pages:,} pages, {now.queued + now.deferred:,} URLs wait, {now.in_flight:,} in flight"
    line += "" if state == "running" else f", {state}"
    return "; last problem: ".join([line, *_problems(now)[-1:]])


def picture(now: Statistics, title: str, rate: float, state: str) -> Group:
    """The crawl at this moment, for a terminal."""
    title += "" if state == "running" else f": {state}"
    table = Table.grid(padding=(0, 3))
    gauges = now.gauges
    table.add_row("pages", f"{now.pages:,}", "rate", f"{rate:,.0f} pages/s", "time", f"{now.seconds:.0f} s")
    table.add_row(
        "queue",
        f"{gauges['primary']:,}",
        "on disk",
        f"{gauges['secondary']:,}",
        "in flight",
        f"{now.in_flight:,}",
    )
    table.add_row(
        "hosts", f"{gauges['hosts']:,}", "URLs", f"{now.unique_urls:,}", "volume", volume(now.bytes)
    )
    lines: list[RenderableType] = [styled(title, "bold"), table]
    errors = reasons(now.failed)
    if errors:
        lines.append(styled(f"failed   {errors}", "dim"))
    refused = reasons(now.refused)
    if refused:
        lines.append(styled(f"refused  {refused}", "dim"))
    lines += [styled(f"problem  {each}", "dim") for each in _problems(now)]
    return Group(*lines)


def _problems(now: Statistics) -> list[str]:
    return [problem(each.host, each.what, each.why, each.times) for each in now.problems]


def summary(statistics: Statistics, title: str) -> Table:
    """The end of a crawl as a table."""
    table = Table(title=title, title_justify="left", show_header=False)
    unchanged = f", {statistics.unchanged:,} unchanged" if statistics.unchanged else ""
    rows = {
        "pages": f"{statistics.pages:,} in {statistics.seconds:.1f} s "
        f"({statistics.pages_per_second:,.0f} a second){unchanged}",
        "volume": f"{volume(statistics.bytes)}, {statistics.links:,} links",
        "URLs": f"{statistics.unique_urls:,} found, {statistics.queued:,} still queued, "
        f"{statistics.gauges['secondary']:,} {'URLs' if statistics.deferred else 'pages with URLs'} on disk",
        "hosts": f"{statistics.gauges['hosts']:,}, {statistics.robots_files:,} robots.txt",
        "largest queue": f"{statistics.queue_max:,}",
        "redirects": f"{statistics.redirects:,}",
        **exchanged(statistics.gauges, statistics.pages),
        "refused": reasons(statistics.refused) or "none",
        "failed": reasons(statistics.failed) or "none",
        "out of scope": reasons(statistics.out_of_scope) or "none",
        "robots.txt": reasons(statistics.robots_failed) or "no problem",
        **classifier(statistics.classifier_errors),
        "last problems": "\n".join(_problems(statistics)) or "none",
        "cost": f"{statistics.cpu_seconds:.1f} s of CPU, {volume(statistics.peak_rss)} of memory",
        "longest pause": loop_held(statistics.gauges),
        "ended by": {
            "done": "nothing left to fetch",
            "pages": "the limit of pages",
            "time": "the limit of time",
            "signal": "a signal",
            "disk": "the disk",
            "memory": "a lack of memory",
            "bytes": "the limit of bytes",
            "request": "barkspider stop",
            "unreachable": "nobody answers",
        }.get(statistics.stopped_by, statistics.stopped_by),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def exit_code(statistics: Statistics, folder: Path) -> int:
    """What the crawl is worth to whoever started it; one without a page says why in a line."""
    if statistics.pages or statistics.stopped_by == "signal":
        return 0
    if statistics.stopped_by == "unreachable":
        why = "; ".join(_problems(statistics))
        line = f"nobody answers ({why}); `barkspider resume {folder}` tries again"
    else:
        parts = {
            "failed": statistics.failed,
            "refused": statistics.refused,
            "robots.txt": statistics.robots_failed,
            "out of scope": statistics.out_of_scope,
        }
        why = "; ".join(f"{name}: {reasons(counts)}" for name, counts in parts.items() if counts)
        line = f"no page could be fetched ({why or 'no answer in time'})"
    complain(line)
    return 1
