"""What a command does not need it does not import: that is most of what it would take to start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import barkspider
from tests.cli.small_job import make_small_job

_SLOW = (
    "numba",
    "llvmlite",
    "pyarrow",
    "numpy",
    "duckdb",
    "matplotlib",
    "cryptography",
    "publicsuffixlist",
    "uvloop",
)
_PROGRAM = """
import json, sys
from barkspider.cli import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("imports") / "job")


def modules(*arguments: str) -> set[str]:
    """What a command imports."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def imported(*arguments: str) -> set[str]:
    """Which of the slow modules a command imports."""
    return modules(*arguments).intersection(_SLOW)


def test_warm_imports_every_module_with_kernels() -> None:
    source = Path(barkspider.__file__).parent
    having = {
        ".".join(("barkspider", *path.relative_to(source).with_suffix("").parts))
        for path in source.rglob("*.py")
        if "cache=True" in path.read_text()
    }
    assert len(having) > 10
    assert having <= modules("warm")


@pytest.mark.parametrize("command", ["", "crawl", "query", "status", "rank", "simulate", "export", "web"])
def test_help_imports_nothing_that_is_slow(command: str) -> None:
    assert not imported(*command.split(), "--help")


def test_status_imports_nothing_that_is_slow(job: Path) -> None:
    assert not imported("status", str(job))


def test_a_query_imports_what_answers_it_and_no_compiler(job: Path) -> None:
    found = imported("query", str(job), "SELECT count(*) FROM pages")
    assert found & {"duckdb", "pyarrow"} == {"duckdb", "pyarrow"}
    assert not found & {"numba", "llvmlite", "matplotlib", "cryptography", "uvloop"}


_PAGES = """
import json, sys
from pathlib import Path
from barkspider.dashboard import hosts, lists, overview, server
from barkspider.dashboard.watcher import Watcher
watcher = Watcher(Path(sys.argv[1]))
watcher.count_ranks()
page = overview.render(watcher.look(), watcher.settings) + lists.domains(watcher, lists.Wish()) + lists.hosts(watcher, lists.Wish())
assert ">budget<" in page
assert "No page that was fetched links to it" in hosts.why_page(watcher, "http://nobody.example/")
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""


def test_a_dashboard_with_budgets_and_domains_imports_no_compiler(job: Path) -> None:
    command = [sys.executable, "-c", _PAGES, str(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert not set(json.loads(done.stderr.splitlines()[-1])) & {"numba", "llvmlite", "matplotlib", "uvloop"}


def test_a_crawl_imports_no_sql_no_pictures_and_no_kernels_that_it_does_not_use(tmp_path: Path) -> None:
    found = modules("crawl", "http://127.0.0.1:1/", "--job", str(tmp_path / "job"), "--set", "limits.time=1s")
    assert "numba" in found
    assert not found & {"duckdb", "matplotlib", "cryptography"}
    # Of several processes, of near-duplicates, of depth, of the other strategy, of rankings.
    others = ("frontier.modes", "page.fingerprint", "frontier.later", "frontier.sampling", "graph.kernels")
    assert not found & {f"barkspider.{name}" for name in others}
