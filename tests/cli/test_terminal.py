"""What pages, servers and job folders say, on a terminal: nothing that it would obey, and no markup."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import barkspider.cli
from barkspider import crawl, load_settings
from barkspider.cli import terminal
from barkspider.cli.run import picture, progress, summary
from barkspider.core.events import Counters
from barkspider.engine.statistics import Problem, Tally
from tests.cli.program import run
from tests.website import QUICK, Answer, Site, serving_site

# Moves of the cursor, a window's title, C1, DEL, a bell, letters that reverse what follows, markup of Rich and one of its emojis.
EVIL = "\x1b[2Jgone\x1b]0;owned\x07 \x9b2J \x7f \u202eevil\u2066 [/bold][link=http://x] :smile:"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
OURS = re.compile(r"\x1b\[[0-9;]*m")  # what Rich colours with


class Terminal(io.TextIOWrapper):
    """A screen whose text can be looked at."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", newline="")

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()

    def check(self) -> str:
        """What is on it, without our own colours; nothing else is obeyed."""
        text = OURS.sub("", self.text)
        assert OBEYED.findall(text) == []
        return text


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Use: with `shown_on(screen):` in the test, since pytest puts streams of its own in place before it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@contextmanager
def shown_on(screen: Terminal) -> Iterator[None]:
    with redirect_stdout(screen), redirect_stderr(screen):
        yield


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    page = f"<title>{EVIL}</title><p>{EVIL}<a href='/[/bold]'>more</a>".encode()
    pages = {
        "/": Answer(page, headers={"X-Evil": "\x9b2J[/bold]"}),
        "/[/bold]": Answer("<title>[/red]</title>"),
    }
    with serving_site(pages) as served:
        yield served


@pytest.fixture(scope="module")
def job(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil") / "job"
    crawl(site.url("/"), folder, load_settings(options=QUICK))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["query", "JOB", "SELECT title, url FROM pages"],
        ["query", "JOB", "SELECT repeat(title, 9) FROM pages"],  # wider than the screen
        ["query", "JOB", f'SELECT 1 AS "{EVIL}"'],
        ["query", "JOB", "SELECT title, url FROM pages", "--csv"],
        ["query", "JOB", "SELECT title, url FROM pages", "--safe-csv"],
        ["query", "JOB", "SELECT title, url FROM pages", "--json"],
        ["query", "JOB", "SELECT title::INTEGER FROM pages"],
        ["query", "JOB", "SELECT error(title) FROM pages"],
        ["show", "JOB", "URL"],
        ["show", "JOB", "URL", "--body"],
        ["show", "JOB", "URL", "--raw"],
        ["show", "JOB", "URL", "--json"],
        ["show", "JOB", f"http://{EVIL}/"],
        ["export", "JOB"],
        ["export", "JOB", "--format", "log"],
        ["fetch", "URL", "--allow-network", "127.0.0.0/8"],
        ["fetch", "URL", "--allow-network", "127.0.0.0/8", "--body"],
        ["fetch", "URL", "--allow-network", "127.0.0.0/8", "--json"],
        ["status", "JOB"],
        ["verify", "JOB"],
        ["rank", "JOB"],
        ["plan", "--from", "JOB"],
        ["status", EVIL],
        [EVIL],
    ],
    ids=lambda command: " ".join(command)[:40].encode("ascii", "replace").decode(),
)
def test_no_command_lets_a_page_speak_to_the_terminal(
    command: list[str], job: Path, site: Site, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [part.replace("JOB", str(job)).replace("URL", site.url("/")) for part in command]
    with shown_on(screen):
        run(monkeypatch, *arguments)
    text = screen.check()
    assert text.strip()
    assert "Traceback" not in text
    assert "mistake of barkspider's own" not in text


def test_a_title_is_shown_with_its_escapes(
    job: Path, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shown_on(screen):
        assert run(monkeypatch, "query", job, "SELECT title FROM pages WHERE url LIKE '%:%/'") == 0
    assert (
        r"\x1b[2Jgone\x1b]0;owned\x07 \x9b2J \x7f \u202eevil\u2066 [/bold][link=http://x] :smile:"
        in screen.check()
    )


def test_to_a_program_bytes_go_untouched(
    job: Path, site: Site, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(monkeypatch, "show", job, site.url("/"), "--body") == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == site.pages["/"].bytes
    assert run(monkeypatch, "show", job, site.url("/"), "--raw") == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out.endswith(b"\r\n\r\n" + site.pages["/"].bytes)
    options = ("--allow-network", "127.0.0.0/8", "--body")
    assert run(monkeypatch, "fetch", site.url("/"), *options) == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == site.pages["/"].bytes


def test_a_hostile_socket_is_shown_as_text(
    job: Path, tmp_path: Path, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        {"error": EVIL},
        {"state": EVIL},
        {"state": EVIL, "pages": EVIL},
        {"state": "x", "problems": 7},
    ]
    (tmp_path / "settings.toml").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control.sock"))
        listener.listen()

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(json.dumps(answer).encode() + b"\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with shown_on(screen):
            codes = [run(monkeypatch, "status", tmp_path) for _ in answers]
        thread.join()
    assert codes == [2, 0, 2, 0]
    assert "mistake of barkspider's own" not in screen.check()


def test_markup_in_a_url_does_not_end_the_summary(
    site: Site, tmp_path: Path, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [part for option in QUICK for part in ("--set", option)]
    with shown_on(screen):
        code = run(monkeypatch, "crawl", site.url("/[/bold]"), "--job", tmp_path / "[/bold]", *options)
    text = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", screen.text)  # the live view moves its own cursor
    assert code == 0
    assert f"barkspider: {site.url('/[/bold]')}" in text
    assert f"Archive: {tmp_path}/[/bold]/archive" in text


@pytest.mark.parametrize("text", [EVIL, "[/bold]", "\r\n\t", ":smile:"])
def test_a_screen_shows_texts_as_they_are(text: str, screen: Terminal) -> None:
    from rich.console import Group
    from rich.table import Table

    table = Table(title=text, caption=text)
    table.add_column(text)
    table.add_row(text)
    with shown_on(screen):
        console = terminal.screen()
        console.print(table, text, Group(text, terminal.styled(text, "bold")))
        console.rule(text)
    shown = screen.check()
    assert shown.count(terminal.lines(text).strip()) >= 5


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"])
def test_no_cell_of_a_safe_csv_is_a_formula(
    sign: str, job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = f"SELECT '{sign}cmd|x' AS a, -7 AS b, 'x=1' AS c"
    assert run(monkeypatch, "query", job, sql, "--safe-csv") == 0
    assert [*csv.reader(io.StringIO(capsys.readouterr().out, newline=""))][1] == [
        f"'{sign}cmd|x",
        "-7",
        "x=1",
    ]
    assert run(monkeypatch, "query", job, sql, "--csv") == 0
    assert [*csv.reader(io.StringIO(capsys.readouterr().out, newline=""))][1][0] == f"{sign}cmd|x"


def test_nothing_else_of_the_program_prints() -> None:
    """`compiling` writes words of its own alone, before anything else is loaded."""
    folder = Path(barkspider.cli.__file__).parent
    found = []
    for path in sorted(folder.glob("*.py")):
        if path.name in ("terminal.py", "compiling.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "typer.echo", "typer.secho", "Console", "Text", "Text.from_markup"):
                    found.append(f"{path.name}:{node.lineno} {called}")
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr"):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def test_what_a_crawl_shows_of_a_strange_name_is_text(screen: Terminal) -> None:
    gauges = dict.fromkeys(("seen", "largest", "primary", "secondary", "hosts", "loop_held"), 1)
    counters = Counters()
    counters.failed[EVIL] = 1
    now = Tally().statistics(1.0, counters, gauges, EVIL, (Problem(EVIL, EVIL, EVIL, 2),))
    with shown_on(screen):
        terminal.screen().print(picture(now, EVIL, 1.0, EVIL))
        terminal.screen().print(summary(now, EVIL))
        terminal.say(progress(now, EVIL), error=True)
    assert screen.check().count("[/bold][link=http://x] :smile:") > 10
