"""Pages fetched under a second name: what differs for it is told from what differs each time, and robots.txt counts for both."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barkspider import crawl, load_settings
from barkspider.cli.app import app
from barkspider.core.errors import UsageError
from barkspider.engine import open_job
from barkspider.engine.cloaking import CHANGES, CLOAKED, NOT_ASKED, SAME, compare_names
from tests.website import QUICK

ROBOTS = "User-agent: ourtest\nDisallow: /closed\n"


@contextmanager
def cloaking_site() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Shows `ourtest` another page at /cloaked, and everybody another one each time at /counter."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.headers["User-Agent"].partition("/")[0]
            asked.append((name, self.path))
            links = "".join(f'<a href="{path}">x</a>' for path in ("/cloaked", "/counter", "/closed"))
            body = {
                "/robots.txt": ROBOTS,
                "/cloaked": f"for {name}",
                "/counter": f"visit {len(asked)}",
            }.get(self.path, links)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_a_second_name_is_shown(tmp_path: Path) -> None:
    with cloaking_site() as (origin, asked):
        crawl(f"{origin}/", tmp_path / "job", load_settings(options=["seed=7", *QUICK]))
        del asked[:]
        options = ["--set", "agent.second=ourtest", "--set", "politeness.host_delay=0s"]
        run = CliRunner().invoke(app, ["cloaking", str(tmp_path / "job"), "--json", *options])
        assert run.exit_code == 0, run.output
        assert ("ourtest", "/closed") not in asked
        shown = CliRunner().invoke(app, ["cloaking", str(tmp_path / "job"), *options])
    found = {page["url"].removeprefix(origin): page["verdict"] for page in json.loads(run.output)["pages"]}
    assert found == {"/": SAME, "/cloaked": CLOAKED, "/counter": CHANGES, "/closed": NOT_ASKED}
    assert "1 cloaked" in shown.output
    assert {name for name, _ in asked} == {"barkspider", "ourtest"}


def test_nobody_is_asked_under_a_name_that_is_not_given(tmp_path: Path) -> None:
    with cloaking_site() as (origin, asked):
        crawl(f"{origin}/", tmp_path / "job", load_settings(options=["seed=7", *QUICK]))
        count = len(asked)
        with pytest.raises(UsageError, match=r"agent\.second"):
            asyncio.run(compare_names(open_job(tmp_path / "job"), load_settings(), 5))
        assert len(asked) == count
