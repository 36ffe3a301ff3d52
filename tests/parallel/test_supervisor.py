"""The supervisor and parts that are made up: when it starts them, ends them, gives one up, and ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.parallel import supervisor
from barkspider.parallel.division import create_job
from barkspider.parallel.supervisor import Part, Supervisor
from barkspider.storage.env import Env

EMPTY = {
    **dict.fromkeys(("unchanged", "links", "unique_urls", "cpu_seconds", "peak_rss", "queue_max"), 0),
    **dict.fromkeys(("pages", "bytes", "discovered", "redirects", "queued", "deferred", "in_flight"), 0),
    **dict.fromkeys(("dropped", "ahead", "robots_files", "classifier_errors", "hook_errors", "seconds"), 0),
    **{
        name: {}
        for name in ("refused", "failed", "decided", "out_of_scope", "robots_failed", "rejected", "phases")
    },
    "problems": [],
    "state": "running",
    "gauges": {"loop_held": 0},
}
OTHERS = {
    "granted": None,
    "sealed": [0, 0],
    "applied": [0, 0],
    "waiting": [0, 0],
    "unsent": False,
    "waits": False,
    "is_idle": False,
}


class Fakes:
    """Two parts. `answers` says what one tells, None for nothing; `asked` is all that was asked, in order."""

    def __init__(self, answers: Callable[[int, int], dict[str, Any] | None]) -> None:
        self.answers, self.asked, self.starts = answers, list[tuple[int, str]](), [0, 0]
        self.looks = [0, 0]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervisor, "_LOOK", 0.0)
        monkeypatch.setattr(Part, "start", lambda part: self._start(part))
        monkeypatch.setattr(Part, "ask", lambda part, command, **details: self._ask(part, command, **details))

    async def _start(self, part: Part) -> None:
        self.starts[_number(part)] += 1
        ended = asyncio.Event()
        process = SimpleNamespace(returncode=None, stdin=None, wait=ended.wait)
        process.end = lambda: (setattr(process, "returncode", 1), ended.set())
        process.send_signal = lambda _: process.end()
        part.process, part.told, part.changed = process, {}, supervisor.time.monotonic()  # type: ignore[assignment]

    async def _ask(self, part: Part, command: str, **details: Any) -> dict[str, Any] | None:
        number = _number(part)
        self.asked.append((number, command))
        self.looks[number] += command == "status"
        if part.process is None:
            return None
        if command in ("stop", "end"):
            part.process.end()  # type: ignore[attr-defined]
        told = self.answers(number, self.looks[number])
        others = {**OTHERS, "start": self.starts[number], **(told or {}).get("others", {})}
        return None if told is None else {**EMPTY, **told, "others": others}


def _number(part: Part) -> int:
    return int(part.folder.name[-4:])


def run(fakes: Fakes, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Supervisor:
    """Let a supervisor run to its end, which it must find by itself."""
    fakes.install(monkeypatch)

    async def crawl() -> Supervisor:
        settings = load_settings(options=["parallel.processes=2", "memory=64MB", "scope.level=web", *options])
        job = create_job(folder / "job", settings, ["http://a.example/"], Env())
        found = Supervisor(job)
        try:
            async with asyncio.timeout(60):
                await found.run()
        finally:
            job.close()
        return found

    return asyncio.run(crawl())


def test_the_limit_of_time_counts_from_when_all_parts_have_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = Fakes(lambda number, look: {} if look > 20 * number else None)
    found = run(fakes, tmp_path, monkeypatch, "limits.time=1ms")
    assert found.statistics().stopped_by == "time"
    assert fakes.looks[1] > 20
    assert {part for part, command in fakes.asked if command == "stop"} == {0, 1}


@pytest.mark.parametrize(("what", "limit"), [("pages", "1000"), ("bytes", "1KB")])
def test_limits_are_those_of_all_parts_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, limit: str
) -> None:
    fakes = Fakes(lambda number, look: {what: 10 * look, "others": {"granted": 500}})
    found = run(fakes, tmp_path, monkeypatch, f"limits.{what}={limit}")
    assert found.statistics().stopped_by == what
    assert fakes.looks == [50, 50]
    assert fakes.starts == [1, 1]


def test_it_is_over_after_two_looks_at_which_nothing_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then a batch is under way, rows are in no batch, or a URL waits for a grant."""

    def answers(number: int, look: int) -> dict[str, Any]:
        idle = {"is_idle": True, "sealed": [0, 3] if number == 0 else [0, 0]}
        idle["applied"] = [min(look, 3), 0] if number == 1 else [0, 0]
        idle["unsent"] = look == 4
        idle["waits"] = look == 5 and number == 0
        return {"others": idle}

    fakes = Fakes(answers)
    run(fakes, tmp_path, monkeypatch)
    assert fakes.looks == [7, 7]
    assert sorted(fakes.asked[-2:]) == [(0, "end"), (1, "end")]


def test_a_part_that_dies_five_times_is_left_alone_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE", 0.0)
    fakes = Fakes(lambda number, look: {"others": {"is_idle": fakes.starts[0] >= 5}})
    ask = fakes._ask

    async def dying(part: Part, command: str, **details: Any) -> dict[str, Any] | None:
        if _number(part) == 0 and command == "status" and part.process is not None:
            part.process.end()  # type: ignore[attr-defined]
            return None
        return await ask(part, command, **details)

    monkeypatch.setattr(fakes, "_ask", dying)
    found = run(fakes, tmp_path, monkeypatch)
    assert fakes.starts == [5, 1]
    assert "ended 5 times within 10 minutes" in str(found.fault)
    assert fakes.asked[-1] == (1, "end")


def test_a_part_that_has_work_and_does_nothing_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other is idle, which is no reason."""
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE", 0.0)
    fakes = Fakes(lambda number, look: {"others": {"is_idle": number == 1 or fakes.starts[0] > 1}})
    clock = count(0.0, 10.0)  # seconds go by when they are asked for
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
    run(fakes, tmp_path, monkeypatch)
    assert fakes.starts == [2, 1]


@pytest.mark.parametrize(
    "told",
    [
        {"others": {"sleeps": True}},  # all that it knows is to be left alone for a while
        {"state": "paused (disk)"},
        {"others": {"is_full": True}},
    ],
)
def test_a_part_that_waits_for_a_time_for_space_or_for_others_is_left_alone(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = Fakes(lambda number, look: told if look < 50 else {"others": {"is_idle": True}})
    clock = count(0.0, 10.0)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
    run(fakes, tmp_path, monkeypatch)
    assert fakes.starts == [1, 1]
    assert min(fakes.looks) > 50


def test_a_part_that_was_idle_and_does_not_answer_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nobody knows whether anything is left."""
    monkeypatch.setattr(supervisor, "_FIRST_PAUSE", 0.0)

    def answers(number: int, look: int) -> dict[str, Any] | None:
        if fakes.starts[0] > 1:
            return {"others": {"is_idle": True}}
        hangs = number == 0 and look > 3
        return None if hangs else {"pages": number * look, "others": {"is_idle": number == 0}}

    fakes = Fakes(answers)
    clock = count(0.0, 10.0)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
    run(fakes, tmp_path, monkeypatch)
    assert fakes.starts == [2, 1]


def test_a_part_that_is_started_during_a_pause_pauses_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(number: int, look: int) -> dict[str, Any]:
        paused = (number, "pause") in fakes.asked
        return {"state": "paused (request)" if paused else "running", "others": {"is_idle": paused}}

    fakes = Fakes(answers)
    monkeypatch.setattr(Supervisor, "_prepare", lambda self: setattr(self, "_paused", True))
    run(fakes, tmp_path, monkeypatch)
    assert [each for each in fakes.asked if each[1] == "pause"] == [(0, "pause"), (1, "pause")]
