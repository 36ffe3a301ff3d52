"""What a crawl measured, for `barkspider plan --from JOB`; it may still be running."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError
from barkspider.core.settings import Settings
from barkspider.engine.control import ask
from barkspider.engine.folder import check_job, events, part_folders
from barkspider.model import irlbot
from barkspider.model.irlbot import UrlStream
from barkspider.storage.drum.sizing import POINTER

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
    archives = [folder / "archive" for folder in part_folders(job)]
    kept = sum(_size(path) for archive in archives for path in archive.rglob("*"))
    if kept:  # closed archives may have been moved away
        parameters["compression"] = ended["bytes"] / kept
    # A crawl by several processes has as many of each DRUM, with sizes and merges of their own.
    told = ended.get("parts", [ended])
    drums = _drums(told)
    compared = {name: _sum(map(drum_compared, found)) for name, found in drums.items()}
    seen = _added(drums.get("seen", []))
    if not seen.get("unique"):  # none, or of a version that counted less
        return Measured(fetched, parameters)
    if not all("beast" in part for part in told):  # a DRUM of keys alone, which knows no URLs: that of Sydney
        return Measured(fetched, parameters, compared)
    whole = replace(settings, parallel=replace(settings.parallel, processes=1))  # all that they share
    budgets, space = [part["beast"] for part in told], Space(whole, Env(), job).seen
    beast = _added(budgets) | {
        "budget": sum(each["budget"] for each in budgets) / len(budgets),
        "queues": max(each["queues"] for each in budgets),
    }
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
        compared,
        whole_generations(seen, space.ram, space.disk()),
        budgets_compared(beast, seen, met, fetched / max(ended["pages_per_second"], 1e-9)),
        _added([part["ranking"] for part in told if "ranking" in part]) or None,
    )


def _drums(parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, int]]]:
    """What the DRUMs of each name moved, those that were used."""
    found: dict[str, list[Mapping[str, int]]] = {}
    for part in parts:
        for name, about in part.get("drum", {}).items():
            if about.get("rows_written"):
                found.setdefault(name, []).append(about)
    return found


def _added(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several processes as those of one.

    >>> _added([{"rows": 3}, {"rows": 4}])
    {'rows': 7}
    """
    found: dict[str, Any] = {}
    for each in counts:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return found


def _sum(compared: Iterable[Compared]) -> Compared:
    moved = list(compared)
    return Compared(sum(each.counted_bytes for each in moved), sum(each.predicted_bytes for each in moved))


def drum_compared(about: Mapping[str, int]) -> Compared:
    """What a DRUM moved (its `traffic`), beside what the model says."""
    from barkspider.storage.drum.counters import moved_and_predicted

    return Compared(*moved_and_predicted(about))


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
