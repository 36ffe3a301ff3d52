"""add, of URLs that the crawl knows already: it says so, and fetches them once more when told to."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.engine import resume, verify_job
from barkspider.engine.control import ask
from tests.cli.program import run
from tests.cli.test_runs import end, start
from tests.website import QUICK, Answer, Site, serving_site


@pytest.fixture
def site() -> Iterator[Site]:
    with serving_site({"/": Answer("<a href=/gone>x</a>", headers={"ETag": '"1"'}), "/new": "new"}) as served:
        yield served


def test_known_urls_of_a_job_in_which_nothing_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job"
    home, gone, new = map(site.url, ("/", "/gone", "/new"))
    crawl([home], job, load_settings(options=QUICK))
    assert run(monkeypatch, "add", job, f"{home}#top") == 0
    once_more = "--again fetches"
    assert (
        capsys.readouterr().out
        == f"1 URL given to the crawl in {job}, which knows it; {once_more} it once more\n"
    )
    assert run(monkeypatch, "add", job, home, gone, new) == 0
    some = f"3 URLs given to the crawl in {job}, which knows 2 of them ({home} and 1 more); {once_more} these once more\n"
    assert capsys.readouterr().out == some
    assert run(monkeypatch, "add", job, home, new, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"job": str(job), "given": 2, "known": [home]}
    site.asked.clear()
    resume(job)
    assert site.asked == ["/new"]
    # Once more: conditions for what is stored, none for what failed; what nobody knew is a seed like any other.
    (site.pages["/gone"], site.pages["/newer"]) = (Answer("back"), Answer("newer"))
    newer = site.url("/newer")
    assert run(monkeypatch, "add", job, home, gone, newer, "--again") == 0
    assert (
        capsys.readouterr().out == f"3 URLs given to the crawl in {job}, 2 of them to be fetched once more\n"
    )
    site.asked.clear()
    statistics = resume(job)
    assert sorted(site.asked) == ["/", "/gone", "/newer"]
    assert statistics.unchanged == 1
    assert open_job(job).page(gone).body == b"back"
    assert list(verify_job(job)) == []


def test_known_urls_of_a_crawl_that_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It waits for its second page; the rows of the first are not yet in the tables."""
    job, home = tmp_path / "job", site.url("/")
    later = site.pages["/gone"] = Answer("late", due=threading.Event())
    options = [part for text in (*QUICK, "limits.grace=0s") for part in ("--set", text)]
    process = start("crawl", home, "--job", "job", *options, folder=tmp_path)
    try:
        limit = time.monotonic() + 60
        while (ask(job, "status") or {"pages": 0})["pages"] < 1:
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert run(monkeypatch, "add", job, home) == 0
        assert "which knows it; --again fetches it once more" in capsys.readouterr().out
        assert run(monkeypatch, "add", job, home, site.url("/new"), "--again", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"job": str(job), "given": 2, "known": [home]}
        assert run(monkeypatch, "stop", job) == 0
        assert end(process)[0] == 0
    finally:
        process.kill()
        assert later.due is not None
        later.due.set()
    resume(job)
    # Of what was in flight nobody knows whether it was answered.
    asked = Counter(site.asked)
    assert (asked["/"], asked["/new"], asked["/robots.txt"]) == (2, 1, 1)
    assert list(verify_job(job)) == []
