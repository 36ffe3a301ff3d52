"""Why a URL was fetched or not, told from the structures themselves: what the last checkpoint names, the journal since, the tables.

    URL ─► normalise ─► scope ─► outcome: tables, archive ─► place: queues and DRUMs of the checkpoint, RAM, journal ─► robots.txt, host

Nothing is changed, and a crawl may be running. What cannot be seen is said: what happened since the checkpoint of a crawl that
runs but for its journal, and URLs that were refused, of which only counters tell.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import BarkspiderError, StorageError, UrlError
from barkspider.core.events import PageFetched
from barkspider.engine.checkpoint import JOURNAL, Progress
from barkspider.engine.control import ask
from barkspider.engine.folder import part_folders
from barkspider.engine.harvest import Harvest
from barkspider.engine.job import read_seeds
from barkspider.engine.stored import StoredJob, open_job
from barkspider.storage.env import Env
from barkspider.storage.store.journal import journal_files, read_records
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.storage.store.search import Hit, find, is_known
from barkspider.storage.store.snapshot import read_snapshot
from barkspider.url import Domains, KeyMaker, Normaliser, RobotsRules, ScopeRules, origin, split
from barkspider.url.partition import slotted
from barkspider.url.robots_lines import deciding_line

_LONGEST = 90.0  # seconds that a fetch takes, and a little more
_MOST_WORDS = 200  # letters of a line of robots.txt
_KEY = struct.Struct("<Q")
_OUTCOMES = """
    SELECT outcome, fetch_time AS time, warc_filename, warc_record_offset, fetch_redirect FROM pages WHERE key = {key} UNION ALL
    SELECT outcome, time, NULL, NULL, NULL FROM errors WHERE key = {key} AND what = 'page' ORDER BY time
"""
_DECIDED = "SELECT decision, rule, time FROM decisions WHERE key = {key} ORDER BY time"
_FOUND = """
    SELECT pages.url FROM (SELECT min(source) AS source FROM links WHERE target = {key}) JOIN pages ON pages.key = source LIMIT 1
"""
_ROBOTS = "SELECT url, outcome, fetch_time FROM robots WHERE origin = ? ORDER BY fetch_time DESC LIMIT 1"


@dataclass
class Why:
    """The answer. `refused` is the rule of the scope that keeps it out, `places` are where it waits, `decisions` what was decided
    about it, where a crawl traces its URL; `verdict` is all of it in a sentence."""

    url: str
    normalised: str = ""
    refused: str = ""
    is_seed: bool = False
    seen: bool = False
    found_on: str = ""
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    robots: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    verdict: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def why(path: Path, url: str) -> Why:
    """What is known of a URL, written in any way, in a job that runs, has ended or was killed."""
    job, env = open_job(path), Env()
    settings, found = job.settings, Why(url)
    domains = Domains(settings.url.private_suffixes)
    try:
        found.normalised = normal = Normaliser(settings.url, domains)(url)
    except UrlError as error:
        found.verdict = f"it is no URL that can be fetched: {error.reason}"
        return found
    seeds = read_seeds(env, path)
    rules = ScopeRules(settings.scope, domains, seeds)
    host = split(normal).host
    found.is_seed = normal in set(seeds)
    found.refused = (rules.excludes(normal) if found.is_seed else rules.refuses(normal, host, 0)) or ""
    keys = KeyMaker(settings.seed)
    key, domain = keys.of(normal), keys.of(domains.pay_level(host))
    ask(path, "write_tables")  # a crawl that runs still has rows in memory
    _read_tables(job, key, found)
    for folder in part_folders(path):
        try:
            _read_part(env, folder, key, domain, found)
        except (StorageError, OSError) as error:  # replaced by the next checkpoint while we looked
            found.unseen.append(f"{folder.name}: {error}")
        told = _ask_host(folder, host)
        if told.get("known"):
            found.host = told
    if settings.frontier == "site":
        found.unseen.append(
            f"what waits within its site: `barkspider sites {path} --like {host}` tells of that"
        )
    _read_robots(job, normal, settings.agent.name, found)
    found.verdict = _verdict(found)
    return found


def _read_tables(job: StoredJob, key: int, found: Why) -> None:
    for row in job.query(_OUTCOMES.format(key=key)).to_pylist():
        found.outcomes.append(row | {"time": str(row["time"])})
    for row in job.query(_DECIDED.format(key=key)).to_pylist():
        found.decisions.append(row | {"time": str(row["time"])})
    for row in job.query(_FOUND.format(key=key)).to_pylist():
        found.found_on = row["url"]


def _read_part(env: Env, folder: Path, key: int, domain: int, found: Why) -> None:
    """What the last checkpoint of a part has of a URL, and the records of its journal since."""
    states: Mapping[str, Any] = {}
    if MANIFEST in env.list(folder):
        _, states = read_manifest(env, folder)
    with_slot = int(slotted(np.array([key], np.uint64), np.array([domain], np.uint64))[0])
    if "seen" in states and "segments" in states["seen"]:
        found.seen |= is_known(env, folder, "seen", states["seen"], with_slot)
    part = {} if folder.name[:5] != "part-" else {"part": folder.name}
    for hit in find(env, folder, states, _KEY.pack(key)):
        found.places.append({"queue": _name(hit, states), "ahead": hit.ahead, **part})
    if "frontier" in states:
        (snapshot,) = states["frontier"]["files"]
        rows = UrlBatch.decode(read_snapshot(env, folder / snapshot)[1]["rows"])
        for place in np.flatnonzero(rows.key == np.uint64(key)).tolist():
            found.places.append({"queue": "ready", "ahead": place, **part})
    done = Progress.read(states.get("crawl")).sequence
    for file in journal_files(env, folder / JOURNAL):
        for number, record, _ in read_records(env, file):
            if number > done:
                _read_record(Harvest.decode(record), key, found)


def _read_record(harvest: Harvest, key: int, found: Why) -> None:
    """What came in since the checkpoint: an outcome of the URL takes it out of where it waited."""
    for outcome in harvest.outcomes:
        if isinstance(outcome, PageFetched) and outcome.asked.row.key == key and not outcome.stale:
            again = {"queue": "Q_W", "ahead": 0} if outcome.temporary else None
            found.places[:] = [] if again is None else [again]
            name = outcome.failure or (
                "redirect" if outcome.redirect else "unchanged" if outcome.status == 304 else "ok"
            )
            when = datetime.fromtimestamp(harvest.time, UTC).replace(tzinfo=None)
            if not any(_is_same(each, name, when) for each in found.outcomes):
                found.outcomes.append({"outcome": name, "time": str(when)})
    if not found.seen and not found.outcomes and bool((harvest.links.key == np.uint64(key)).any()):
        found.places.append({"queue": "found since the last checkpoint", "ahead": 0})


def _is_same(outcome: Mapping[str, Any], name: str, when: datetime) -> bool:
    """Whether a row of a table is about the outcome that came in at a time: it is dated by when it was asked for."""
    earlier = (when - datetime.fromisoformat(outcome["time"])).total_seconds()
    return outcome["outcome"] == name and -1 < earlier < _LONGEST


def _name(hit: Hit, states: Mapping[str, Any]) -> str:
    """The queue as the glossary has it; of Q_1 … Q_j the current one is Q_1."""
    name = Path(hit.file).name
    if hit.structure == "beast" and name != "Q_F":
        beast = states["beast"]
        count, number = len(beast["queues"]), int("".join(filter(str.isdigit, name)))
        return f"Q_{(number - 1 - (beast['turn'] - beast['start'])) % count + 1}"
    if "merge" in hit.file:
        return f"{hit.structure.partition('/')[0]} ({hit.file})"
    return "Q_W" if hit.structure == "delays" or "Q_W" in name else name


def _ask_host(folder: Path, host: str) -> dict[str, Any]:
    try:
        return ask(folder, "host", host=host, timeout=3.0) or {}
    except BarkspiderError:
        return {}


def _read_robots(job: StoredJob, url: str, agent: str, found: Why) -> None:
    """What the robots.txt that was fetched last says of the URL."""
    rows = job.query(_ROBOTS, [origin(url)]).to_pylist()
    if not rows:
        return
    row = rows[0]
    found.robots = {"url": row["url"], "answer": row["outcome"], "time": str(row["fetch_time"])}
    if row["outcome"] != "ok":
        return
    try:
        body = job.page(row["url"]).body
    except BarkspiderError as error:
        found.unseen.append(f"robots.txt: {error}")
        return
    target = split(url).target
    found.robots["allows"] = RobotsRules.parse(body, agent, origin(url)).allows(target)
    line = deciding_line(body, agent, origin(url), target)
    if line is not None:
        found.robots["rule"] = f"{line.words[:_MOST_WORDS]} (line {line.number})"


def _verdict(found: Why) -> str:
    if found.outcomes:
        last = found.outcomes[-1]
        archived = (
            f"; it lies in {last['warc_filename']} at {last['warc_record_offset']:,}"
            if last.get("warc_filename")
            else ""
        )
        waits = f", and waits in {found.places[0]['queue']} to be fetched again" if found.places else ""
        return f"it was asked for and ended as {last['outcome']} at {last['time']}{archived}{waits}"
    if found.places:
        place = found.places[0]
        behind = f" behind {place['ahead']:,} others" if place["ahead"] else ""
        return f"it waits: {place['queue']}{behind}"
    if found.refused:
        return f"it is out of scope: {found.refused}"
    refusals = [each for each in found.decisions if each["decision"] == "refused"]
    if refusals:
        return f"it was refused by {refusals[-1]['rule']} at {refusals[-1]['time']}{_line(found)}"
    if not found.seen and not found.found_on:
        return "no page that was fetched links to it" + (
            "" if not found.is_seed else ", though it is a seed: the crawl has not begun with it"
        )
    if found.robots.get("allows") is False:
        return f"it was found, and robots.txt forbids it{_line(found)}"
    if found.robots and found.robots["answer"] != "ok" and "allows" not in found.robots:
        return f"it was found, and refused: robots.txt was answered with {found.robots['answer']}"
    return "it was found, and is neither queued nor fetched: it was refused by a limit or by robots.txt, or is under way"


def _line(found: Why) -> str:
    """The line of robots.txt that forbids it, if one does."""
    forbids = found.robots.get("allows") is False and "rule" in found.robots
    return f": {found.robots['rule']}" if forbids else ""
