"""`barkspider recrawl`: fetch the old pages of a crawl again."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.progress import working
from barkspider.cli.resume import TrustSettings
from barkspider.cli.terminal import in_json, say
from barkspider.core.errors import UsageError
from barkspider.core.units import parse_duration

if TYPE_CHECKING:
    from barkspider.engine import Job
    from barkspider.engine.choosing import Budget
    from barkspider.engine.statistics import Statistics

_ROUNDS, _SHORTEST = 24, 60.0  # in each period of --watch; seconds of a round at least


Budgeted = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Fetch so many pages, those that are most overdue by how often they change."
    ),
]
Every = Annotated[
    str, typer.Option(metavar="TIME", help="With --budget: the time in which so many pages are fetched.")
]
Policy = Annotated[
    str,
    typer.Option(
        help="How often pages are fetched that change: all alike (uniform), as often as they change (proportional), or so that "
        "copies are as fresh as can be (optimal)."
    ),
]
Watching = Annotated[bool, typer.Option("--watch", help="With --budget: go on, at that rate, until Ctrl-C.")]


def recrawl(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl that is not running.")],
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long ago a page was fetched last, such as 12h or 7d."),
    ] = None,
    cut: Annotated[
        bool, typer.Option("--cut", help="Only pages of which a part is stored, however old they are.")
    ] = False,
    gone: Annotated[
        bool, typer.Option("--gone", help="Only URLs that answered 404 or 410 last, however often.")
    ] = False,
    budget: Budgeted = None,
    every: Every = "1d",
    policy: Policy = "optimal",
    watch: Watching = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting to change; may be repeated."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Fetch old pages again, unless their servers say that they have not changed, and go on with the crawl.

    So are URLs whose last answer was temporary (429, 5xx), and 404 once more: what is missing twice in a row, or answers 410,
    is taken for gone, and asked for again with --gone only. With --cut, fetch those again of which only a part is
    stored: raise the limit that cut them.

    Example: barkspider recrawl jobs/mine --older-than 7d

    Example: barkspider recrawl jobs/mine --cut --set fetch.max_size=50MB

    With --budget, how often each page changes is estimated from its versions; of pages that were fetched once nothing is known, and they count as
    usual ones.

    Example: barkspider recrawl jobs/mine --gone --older-than 90d

    Example: barkspider recrawl jobs/mine --budget 10000 --every 1d --watch
    """
    leave_on_interrupt()
    if budget is not None:
        if older_than is not None or cut or gone:
            raise UsageError("--budget chooses pages by itself: leave out --older-than, --cut and --gone")
        return _spend(job, budget, every, policy, watch, set_ or [], trust, json_)
    if watch:
        raise UsageError("--watch needs a rate at which to go on: say --budget N, and --every TIME")
    if older_than is None and not cut and not gone:
        raise UsageError(
            "say which pages are to be fetched again: --older-than TIME, --budget N, --cut or --gone"
        )
    before = time.time() - (parse_duration(older_than) if older_than is not None else 0.0)
    from barkspider.cli.run import run_job
    from barkspider.engine import Job, fetch_again
    from barkspider.storage.env import Env

    held = Job.open(job, Env(), set_ or [], trust=trust)
    try:
        with working("looking for pages"):
            count, unfinished = fetch_again(held, before, cut, gone)
    except BaseException:
        held.close()
        raise
    if not count and not unfinished:
        held.close()
        kinds = " or ".join(name for name, asked in (("was cut", cut), ("is gone", gone)) if asked)
        reasons = [kinds] * bool(kinds) + [f"is older than {older_than}"] * (older_than is not None)
        nothing = f"no page of {job} {' and '.join(reasons)}"
        say(in_json({"job": str(job), "again": 0}) if json_ else nothing)
        return 0

    async def make() -> Job:
        return held

    run_job(make, json_, f"barkspider: {job}, {count:,} pages again", known={"again": count})
    return 0


def _spend(
    path: Path, pages: int, every: str, policy: str, watch: bool, options: list[str], trust: bool, json_: bool
) -> int:
    """One round of a budget, or rounds without end."""
    from barkspider.engine.choosing import Budget
    from barkspider.model.freshness import POLICIES

    if policy not in POLICIES:
        raise UsageError(f"there is no policy {policy!r}; there are {', '.join(POLICIES)}")
    period = parse_duration(every)
    if period <= 0:
        raise UsageError("--every is a time such as 1d")
    whole = Budget(pages, period, policy)
    if not watch:
        _round(path, whole, options, trust, json_)
        return 0
    length = min(max(period / _ROUNDS, _SHORTEST), period)
    begun, spent, rounds = time.time(), 0, 0
    while True:
        rounds += 1
        due = round(pages * rounds * length / period) - spent
        if due > 0:
            spent += due
            run = _round(path, Budget(due, due * period / pages, policy), options, trust, json_)
            if run is not None and run.stopped_by not in ("", "done"):
                return 0  # a wish of the user, or a limit
            options, trust = [], False  # they are in the settings of the job now
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            time.sleep(max(begun + rounds * length - time.time(), 0.0))
        except KeyboardInterrupt:
            return 0
        leave_on_interrupt()


def _round(path: Path, budget: Budget, options: list[str], trust: bool, json_: bool) -> Statistics | None:
    """Fetch the pages that are due; None where there are none."""
    from barkspider.cli.run import run_job
    from barkspider.engine import Job
    from barkspider.engine.recrawl import spend
    from barkspider.storage.env import Env

    held = Job.open(path, Env(), options, trust=trust)
    try:
        with working("looking for pages"):
            count, unfinished = spend(held, budget, time.time())
    except BaseException:
        held.close()
        raise
    if not count and not unfinished:
        held.close()
        say(in_json({"job": str(path), "again": 0}) if json_ else f"no page of {path} is due")
        return None

    async def make() -> Job:
        return held

    return run_job(make, json_, f"barkspider: {path}, {count:,} pages again", known={"again": count})
