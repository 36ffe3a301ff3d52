"""block, allow, unblock, rules, traps, pardon and limits, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.engine import resume
from barkspider.engine.folder import events
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from tests.cli.program import complaint, run
from tests.cli.small_job import copied

SPEC = WebSpec(seed=3, pages=120, page_bytes=2_000, hazards=frozenset({"growing_paths"}))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunningWeb]:
    """A crawl that came to its end beside a site that has none."""
    folder = tmp_path_factory.mktemp("rules") / "job"
    with running_web(SPEC) as served:
        chosen = served.settings() | {
            "politeness.host_delay": "1ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "seed": "4",
            "memory": "64MB",
            "traps.evidence": "16",
            "limits.time": "60s",
        }
        crawl(served.web.seeds(1), folder, load_settings(options=[f"{n}={v}" for n, v in chosen.items()]))
    return folder, served


@pytest.fixture
def job(crawled: tuple[Path, RunningWeb], tmp_path: Path) -> Path:
    return copied(crawled[0], tmp_path / "job")


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_crawl_beside_a_trap_ends_and_says_so(
    job: Path,
    crawled: tuple[Path, RunningWeb],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (name,) = crawled[1].web.hazards["growing_paths"].names
    *_, end = [event for event in events(job) if event["event"] == "ended"]
    assert end["stopped_by"] == "done"
    assert end["refused"]["trap"] > 0
    assert run(monkeypatch, "traps", job, "--json") == 0
    traps = said(capsys)["traps"]
    assert isinstance(traps, list)
    patterns = {trap["pattern"] for trap in traps}
    assert f"www.{name}/chapter/notes/" in patterns
    assert {event["pattern"] for event in events(job) if event["event"] == "trap"} == patterns
    rows = open_job(job).query("SELECT pattern, held FROM traps WHERE event = 'end'").to_pylist()
    assert {row["pattern"] for row in rows} == patterns
    assert sum(row["held"] for row in rows) > 0
    of_it = open_job(job).query(f"SELECT count(*) AS n FROM pages WHERE url_host_name = 'www.{name}'")
    assert of_it["n"][0].as_py() < 200

    pattern = f"www.{name}/chapter/notes/"
    assert run(monkeypatch, "pardon", job, "nonsense") == 2
    assert "has no trap nonsense" in complaint(capsys)
    assert run(monkeypatch, "pardon", job, pattern, "--why", "a test") == 0
    assert pattern in capsys.readouterr().out
    assert run(monkeypatch, "traps", job, "--json") == 0
    left = said(capsys)["traps"]
    assert isinstance(left, list)
    assert {trap["pattern"] for trap in left} == patterns - {pattern}


def test_rules_for_a_crawl_that_does_not_run(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = open_job(job).query("SELECT url FROM pages WHERE fetch_status = 200 ORDER BY url")["url"][0].as_py()
    assert run(monkeypatch, "block", job, url, "--why", "they asked", "--purge") == 0
    done, *archived = capsys.readouterr().out.splitlines()
    assert url in done
    assert [json.loads(line)["url"] for line in archived] == [url]
    assert json.loads(archived[0])["warc_record_offset"] >= 0
    assert run(monkeypatch, "allow", job, "example.org") == 0
    capsys.readouterr()
    assert run(monkeypatch, "rules", job, "--json") == 0
    assert said(capsys)["given"] == {url: "block", "domain:example.org": "allow"}
    assert run(monkeypatch, "unblock", job, "example.org", "--json") == 0
    assert said(capsys) == {"job": str(job), "unblock": "domain:example.org", "why": ""}
    resume(job, ["limits.time=5s"])
    assert run(monkeypatch, "rules", job) == 0
    assert capsys.readouterr().out == f"block {url}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("block", "JOB", "10.0.0.0/33"), "neither an address nor a network"),
        (("block", "JOB", "re:("), "no regular expression"),
        (("allow", "JOB", "a b"), "no rule of a list"),
        (("unblock", "JOB", "never.example"), "no rule domain:never.example was given"),
        (("block", "JOB", "10.0.0.0/8", "--purge"), "tables have no addresses"),
        (("resume", "JOB", "--set", "lists.block=LIST"), "bad.txt:2: 'a/b' is no rule of a list"),
        (("resume", "JOB", "--set", "scope.exclude_regexes=("), "no regular expression"),
        (("rules", "NONE"), "not the folder of a crawl"),
    ],
)
def test_bad_rules_are_one_line(
    arguments: tuple[str, ...],
    message: str,
    crawled: tuple[Path, RunningWeb],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job, bad = copied(crawled[0], tmp_path / "job"), tmp_path / "bad.txt"
    bad.write_text("good.example\na/b\n")
    places = {"JOB": str(job), "NONE": str(tmp_path / "none")}
    given = [places.get(argument, argument).replace("LIST", str(bad)) for argument in arguments]
    assert run(monkeypatch, *given) == 2
    assert message in capsys.readouterr().err


def test_limits_and_what_lies_behind_them(
    crawled: tuple[Path, RunningWeb], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "limits", crawled[0], "--json") == 0
    found = said(capsys)
    limits = found["limits"]
    assert isinstance(limits, list)
    by_setting = {limit["setting"]: limit for limit in limits}
    pages = (
        open_job(crawled[0]).query("SELECT count(*) AS n FROM pages GROUP BY url_host_name")["n"].to_pylist()
    )
    sites = by_setting["limits.site_urls"]
    assert (sites["of"], sites["spread"][-1]) == (len(pages), max(pages))
    assert sites["spread"] == sorted(sites["spread"])
    assert by_setting["limits.site_duplicates"]["reached"] == 1
    assert 0 < int(found["deep_links"]) < int(found["external_links"])  # type: ignore[call-overload]
    assert run(monkeypatch, "limits", crawled[0]) == 0
    assert "limits.site_urls" in capsys.readouterr().out.replace("\n", "")
