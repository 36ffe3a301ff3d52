"""Files of seeds: bad lines are left out and named, standard input is a file too."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from barkspider.cli.seed_files import read_seeds
from barkspider.core.load import replace
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env
from tests.cli.program import complaint, run

# Nobody listens at port 9, and it is out of scope: such a crawl ends at once, without a page.
OPEN = ("--allow-network", "127.0.0.0/8", "--set", "memory=64MB", "--job", "j", "--json")
GOOD = "http://127.0.0.1:9/"
LINES = f"# mine\n{GOOD}a\nnot a url\nftp://127.0.0.1/\n{GOOD}b\nhttp://127.0.0.1/\udcff\n"


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("seeds.txt").write_bytes(LINES.encode("utf-8", "surrogateescape"))
    return "seeds.txt"


def given(job: str) -> list[str]:
    return Path(job, "seeds.txt").read_text().splitlines()


def test_bad_lines_are_named_and_the_others_crawled(
    seeds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "crawl", "--seeds", seeds, *OPEN) == 1
    first, second, third, last = capsys.readouterr().err.splitlines()
    assert first == (
        "barkspider: left out: seeds.txt:3: 'not a url' is not a URL to crawl (malformed); "
        "write it like https://example.org/"
    )
    assert "seeds.txt:4: 'ftp://127.0.0.1/' is not a URL to crawl (scheme)" in second
    assert "seeds.txt:6: " in third
    assert "no page could be fetched (out of scope: port 2)" in last
    assert given("j") == [f"{GOOD}a", f"{GOOD}b"]


def test_many_bad_lines_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seeds.txt").write_text("bad\n" * 2_000 + f"{GOOD}\n")
    assert run(monkeypatch, "crawl", "--seeds", "seeds.txt", *OPEN) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7
    assert lines[5] == "barkspider: left out: 1,995 more such lines of seeds.txt"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (LINES, ("--strict",), "seeds.txt:3: 'not a url' is not a URL to crawl"),
        ("bad\nworse\n", (), "no line of seeds.txt is a URL to crawl; the first of them: seeds.txt:1: 'bad'"),
        (LINES, ("nonsense",), "'nonsense' is not a URL to crawl"),  # whoever types it wants to know
        ("# nothing\n", (), "nothing to crawl"),
    ],
)
def test_what_is_refused(
    text: str,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seeds.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert run(monkeypatch, "crawl", *options, "--seeds", "seeds.txt", *OPEN) == 2
    assert message in complaint(capsys)
    assert not Path("j").exists()


def test_seeds_on_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{GOOD}\nbad\n".encode())))
    assert run(monkeypatch, "crawl", "--seeds", "-", *OPEN) == 1
    assert "left out: standard input:2: 'bad' is not a URL" in capsys.readouterr().err
    assert given("j") == [GOOD]


def test_the_same_holds_for_add(
    seeds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(Settings(seed=3), {"network.allow": ["127.0.0.0/8"]})
    Job.create(Path("j"), settings, [GOOD], Env()).close()
    assert run(monkeypatch, "add", "j", "--seeds", seeds, "--strict") == 2
    assert "seeds.txt:3: 'not a url'" in complaint(capsys)
    assert run(monkeypatch, "add", "j", "--seeds", seeds, "--json") == 0
    output, errors = capsys.readouterr()
    assert (json.loads(output)["given"], errors.count("left out: ")) == (2, 3)
    assert given("j") == [GOOD, f"{GOOD}a", f"{GOOD}b"]


def test_comments_and_a_byte_order_mark(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(b"\xef\xbb\xbfhttp://a.example/x#y # mine\n  # none\nhttp://b.example/\t# tab\n")
    found = [text for text, _ in read_seeds([], seeds)]
    assert found == ["http://a.example/x#y", "http://b.example/"]


def test_a_seed_is_crawled_whatever_is_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with running_web(WebSpec(seed=2, pages=300, page_bytes=2_000)) as served:
        chosen = {**served.settings(), "scope.include_paths": "/nowhere/", "memory": "64MB"}
        options = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
        assert run(monkeypatch, "crawl", served.web.seeds(1)[0], *options, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pages"], told["discovered"]) == (1, 1)
    assert told["out_of_scope"]["path"] > 0
