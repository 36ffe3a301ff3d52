"""README.md and pages of docs/ by the letter: every command and every piece of Python is run, in its order, in one folder.

What differs from what a reader types: addresses of example.org are replaced by seeds of a synthetic web on loopback, and
commands that go to the network get the settings that lead there (`RunningWeb.settings`) and short pauses. The first crawl
runs in a process of its own, as in another terminal, until `stop`; `barkspider web` serves until it has announced itself. `make` has tests of its own: here its targets have to exist. `simulate` repeats less often.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import barkspider
from barkspider.engine import ask
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from tests.cli.program import run
from tests.cli.test_runs import end, start

ROOT = Path(__file__).parents[2]
TOGETHER = re.compile(r"```python\n((?s:.*?))```|^ {4}(\S.*)$|`(barkspider [^`]*)`", re.MULTILINE)
QUICK = ("politeness.host_delay=5ms", "politeness.server_delay=0s")
SMALL = ("memory=64MB", "archive.recent_digests=1000")


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=2, pages=3_000, page_bytes=2_000, crawl_delay=0.01)) as web:
        yield web


def pieces(text: str) -> list[tuple[str, str]]:
    """Pieces of Python and commands in the order of the text; one of the two is empty."""
    return [(found[1] or "", found[2] or found[3] or "") for found in TOGETHER.finditer(text)]


class Reader:
    """Types what the text says."""

    in_background = True  # whether the first crawl is spoken to while it runs

    def __init__(self, served: RunningWeb, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch, self._folder = monkeypatch, folder
        self._there = [*(f"{name}={value}" for name, value in served.settings().items()), *SMALL]
        self._seeds = iter(served.web.seeds(10))
        self._urls: dict[str, str] = {}
        self._crawl: subprocess.Popen[str] | None = None  # the one in the other terminal
        monkeypatch.chdir(folder)

    def local(self, text: str) -> str:
        """With addresses of the synthetic web."""
        for url in re.findall(r"https://example\.org/\w*", text):
            if url not in self._urls:
                self._urls[url] = next(self._seeds)
        return re.sub(r"https://example\.org/\w*", lambda found: self._urls[found[0]], text)

    def python(self, code: str) -> None:
        mine = '"agent.contact=me@example.org"'
        there = [*self._there, *QUICK]
        exec(self.local(code).replace(mine, f"{mine}, *there"), {"there": there})

    def command(self, line: str) -> int:
        words = shlex.split(self.local(line))
        if words[0] == "make":
            return 0 if re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE) else 2
        if words[0] in (".", "pip"):  # what `make` set up is where the tests run
            return 0
        assert words.pop(0) == "barkspider", line
        if words[0] == "web" and not {"--graph", "--domain-graph"} & set(words):
            return self._serve(words)
        sets = [part for option in self._there for part in ("--set", option)]
        quick = [part for option in QUICK for part in ("--set", option)]
        if words[0] == "crawl" and self._crawl is None and self.in_background:
            # Slow enough to be there when it is spoken to.
            slow = ("--set", "politeness.host_delay=300ms")
            self._crawl = start(*words, *sets, *slow, folder=self._folder)
            return self._wait(words[words.index("--job") + 1])
        if words[0] in ("crawl", "fetch"):
            words += [*sets, *quick]
        elif words[0] in ("resume", "recrawl"):
            words += quick
        elif words[0] == "simulate":
            words += ["--repeat", "1"]
        code = run(self._monkeypatch, *words)
        if words[0] == "stop":
            assert self._crawl is not None
            assert end(self._crawl)[0] == 0
        return code

    def close(self) -> None:
        if self._crawl is not None:
            self._crawl.kill()

    def _wait(self, job: str) -> int:
        """Until the crawl in the other terminal has a page."""
        limit = time.monotonic() + 60
        while not (ask(Path(job), "status") or {"pages": 0})["pages"]:
            assert self._crawl is not None
            assert self._crawl.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.05)
        return 0

    def _serve(self, words: list[str]) -> int:
        process = start(*words, folder=self._folder)
        assert process.stdout is not None
        assert any(line.startswith("Crawl it: ") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        return end(process)[0]


@pytest.fixture
def reader(served: RunningWeb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Reader]:
    found = Reader(served, monkeypatch, tmp_path)
    yield found
    found.close()


def test_every_command_of_the_readme(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    found = pieces((ROOT / "README.md").read_text())
    assert sum(bool(line) for _, line in found) > 30
    said: dict[str, str] = {}
    for code, line in found:
        if code:
            reader.python(code)
            said[code] = capsys.readouterr().out
            continue
        line, _, file = line.partition(" > ")
        assert reader.command(line) == 0, f"{line}: {capsys.readouterr().err}"
        said[line] = capsys.readouterr().out
        if file:
            Path(file).write_text(said[line])
    ranks = [text for line, text in said.items() if line.startswith("barkspider rank") and "--top 20" in line]
    assert all(" 20  " in text for text in ranks)  # so many domains there are, in the job and in the file
    assert len(ranks) == 2
    (asked, read) = [said[code] for code, _ in found if code]
    assert asked.startswith("100 pages, ")
    assert read.count("\n") > 100  # what pages there are by outcome, then each of them


PAGES = ("first-crawl", "politeness", "recipes", "operations", "python", "extending", "corpora")
NOT_RUN = ("barkspider warm", "barkspider demo")  # which have tests of their own


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page(reader: Reader, capsys: pytest.CaptureFixture[str], page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    reader.in_background = False
    if "jobs/example" in text:
        reader.command("barkspider crawl https://example.org/ --job jobs/example --pages 20")
    found = pieces(text)
    assert found
    for code, line in found:
        if code:
            reader.python(code)
        elif line not in NOT_RUN:
            assert reader.command(line) == 0, f"{line}: {capsys.readouterr().err}"


def test_the_example_in_help(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(line[4:] for line in (barkspider.__doc__ or "").splitlines() if line.startswith("    "))
    reader.python(code)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "100 pages"
    assert second.count("'title'") > 50
