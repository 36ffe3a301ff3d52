"""The report as a file: whole, small, without anything from elsewhere, and inert whatever pages say."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from barkspider.engine.samples import Samples
from barkspider.model.budgets import Distribution
from barkspider.report import render
from barkspider.report.curves import Curves, by_rank, chosen
from barkspider.report.facts import Facts, collect
from barkspider.report.markup import text
from barkspider.report.top import Standing
from tests.cli.program import run
from tests.cli.small_job import make_small_job

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m{{7*7}}'


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("report") / "job")


@pytest.fixture(scope="module")
def facts(job: Path) -> Facts:
    return collect(job)


class Tags(HTMLParser):
    """Which tags and attributes there are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_it_is_one_file_that_asks_for_nothing(facts: Facts) -> None:
    page = render([facts])
    found = Tags(page)
    assert len(page.encode()) < 5_000_000
    assert not found.tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use", "a"}
    assert not found.attributes & {"src", "href", "style", "onload", "onclick"}
    assert not re.search(r"url\(|@import|@font-face", page)
    assert page.count("<svg") > 15
    for title in ("Pages a second", "IRLbot, figure 6a", "IRLbot, figure 6b", "Limits", "Cost", "Settings"):
        assert title in page


def test_two_jobs_stand_side_by_side(facts: Facts) -> None:
    one, two = render([facts]), render([facts, replace(facts, name="another")])
    assert two.count("<svg") == 2 * one.count("<svg")
    assert "Side by side" in two
    assert "another" in two


def test_what_others_wrote_stays_text(facts: Facts) -> None:
    row = {"what": HOSTILE, "outcome": HOSTILE, "times": 1, "hosts": 1, "example": HOSTILE}
    hostile = replace(
        facts,
        name=HOSTILE,
        distributions={name: {HOSTILE: 3} for name in facts.distributions},
        servers=({HOSTILE: 1}, 1),
        errors=[row],
        cuts=[{"reason": HOSTILE, "pages": 1, "example": HOSTILE}],
        reasons={name: {HOSTILE: 2} for name in facts.reasons},
        hosts=[{"host": HOSTILE, "pages": 1, "bytes": 1, "duplicates": 0, "depth": 0}],
        top=[replace(each, domain=HOSTILE) for each in facts.top],
    )
    calm, found = Tags(render([facts])), Tags(render([hostile]))
    assert found.tags == calm.tags | {"caption"}
    assert found.attributes == calm.attributes
    assert "\u202e" not in render([hostile])
    assert "\x1b" not in render([hostile])
    assert text("\ud800") == "�"


def test_a_crawl_without_a_history_has_a_report_all_the_same(facts: Facts) -> None:
    page = render([replace(facts, samples=Samples.empty())])
    assert "nothing yet" in page
    assert Curves(Samples.empty()).path().count("<rect") == 18
    assert by_rank(None).count("nothing yet") == 1


def test_curves_have_few_points_and_true_rates() -> None:
    samples = Samples.of(["time", "run", "pages"], [[second, 1, 7 * second] for second in range(5000)])
    few = chosen(samples)
    assert len(few) == 120
    assert set(few.rate("pages")[1:].round(6)) == {7.0}
    ended = Samples.of(["time", "run", "pages"], [[0, 1, 0], [1, 1, 10], [2, 1, 20], [2.1, 1, 20]])
    assert chosen(ended).rate("pages").round(2).tolist() == [0, 10, 9.09]


def test_figure_6b_shares_pages_among_domains_of_equal_in_degree() -> None:
    few = Standing(Distribution.of([np.array([9, 1, 1])]), np.array([6, 90]), np.array([10, 20], np.uint32))
    drawn = re.findall(r'points="([^"]+)"', by_rank(few))
    assert len(drawn) == 2
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in drawn]
    for line in heights:  # ranks 1, 2 and 3: 90 pages, then 3 and 3; a budget of 20, then 10 and 10
        assert line[0] < line[1] == line[2]


def test_the_command_writes_it(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    assert run(monkeypatch, "report", str(job), "-o", str(out), "--against", str(job)) == 0
    assert capsys.readouterr().out == f"Report: {out}\n"
    assert out.read_text().startswith("<!doctype html>")
    assert run(monkeypatch, "report", str(job), "-o", str(tmp_path / "no" / "report.html")) == 2
    assert run(monkeypatch, "report", str(tmp_path)) == 2
    assert capsys.readouterr().err.count("\n") == 2
