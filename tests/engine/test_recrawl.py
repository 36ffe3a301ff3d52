"""Fetching old pages again: those that have changed, those that have not, and a crash in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from barkspider import UsageError, crawl, load_settings
from barkspider.engine import Job, fetch_again, open_job, resume, verify_job
from barkspider.lab.synthweb import LoggedRequest, RunningWeb, WebSpec, read_log, running_web
from barkspider.storage.env import Env
from tests.cli import program
from tests.engine.warcs import archived, check_warcs
from tests.website import QUICK, Answer, Site, serving_site

SPEC = {"seed": 3, "pages": 200, "page_bytes": 2_000, "crawl_delay": 0.02}
OPTIONS = [
    "scope.level=web",
    "seed=5",
    "memory=64MB",
    "archive.recent_digests=1000",
    "budget.base=3",
    "politeness.host_delay=5ms",
    "politeness.server_delay=0s",
    "politeness.slow_factor=0",
    "fetch.in_flight=8",
]
_LONG = 60.0  # seconds: more than any crawl here takes


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    with running_web(WebSpec(**SPEC), log_path=tmp_path_factory.mktemp("web") / "before.log") as web:
        yield web


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """The same web, half of whose pages have another text."""
    log = tmp_path_factory.mktemp("web") / "after.log"
    with running_web(WebSpec(**SPEC, edition=2), log_path=log) as web:
        yield web


@pytest.fixture(scope="module", params=["sydney", "irlbot"])
def crawled(
    request: pytest.FixtureRequest, before: RunningWeb, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A job that has ended; to be copied."""
    job = tmp_path_factory.mktemp("crawl") / "job"
    crawl(
        before.web.seeds(1),
        job,
        load_settings(options=[*OPTIONS, *_served_by(before), f"frontier={request.param}"]),
    )
    return job


@dataclass(frozen=True)
class Run:
    job: Path
    pages: set[str]
    changed: set[str]
    ordered: float
    summary: dict[str, Any]
    requests: list[LoggedRequest]


@pytest.fixture(scope="module")
def run(crawled: Path, after: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The job after all of its pages were fetched again."""
    job = _copy(crawled, tmp_path_factory.mktemp("again"))
    pages, ordered, seen = set(archived(job, "pages")), time.time(), len(_requests(after))
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        assert program.run(patch, *_arguments(job, after), "--json") == 0
    changed = {url for url in pages if after.web.revision(after.web.page_id(url) or 0)}
    assert 0.3 < len(changed) / len(pages) < 0.7
    return Run(job, pages, changed, ordered, json.loads(printed.getvalue()), _requests(after)[seen:])


def test_each_page_is_asked_for_once_and_no_fresh_robots_txt(run: Run) -> None:
    asked = {f"http://{entry.host}{entry.path}": entry.status for entry in run.requests}
    assert asked == {url: 200 if url in run.changed else 304 for url in run.pages}
    assert len(run.requests) == len(run.pages)


def test_every_request_is_conditional_and_a_304_is_a_revisit(run: Run) -> None:
    conditional, revisits, responses = Counter[str](), Counter[str](), Counter[str]()
    dates: dict[str, str] = {}
    for path in sorted((run.job / "archive").glob("pages-*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                header, url = record.rec_headers.get_header, record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == "request":
                    conditional[url] += record.http_headers.get_header("If-None-Match") is not None
                elif record.rec_type == "response":
                    responses[url] += 1
                    dates[url] = header("WARC-Date")
                elif record.rec_type == "revisit":
                    revisits[url] += 1
                    assert header("WARC-Profile").endswith("/1.1/revisit/identical-payload-digest")
                    assert record.http_headers.get_statuscode() == "200"
                    assert header("WARC-Refers-To-Date") == dates[url]
                    assert header("WARC-Refers-To-Target-URI") == url
    assert conditional == dict.fromkeys(run.pages, 1)
    assert revisits == dict.fromkeys(run.pages - run.changed, 1)
    assert responses == {url: 2 if url in run.changed else 1 for url in run.pages}
    check_warcs(run.job)


def test_what_is_shown_of_a_page_is_what_it_is_now(
    run: Run,
    before: RunningWeb,
    after: RunningWeb,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for url, served in ((min(run.changed), after), (min(run.pages - run.changed), before)):
        assert program.run(monkeypatch, "show", str(run.job), url, "--body") == 0
        assert capfdbinary.readouterr().out == served.web.page(url).body
    stored = open_job(run.job)
    assert {url for url in run.pages if stored.page(url).revisit} == run.pages - run.changed


def test_an_export_of_the_newest_has_each_page_once_as_it_is_now(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(monkeypatch, "export", run.job) == 0
    every = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert program.run(monkeypatch, "export", run.job, "--newest") == 0
    newest = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    html = {row["url"] for row in every}
    assert (len(every), {row["url"] for row in newest}, len(newest)) == (2 * len(html), html, len(html))
    assert all(datetime.fromisoformat(row["fetch_time"]).timestamp() >= run.ordered for row in newest)
    stored = open_job(run.job)
    assert all(row["text"] == stored.page(row["url"]).text for row in newest)


def test_the_counters_add_up_and_nothing_is_wrong_with_the_job(run: Run) -> None:
    one, count = run.summary, len(run.pages)
    assert (one["again"], one["pages"], one["stopped_by"]) == (count, 2 * count, "done")
    assert one["unchanged"] == count - len(run.changed)
    assert one["discovered"] == one["pages"] + sum(one["refused"].values()) == one["unique_urls"] + count
    assert (one["redirects"], one["queued"], one["deferred"], one["failed"]) == (0, 0, 0, {})
    assert list(verify_job(run.job)) == []
    found = open_job(run.job).query("SELECT outcome, count(*) AS pages FROM pages GROUP BY outcome")
    rows = {row["outcome"]: row["pages"] for row in found.to_pylist()}
    assert rows == {"ok": count + len(run.changed), "unchanged": count - len(run.changed)}


def test_only_what_is_older_is_taken_the_next_time(run: Run, tmp_path: Path) -> None:
    job = Job.open(_copy(run.job, tmp_path), Env())
    assert fetch_again(job, run.ordered) == (0, False)
    assert fetch_again(job, time.time()) == (len(run.pages), False)
    job.close()


def test_a_recrawl_that_is_killed_is_gone_on_with_and_fetches_each_page_once(
    crawled: Path, after: RunningWeb, tmp_path: Path
) -> None:
    job, seen = _copy(crawled, tmp_path), len(_requests(after))
    pages = set(archived(job, "pages"))
    ordered = time.time()
    child = os.fork()
    if not child:
        try:
            with pytest.MonkeyPatch.context() as patch:
                program.run(patch, *_arguments(job, after), "--set", "checkpoint=200ms")
        finally:
            os._exit(1)  # it was to be killed
    try:
        _wait_for_requests(after, seen + len(pages) // 2)
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert [problem for problem in verify_job(job) if problem.kind == "damage"] == []
    held = Job.open(job, Env())
    assert fetch_again(held, ordered) == (0, True)  # what is queued is not asked for twice
    held.close()
    statistics = resume(job)
    assert statistics.pages == 2 * len(pages)
    assert statistics.discovered == statistics.pages + sum(statistics.refused.values())
    assert Counter(archived(job, "pages")) == dict.fromkeys(pages, 2)
    requests = _requests(after)[seen:]
    # Of what was in flight nobody knows whether it was answered.
    assert len(pages) <= len(requests) <= len(pages) + 8
    assert not [entry for entry in requests if entry.path == "/robots.txt"]
    assert list(verify_job(job)) == []
    check_warcs(job)


def test_new_links_of_a_changed_page_are_followed(
    before: RunningWeb, after: RunningWeb, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    options = [*OPTIONS, *_served_by(before), "limits.page_links=6"]
    first = crawl(before.web.seeds(1), job, load_settings(options=options))
    held = Job.open(job, Env(), [*_served_by(after), "limits.page_links=1000"])
    assert fetch_again(held, time.time()).pages == first.pages
    held.close()
    resume(job)
    truth = after.web.reachable_urls(after.web.seeds(1))
    assert first.pages < len(truth) / 2
    assert set(archived(job, "pages")) == truth


def test_a_job_that_has_its_pages_says_so_before_anything_is_written(
    before: RunningWeb, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    options = [*OPTIONS, *_served_by(before), "limits.pages=5"]
    assert crawl(before.web.seeds(1), job, load_settings(options=options)).pages == 5
    held = Job.open(job, Env())
    with pytest.raises(UsageError, match="has the 5 pages that it may have"):
        fetch_again(held, time.time())
    held.close()
    held = Job.open(job, Env(), ["limits.pages=10"])
    assert fetch_again(held, time.time()) == (5, False)
    held.close()
    assert resume(job).pages == 10


def test_nothing_older_a_job_in_use_and_wrong_durations_are_one_line(
    crawled: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = _copy(crawled, tmp_path)
    assert program.run(monkeypatch, "recrawl", str(job), "--older-than", "7d") == 0
    assert capfd.readouterr().out == f"no page of {job} is older than 7d\n"
    assert program.run(monkeypatch, "recrawl", str(job), "--older-than", "7d", "--json") == 0
    assert json.loads(capfd.readouterr().out) == {"job": str(job), "again": 0}
    held = Job.open(job, Env())
    assert program.run(monkeypatch, "recrawl", str(job), "--older-than", "0s") == 2
    assert f"{job} is in use by another barkspider" in capfd.readouterr().err
    held.close()
    for wrong in ("a week", "-1d", ""):
        assert program.run(monkeypatch, "recrawl", str(job), "--older-than", wrong) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert "is not a duration" in line


def test_a_304_that_nobody_has_asked_for_is_no_page(tmp_path: Path) -> None:
    job = tmp_path / "job"
    with serving_site({"/": "no version"}) as site:
        crawl([site.url("/")], job, load_settings(options=QUICK))
        site.pages["/"] = Answer(status=304)
        held = Job.open(job, Env())
        assert fetch_again(held, time.time()).pages == 1
        held.close()
        statistics = resume(job)
    assert (statistics.pages, statistics.unchanged, statistics.failed) == (1, 0, {"http_304": 1})


def test_pages_that_were_cut_are_fetched_again_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job, large = tmp_path / "job", "many words " * 500
    pages = {"/": Answer("<a href=/large>x</a>", headers={"ETag": '"1"'})}
    with serving_site(pages | {"/large": Answer(large, headers={"ETag": '"2"'})}) as site:
        crawl([site.url("/")], job, load_settings(options=[*QUICK, "fetch.max_size=2KB"]))
        assert open_job(job).page(site.url("/large")).body != large.encode()
        site.asked.clear()
        # Not as long as they are younger, and not for others' sake.
        assert program.run(monkeypatch, "recrawl", str(job), "--cut", "--older-than", "7d") == 0
        assert capfd.readouterr().out == f"no page of {job} was cut and is older than 7d\n"
        arguments = ["recrawl", str(job), "--cut", "--set", "fetch.max_size=50KB", "--json"]
        assert program.run(monkeypatch, *arguments) == 0
        summary = json.loads(capfd.readouterr().out)
        assert (summary["again"], summary["pages"], summary["unchanged"]) == (1, 3, 0)
        assert site.asked == ["/large"]
        assert open_job(job).page(site.url("/large")).body == large.encode()
        assert program.run(monkeypatch, "recrawl", str(job), "--cut") == 0
        assert capfd.readouterr().out == f"no page of {job} was cut\n"
    assert list(verify_job(job)) == []


def test_what_is_asked_for_because_it_was_cut_is_not_asked_for_once_more_because_it_is_old(
    tmp_path: Path,
) -> None:
    with serving_site({"/": "<a href=/large>x</a>", "/large": "many words " * 500}) as site:
        crawl([site.url("/")], tmp_path / "job", load_settings(options=[*QUICK, "fetch.max_size=2KB"]))
    job = Job.open(tmp_path / "job", Env())
    now = time.time()
    assert fetch_again(job, now, cut=True) == (1, False)
    assert fetch_again(job, now, cut=True) == (0, True)  # it is queued
    assert fetch_again(job, now) == (1, True)  # the other one
    assert fetch_again(job, now) == (0, True)
    assert fetch_again(job, now, cut=True) == (0, True)
    job.close()


def test_which_pages_has_to_be_said(
    crawled: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert program.run(monkeypatch, "recrawl", str(crawled)) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert (
        line
        == "barkspider: say which pages are to be fetched again: --older-than TIME, --budget N, --cut or --gone"
    )


def recrawled(site: Site, job: Path, *, gone: bool = False) -> list[str]:
    """The paths that are asked for when all pages of a job are fetched again."""
    site.asked.clear()
    held = Job.open(job, Env())
    fetch_again(held, time.time(), gone=gone)
    held.close()
    resume(job)
    return sorted(site.asked)


def test_temporary_and_cut_answers_are_asked_for_again_404_once_and_410_only_when_that_is_wanted(
    tmp_path: Path,
) -> None:
    job, links = tmp_path / "job", "".join(f"<a href=/{name}>x</a>" for name in "abcdef")
    page = Answer("here", headers={"ETag": '"1"'})
    pages = {"/": Answer(links), "/a": page, "/b": page, "/c": page, "/d": Answer("many words " * 500)}
    with serving_site(pages | {"/e": Answer(status=403)}) as site:  # and no /f
        options = [*QUICK, "fetch.max_size=2KB", "politeness.retries=0", "politeness.obey_robots=false"]
        crawl([site.url("/")], job, load_settings(options=options))
        site.pages |= {"/a": Answer(status=503), "/b": Answer(status=404), "/c": Answer(status=410)}
        assert recrawled(site, job) == ["/", "/a", "/b", "/c", "/d", "/f"]
        site.pages["/a"] = page
        assert recrawled(site, job) == [
            "/",
            "/a",
            "/b",
            "/d",
        ]  # /b missed for the first time, /f for the second
        assert open_job(job).page(site.url("/a")).revisit  # a condition of what was there before the 503
        assert recrawled(site, job) == ["/", "/a", "/d"]
        site.pages["/b"] = page
        assert recrawled(site, job, gone=True) == ["/b", "/c", "/f"]
        assert recrawled(site, job) == ["/", "/a", "/b", "/d"]
    assert list(verify_job(job)) == []


def test_what_is_gone_is_told_in_one_line(
    crawled: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = str(_copy(crawled, tmp_path))
    assert program.run(monkeypatch, "recrawl", job, "--gone", "--cut", "--older-than", "7d") == 0
    assert capfd.readouterr().out == f"no page of {job} was cut or is gone and is older than 7d\n"


def _served_by(web: RunningWeb) -> list[str]:
    return [f"{name}={value}" for name, value in web.settings().items()]


def _arguments(job: Path, web: RunningWeb) -> list[str]:
    settings = [part for setting in _served_by(web) for part in ("--set", setting)]
    return ["recrawl", str(job), "--older-than", "0s", *settings]


def _copy(job: Path, folder: Path) -> Path:
    return Path(shutil.copytree(job, folder / "job"))


def _requests(web: RunningWeb) -> list[LoggedRequest]:
    assert web.log_path is not None
    return read_log(web.log_path)


def _wait_for_requests(web: RunningWeb, count: int) -> None:
    limit = time.monotonic() + _LONG
    while len(_requests(web)) < count:
        assert time.monotonic() < limit
        time.sleep(0.005)
