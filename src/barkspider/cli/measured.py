"""What a crawl measured, for `barkspider plan --from JOB`; it may still be running."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError
from barkspider.core.settings import Settings
from barkspider.engine.control import ask
from barkspider.engine.folder import check_job, events
from barkspider.model import irlbot
from barkspider.model.irlbot import UrlStream
from barkspider.storage.drum.sizing import KEY, POINTER

_NEEDED = {
    "pages",
    "links",
    "unique_urls",
    "pages_per_second",
    "bytes",
    "cpu_seconds",
    "gauges",
    "out_of_scope",
}
_IRLBOT_PAGES, _IRLBOT_DOMAINS = 6_380_051_942, 33_755_361
_LENGTH = 4  # bytes that a queue keeps for the length of a row, where a bucket of URLseen has one
_MOVED = (
    "pairs_written",
    "aux_written",
    "pairs_read",
    "aux_read",
    "known_read",
    "known_written",
    "results_written",
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Bytes that a structure moved, and what the model says with the sizes and merges of this crawl."""

    counted_bytes: float
    predicted_bytes: float


@dataclass(frozen=True, slots=True)
class Budgets:
    """What BEAST did, beside what equations (8) to (11) say of a crawl of so many pages, domains and budgets.

    Speeds are λ, in bytes a second of the crawl.
    """

    bytes_per_second: float
    naive_bytes_per_second: float  # (8)
    beast_bytes_per_second: float  # (10), or its bound where there are as many queues as there may be
    queues: int
    predicted_queues: int  # (11)
    budget: float  # E[B_x]
    domains: int  # V
    excess: float  # α_N, (9)
    moved: Compared


@dataclass(frozen=True, slots=True)
class Measured:
    """Parameters of the planner by name, the pages they were measured on, and what the crawl moved on disk beside what
    the models say. `whole_generations_bytes` is what URLseen would have moved if it had never merged early."""

    measured_pages: int
    parameters: dict[str, float]
    drums: dict[str, Compared] = field(default_factory=dict)
    whole_generations_bytes: float | None = None
    budgets: Budgets | None = None
    ranking: dict[str, int] | None = None


def measure(job: Path, pages: float) -> Measured:
    """Read the last `ended` event of JOB/log.jsonl, or what a crawl that runs says of itself, JOB/settings.toml and the
    size of JOB/archive, for a crawl of so many `pages`.

    Where the crawl kept its URLs on disk, the event has what its structures moved (`core.events.Frontier.traffic`). Then
    b, E[B_x] and the part of the links that the front set stops are measured too, and R and D are those of the job.
    """
    check_job(job)
    ended = _running(job) or _last_ended(job)
    try:
        return _measure(job, ended, pages)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise JobError(f"{job} has statistics that this barkspider cannot read") from error


def _measure(job: Path, ended: dict[str, Any], pages: float) -> Measured:
    # Here: who plans without a job does not wait for these.
    from barkspider.engine.trust import read_settings
    from barkspider.frontier.stages import Space
    from barkspider.storage.env import Env

    fetched = ended["pages"]
    if not fetched:
        raise JobError(f"the crawl in {job} got no page; there is nothing to plan from")
    settings = read_settings(Env(), job)
    links = max(ended["links"] - sum(ended["out_of_scope"].values()), ended["unique_urls"], 1)
    met = _domains_met(job, ended["gauges"])
    parameters = {
        "rate": ended["pages_per_second"],
        "links_per_page": links / fetched,
        "unique": ended["unique_urls"] / links,
        "unique_per_page": ended["unique_urls"] / fetched,
        "page_size": ended["bytes"] / fetched,
        "cpu_per_page": ended["cpu_seconds"] / fetched,
        "cores": float(os.cpu_count() or 1),
        "domains": _domains(settings, fetched, met, pages),
        "known": 0.0,
    }
    kept = sum(map(_size, (job / "archive").rglob("*")))
    if kept:  # closed archives may have been moved away
        parameters["compression"] = ended["bytes"] / kept
    drums = {name: about for name, about in ended.get("drum", {}).items() if about.get("rows_written")}
    if "seen" not in drums or not drums["seen"]["unique"]:  # none, or of a version that counted less
        return Measured(fetched, parameters)
    if "beast" not in ended:  # a DRUM of keys alone, which knows no URLs: that of Sydney
        return Measured(fetched, parameters, {name: drum_compared(about) for name, about in drums.items()})
    seen, beast, space = drums["seen"], ended["beast"], Space(settings, Env(), job).seen
    parameters |= {
        "url_bytes": seen["aux_bytes"] / seen["rows"],
        "links_per_page": seen["rows"] / fetched,
        "unique": seen["unique"] / seen["rows"],
        "unique_per_page": seen["unique"] / fetched,
        "sifted": seen["sifted"] / seen["rows"],
        "ram": float(space.ram),
        "disk": float(space.disk()),
        "pointer_bytes": float(POINTER),
        "budget": beast["budget"],
    }
    return Measured(
        fetched,
        parameters,
        {name: drum_compared(about) for name, about in drums.items()},
        whole_generations(seen, space.ram, space.disk()),
        budgets_compared(beast, seen, met, fetched / max(ended["pages_per_second"], 1e-9)),
        ended.get("ranking"),
    )


def drum_compared(about: Mapping[str, int]) -> Compared:
    """What a DRUM moved (its `traffic`), beside equation (5) with its sizes and, because some come early, its merges."""
    rows, asks = max(about["rows"], 1), max(about["checks"], 1)
    entry = about["known_bytes"] / about["keys"] if about["keys"] else KEY
    value = entry - KEY + 1 if about["value_bytes"] else 0  # in an answer, with the verdict
    aux = (
        about["aux_bytes"] - (rows - about["checks"])
    ) / asks  # a row that does not ask has only the length of none
    predicted = irlbot.drum_bytes(
        written=about["rows_written"],
        merged=about["rows_merged"],
        passed=about["keys_read"] + about["keys_written"],
        given=about["rows_given"],
        row=KEY + (about["value_bytes"] + about["aux_bytes"]) / rows,
        entry=entry,
        answer=KEY + value + aux,
    )
    return Compared(sum(about[name] for name in _MOVED), predicted)


def budgets_compared(
    beast: Mapping[str, float], seen: Mapping[str, int], domains: int, seconds: float
) -> Budgets:
    """What BEAST did (its part of `traffic`) in so many seconds, beside equations (8) to (11). Pages are those that it
    let go, of which some may still wait in RAM; b and L are those of URLseen."""
    taken = max(beast["taken"], 1)
    rate = taken / seconds
    url, fresh = seen["aux_bytes"] / seen["rows"] + _LENGTH - 1, max(seen["unique"] / taken, 1.0)
    excess = irlbot.over_budget(taken, max(beast["budget"], 1.0), domains)
    moved, found = beast["read"] + beast["written"], beast["placed"] + beast["failed"] - beast["rescanned"]
    return Budgets(
        bytes_per_second=moved / seconds,
        naive_bytes_per_second=irlbot.naive_speed(rate, url, fresh, excess),
        beast_bytes_per_second=irlbot.bounded_beast_speed(rate, url, fresh, excess),
        queues=int(beast["queues"]),
        predicted_queues=min(irlbot.beast_queues(excess), irlbot.MOST_QUEUES),
        budget=beast["budget"],
        domains=domains,
        excess=excess,
        moved=Compared(moved, irlbot.beast_bytes(found, taken, beast["rescanned"], url)),
    )


def whole_generations(seen: Mapping[str, int], ram: int, disk: int) -> float:
    """Equation (5) with the D that each generation of this crawl might have had."""
    rows, url = seen["rows_written"], seen["aux_bytes"] / seen["rows"]
    stream = UrlStream(rows, seen["unique"] / rows, 0, url, pointer=POINTER)
    return irlbot.drum_sized(stream, ram, disk) * url * rows


def _domains_met(job: Path, gauges: Mapping[str, int]) -> int:
    """V so far: the domains that others link to, or those of the seeds if they are more."""
    if "domains" not in gauges:  # this frontier does not count them
        return gauges.get("hosts") or 1
    from barkspider.url import Domains, split

    seeds, domains = job / "seeds.txt", Domains()
    given = seeds.read_text("utf-8", errors="replace").split() if seeds.is_file() else []
    return max(len({domains.pay_level(split(url).host) for url in given}), gauges["domains"], 1)


def _domains(settings: Settings, fetched: int, met: int, pages: float) -> float:
    """V of a crawl of so many pages: a crawl of chosen sites meets no others; one of the web meets more and more, by
    the power of its size that leads from what this crawl met to what IRLbot met."""
    if settings.scope.level != "web" or fetched >= _IRLBOT_PAGES:
        return float(met)
    power = math.log(max(_IRLBOT_DOMAINS / met, 1)) / math.log(_IRLBOT_PAGES / fetched)
    return float(met * (max(pages, fetched) / fetched) ** min(power, 1.0))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a crawl that runs gives its files other names
        return 0


def _running(job: Path) -> dict[str, Any] | None:
    """The statistics of the crawl that runs in a job's folder, if one does."""
    found = ask(job, "status") if job.is_dir() else None
    return found if found is not None and found.keys() >= _NEEDED else None


def _last_ended(job: Path) -> dict[str, Any]:
    found = None
    for event in events(job):
        if event["event"] == "ended" and event.keys() >= _NEEDED:
            found = event
    if found is None:
        raise JobError(f"the crawl in {job} has not ended; --from needs its statistics")
    return found
