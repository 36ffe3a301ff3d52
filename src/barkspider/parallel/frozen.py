"""What a job of several processes is made with beside its settings, read once: replicated URLs, and weights.

    parallel.replicate, parallel.weights: a file, or an earlier crawl ─► Frozen ─► part-0000/frozen.snapshot …

Who gets a URL, and whether it is sent, must never change in a job (`frontier.ownership`), whatever becomes of the files that
the settings named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import BarkspiderError, SettingsError, UsageError
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.engine.preflight import canonical_seeds
from barkspider.engine.stored import open_job

_OF_JOB = re.compile(r"(.+):(\d+)", re.ASCII)
_WEIGHT = re.compile(r"(\*|[a-z0-9-]+)\s+(\d{1,15})", re.ASCII)
_TOP_LEVEL = "SELECT url_host_tld AS name, count(*) AS pages FROM pages GROUP BY 1 HAVING name <> '' ORDER BY 2 DESC, 1"
# A page that links to a URL several times does so once here: the table has each link of a page once.
_MOST_LINKED = """
    SELECT target_url AS url FROM links WHERE in_scope GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {most}
"""


@dataclass(frozen=True, slots=True)
class Frozen:
    """URLs that every process knows from the beginning, and weights of top-level domains; mostly there are none."""

    replicas: Sequence[str] = ()
    weights: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, settings: Settings) -> Frozen:
        """What the settings of a new job name; `UsageError` or `SettingsError` where that cannot be had."""
        parallel = settings.parallel
        if parallel.replicate and parallel.mode != "exchange":
            raise SettingsError(
                f"nothing is sent in {parallel.mode} mode, so nothing can be spared by parallel.replicate: leave it out, or "
                "set parallel.mode=exchange"
            )
        if (parallel.partition == "hierarchical") != bool(parallel.weights):
            raise SettingsError(
                "parallel.partition = hierarchical and parallel.weights go together: give a file of lines such as `de 300`, or "
                "an earlier crawl"
            )
        replicas = _replicas(settings) if parallel.replicate else ()
        return cls(replicas, _weights(Path(parallel.weights)) if parallel.weights else {})

    def rows(self, settings: Settings, seeds: Sequence[str]) -> UrlBatch:
        """The replicated URLs that belong to the scope of a crawl from these seeds."""
        return LinkMaker(settings, seeds).known(self.replicas)


def _replicas(settings: Settings) -> Sequence[str]:
    named = settings.parallel.replicate
    job = _OF_JOB.fullmatch(named)
    if job is not None and Path(job[1]).is_dir():
        found: list[str] = _asked(Path(job[1]), _MOST_LINKED.format(most=int(job[2])), "url")
        if not found:
            raise UsageError(
                f"parallel.replicate: {job[1]} has no links to count; crawl it with archive.links = true"
            )
        return found
    lines = _read(Path(named), "parallel.replicate").split("\n")
    texts = [(line.strip(), f"{named}:{number}: ") for number, line in enumerate(lines, 1) if line.strip()]
    return canonical_seeds(settings, texts)


def _weights(named: Path) -> dict[str, int]:
    if named.is_dir():
        names, pages = (_asked(named, _TOP_LEVEL, column) for column in ("name", "pages"))
        return dict(zip(names, pages, strict=True))
    weights = {}
    for number, line in enumerate(_read(named, "parallel.weights").split("\n"), 1):
        match = _WEIGHT.fullmatch(line.strip().lower())
        if match:
            weights[match[1]] = int(match[2])
        elif line.strip():
            raise UsageError(f"{named}:{number}: {line[:100]!r} is no weight; write it like `de 300`")
    if not weights:
        raise UsageError(f"{named} has no weights; write lines such as `de 300`")
    return weights


def _asked(job: Path, sql: str, column: str) -> list[Any]:
    try:
        found: list[Any] = open_job(job).query(sql)[column].to_pylist()
    except BarkspiderError as error:
        raise UsageError(f"parallel: {error}") from error
    return found


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{name}: cannot read {path}: {why}") from error
