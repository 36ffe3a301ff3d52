"""Headers, passwords and cookies that a user gives for hosts of their own: sent there and nowhere else."""

from __future__ import annotations

import base64
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from barkspider import load_settings
from barkspider.archive import WarcFile
from barkspider.storage.env import Env
from tests.cli.program import complaint, run

OPEN = ("network.allow=127.0.0.0/8", "politeness.host_delay=0", "politeness.server_delay=0", "memory=64MB")
SECRETS = ("X-Key", "Authorization", "Cookie")


class Site(ThreadingHTTPServer):
    """A site that remembers what it was sent, path by path; `to` is where its page leads."""

    def __init__(self, address: str, to: str = "") -> None:
        super().__init__((address, 0), _Handler)
        self.to, self.asked = to, dict[str, dict[str, str]]()

    @property
    def origin(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked[self.path] = {name: self.headers.get(name, "") for name in SECRETS}
        body = f'<a href="/more"></a><a href="{self.server.to}/linked"></a>'.encode()
        leads = self.path == "/more" and self.server.to
        self.send_response(404 if self.path == "/robots.txt" else 302 if leads else 200)
        if leads:
            self.send_header("Location", f"{self.server.to}/redirected")
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "seen=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    yield site
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture
def other() -> Iterator[Site]:
    with serving(Site("127.0.0.2")) as site:
        yield site


@pytest.fixture
def mine(other: Site) -> Iterator[Site]:
    with serving(Site("127.0.0.1", to=other.origin)) as site:
        yield site


def cookies(folder: Path, value: str) -> None:
    line = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{value}\n"
    (folder / "cookies.txt").write_text("# Netscape HTTP Cookie File\n\n#HttpOnly_" + line)


def test_they_are_sent_to_their_origin_and_nowhere_else(
    mine: Site, other: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cookies(tmp_path, "abc")
    Path("mine.toml").write_text(
        f'[fetch]\nheaders = ["{mine.origin} X-Key: one, two"]\nlogins = ["{mine.origin} me:secret"]\n'
        '[cookies]\nfile = "cookies.txt"\n'
    )
    options = [part for option in OPEN for part in ("--set", option)]
    crawl = ("crawl", f"{mine.origin}/", "--scope", "web", "--config", "mine.toml", "--job", "j", *options)
    assert run(monkeypatch, *crawl) == 0
    assert mine.asked.keys() == {"/robots.txt", "/", "/more"}
    for sent in mine.asked.values():
        assert (sent["X-Key"], sent["Authorization"]) == ("one, two", "Basic bWU6c2VjcmV0")
        assert "session=abc" in sent["Cookie"]
    assert other.asked.keys() >= {"/robots.txt", "/linked", "/redirected"}
    assert all(not sent["X-Key"] + sent["Authorization"] for sent in other.asked.values())
    assert not any("session" in sent["Cookie"] for sent in other.asked.values())
    assert stat.S_IMODE(Path("j/settings.toml").stat().st_mode) == 0o600


def test_a_job_is_for_its_owner_alone(mine: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    try:
        options = [part for option in OPEN for part in ("--set", option)]
        assert run(monkeypatch, "crawl", f"{mine.origin}/", "--pages", "1", "--job", "j", *options) == 0
        login = f"fetch.logins={mine.origin} me:secret"
        assert run(monkeypatch, "resume", "j", "--pages", "2", "--set", login) == 0
    finally:
        os.umask(before)
    made = [Path("j"), *Path("j").rglob("*")]
    assert {"settings.toml", "journal", "cookies", "log.jsonl", "manifest.json"} <= {
        path.name for path in made
    }
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_a_newer_file_of_cookies_counts_when_a_crawl_goes_on(
    mine: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cookies(tmp_path, "old")
    options = [part for option in (*OPEN, "cookies.file=cookies.txt") for part in ("--set", option)]
    assert run(monkeypatch, "crawl", f"{mine.origin}/", "--pages", "1", "--job", "j", *options) == 0
    assert "session=old" in mine.asked["/"]["Cookie"]
    cookies(tmp_path, "new")
    assert run(monkeypatch, "resume", "j", "--pages", "2") == 0
    assert "session=new" in mine.asked["/more"]["Cookie"]
    assert "seen=1" in mine.asked["/more"]["Cookie"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("fetch.headers=intranet.example X-Key: secret", "begin each with whom it is for"),
        ("fetch.headers=http://a.example Host: secret", "Host cannot be set"),
        ("fetch.headers=http://a.example X Key: secret", "write each like"),
        ("fetch.headers=http://a.example X-Key:", "write each like"),
        ("fetch.logins=http://a.example secret", "write each like https://intranet.example USER:PASSWORD"),
        ("fetch.logins=http://a.example/x me:secret", "begin each with whom it is for"),
        ("fetch.logins=http://a.example me:secret\x07", "it has characters that cannot be printed"),
        ("cookies.file=nowhere.txt", "cookies.file: cannot read nowhere.txt: No such file"),
        ("cookies.file=bad.txt", "bad.txt:2: no line of a cookies.txt"),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_shown(
    option: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("# mine\na.example\tsecret\n")
    crawl = ("crawl", "http://127.0.0.1/", "--allow-network", "127.0.0.0/8", "--set", option, "--job", "j")
    assert run(monkeypatch, *crawl) == 2
    line = complaint(capsys)
    assert message in line
    assert "secret" not in line
    assert not Path("j").exists()


def test_no_output_shows_a_secret(
    mine: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is archived is what was sent, as docs/settings.md says; everything else is looked at here."""
    monkeypatch.chdir(tmp_path)
    cookies(tmp_path, "hush-cookie")
    Path("mine.toml").write_text(
        f'[fetch]\nheaders = ["{mine.origin} X-Key: hush-header"]\nlogins = ["{mine.origin} me:hush-login"]\n'
        '[cookies]\nfile = "cookies.txt"\n[network]\nallow = ["127.0.0.0/8"]\n'
    )
    secrets = ["hush", base64.b64encode(b"me:hush-login").decode()]
    options = [part for option in OPEN for part in ("--set", option)]
    assert run(monkeypatch, "fetch", f"{mine.origin}/", "--config", "mine.toml") == 0
    assert run(monkeypatch, "fetch", f"{mine.origin}/", "--config", "mine.toml", "--json") == 0
    assert (mine.asked["/"]["X-Key"], mine.asked["/"]["Cookie"]) == ("hush-header", "session=hush-cookie")
    assert run(monkeypatch, "crawl", f"{mine.origin}/", "--config", "mine.toml", "--job", "j", *options) == 0
    for command in (["status", "j"], ["status", "j", "--json"], ["verify", "j"], ["resume", "j", "--json"]):
        assert run(monkeypatch, *command) == 0
    proxied = ("--set", "network.proxy=http://me:hush-proxy@127.0.0.1:1", "--set", "politeness.retries=0")
    assert run(monkeypatch, "crawl", f"{mine.origin}/", "--job", "k", "--for", "5s", *options, *proxied) == 1
    for wrong in ("http://me:hush@a", "ftp://me:hush@a:1/", "http://me:hush@[a]:1", "http://me:hush%ff@a:1"):
        assert run(monkeypatch, "fetch", f"{mine.origin}/", *options, "--set", f"network.proxy={wrong}") == 2
    for wrong in ('[network]\nproxy = ["hush"]', "[fetch]\nlogins = [['hush']]", "[fetch]\nheaders = 'hush'"):
        Path("wrong.toml").write_text(wrong)
        assert run(monkeypatch, "fetch", f"{mine.origin}/", "--config", "wrong.toml") == 2
    shown = capfd.readouterr()
    logged = Path("j/log.jsonl").read_text() + Path("k/log.jsonl").read_text()
    infos = b""
    for path in Path().glob("*/archive/*.warc.gz"):
        with WarcFile(Env(), path) as file:
            infos += next(iter(file)).block
    assert infos
    for secret in secrets:
        assert secret not in shown.out + shown.err + logged + infos.decode()


def test_no_text_about_the_settings_shows_a_secret() -> None:
    options = ["fetch.headers=http://a.example X-Key: secret", "fetch.logins=http://a.example me:secret"]
    settings = load_settings(options=options)
    assert settings.fetch.headers
    assert "secret" not in repr(settings)
    assert "secret" not in json.dumps(str(settings))
