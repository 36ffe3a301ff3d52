"""Duplicate hosts, against a comparison of every site with every other."""

from __future__ import annotations

import json
import random
from datetime import datetime
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from barkspider.archive import open_table
from barkspider.archive.schemas import SCHEMAS
from barkspider.cli.app import app
from barkspider.core.settings import Settings
from barkspider.engine import Job, open_job
from barkspider.engine.duphosts import SAME_HOME, SAME_HOME_AND_1_DOC, SHARES, duplicate_hosts
from barkspider.storage.env import Env

Web = dict[str, dict[str, str]]  # contents by host and path


def make(folder: Path, web: Web) -> Path:
    job = Job.create(folder, Settings(seed=7), ["http://a.example/"], Env())
    rows = [
        {
            "url_host_name": host,
            "url_path": path,
            "fetch_status": 200,
            "fetch_time": datetime(2026, 1, 1),
            "content_decoded_digest": content,
            "key": number,
        }
        for number, (host, path, content) in enumerate(
            (host, path, content) for host, pages in web.items() for path, content in pages.items()
        )
    ]
    rows.append(
        {"url_host_name": "gone.example", "url_path": "/", "fetch_status": 404, "content_digest": "x"}
    )
    table = open_table(job.env, job.archive, "pages", 1 << 20)
    table.write(pa.Table.from_pylist(rows, schema=SCHEMAS["pages"]))
    table.compact()
    job.close()
    return folder


def slowly(web: Web) -> dict[str, dict[str, set[str]]]:
    """For each heuristic: to each replica all that may be its original, in section 2.3's words."""

    def rank(host: str) -> tuple[int, int, str]:
        return -len(set(web[host].values())), len(host), host

    found: dict[str, dict[str, set[str]]] = {name: {} for name in (SAME_HOME, SAME_HOME_AND_1_DOC, *SHARES)}
    for replica, original in permutations(web, 2):
        if rank(original) > rank(replica):
            continue
        one, other = set(web[replica].values()), set(web[original].values())
        equal, home = len(one & other), web[replica].get("/")
        same_home = home is not None and home == web[original].get("/")
        holds = {SAME_HOME: same_home, SAME_HOME_AND_1_DOC: same_home and equal > 1}
        holds |= {
            name: equal > 1 and equal / len(one) >= share and equal / len(other) >= share
            for name, share in SHARES.items()
        }
        for name in holds:
            if holds[name]:
                found[name].setdefault(replica, set()).add(original)
    return found


def made_up(seed: int) -> Web:
    """Sites of several sizes; some are copies of others, whole, in part, or but for the home page."""
    random_ = random.Random(seed)
    web: Web = {}
    for number in range(12):
        pages = {f"/{page}": f"{number}-{page}" for page in range(random_.randint(1, 9))}
        web[f"s{number}.example"] = {"/": f"home-{number}", **pages, "/about": "the same everywhere"}
    for number in range(8):
        source = web[f"s{random_.randrange(12)}.example"]
        kept = {
            path: content
            for path, content in source.items()
            if random_.random() < random_.choice((0.7, 0.9, 1))
        }
        if random_.random() < 0.3:
            kept["/"] = "a home of its own"
        if kept:
            web[f"mirror{number}.example"] = kept
    web["only-home.example"] = {"/": "home-3"}
    return web


@pytest.mark.parametrize("seed", range(6))
def test_every_heuristic_finds_what_a_comparison_of_all_pairs_finds(tmp_path: Path, seed: int) -> None:
    web = made_up(seed)
    expected, found = slowly(web), duplicate_hosts(open_job(make(tmp_path / "job", web)))
    assert found.sites == len(web)
    for name, pairs in found.pairs.items():
        assert {pair.replica for pair in pairs} == set(expected[name]), name
        for pair in pairs:
            assert pair.original in expected[name][pair.replica], name


def test_a_page_that_all_have_makes_no_more_pairs_than_there_are_sites(tmp_path: Path) -> None:
    web: Web = {f"s{n}.example": {"/": "parked", "/terms": "terms"} for n in range(300)}
    found = duplicate_hosts(open_job(make(tmp_path / "job", web)))
    for name in found.pairs:
        assert len(found.pairs[name]) == 299
    assert found.rows()[0] == {"heuristic": SAME_HOME, "replicas": 299, "share": 299 / 300, "coverage": 1.0}


def test_the_command_prints_the_table_and_writes_a_list(tmp_path: Path) -> None:
    pages = {"/": "home", "/a": "a", "/b": "b"}
    web: Web = {
        "original.example": {**pages, "/c": "c"},
        "copy.example": pages,
        "other.example": {"/": "mine"},
    }
    job, listed = make(tmp_path / "job", web), tmp_path / "list.txt"
    run = CliRunner().invoke(app, ["duphosts", str(job), "-o", str(listed), "--by", "Dups60"])
    assert run.exit_code == 0, run.output
    assert "among 3 sites" in run.output
    assert listed.read_text() == "copy.example original.example\n"
    run = CliRunner().invoke(app, ["duphosts", str(job), "--json"])
    told = json.loads(run.output)
    assert [len(told["pairs"][name]) for name in told["pairs"]] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("wrong", [["--by", "Dups61"], ["-o", "/none/at/all"], ["--memory", "much"]])
def test_wrong_input_is_refused(tmp_path: Path, wrong: list[str]) -> None:
    from barkspider.core.errors import BarkspiderError

    job = make(tmp_path / "job", {"a.example": {"/": "a"}})
    run = CliRunner().invoke(app, ["duphosts", str(job), *wrong])
    assert isinstance(run.exception, BarkspiderError)
