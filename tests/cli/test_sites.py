"""`barkspider sites`: what it lists and changes, and what other commands say of such a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barkspider import crawl, load_settings
from barkspider.core.errors import SettingsError
from barkspider.engine import resume
from tests.cli.program import complaint, run
from tests.website import QUICK, Site, serving_site


@pytest.fixture
def sites() -> object:
    with (
        serving_site({"/": "home"}) as one,
        serving_site({"/": "<a href=/2>2</a>", "/2": "two"}, "127.0.0.2") as two,
    ):
        yield one, two


def test_sites_are_listed_repeated_and_removed(
    sites: tuple[Site, Site],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job, (one, two) = tmp_path / "job", sites
    crawl([one.url("/"), two.url("/")], job, load_settings(options=[*QUICK, "frontier=site"]))

    def listed(*options: str) -> dict[str, object]:
        assert run(monkeypatch, "sites", job, "--json", *options) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    found = listed()
    assert found["counts"] == {"crawled": 2}
    assert [(each["name"], each["pages"]) for each in found["sites"]] == [("127.0.0.1", 1), ("127.0.0.2", 2)]  # type: ignore[attr-defined]
    assert listed("--like", ".0.2", "--state", "left,crawled")["sites"] == found["sites"][1:]  # type: ignore[index]
    assert listed("--state", "left")["sites"] == []
    assert listed("--repeat", "127.0.0.2")["changed"] == {"to be crawled again": 1}
    assert listed("--remove", "127.0.0.1")["counts"] == {"to_crawl": 1, "left": 1}
    asked = len(one.asked), len(two.asked)
    assert resume(job).pages == 5
    assert (len(one.asked), len(two.asked)) == (asked[0], asked[1] + 2)
    assert run(monkeypatch, "sites", job) == 0
    shown = capsys.readouterr().out
    assert "1 crawled, 1 left" in shown
    assert "removed" in shown
    assert run(monkeypatch, "sites", job, "--free", "127.0.0.2") == 2
    assert "127.0.0.2 is no site of this crawl that can be freed" in complaint(capsys)
    assert run(monkeypatch, "sites", job, "--state", "crawling") == 2
    assert "being_crawled" in complaint(capsys)
    for command in (
        ["add", job, one.url("/"), "--again"],
        ["recrawl", job, "--older-than", "0s"],
        ["resize", job, "--processes", "2"],
    ):
        assert run(monkeypatch, *command) == 2
        assert "goes site by site" in capsys.readouterr().err  # which may also show progress


def test_a_job_of_another_frontier_has_no_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_site({"/": "home"}) as site:
        crawl([site.url("/")], tmp_path / "job", load_settings(options=QUICK))
    assert run(monkeypatch, "sites", tmp_path / "job") == 2
    assert "begun with frontier = irlbot" in complaint(capsys)


@pytest.mark.parametrize(
    "option",
    [
        "limits.domain_urls=5",
        "store.url=/tmp/nowhere",
        "parallel.partition=url",
        "parallel.mode=firewall",
        "parallel.here=0",
    ],
)
def test_what_does_not_go_with_it_is_refused(option: str) -> None:
    with pytest.raises(SettingsError, match=option.partition("=")[0]):
        load_settings(options=["frontier=site", option])


def test_a_database_is_for_sites_alone() -> None:
    with pytest.raises(SettingsError, match=r"parallel\.database"):
        load_settings(options=["parallel.database=postgresql://a/b"])
