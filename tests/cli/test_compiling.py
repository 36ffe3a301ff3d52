"""The first start on a machine: kernels are compiled, people are told, and there is always a place to keep them."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from numba.core import event

from barkspider.cli import compiling
from barkspider.cli.compiling import announce
from barkspider.core import kernel_cache
from barkspider.core.kernel_cache import ensure_kernel_cache


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Other commands in this process may have begun to listen."""
    listeners = event._registered["numba:compile"]
    before, listeners[:] = list(listeners), []
    monkeypatch.setattr(compiling, "compile_beside", lambda module: None)
    compiling._listen.cache_clear()
    yield
    listeners[:] = before
    compiling._listen.cache_clear()


def compile_two(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *arguments: str) -> str:
    """What is written while two kernels are compiled, the first with another one inside."""
    for _ in range(2):  # a second command in the same process changes nothing
        announce(arguments)
    with monkeypatch.context() as here:
        here.setattr(sys, "stderr", stream)
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            pass
        with event.trigger_event("numba:compile"):
            pass
    return stream.getvalue()


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = compile_two(monkeypatch, Terminal(), "crawl", "http://a.example/")
    assert [part.partition("once: ")[2] for part in shown.split("\r") if "once" in part] == [
        "0 are done …\x1b[K",
        "1 are done …\x1b[K",
    ]
    assert shown.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("command", "module"),
    [("crawl", ["barkspider.page"]), ("demo", ["barkspider.lab.synthweb"]), ("verify", [])],
)
def test_a_second_process_compiles_what_comes_last(
    command: str, module: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(compiling, "compile_beside", begun.append)
    compile_two(monkeypatch, io.StringIO(), command, "x")
    assert begun == module  # once, however many kernels there are
    for name in module:
        assert import_module(name)


def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    code = (
        "import os, time; from barkspider.cli import compiling; os.sched_getaffinity = lambda _: {0, 1}\n"
        "compiling.compile_beside('endless')\n"
        "while not (os.path.exists('pid') and open('pid').read()): time.sleep(0.01)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_where_no_second_process_can_be_started_this_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real one
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    compiling.compile_beside("barkspider.page")


def test_a_log_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_two(monkeypatch, io.StringIO(), "verify", "job").count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [(), ("--version",), ("status", "job"), ("query", "job"), ("crawl", "--help")]
)
def test_commands_without_kernels_do_not_wait_for_the_compiler(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compile_two(monkeypatch, io.StringIO(), *arguments) == ""


def test_kernels_have_a_private_place_where_nothing_else_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # so that what is set below does not outlive this test
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ensure_kernel_cache(Path(kernel_cache.__file__).parents[1])
    assert "NUMBA_CACHE_DIR" not in os.environ  # beside the package
    monkeypatch.setattr(os, "access", lambda *_: False)
    places = []
    for _ in range(2):
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        ensure_kernel_cache(tmp_path / "package")
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    assert places[0] == places[1]
    assert stat.S_IMODE(places[0].stat().st_mode) == 0o700
    places[0].chmod(0o777)  # somebody else may have put something there
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    ensure_kernel_cache(tmp_path / "package")
    other = Path(os.environ["NUMBA_CACHE_DIR"])
    assert other not in places
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    ensure_kernel_cache(tmp_path / "package")
    assert Path(os.environ["NUMBA_CACHE_DIR"]) == other  # what is set stays
    monkeypatch.delenv("NUMBA_CACHE_DIR")
