"""Running a crawl for a person or a program: signals, the live picture, the summary."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import uvloop
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barkspider.cli.terminal import complain, say, say_json, screen, styled
from barkspider.cli.wording import classifier, divided, exchanged, loop_held, problem, reasons, volume
from barkspider.core.allotment import share_arenas
from barkspider.core.settings import Settings
from barkspider.engine import Crawl, Job, Statistics, check_hosts
from barkspider.engine.folder import DIVISION, part_folders
from barkspider.engine.outlook import Outlook, outlook
from barkspider.engine.trust import read_settings
from barkspider.storage.env import Env
from barkspider.storage.store.remote import check_store

if TYPE_CHECKING:
    from barkspider.parallel.cluster.client import ClusterCrawl
    from barkspider.parallel.supervisor import Supervisor

AnyCrawl: TypeAlias = "Crawl | Supervisor | ClusterCrawl"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_OUTLOOK = Outlook()
_BLOCKS = "▁▂▃▄▅▆▇█"
_CURVE = 60  # seconds of it: with its name within 80 columns
_PROGRESS = 10.0  # seconds between two lines of progress where there is no terminal to draw on


def run_crawl(
    settings: Settings,
    seeds: Sequence[str],
    folder: Path,
    as_json: bool,
    title: str,
    ends: bool = False,
    dashboard: bool = False,
) -> Statistics:
    """Crawl into a new job and print the summary. `seeds` are canonical URLs; `ends` says that there is nothing to
    go on with, because the web that is crawled ends too."""

    if settings.parallel.processes > 1:
        from barkspider.parallel.division import check_share, create_job, is_one_domain
        from barkspider.parallel.frozen import Frozen

        check_share(settings)
        given = Frozen.read(settings)
        if is_one_domain(settings, seeds):
            say(
                "all seeds are of one domain, and a domain has one process: the others will be idle",
                error=True,
            )

    async def make() -> Job:
        await check_hosts(settings, seeds)
        if settings.store.url:
            check_store(settings.store.url)
        if settings.parallel.processes > 1:
            return create_job(folder, settings, seeds, Env(), given)
        return Job.create(folder, settings, seeds, Env())

    if dashboard:
        from barkspider.cli.dashboard import needed_for_dashboard

        needed_for_dashboard()
    return run_job(make, as_json, title, ends, dashboard=dashboard)


def run_job(
    make: Callable[[], Awaitable[Job]],
    as_json: bool,
    title: str,
    ends: bool = False,
    known: Mapping[str, Any] = _NOTHING,
    dashboard: bool = False,
) -> Statistics:
    """Run the crawl of a job, new or not, to its end and print the summary, as JSON with what else is known; with a
    `dashboard` beside it for as long as it runs."""
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
        return uvloop.run(_run(make, as_json, title, ends, console, known, dashboard))
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
    dashboard: bool,
) -> Statistics:
    job = await make()
    beside = ExitStack()
    try:
        if dashboard:
            from barkspider.cli.dashboard import shown

            say(f"Dashboard: {beside.enter_context(shown(job.path))}", error=as_json, at_once=True)
        crawl = _open(job)
        if job.resumed and isinstance(crawl, Crawl):
            console.print(
                f"going on: {crawl.replayed:,} outcomes since the last checkpoint were applied again"
            )
        statistics = await follow(crawl, title, console)
    finally:
        job.close()
        beside.close()
    if as_json:
        facts = {"job": str(job.path), **known, "replayed": crawl.replayed}
        say_json({**facts, **statistics.as_dict()})
    else:
        console.print(summary(statistics, title))
        more = "" if ends else f"   Go on: barkspider resume {job.path}"
        parts = part_folders(job.path)[0].parent / "part-*" / "archive"
        archive = job.archive if isinstance(crawl, Crawl) else parts
        console.print(
            f"Archive: {archive}{more}",
            soft_wrap=True,
        )
    if crawl.fault is not None:
        raise crawl.fault
    return statistics


async def follow(crawl: AnyCrawl, title: str, console: Console) -> Statistics:
    """Run a crawl to its end, and show it meanwhile."""
    _handle_signals(crawl)
    running = asyncio.create_task(crawl.run())
    if console.is_terminal:
        await _watch(crawl, running, title, console)
    else:
        await _tell(crawl, running)
    return await running


def _open(job: Job) -> AnyCrawl:
    """The crawl of a job, by this process or by several that it looks after; nothing is left of a `resize` that was killed."""
    from barkspider.parallel.generations import tidy

    tidy(job)
    if not (job.path / DIVISION).is_file():
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
    recent: deque[tuple[float, int, int]] = deque(maxlen=9)  # two seconds and a quarter
    rates: deque[float] = deque(maxlen=_CURVE)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        began, looks = time.monotonic(), 0
        while not running.done():
            now = crawl.statistics()
            recent.append((time.monotonic(), now.pages, now.bytes))
            (start, before, old), (end, after, new) = recent[0], recent[-1]
            seconds = max(end - start, 1e-9)
            rate = (after - before) / seconds
            if looks % 4 == 0:  # one a second
                rates.append(rate)
            looks += 1
            ahead = outlook(
                crawl.limits,
                pages=now.pages,
                size=now.bytes,
                seconds=end - began,
                rate=rate,
                bandwidth=(new - old) / seconds,
            )
            live.update(picture(now, title, rate, crawl.state(), rates, ahead))
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


def picture(
    now: Statistics,
    title: str,
    rate: float,
    state: str,
    rates: Iterable[float] = (),
    ahead: Outlook = _NO_OUTLOOK,
) -> Group:
    """The crawl at this moment, for a terminal; `rates` are those of the last seconds, for a small curve."""
    title += "" if state == "running" else f": {state}"
    table = Table.grid(padding=(0, 3))
    for width in (5, 11, 7, 13, 9, 9):  # names and figures, as wide as most: they stay where they are
        table.add_column(min_width=width)
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
    drawn = curve(rates)
    if drawn:
        lines.append(styled(f"rate     {drawn}", "dim"))
    if ahead.share is not None:
        left = "" if ahead.seconds is None else f", {until(ahead.seconds)} left"
        lines.append(styled(f"so far   {100 * ahead.share:.0f}% of the limit of {ahead.limit}{left}"))
    errors = reasons(now.failed)
    if errors:
        lines.append(_one_line(f"failed   {errors}"))
    refused = reasons(now.refused)
    if refused:
        lines.append(_one_line(f"refused  {refused}"))
    lines += [_one_line(f"problem  {each}") for each in _problems(now)]
    return Group(*lines)


def _one_line(words: str) -> Text:
    """However long it is: what is below does not jump."""
    line = styled(words, "dim", overflow="ellipsis")
    line.no_wrap = True
    return line


def curve(values: Iterable[float]) -> str:
    """Numbers as a line of blocks, as high as each is beside the largest.

    >>> curve([0, 1, 4, 8])
    '▁▂▅█'
    """
    given = list(values)
    most = max(given, default=0.0)
    return "".join(_BLOCKS[round((len(_BLOCKS) - 1) * value / most)] for value in given) if most > 0 else ""


def until(seconds: float) -> str:
    """A time to wait, in at most two units.

    >>> [until(value) for value in (5, 65, 7300, 200_000)]
    ['5 s', '1 min 5 s', '2 h 1 min', '2 d 7 h']
    """
    whole = round(seconds)
    for unit, name, smaller, less in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // smaller
            return f"{whole // unit} {name}" + (f" {rest} {less}" if rest else "")
    return f"{whole} s"


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
        **divided(statistics.parallel),
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
            "outbox": "what is for parts elsewhere, which `barkspider exchange` carries there",
        }.get(statistics.stopped_by, statistics.stopped_by),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def exit_code(statistics: Statistics, folder: Path) -> int:
    """What the crawl is worth to whoever started it; one without a page says why in a line."""
    if statistics.pages or statistics.stopped_by == "signal":
        return 0
    if not statistics.discovered and read_settings(Env(), folder).parallel.here:
        say(
            "none of the seeds is for a part that is here: `barkspider exchange` brings what others find",
            error=True,
        )
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
