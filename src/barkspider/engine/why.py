"""Why a URL was fetched or not, told from the structures themselves: what the last checkpoint names, the journal since,
the tables.

    URL ─► normalise ─► scope ─► outcome: tables, archive ─► place: queues and DRUMs of the checkpoint, RAM, journal ─► robots.txt, host

Nothing is changed, and a crawl may be running. What cannot be seen is said: what happened since the checkpoint of a crawl that
runs but for its journal, and URLs that were refused, of which only counters tell.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import BarkspiderError, StorageError, UrlError
from barkspider.core.events import PageFetched
from barkspider.engine.checkpoint import JOURNAL, Progress
from barkspider.engine.control import ask
from barkspider.engine.folder import part_folders
from barkspider.engine.harvest import Harvest
from barkspider.engine.job import read_seeds
from barkspider.engine.reputation import reputations
from barkspider.engine.stored import StoredJob, open_job
from barkspider.storage.columns import Keys
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
    SELECT key, outcome, fetch_time AS time, warc_filename, warc_record_offset, fetch_redirect FROM pages WHERE key IN ({keys})
    UNION ALL SELECT key, outcome, time, NULL, NULL, NULL FROM errors WHERE key IN ({keys}) AND what = 'page' ORDER BY time
"""
_DECIDED = "SELECT key, decision, rule, time FROM decisions WHERE key IN ({keys}) ORDER BY time"
_FOUND = """
    SELECT target AS key, min(pages.url) AS url FROM (SELECT target, min(source) AS source FROM links WHERE target IN ({keys}) GROUP BY target)
    JOIN pages ON pages.key = source GROUP BY target
"""
_ROBOTS = """
    SELECT origin, url, outcome, fetch_time FROM robots WHERE origin IN ({marks})
    QUALIFY row_number() OVER (PARTITION BY origin ORDER BY fetch_time DESC) = 1
"""


@dataclass
class Why:
    """The answer. `refused` is the rule of the scope that keeps it out, `places` are where it waits, `decisions` what
    was decided
    about it, where a crawl traces its URL; `domain` is what counts for the budget of its domain; `verdict` is all of it in a sentence."""

    url: str
    normalised: str = ""
    refused: str = ""
    is_seed: bool = False
    seen: bool = False
    found_on: str = ""
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    domain: dict[str, int] = field(default_factory=dict)
    robots: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    verdict: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def why(path: Path, url: str) -> Why:
    """What is known of a URL, written in any way, in a job that runs, has ended or was killed."""
    return whys(path, [url])[0]


def whys(path: Path, urls: Sequence[str]) -> list[Why]:
    """The same of several, for little more than of one: tables, the journal and what is counted are read once."""
    job, env = open_job(path), Env()
    found = [Why(url) for url in urls]
    asked = _normalised(job, env, found)
    if asked:
        ask(path, "write_tables")  # a crawl that runs still has rows in memory
        _read_tables(job, asked)
        _read_parts(job, env, asked)
        _read_robots(job, asked)
    told = {each.why.normalised: each.why for each in asked.values()}
    for each in told.values():
        each.verdict = _verdict(each)
    return [replace(told[each.normalised], url=each.url) if each.normalised else each for each in found]


class _Asked(NamedTuple):
    """A URL that can be one of the crawl: its key, that of its domain, its host, and what is found out about it."""

    key: int
    domain: int
    host: str
    why: Why


def _normalised(job: StoredJob, env: Env, found: Sequence[Why]) -> dict[int, _Asked]:
    """What is asked for by key, and what scope says of it; the others get their verdict."""
    settings = job.settings
    domains, keys = Domains(settings.url.private_suffixes), KeyMaker(settings.seed)
    seeds = read_seeds(env, job.path)
    normalise, rules = Normaliser(settings.url, domains), ScopeRules(settings.scope, domains, seeds)
    known, asked = set(seeds), dict[int, _Asked]()
    for each in found:
        try:
            each.normalised = normal = normalise(each.url)
        except UrlError as error:
            each.verdict = f"it is no URL that can be fetched: {error.reason}"
            continue
        if job.settings.scope.duplicate_hosts:  # maybe another's choice: a file that nobody reads here
            each.unseen.append("whether its host is a replica by scope.duplicate_hosts")
        host = split(normal).host
        if settings.frontier == "site":
            each.unseen.append(
                f"what waits within its site: `barkspider sites {job.path} --like {host}` tells of that"
            )
        each.is_seed = normal in known
        each.refused = (rules.excludes(normal) if each.is_seed else rules.refuses(normal, host, 0)) or ""
        key = keys.of(normal)
        asked[key] = _Asked(key, keys.of(domains.pay_level(host)), host, each)
    return asked


def _read_tables(job: StoredJob, asked: Mapping[int, _Asked]) -> None:
    keys = ", ".join(map(str, asked))
    for row in job.query(_OUTCOMES.format(keys=keys)).to_pylist():
        asked[row.pop("key")].why.outcomes.append(row | {"time": str(row["time"])})
    for row in job.query(_DECIDED.format(keys=keys)).to_pylist():
        asked[row.pop("key")].why.decisions.append(row | {"time": str(row["time"])})
    for row in job.query(_FOUND.format(keys=keys)).to_pylist():
        asked[row["key"]].why.found_on = row["url"]


def _read_parts(job: StoredJob, env: Env, asked: Mapping[int, _Asked]) -> None:
    """What the last checkpoint of each part has, its journal since, and what it says itself if it runs."""
    parts: dict[Path, Mapping[str, Any]] = {}
    hosts = list(dict.fromkeys(each.host for each in asked.values()))
    for folder in part_folders(job.path):
        try:
            parts[folder] = _read_part(env, folder, asked)
        except (StorageError, OSError) as error:  # replaced by the next checkpoint while we looked
            _unseen(asked, f"{folder.name}: {error}")
        told = _ask_hosts(folder, hosts)
        for each in asked.values():
            if told.get(each.host, {}).get("known"):
                each.why.host = told[each.host]
    try:
        known = reputations(env, parts, job.settings.budget, {each.domain for each in asked.values()})
        for each in asked.values():
            each.why.domain = known[each.domain]
    except (StorageError, OSError) as error:
        _unseen(asked, f"the budget of its domain: {error}")


def _unseen(asked: Mapping[int, _Asked], words: str) -> None:
    for each in asked.values():
        each.why.unseen.append(words)


def _read_part(env: Env, folder: Path, asked: Mapping[int, _Asked]) -> Mapping[str, Any]:
    """What the last checkpoint of a part has of URLs, and the records of its journal since; the states in that checkpoint."""
    states: Mapping[str, Any] = {}
    if MANIFEST in env.list(folder):
        _, states = read_manifest(env, folder)
    part = {} if folder.name[:5] != "part-" else {"part": folder.name}
    for key, each in asked.items():
        with_slot = int(slotted(np.array([key], np.uint64), np.array([each.domain], np.uint64))[0])
        if "seen" in states and "segments" in states["seen"]:
            each.why.seen |= is_known(env, folder, "seen", states["seen"], with_slot)
    for hit in find(env, folder, states, [_KEY.pack(key) for key in asked]):
        (key,) = _KEY.unpack(hit.needle)
        asked[key].why.places.append({"queue": _name(hit, states), "ahead": hit.ahead, **part})
    keys = np.array(list(asked), np.uint64)
    if "frontier" in states:
        (snapshot,) = states["frontier"]["files"]
        rows = UrlBatch.decode(read_snapshot(env, folder / snapshot)[1]["rows"])
        for place in np.flatnonzero(np.isin(rows.key, keys)).tolist():
            asked[int(rows.key[place])].why.places.append({"queue": "ready", "ahead": place, **part})
    done = Progress.read(states.get("crawl")).sequence
    for file in journal_files(env, folder / JOURNAL):
        for number, record, _ in read_records(env, file):
            if number > done:
                _read_record(Harvest.decode(record), asked, keys)
    return states


def _read_record(harvest: Harvest, asked: Mapping[int, _Asked], keys: Keys) -> None:
    """What came in since the checkpoint: an outcome of a URL takes it out of where it waited."""
    for outcome in harvest.outcomes:
        if isinstance(outcome, PageFetched) and outcome.asked.row.key in asked and not outcome.stale:
            found = asked[outcome.asked.row.key].why
            found.places[:] = [{"queue": "Q_W", "ahead": 0}] if outcome.temporary else []
            name = outcome.failure or (
                "redirect" if outcome.redirect else "unchanged" if outcome.status == 304 else "ok"
            )
            when = datetime.fromtimestamp(harvest.time, UTC).replace(tzinfo=None)
            if not any(_is_same(each, name, when) for each in found.outcomes):
                found.outcomes.append({"outcome": name, "time": str(when)})
    for key in np.intersect1d(harvest.links.key, keys).tolist():
        found = asked[key].why
        if not found.seen and not found.outcomes and not found.places:
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


def _ask_hosts(folder: Path, hosts: Sequence[str]) -> dict[str, Any]:
    try:
        return ask(folder, "hosts", hosts=list(hosts), timeout=3.0) or {}
    except BarkspiderError:
        return {}


def _read_robots(job: StoredJob, asked: Mapping[int, _Asked]) -> None:
    """What the robots.txt that was fetched last says of each URL."""
    origins = list(dict.fromkeys(origin(each.why.normalised) for each in asked.values()))
    rows = job.query(_ROBOTS.format(marks=", ".join("?" * len(origins))), origins).to_pylist()
    by_origin, agent = {row["origin"]: row for row in rows}, job.settings.agent.name
    for each in asked.values():
        url = each.why.normalised
        row = by_origin.get(origin(url))
        if row is None:
            continue
        each.why.robots = {"url": row["url"], "answer": row["outcome"], "time": str(row["fetch_time"])}
        if row["outcome"] != "ok":
            continue
        try:
            body = job.page(row["url"]).body
        except BarkspiderError as error:
            each.why.unseen.append(f"robots.txt: {error}")
            continue
        target = split(url).target
        each.why.robots["allows"] = RobotsRules.parse(body, agent, origin(url)).allows(target)
        line = deciding_line(body, agent, origin(url), target)
        if line is not None:
            each.why.robots["rule"] = f"{line.words[:_MOST_WORDS]} (line {line.number})"


def _verdict(found: Why) -> str:
    if found.outcomes:
        last = found.outcomes[-1]
        archived = (
            f"; it lies in {last['warc_filename']} at {last['warc_record_offset']:,}"
            if last.get("warc_filename")
            else ""
        )
        waits = f", and waits in {found.places[0]['queue']} to be fetched again" if found.places else ""
        return f"it was asked for and ended as {last['outcome']} at {last['time'][:19]}{archived}{waits}"
    if found.places:
        place = found.places[0]
        behind = f" behind {place['ahead']:,} others" if place["ahead"] else ""
        return f"it waits: {place['queue']}{behind}"
    if found.refused:
        return f"it is out of scope: {found.refused}"
    refusals = [each for each in found.decisions if each["decision"] == "refused"]
    if refusals:
        return f"it was refused by {refusals[-1]['rule']} at {refusals[-1]['time'][:19]}{_line(found)}"
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
