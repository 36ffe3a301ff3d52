"""Duplicate hosts on a web of which one host in twenty is a copy of another, by whoever knows which (Viúva Negra, Table I).

The copies are exact, the same under another form of the name, changed in a tenth or three tenths of their pages, or none at all: a home page
with other pages beneath, a page that says that it is under construction. The web is computed, and crawled by the live
frontiers on a virtual clock: once without looking for mirrors, for the five heuristics, and once with `scope.stop_mirrors`.
Quick: a sixth of the pages.
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.frontier.farmed import FARM, GOOD, WILD, FarmedWeb
from tests.frontier.mirrored import DUPLICATES, MirroredWeb

from barkspider.archive import open_table
from barkspider.archive.schemas import SCHEMAS
from barkspider.core.load import load_settings
from barkspider.engine.duphosts import (
    HEURISTICS,
    SAME_HOME,
    SAME_HOME_AND_1_DOC,
    DuplicateHosts,
    duplicate_hosts,
)
from barkspider.engine.job import Job
from barkspider.engine.stored import open_job
from barkspider.frontier import open_frontier
from barkspider.lab.synthweb import WebSpec
from barkspider.storage.env import Env

_MOST = 5  # fetches of a mirror, its robots.txt among them
_PRECISION = {SAME_HOME: 0.68, SAME_HOME_AND_1_DOC: 0.92, "Dups60": 0.90, "Dups80": 0.92, "Dups100": 0.94}
_ORDER = (SAME_HOME, "Dups60", SAME_HOME_AND_1_DOC, "Dups80", "Dups100")  # of coverage, in Table I

# What is to keep a farm of cheap domains on four addresses, or a domain with a wildcard in DNS, from having most of a crawl.
_FARMS = {FARM: {"limits.address_urls": 200}, WILD: {"limits.wildcard_hosts": 50}}
_AT_ONCE = {"politeness.host_delay": "0s", "politeness.server_delay": "0s", "politeness.obey_robots": False}


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    pages, domains = (3_000, 500) if quick else (20_000, 3_000)
    spec = WebSpec(seed=1, pages=pages, domains=domains, links_per_page=12, page_bytes=2_000)
    whole = MirroredWeb(spec)
    _crawl(whole, "sydney", stop=False)
    found = _archived(whole)
    table = {str(row["heuristic"]): row for row in found.rows()}
    figures: dict[str, Any] = {"sites": found.sites, "copies": len(whole.copies)}
    duplicates = {name for name, copy in whole.copies.items() if copy.kind in DUPLICATES}
    figures["duplicates"] = len(duplicates)
    for name in HEURISTICS:
        right = sum(_is_right(whole, pair.replica, pair.original) for pair in found.pairs[name])
        figures[name] = {
            "share": round(float(str(table[name]["share"])), 4),
            "precision": round(right / max(len(found.pairs[name]), 1), 3),
            "coverage": round(float(str(table[name]["coverage"] or 0)), 2),
            "of_all_duplicates": round(right / len(duplicates), 3),
        }
    targets = [
        _target(f"precision of {name}", figures[name]["precision"], least, least=True)
        for name, least in _PRECISION.items()
    ]
    coverage = [figures[name]["coverage"] for name in _ORDER]
    targets.append(
        _target(
            "coverages in the order of Table I",
            float(coverage == sorted(coverage, reverse=True)),
            1.0,
            least=True,
        )
    )
    for frontier in ("sydney", "irlbot"):
        web = MirroredWeb(spec)
        stopped = _crawl(web, frontier, stop=True)
        wrong = sum(not _is_right(web, *pair) for pair in stopped.items())
        costs = [web.cost(host) for host in stopped]
        figures[frontier] = {
            "stopped": len(stopped),
            "of_all_duplicates": round(len(stopped) / len(duplicates), 3),
            "fetches": len(web.requests),
            "fetches_without": len(whole.requests),
            "mean_cost": round(sum(costs) / max(len(costs), 1), 2),
            "contents_kept": round(len(set(web.contents.values())) / len(set(whole.contents.values())), 4),
        }
        targets.append(_target(f"most fetches of a mirror, {frontier}", max(costs, default=0), _MOST))
        targets.append(_target(f"good hosts stopped, {frontier}", wrong, 0))
    for kind, limit in _FARMS.items():
        figures[kind], goals = _farmed(kind, limit, 100 if quick else 400)
        targets += goals
    return {"figures": figures, "targets": targets}


def _farmed(kind: str, limit: dict[str, Any], good: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The share of the fetches that a farm has, without a limit and with it, and good pages."""
    shares, kept = dict[str, float](), dict[str, int]()
    pages, most = 20, good * 20 * 2
    for name, more in (("without", {}), ("with", limit)):
        web = FarmedWeb(kind, good, pages)
        settings = {"seed": 1, "frontier": "irlbot", "limits.pages": most, **_AT_ONCE, **more}
        with tempfile.TemporaryDirectory() as folder:
            driver = open_frontier(load_settings(overrides=settings), Env(), Path(folder), background=False)
            try:
                web.run(driver, web.seeds(), validate=False)
            finally:
                driver.close()
        fetched = web.fetches(kind)
        kept[name] = web.fetches(GOOD)
        shares[name] = round(fetched / max(fetched + kept[name], 1), 4)
    figures = {
        "share_without": shares["without"],
        "share_with": shares["with"],
        "good_without": kept["without"],
        "good_with": kept["with"],
    }
    fewer = _target(
        f"share of {kind}, with its limit by that without", shares["with"] / max(shares["without"], 1e-9), 1.0
    )
    good_pages = _target(
        f"good pages beside {kind}, with by without", kept["with"] / max(kept["without"], 1), 1.0, least=True
    )
    return figures, [fewer, good_pages]


def _crawl(web: MirroredWeb, frontier: str, stop: bool) -> dict[str, str]:
    """Crawl all of it; the hosts that were stopped, and as mirrors of whom."""
    settings = load_settings(
        overrides={"seed": 1, "frontier": frontier, "sydney.sample": 0, "scope.stop_mirrors": stop}
    )
    with tempfile.TemporaryDirectory() as folder:
        driver = open_frontier(settings, Env(), Path(folder), background=False)
        try:
            web.run(driver, web.seeds(), validate=False)
            notices = driver.notices()
        finally:
            driver.close()
    return {told["replica"]: told["original"] for event, told in notices if event == "mirror"}


def _archived(web: MirroredWeb) -> DuplicateHosts:
    """What the heuristics say of the pages that were fetched, from the tables of a job."""
    when = datetime(2026, 1, 1)
    hosts, paths = zip(*web.contents, strict=True)
    rows = {
        "url_host_name": pa.array(hosts),
        "url_path": pa.array(paths),
        "fetch_status": pa.array([200] * len(hosts), pa.int16()),
        "fetch_time": pa.array([when] * len(hosts), pa.timestamp("us")),
        "content_digest": pa.array([str(digest) for digest in web.contents.values()]),
    }
    with tempfile.TemporaryDirectory() as folder:
        job = Job.create(
            Path(folder) / "job", load_settings(options=["seed=1"]), ["http://a.example/"], Env()
        )
        table = open_table(job.env, job.archive, "pages", 1 << 24)
        schema = SCHEMAS["pages"]
        columns = [rows.get(name, pa.nulls(len(hosts), schema.field(name).type)) for name in schema.names]
        table.write(pa.Table.from_arrays(columns, schema=schema))
        table.compact()
        job.close()
        return duplicate_hosts(open_job(job.path))


def _is_right(web: MirroredWeb, replica: str, original: str) -> bool:
    """Whether two hosts serve, but for some pages, the same."""
    return any(
        copy.kind in DUPLICATES and {name, copy.original} == {replica, original}
        for name in (replica, original)
        if (copy := web.copies.get(name)) is not None
    )


def _target(name: str, value: float, target: float, least: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "target": target,
        "holds": value >= target if least else value <= target,
    }
