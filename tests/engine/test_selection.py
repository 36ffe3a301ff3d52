"""What a crawl keeps and follows when it is told to choose, over the wire."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.page import Candidate

PORTUGUESE = "O gato está em cima da mesa e o cão dorme no jardim, porque está muito cansado hoje. " * 5
ENGLISH = "The cat is on the table and the dog sleeps in the garden because it is very tired today. " * 5
PAGES = {
    "/": f"<html lang=pt><p>{PORTUGUESE}<a href=/pt>pt</a><a href=/en>en</a><img src=/i.png>",
    "/pt": f"<html lang=pt><title>Um</title><p>{PORTUGUESE}<a href=/pt2>mais</a>",
    "/pt2": f"<html lang=pt><title>Dois</title><p>{PORTUGUESE} vinho",
    "/en": f"<html lang=en><title>One</title><p>{ENGLISH}<a href=/behind>more</a>",
    "/behind": f"<html lang=pt><p>{PORTUGUESE}",
}


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        picture = self.path == "/i.png"
        body = b"\x89PNG\r\n\x1a\n" + bytes(50) if picture else PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "image/png" if picture else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def run(port: int, job: Path, *options: str) -> tuple[set[str], dict[str, int]]:
    """The paths that are in the archive, and how many pages were rejected by reason."""
    chosen = ["network.allow=127.0.0.0/8", "politeness.host_delay=0s", "politeness.server_delay=0s"]
    settings = load_settings(options=[*chosen, "politeness.slow_factor=0", "memory=64MB", *options])
    statistics = crawl([f"http://127.0.0.1:{port}/"], job, settings)
    kept = {"/" + page.url.split("/", 3)[3] for page in open_job(job).pages() if page.status == 200}
    return kept, statistics.rejected


def own(page: Candidate, linked: bool) -> tuple[bool, bool]:
    """Keeps what says nothing of wine; without `page.keep_tlds` only seeds are linked from anywhere."""
    return "vinho" not in page.text(), linked == page.url.endswith("/")


def broken(page: Candidate, linked: bool) -> bool:
    raise ValueError("no idea")


def test_everything_is_kept_unless_something_else_is_said(port: int, tmp_path: Path) -> None:
    assert run(port, tmp_path / "job") == (set(PAGES), {})


def test_other_languages_are_not_kept_and_may_be_followed(port: int, tmp_path: Path) -> None:
    kept, rejected = run(port, tmp_path / "job", "page.keep_languages=pt")
    assert (kept, rejected) == (set(PAGES) - {"/en"}, {"language": 1})
    errors = open_job(tmp_path / "job").query("SELECT outcome, url FROM errors").to_pylist()
    assert [error["outcome"] for error in errors] == ["rejected_language"]


def test_a_page_that_is_not_kept_yields_no_links_if_so_told(port: int, tmp_path: Path) -> None:
    kept, _ = run(port, tmp_path / "job", "page.keep_languages=pt", "page.follow_rejected=false")
    assert kept == {"/", "/pt", "/pt2"}


def test_a_language_is_detected_where_the_page_lies(port: int, tmp_path: Path) -> None:
    kept, _ = run(port, tmp_path / "job", "page.keep_languages=en", "page.detect_language=true")
    assert kept == {"/en"}


def test_ones_own_function_decides(port: int, tmp_path: Path) -> None:
    kept, rejected = run(port, tmp_path / "job", "page.classifier=tests.engine.test_selection:own")
    assert (kept, rejected) == (set(PAGES) - {"/pt2"}, {"classifier": 1})


def test_a_function_that_fails_is_recorded_and_changes_nothing(port: int, tmp_path: Path) -> None:
    kept, rejected = run(port, tmp_path / "job", "page.classifier=tests.engine.test_selection:broken")
    assert (kept, rejected) == (set(PAGES), {})
    errors = open_job(tmp_path / "job").query("SELECT outcome FROM errors").to_pylist()
    assert errors == [{"outcome": "classifier_error"}] * len(PAGES)


def test_requisites_and_texts_of_links_are_kept_when_asked_for(port: int, tmp_path: Path) -> None:
    kept, _ = run(port, tmp_path / "job", "page.requisites=true", "page.anchors=true", "page.simhash=true")
    assert kept == {*PAGES, "/i.png"}
    job = open_job(tmp_path / "job")
    anchors = job.query("SELECT anchor FROM links WHERE anchor IS NOT NULL ORDER BY 1").to_pylist()
    assert [row["anchor"] for row in anchors] == ["en", "mais", "more", "pt"]
    marks = job.query("SELECT count(simhash) AS n FROM pages").to_pylist()
    assert marks == [{"n": len(PAGES)}]


def test_links_that_leave_the_scope_are_in_the_table_and_are_not_fetched(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = (
        '<a href="http://elsewhere.example/x">away</a><a href="mailto:a@b">no URL</a><a href=/pt>here</a>'
    )
    monkeypatch.setitem(PAGES, "/", leaving)
    kept, _ = run(port, tmp_path / "job", "scope.level=domain", "page.anchors=true", "seed=7")
    assert kept == {"/", "/pt", "/pt2"}
    found = open_job(tmp_path / "job").query(
        "SELECT target_url, target_domain, anchor, in_scope FROM links WHERE source_domain = '127.0.0.1' ORDER BY 4, 1"
    )
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert rows[0] == ("http://elsewhere.example/x", "elsewhere.example", "away", False)
    assert [row[3] for row in rows] == [False, True, True]
    assert rows[1][0].endswith("/pt")
    domains = open_job(tmp_path / "job").query("SELECT domain, links_in FROM domains WHERE pages = 0")
    assert domains.to_pylist() == [{"domain": "elsewhere.example", "links_in": 1}]
