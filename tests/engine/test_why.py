"""What became of a URL, held against the structures of a crawl that was killed, and against its tables."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider import load_settings, open_job
from barkspider.core.batch import UrlBatch
from barkspider.core.load import dump_settings
from barkspider.core.texts import Texts
from barkspider.engine.control import ask
from barkspider.engine.ledger import Ledger
from barkspider.engine.why import why, whys
from barkspider.frontier import open_frontier
from barkspider.frontier.robots.groups import ungroup
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import read_snapshot
from barkspider.url import KeyMaker, RobotsRules
from tests.cli.program import run


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=4, pages=5_000, domains=300, page_bytes=2_000)) as web:
        yield web


@pytest.fixture(scope="module")
def killed(served: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that was killed some time after its second checkpoint."""
    folder = tmp_path_factory.mktemp("why")
    chosen = served.settings() | {
        "politeness.host_delay": "50ms",
        "politeness.server_delay": "0s",
        "fetch.in_flight": "2",  # so that little is in RAM
        "scope.level": "web",
        "memory": "64MB",
        "checkpoint": "500ms",
        "budget.base": "3",
        "trace.sample": "1",
        "scope.exclude_extensions": "pdf",
    }
    settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
    (folder / "own.toml").write_text(dump_settings(settings))
    job = folder / "job"
    command = ["crawl", *served.web.seeds(10), "--config", str(folder / "own.toml"), "--job", str(job)]
    process = subprocess.Popen(
        [sys.executable, "-m", "barkspider.cli", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    limit = time.monotonic() + 60
    while (ask(job, "status") or {"pages": 0})["pages"] < 600 and time.monotonic() < limit:
        time.sleep(random.uniform(0.05, 0.2))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return job


def places(job: Path, folder: Path) -> dict[str, tuple[str, int | None]]:
    """Where each URL waits by the structures of the last checkpoint, opened as a crawl opens them, in a copy: the name of its
    queue, and how many come before it where that is an order."""
    copied = Path(shutil.copytree(job, folder / "copy", ignore=shutil.ignore_patterns("control.sock")))
    shutil.rmtree(copied / "journal")
    env, settings = Env(), open_job(copied).settings
    ledger = Ledger(env, copied)
    frontier: Any = open_frontier(settings, env, copied, state=ledger.state, resumed=0.0)
    stages, found = frontier._source._stages, dict[str, tuple[str, int | None]]()
    beast = stages.beast
    for number, queue in enumerate(beast._queues):
        name = f"Q_{(number - (beast._turn - beast._start)) % len(beast._queues) + 1}"
        _note(found, name, queue)
    _note(found, "Q_F", beast._failed)
    for name, rounds in (("Q_R", stages.permits._first), ("Q_L", stages.permits._late)):
        while len(rounds._queue):
            groups = Texts.from_arrow(rounds._queue.pop_batch(1000))
            for row in ungroup(groups)[0].rows():
                found[row.url.decode()] = (name, None)
    (snapshot,) = ledger.state("frontier")["files"]
    rows = UrlBatch.decode(read_snapshot(env, copied / snapshot)[1]["rows"]).rows()
    in_ram = {row.url.decode() for row in rows}
    delays = frontier._gate.delays
    while len(delays):
        for row in delays.take(1e12, 10_000).rows():
            if row.url.decode() not in in_ram:  # which a crawl that begins puts there
                found[row.url.decode()] = ("Q_W", None)
    for place, row in enumerate(rows):
        found[row.url.decode()] = ("ready", place)
    frontier.close()
    return found


def _note(found: dict[str, tuple[str, int | None]], name: str, queue: Any) -> None:
    place = 0
    while len(queue):
        for row in UrlBatch.checked(Texts.from_arrow(queue.pop_batch(1000))).rows():
            found[row.url.decode()] = (name, place)
            place += 1


def test_it_is_right_for_urls_of_every_stage_of_a_crawl_that_was_killed(killed: Path, tmp_path: Path) -> None:
    truth = places(killed, tmp_path)
    job = open_job(killed)
    asked = {
        row["url"] for row in job.query("SELECT url FROM pages UNION SELECT url FROM errors").to_pylist()
    }
    stages: dict[str, list[str]] = {}
    for url, (name, _) in truth.items():
        stages.setdefault(name, []).append(url)
    assert len(stages) > 1, stages.keys()
    assert any(name[2:].isdigit() for name in stages)  # one of Q_1 … Q_j
    chosen = sample([*stages.values(), sorted(asked)], 200)
    assert len(chosen) == 200
    for url, found in zip(chosen, whys(killed, chosen), strict=True):
        assert (found.url, found.normalised, found.refused, found.unseen) == (url, url, "", [])
        if url in asked or found.outcomes:  # since the checkpoint, by the journal
            assert "it was asked for" in found.verdict
            continue
        name, ahead = truth[url]
        places_found = {
            (each["queue"], each["ahead"] if ahead is not None else None) for each in found.places
        }
        assert (name, ahead) in places_found, (url, found)
        assert found.verdict.startswith("it waits: "), found


def sample(stages: list[list[str]], count: int) -> list[str]:
    """So many URLs, of each stage as many as of the others if it has them."""
    chosen: list[str] = []
    for place, urls in enumerate(sorted(stages, key=len)):
        wanted = (count - len(chosen)) // (len(stages) - place)
        chosen += random.Random(5).sample(urls, min(len(urls), wanted))
    return chosen


def test_the_budget_of_a_domain_is_that_by_which_its_urls_go(killed: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(killed, tmp_path / "copy", ignore=shutil.ignore_patterns("control.sock")))
    shutil.rmtree(copied / "journal")
    job, env = open_job(copied), Env()
    ledger = Ledger(env, copied)
    frontier: Any = open_frontier(job.settings, env, copied, state=ledger.state, resumed=0.0)
    star = frontier._source._stages.star
    domains = job.query("SELECT domain FROM domains ORDER BY domains_in DESC LIMIT 40")["domain"].to_pylist()
    keys = np.array([KeyMaker(job.settings.seed).of(name) for name in domains], np.uint64)
    degrees = star._indegree.of(keys)
    budgets = star._budgets(degrees, star.distribution())
    frontier.close()
    assert degrees.any()
    for name, degree, budget, found in zip(
        domains,
        degrees.tolist(),
        budgets.tolist(),
        whys(killed, [f"http://{name}/" for name in domains]),
        strict=True,
    ):
        assert found.domain == {"in_degree": degree, "budget": budget}, name


def test_pages_that_were_fetched_lie_where_it_says(killed: Path) -> None:
    job = open_job(killed)
    rows = job.query(
        "SELECT url, outcome, warc_filename, warc_record_offset FROM pages ORDER BY hash(key) LIMIT 3"
    ).to_pylist()
    assert len(rows) == 3
    for row in rows:
        found = why(killed, row["url"])
        last = found.outcomes[-1]
        assert (last["outcome"], last["warc_filename"]) == (row["outcome"], row["warc_filename"])
        assert last["warc_record_offset"] == row["warc_record_offset"]
        assert row["warc_filename"] in found.verdict


def test_the_scope_the_name_and_what_nobody_links_to(killed: Path, served: RunningWeb) -> None:
    seed = served.web.seeds(1)[0]
    assert why(killed, "ftp://a.example/").verdict == "it is no URL that can be fetched: scheme"
    assert why(killed, f"{seed}report.pdf").refused == "extension"
    assert why(killed, f"{seed}nobody-links-here").verdict == "no page that was fetched links to it"
    spelt = why(killed, seed.upper().replace("HTTP", "http") + "#top")
    assert spelt.normalised == seed
    assert spelt.is_seed
    assert spelt.robots["answer"] in ("ok", "http_404")


def test_robots_txt_is_what_it_says(killed: Path, served: RunningWeb) -> None:
    job = open_job(killed)
    asked = job.query("SELECT origin, url FROM robots WHERE outcome = 'ok' ORDER BY origin").to_pylist()
    for row in asked:
        rules = RobotsRules.parse(job.page(row["url"]).body, job.settings.agent.name, row["origin"])
        closed = job.page(row["url"]).markup.partition("Disallow: ")[2].partition("\n")[0]
        if (
            closed.startswith("/")
            and closed.isascii()
            and len(closed) > 1
            and not set("*$#") & set(closed)
            and rules.allows("/")
        ):
            assert not rules.allows(closed)
            found = why(killed, row["origin"] + closed)
            assert found.robots["allows"] is False
            words = found.robots["rule"]
            assert words.startswith("Disallow: /")
            line = int(words.rpartition("(line ")[2].removesuffix(")"))
            assert job.page(row["url"]).markup.splitlines()[line - 1] in words
            assert why(killed, row["origin"] + "/").robots["allows"] is True
            return
    pytest.fail(f"no site of {len(asked)} closes a folder")


def test_a_refusal_that_was_traced_is_told(killed: Path) -> None:
    refused = open_job(killed).query(
        "SELECT url, rule FROM decisions WHERE decision = 'refused' ORDER BY time LIMIT 2"
    )
    assert len(refused) > 0
    for row in refused.to_pylist():
        found = why(killed, row["url"])
        assert found.verdict.startswith(f"it was refused by {row['rule']}")
        assert found.places == []


def test_the_command_says_it(
    killed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = open_job(killed).query("SELECT url FROM pages WHERE outcome = 'ok' LIMIT 1")["url"][0].as_py()
    assert run(monkeypatch, "why", str(killed), url) == 0
    assert capsys.readouterr().out.startswith("It was asked for and ended as ok")
    assert run(monkeypatch, "why", str(killed), url, "--json") == 0
    assert json.loads(capsys.readouterr().out)["normalised"] == url
