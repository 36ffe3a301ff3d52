"""pywb serves what we archived, from our WARC files by our index."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.archive import WarcWriter
from barkspider.archive.cdxj import merge
from barkspider.archive.surt import surt
from barkspider.core.settings import Archive
from barkspider.storage.env import Env
from tests.archive.replaying import serve
from tests.cli import program
from tests.engine.warcs import check_warcs
from tests.website import QUICK, Answer, serving_site

NOW = 1_800_000_000.0


def test_pywb_serves_archived_pages_and_revisits(pywb: Path, tmp_path: Path) -> None:
    writer = WarcWriter(Env(), tmp_path, "pages", Archive(warc_size=1500), {})
    bodies = {
        "http://www.example.com/": "<title>Home</title>" + "words " * 300,
        "http://example.com/A/b.html?y=2&x=%C3%BC": "<title>Second</title>" + "others " * 300,
        "http://example.org:8080/c": "<title>Third</title>" + "more " * 300,
        "http://mirror.example.org/": "<title>Home</title>" + "words " * 300,
    }
    stored = []
    for number, (url, body) in enumerate(bodies.items()):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        response = (head + body).encode()
        stored.append(writer.write_exchange(url, b"GET /", response, "192.0.2.1", NOW + number))
    writer.close()
    merge(Env(), tmp_path)
    assert [one.revisit for one in stored] == [False, False, False, True]
    assert len({one.file for one in stored}) > 1
    asked = [f"/job/2027id_/{url}" for url in bodies]
    answers = serve(
        pywb, tmp_path, [*asked, "/job/2027mp_/http://www.example.com/", "/job/2027id_/http://no.example/"]
    )
    assert [body for _, body in answers[: len(bodies)]] == list(bodies.values())
    assert [status for status, _ in answers] == [200] * (len(bodies) + 1) + [404]
    assert "<title>Home</title>" in answers[-2][1]


def test_our_keys_are_those_that_pywb_looks_for(pywb: Path) -> None:
    urls = [
        "http://www3.example.com:80/a//b/../c/?b=2&a=1&A=0",
        "https://example.com/%7Ea/%2541?q=%26&sid=0123456789abcdef0123456789abcdef",
        "http://127.0.0.1:8000/(S(4hqa0555fwsecu455xqckv45))/a.aspx",
        "http://xn--bcher-kva.example/%C3%BC?%3F=%23&x",
    ]
    code = "import json, sys, surt; print(json.dumps([surt.surt(url) for url in json.load(sys.stdin)]))"
    done = subprocess.run(
        [pywb, "-W", "ignore", "-c", code], input=json.dumps(urls), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [surt(url) for url in urls]


def test_pages_that_have_not_changed_replay_after_a_recrawl(
    pywb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, same = tmp_path / "job", "<title>Same</title>" + "words " * 300
    pages = {
        "/": Answer(
            "<a href=/same>1</a> <a href=/mirror>2</a> <a href=/empty>3</a>", headers={"ETag": '"1"'}
        ),
        "/same": Answer(same, headers={"ETag": '"2"', "X-Kept": "yes"}),
        "/mirror": Answer(same, headers={"ETag": '"3"'}),  # itself a revisit from the beginning
        "/empty": Answer("", headers={"ETag": '"4"'}),
    }
    with serving_site(pages) as site:
        crawl([site.url("/")], job, load_settings(options=QUICK))
        for _ in range(2):
            assert program.run(monkeypatch, "recrawl", job, "--older-than", "0s") == 0
    stored = open_job(job)
    lines = {path: stored.captures(site.url(path)) for path in pages}
    assert {path: [line["status"] for line in found] for path, found in lines.items()} == dict.fromkeys(
        pages, ["200"] * 3
    )
    assert all(line["mime"] == "warc/revisit" for found in lines.values() for line in found[1:])
    check_warcs(job)
    times = {path: ["20990101000000", *(line["timestamp"] for line in lines[path])] for path in pages}
    asked = [(path, f"/job/{time}id_/{site.url(path)}") for path in pages for time in times[path]]
    answers = serve(pywb, job / "archive", [where for _, where in asked])
    for (path, where), answer in zip(asked, answers, strict=True):
        assert answer == (200, pages[path].body), where
    _check_lines(pywb, job / "archive")


def test_equal_pages_of_a_later_run_are_revisits_that_replay_though_their_server_knows_no_versions(
    pywb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, same = tmp_path / "job", "<title>Same</title>" + "words " * 300
    pages = {"/": "<a href=/same>1</a> <a href=/new>2</a>", "/same": same, "/new": "old words " * 300}
    with serving_site(pages) as site:
        crawl([site.url("/")], job, load_settings(options=QUICK))
        site.pages["/new"] = Answer("new words " * 300)
        for _ in range(2):
            assert program.run(monkeypatch, "recrawl", job, "--older-than", "0s") == 0
    rows = open_job(job).query("SELECT url_path, outcome, revisit FROM pages ORDER BY fetch_time").to_pylist()
    assert {(row["url_path"], row["outcome"]) for row in rows} == {(path, "ok") for path in site.pages}
    revisits = {path: [row["revisit"] for row in rows if row["url_path"] == path] for path in site.pages}
    # Small ones are not worth it; what has changed is stored, and is what the next run compares with.
    assert revisits == {"/": [False] * 3, "/same": [False, True, True], "/new": [False, False, True]}
    check_warcs(job)
    paths = list(site.pages)
    answers = serve(pywb, job / "archive", [f"/job/2099id_/{site.url(path)}" for path in paths])
    assert answers == [(200, site.pages[path].body) for path in paths]


def test_every_link_of_a_site_leads_to_a_page_of_the_archive_in_the_form_in_which_it_is_written(
    pywb: Path, tmp_path: Path
) -> None:
    links = ("/library/index.html", "/library/", "/only/index.html")
    pages = dict.fromkeys(links, "<title>Library</title>") | {
        "/": "".join(f"<a href={link}>x</a>" for link in links)
    }
    with serving_site(pages) as site:
        crawl([site.url("/")], tmp_path / "job", load_settings(options=QUICK))
    assert "/only/" not in site.asked  # where this server has nothing
    asked = [f"/job/2099id_/{site.url(path)}" for path in links]
    assert serve(pywb, tmp_path / "job" / "archive", asked) == [(200, "<title>Library</title>")] * len(links)


def _check_lines(pywb: Path, archive: Path) -> None:
    """Our index is what pywb's own indexer makes of our WARC files; that gives no status to revisits."""
    files = sorted(archive.glob("*.warc.gz"))
    command = [pywb, "-W", "ignore", "-m", "pywb.indexer.cdxindexer", "--cdxj", "--sort", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = [
        _fields(line) | {"status": _fields(line).get("status", "200")} for line in done.stdout.splitlines()
    ]
    ours = [_fields(line) for line in (archive / "index.cdxj").read_text().splitlines()]
    assert sorted(theirs, key=_place) == sorted(ours, key=_place)


def _fields(line: str) -> dict[str, str]:
    key, time, fields = line.split(" ", 2)
    return {"key": key, "time": time, **json.loads(fields)}


def _place(line: dict[str, str]) -> tuple[str, int]:
    return line["filename"], int(line["offset"])
