"""Rules that people give a crawl one by one: `block`, `allow`, `unblock`, and `pardon` for a trap.

    Ruled ─► the journal ─► frontier: in force where a URL comes up

To a job in whose folder no crawl runs they are written into its journal, for the next run to go by.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from barkspider.core.errors import UsageError
from barkspider.core.events import Outcome, Ruled, Seeds
from barkspider.engine.adding import write_outcomes
from barkspider.engine.checkpoint import Checkpoint
from barkspider.engine.folder import DIVISION, part_folders
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import LinkMaker
from barkspider.engine.stored import StoredJob
from barkspider.frontier.rulings import BLOCK, PARDON, UNBLOCK
from barkspider.frontier.traps import as_seen
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import read_snapshot
from barkspider.url import Domains
from barkspider.url.lists import NETWORK, Lists, parse_rule

_ROWS = 50_000
_ARCHIVED = """
    SELECT url, CAST(fetch_time AS VARCHAR) AS fetch_time, warc_filename, warc_record_offset, warc_record_length
    FROM pages ORDER BY url LIMIT {limit} OFFSET {offset}
"""


def canonical(changes: Sequence[tuple[str, str]], domains: Domains) -> tuple[tuple[str, str], ...]:
    """Changes as the journal has them; `SettingsError` for what is no rule.

    >>> canonical([("block", "Example.ORG")], Domains())
    (('block', 'domain:example.org'),)
    """
    return tuple(
        (what, about if what == PARDON else str(parse_rule(about, domains))) for what, about in changes
    )


def rule_stopped(folder: Path, changes: Sequence[tuple[str, str]], *, trust: bool = False) -> bool:
    """Give rules to a job in which nothing runs; whether what was to be taken back was there."""
    known, about = True, about_stopped(folder)
    for path in dict.fromkeys((folder, *part_folders(folder))):
        job = Job.open(path, Env(), trust=trust, part=path != folder)
        try:
            chosen = canonical(changes, Domains(job.settings.url.private_suffixes))
            known = all(is_known(what, rule, about) for what, rule in chosen)
            if known and not (path / DIVISION).is_file():
                write_outcomes(job, partial(_said, Ruled(chosen)))
                job.log(time.time(), "ruled", changes=chosen)
        finally:
            job.close()
    return known


def is_known(what_to_do: str, rule: str, about: Mapping[str, Any]) -> bool:
    """Whether what is to be taken back is there; what is to be given need not be."""
    if what_to_do == PARDON:
        return any(trap["pattern"] == rule for trap in about["traps"])
    return what_to_do != UNBLOCK or rule in about["given"]


def _said(ruled: Ruled, links: LinkMaker) -> list[Seeds | Ruled]:  # noqa: ARG001
    return [ruled]


def about_stopped(folder: Path) -> dict[str, Any]:
    """What was given to a job in which nothing runs, how many URLs each rule has blocked by its last checkpoint, and its traps."""
    given, blocked, traps = dict[str, Any](), Counter[str](), list[dict[str, Any]]()
    for path in part_folders(folder):
        head = saved_head(path)
        saved = head.get("rulings", {})
        given |= saved.get("given", {})
        blocked.update(saved.get("counts", {}))
        traps += map(as_seen, head.get("traps", {}).get("traps", ()))
        for outcome in _since(path):
            for what, rule in outcome.changes if isinstance(outcome, Ruled) else ():
                if what == UNBLOCK:
                    given.pop(rule, None)
                elif what == PARDON:
                    traps = [trap for trap in traps if trap["pattern"] != rule]
                else:
                    given[rule] = what
    return {"given": given, "blocked": dict(blocked), "traps": traps}


def saved_head(folder: Path) -> dict[str, Any]:
    """What the last checkpoint of a job of one process, or of a part, has of its frontier by name; {} without one."""
    env = Env()
    checkpoint = Checkpoint.read(env, folder)
    return read_snapshot(env, folder / checkpoint.snapshot)[0] if checkpoint else {}


def _since(folder: Path) -> Iterator[Outcome]:
    ledger = Ledger(Env(), folder)
    for harvest in ledger.harvests():
        yield from harvest.outcomes


def archived(job: StoredJob, about: str) -> Iterator[dict[str, Any]]:
    """The pages in the archive that a rule is about, and where they lie."""
    domains = Domains(job.settings.url.private_suffixes)
    rule = parse_rule(about, domains)
    if rule.kind == NETWORK:
        raise UsageError(f"--purge looks for URLs, and tables have no addresses: block {about} without it")
    lists, offset = Lists({rule: BLOCK}, {}, domains), 0
    while rows := job.query(_ARCHIVED.format(limit=_ROWS, offset=offset)).to_pylist():
        judged = lists.judge([row["url"] for row in rows])
        yield from (row for row, verdict in zip(rows, judged, strict=True) if verdict)
        offset += len(rows)
