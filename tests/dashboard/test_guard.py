"""Who is answered by the dashboard, and what no answer lacks: attacks 69 to 74 without a browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from barkspider.dashboard.app import Dashboard
from barkspider.dashboard.guard import COOKIE
from tests.cli.program import complaint, run
from tests.cli.small_job import make_small_job
from tests.dashboard.hostile import STRINGS, make_hostile

HOST = "127.0.0.1:1234"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("guard") / "job")


@pytest.fixture(scope="module")
def dashboard(job: Path) -> Dashboard:
    return Dashboard(job, [HOST], "the-token-of-this-test")


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: dict[str, str], body: str) -> None:
        self.status, self.headers, self.body = status, headers, body


def ask(dashboard: Dashboard, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
    """One request as a server would hand it on; a visitor who has been admitted unless `cookie` says otherwise."""
    given = {"host": HOST, "cookie": f"{COOKIE}=the-token-of-this-test", "origin": f"http://{HOST}"} | headers
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        "scheme": "http",
        "server": ("127.0.0.1", 1234),
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(dashboard.guard(scope, receive, send))  # type: ignore[arg-type]
    fields = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], fields, b"".join(each.get("body", b"") for each in sent[1:]).decode())


def form(dashboard: Dashboard, **fields: str) -> bytes:
    return urlencode({"token": dashboard.guard.form_token, **fields}).encode()


PAGES = [
    "/",
    "/domains",
    "/hosts",
    "/host?name=a.example",
    "/why?url=http://a.example/%22%3E",
    "/errors",
    "/events",
    "/settings",
    "/query",
    "/controls",
]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_there_and_lets_no_other_script_run(dashboard: Dashboard, page: str) -> None:
    found = ask(dashboard, "GET", page)
    assert found.status == 200
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cache-control"] == "no-store"
    assert found.body.count("<script") == 1
    assert " style=" not in found.body
    assert " on" + "click" not in found.body


def test_without_the_token_nobody_comes_in(dashboard: Dashboard) -> None:
    for cookie in ("", f"{COOKIE}=another", f"{COOKIE}=the-token-of-this-tes"):
        assert ask(dashboard, "GET", "/", cookie=cookie).status == 401
        assert ask(dashboard, "GET", "/metrics", cookie=cookie).status == 401
        assert ask(dashboard, "POST", "/control/stop", form(dashboard), cookie=cookie).status == 401
    assert ask(dashboard, "GET", "/?token=another", cookie="").status == 401
    admitted = ask(dashboard, "GET", "/domains?token=the-token-of-this-test&search=a", cookie="")
    assert (admitted.status, admitted.headers["location"]) == (303, "/domains?search=a")
    assert "HttpOnly" in admitted.headers["set-cookie"]
    assert "SameSite=strict" in admitted.headers["set-cookie"]
    scraped = ask(dashboard, "GET", "/metrics", cookie="", authorization="Bearer the-token-of-this-test")
    assert scraped.status == 200
    denied = ask(
        dashboard,
        "POST",
        "/control/stop",
        form(dashboard),
        cookie="",
        authorization="Bearer the-token-of-this-test",
    )
    assert denied.status == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:1234", "127.0.0.1", "127.0.0.1:80", "", "localhost.evil.example:1234"],
)
def test_a_foreign_host_is_refused(dashboard: Dashboard, host: str) -> None:
    assert ask(dashboard, "GET", "/", host=host).status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        f"http://{HOST}.evil.example",
        f"ftp://{HOST}",
        "http://127.0.0.1:99",
    ],
)
def test_a_post_from_another_site_is_refused(dashboard: Dashboard, origin: str) -> None:
    assert ask(dashboard, "POST", "/control/stop", form(dashboard), origin=origin).status == 403
    assert ask(dashboard, "POST", "/query", form(dashboard, sql="SELECT 1"), origin=origin).status == 403


def test_a_post_without_the_token_of_our_forms_is_refused(dashboard: Dashboard) -> None:
    for body in (b"", b"token=", b"token=the-token-of-this-test", b"token=" + b"x" * 200_000):
        assert ask(dashboard, "POST", "/control/stop", body).status == 403
        assert ask(dashboard, "POST", "/query", body + b"&sql=SELECT+1").status == 403
    assert ask(dashboard, "POST", "/control/grant", form(dashboard)).status == 404
    assert ask(dashboard, "GET", "/control/stop").status == 405
    assert ask(dashboard, "DELETE", "/").status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/%252e%252e%252fapp.py",
        "/..\\x",
        "/a%00",
    ],
)
def test_a_path_that_leads_out_is_refused(dashboard: Dashboard, path: str) -> None:
    assert ask(dashboard, "GET", path).status == 400


def test_only_our_files_are_served(dashboard: Dashboard) -> None:
    assert ask(dashboard, "GET", "/static/app.js").headers["content-type"].startswith("text/javascript")
    assert ask(dashboard, "GET", "/static/style.css").status == 200
    page = ask(dashboard, "GET", "/")
    assert page.headers["cache-control"] == "no-store"
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.body)
    assert len(named) == 3
    for address in named:  # its content is in its address: it is asked for once
        assert re.search(r"\?[0-9a-f]{12}$", address)
        assert "immutable" in ask(dashboard, "GET", address).headers["cache-control"]
    assert ask(dashboard, "GET", "/static/app.py").status == 404
    assert ask(dashboard, "GET", "/page?url=http://a.example/").status == 404


def test_a_control_says_when_no_crawl_runs(dashboard: Dashboard) -> None:
    found = ask(dashboard, "POST", "/control/pause", form(dashboard))
    assert found.status == 200
    assert "no crawl runs" in found.body


def test_queries_read_and_are_bounded(dashboard: Dashboard) -> None:
    found = ask(dashboard, "POST", "/query", form(dashboard, sql="SELECT count(*) AS n FROM pages"))
    assert ">25<" in found.body
    for sql, why in (
        ("DROP TABLE pages", "only one SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "cannot answer"),
        ("SELECT nothing", "cannot answer"),
        ("SELECT <script>", "cannot answer"),
    ):
        told = ask(dashboard, "POST", "/query", form(dashboard, sql=sql)).body
        assert why in told
        assert told.count("<script") == 1
    many = ask(dashboard, "POST", "/query", form(dashboard, sql="SELECT * FROM range(5000)"))
    assert "the first 1,000 rows" in many.body


def test_lists_are_searched_sorted_and_cut_on_the_server(dashboard: Dashboard) -> None:
    up = ask(dashboard, "GET", "/hosts?sort=host&down=no").body
    hosts = re.findall(r'href="/host\?name=([^"]+)"', up)
    assert hosts == sorted(hosts)
    assert len(hosts) > 1
    one = ask(dashboard, "GET", f"/hosts?search={quote(hosts[0].upper())}").body
    assert hosts[0] in one
    assert hosts[-1] not in one
    for wrong in ("sort=pages;drop", "begin=-3", "begin=999999999999", "search=%25'%22", "sort=1&down=maybe"):
        assert ask(dashboard, "GET", f"/domains?{wrong}").status == 200


def test_what_others_wrote_is_escaped_on_every_page(job: Path, tmp_path: Path) -> None:
    hostile = Dashboard(make_hostile(job, tmp_path), [HOST], "the-token-of-this-test")
    pages = [
        *PAGES,
        "/hosts?sort=host&down=no",
        "/domains?sort=domain",
        *(f"/host?name={quote(each)}" for each in STRINGS[::50]),
    ]
    answers = [ask(hostile, "GET", page) for page in pages]
    answers.append(
        ask(
            hostile,
            "POST",
            "/query",
            form(hostile, sql="SELECT url, title, outcome FROM pages WHERE key < 500"),
        )
    )
    assert "hacked" in answers[-1].body
    for answer in answers:
        assert answer.status == 200
        assert answer.body.count("<script") == 1
        for tag in (
            "<img",
            "<iframe",
            "<svg onload",
            "<base",
            "<meta http",
            "<details",
            "<video",
            "<math",
            "<style",
        ):
            assert tag not in answer.body


def test_others_can_reach_it_only_with_a_token(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for token in ((), ("--token", "short")):
        assert run(monkeypatch, "dashboard", str(job), "--host", "0.0.0.0", *token) == 2
        assert "--token of 16 letters or more" in complaint(capsys)
