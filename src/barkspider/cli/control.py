"""`barkspider status`, `pause`, `stop` and `add`: speak to a crawl that runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from barkspider.cli.resume import Ray, TrustSettings
from barkspider.cli.seeds import SeedsFile, Strict, given_seeds
from barkspider.cli.terminal import say, say_json, screen
from barkspider.cli.wording import classifier, divided, exchanged, loop_held, problem, reasons, volume
from barkspider.core.errors import BarkspiderError, JobError, StorageError
from barkspider.core.units import parse_duration
from barkspider.engine.control import ask, listens
from barkspider.engine.folder import check_job, events, part_folders

_PORTION = 1 << 18  # bytes of URLs in a request: a quarter of the longest, room for quotes and escapes
_POLL = 0.1  # seconds between looks at a crawl that is to end

JobFolder = Annotated[Path, typer.Argument(metavar="JOB", help="The folder of a crawl.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def status(job: JobFolder, ray: Ray = None, json_: AsJson = False) -> int:
    """Show what a crawl is doing, or how the last one in this folder ended.

    Example: barkspider status jobs/mine
    """
    if ray is not None:
        _report(job, _ask_cluster(ray, job, "status"), json_)
        return 0
    check_job(job)
    found = ask(job, "status")
    _report(job, found if found is not None else _last(job), json_)
    return 0


def pause(job: JobFolder, ray: Ray = None, json_: AsJson = False) -> int:
    """Let a crawl start no new requests until `barkspider resume`.

    Example: barkspider pause jobs/mine
    """
    found = _ask_running(job, "pause") if ray is None else _ask_cluster(ray, job, "pause")
    if json_:
        say_json({"job": str(job), **found})
    else:
        say(f"The crawl in {job} pauses; `barkspider resume {job}` goes on.")
    return 0


def stop(
    job: JobFolder,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait for the end, such as 90s or 1h.")
    ] = "2m",
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Stop a crawl as Ctrl-C does, and wait until it has ended.

    Example: barkspider stop jobs/mine
    """
    longest = parse_duration(timeout)
    end = time.monotonic() + longest
    if ray is not None:
        from barkspider.parallel.cluster.client import NoCrawlError

        found = _ask_cluster(ray, job, "stop")
        while found["state"] != "ended":
            if time.monotonic() >= end:
                raise BarkspiderError(f"{job} was told to stop and has not ended after {timeout}")
            time.sleep(_POLL)
            try:
                found = _ask_cluster(ray, job, "status")
            except NoCrawlError:  # whoever shows it has seen its end
                found = {**found, "state": "ended"}
        _report(job, found, json_)
        return 0
    _ask_running(job, "stop")
    while listens(job):
        if time.monotonic() >= end:
            raise BarkspiderError(f"the crawl in {job} was told to stop and has not ended after {timeout}")
        time.sleep(_POLL)
    _report(job, _last(job), json_)
    return 0


def add(
    job: JobFolder,
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL…", help="What to crawl as well.", show_default=False)
    ] = None,
    seeds: SeedsFile = None,
    strict: Strict = False,
    again: Annotated[
        bool, typer.Option("--again", help="Fetch those once more that the crawl has fetched already.")
    ] = False,
    trust: TrustSettings = False,
    ray: Ray = None,
    json_: AsJson = False,
) -> int:
    """Give a crawl further seeds.

    Example: barkspider add jobs/mine https://example.org/
    """
    if ray is not None:
        from barkspider.cli.cluster import add_on_cluster

        given = add_on_cluster(ray, job, urls or [], seeds, strict, again)
        say_json({"job": str(job), "given": given}) if json_ else say(
            f"{given:,} URLs given to the crawl of {job}"
        )
        return 0
    check_job(job)
    import uvloop  # here, and what follows: all this takes a second to load

    from barkspider.engine import check_hosts, open_job
    from barkspider.engine.adding import add_to_stopped, check_again
    from barkspider.engine.trust import take_settings
    from barkspider.storage.env import Env

    settings, _ = take_settings(Env(), job, [], trust)
    if again:
        check_again(job, settings)
    starts = given_seeds(settings, urls or [], seeds, strict)
    uvloop.run(check_hosts(settings, starts))
    ask(job, "write_tables")  # a crawl that runs still has rows in memory
    known = open_job(job).known(starts)
    sent = 0
    for portion in _portions(starts):
        if ask(job, "add", urls=portion, again=[url for url in portion if again and url in known]) is None:
            add_to_stopped(job, starts[sent:], known if again else (), trust=trust)
            break
        sent += len(portion)
    found = [url for url in starts if url in known]
    if json_:
        say_json({"job": str(job), "given": len(starts), "known": found})
    else:
        urls_ = "1 URL" if len(starts) == 1 else f"{len(starts):,} URLs"
        say(
            f"{urls_} given to the crawl in {job}{_about(found, len(starts), again, settings.frontier == 'site')}"
        )
    return 0


def _about(known: list[str], given: int, again: bool, by_sites: bool) -> str:
    """What is to be said of URLs that a crawl has fetched before, if it was given any."""
    if not known:
        return ""
    if again:
        return (
            ", to be fetched once more" if given == 1 else f", {len(known):,} of them to be fetched once more"
        )
    if by_sites:  # which are fetched again as a whole
        return f", which knows {'it' if given == 1 else f'{len(known):,} of them'}"
    if given == 1:
        return ", which knows it; --again fetches it once more"
    named = known[0] if len(known) == 1 else f"{known[0]} and {len(known) - 1:,} more"
    return f", which knows {len(known):,} of them ({named}); --again fetches these once more"


def _ask_cluster(address: str, job: Path, command: str) -> dict[str, Any]:
    from barkspider.parallel.cluster.client import answer, connect

    connect(address)
    return answer(job, command)


def _ask_running(job: Path, command: str) -> dict[str, Any]:
    check_job(job)
    found = ask(job, command)
    if found is None:
        raise BarkspiderError(f"no crawl is running in {job}; there is nothing to {command}")
    return found


def _last(job: Path) -> dict[str, Any]:
    """The last `started`, `resumed` or `ended` event of a job in which no crawl runs, with what it means as `state`."""
    found: dict[str, Any] = {}
    states = {"started": "killed", "resumed": "killed", "ended": "ended"}
    for event in events(job):
        if event["event"] in states:
            found = event
    state = states.get(found.get("event", ""), "never started")
    return {"state": state, **(_kept(job) if state == "killed" else {}), **found}


def _kept(job: Path) -> dict[str, Any]:
    """How far a crawl that was killed had come by its last checkpoint, and when that was."""
    manifests = [path / "manifest.json" for path in part_folders(job)]
    if not all(manifest.is_file() for manifest in manifests):
        return {}
    from barkspider.engine.checkpoint import how_far  # here: who asks about others does not wait for it
    from barkspider.storage.env import Env

    with suppress(StorageError):  # `verify` says what is wrong
        oldest = min(manifest.stat().st_mtime for manifest in manifests)
        return {"checkpoint_time": round(oldest, 3), **how_far(Env(), part_folders(job))}
    return {}


def _report(job: Path, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json({"job": str(job), **found})
        return
    from rich.table import Table

    table = Table(title=f"barkspider: {job}", title_justify="left", show_header=False)
    try:
        for name, value in _rows(found).items():
            table.add_row(name, value)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise JobError(f"{job} has statistics that this barkspider cannot read; --json shows them") from error
    screen().print(table)


def _rows(found: dict[str, Any]) -> dict[str, str]:
    state = str(found["state"])
    if "time" in found:
        state += _moment(found["time"])
    if "pages" not in found:
        return {"state": state}
    rows = {
        "state": state,
        "pages": f"{found['pages']:,} in {found['seconds']:,.1f} s ({found['pages_per_second']:,.0f} a second)",
        "volume": f"{volume(found['bytes'])}, {found['links']:,} links",
        "URLs": f"{found['discovered']:,} found, {found['queued']:,} queued, {found['deferred']:,} deferred, "
        f"{found['in_flight']:,} in flight",
        "refused": reasons(found["refused"]) or "none",
        "failed": reasons(found["failed"]) or "none",
    }
    rows |= exchanged(found.get("gauges", {}), found["pages"]) | divided(found.get("parallel"))
    if "peak_rss" in found:  # only a crawl that ended by itself, or runs, tells what it took
        rows["cost"] = f"{found['cpu_seconds']:,.1f} s of CPU, {volume(found['peak_rss'])} of memory"
    if "loop_held" in found.get("gauges", ()):
        rows["longest pause"] = loop_held(found["gauges"])
    if "checkpoint_time" in found:
        rows["as of"] = (
            f"its last checkpoint{_moment(found['checkpoint_time'])}; `resume` has what came in since, too"
        )
    problems = [problem(**each) for each in found.get("problems", ())]
    rows |= classifier(found.get("classifier_errors", 0))
    if problems:
        rows["last problems"] = "\n".join(problems)
    if found.get("stopped_by"):
        rows["stopped by"] = str(found["stopped_by"])
    return rows


def _moment(seconds: float) -> str:
    return time.strftime(" (%Y-%m-%d %H:%M:%S UTC)", time.gmtime(seconds))


def _portions(urls: list[str]) -> Iterator[list[str]]:
    """The URLs in order, as many at a time as fit into a request."""
    portion, size = list[str](), 0
    for url in urls:
        if portion and size + len(url) > _PORTION:
            yield portion
            portion, size = [], 0
        portion.append(url)
        size += len(url) + 4
    yield portion
