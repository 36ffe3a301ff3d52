"""Actors that are out of reach: never more than a line, and asked again where that helps. No cluster is needed for that."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from ray.exceptions import (  # noqa: E402
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    RayError,
    RaySystemError,
    RayTaskError,
    RpcError,
)

from barkspider.core.errors import BarkspiderError, JobError  # noqa: E402
from barkspider.core.settings import Limits  # noqa: E402
from barkspider.parallel.cluster import calls, client  # noqa: E402
from barkspider.parallel.cluster.calls import GoneError, SilentError, answer_of, wait_for  # noqa: E402
from barkspider.parallel.cluster.overseer import Overseer  # noqa: E402
from barkspider.parallel.cluster.station import Order, Station  # noqa: E402

SILENT: list[Exception] = [
    ActorUnavailableError("The actor is temporarily unavailable: RpcError: Connection refused", None),
    GetTimeoutError("late"),
    RaySystemError("no control store"),
    RpcError("Connection refused"),
    ConnectionError("client is gone"),
    TimeoutError(),
]


class Call:
    """What `actor.method.remote()` gives."""

    def __init__(self, comes: Any) -> None:
        self.comes = comes

    def future(self) -> Future[Any]:
        found: Future[Any] = Future()
        if isinstance(self.comes, Exception):
            found.set_exception(self.comes)
        else:
            found.set_result(self.comes)
        return found


class Actor:
    """Its methods answer by what is left of a list; `said` has what was called."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.said = list(answers), list[tuple[Any, ...]]()

    def __getattr__(self, name: str) -> Any:
        class Method:
            @staticmethod
            def remote(*arguments: Any) -> Call:
                self.said.append((name, *arguments))
                return Call(self.answers.pop(0) if name != "stop" else None)

        return Method


@pytest.fixture(autouse=True)
def without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(call: Call, timeout: float) -> Any:
        return call.future().result()

    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "kill", lambda _: None)
    monkeypatch.setattr(calls, "_AGAIN", 0.0)
    monkeypatch.setattr(client, "_LOOK", 0.0)


@pytest.mark.parametrize("error", SILENT, ids=lambda error: type(error).__name__)
def test_who_is_out_of_reach_is_asked_again(error: Exception) -> None:
    actor = Actor(error, error, 7)
    assert wait_for(actor.poll.remote, 60.0) == 7
    with pytest.raises(SilentError):
        wait_for(Actor(error).poll.remote, -1.0)
    with pytest.raises(SilentError):
        asyncio.run(answer_of(Actor(error).poll.remote, 60.0))


def test_who_is_gone_is_not() -> None:
    with pytest.raises(GoneError):
        wait_for(Actor(ActorDiedError()).poll.remote, 60.0)
    with pytest.raises(GoneError):
        asyncio.run(answer_of(Actor(ActorDiedError()).poll.remote, 60.0))


def test_an_error_of_the_actor_is_an_answer() -> None:
    """Also one that came of another actor, which Ray makes both in one class."""
    cause = ActorUnavailableError("elsewhere", None)
    error = RayTaskError("poll", "traceback", cause).as_instanceof_cause()
    assert isinstance(error, RayError)
    with pytest.raises(RayTaskError):
        asyncio.run(answer_of(Actor(error).poll.remote, 60.0))


def names(monkeypatch: pytest.MonkeyPatch, *actors: Any) -> None:
    """Let the name of the overseer lead to these, one after the other, and then to nobody."""
    left = list(actors)

    def found(*_: Any, **__: Any) -> Any:
        if not left:
            raise ValueError("Failed to look up actor")
        return left.pop(0)

    monkeypatch.setattr(ray, "get_actor", found)


@pytest.mark.parametrize("error", SILENT, ids=lambda error: type(error).__name__)
def test_commands_outlast_an_overseer_that_is_started_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = Actor(error, {"state": "paused"})
    monkeypatch.setattr(ray, "get_actor", lambda *_, **__: actor)
    assert client.answer(Path("job"), "pause") == {"state": "paused"}


def test_commands_tell_of_one_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_ANSWER", -1.0)
    monkeypatch.setattr(ray, "get_actor", lambda *_, **__: Actor(SILENT[0]))
    with pytest.raises(BarkspiderError, match="does not answer; try again"):
        client.answer(Path("job"), "pause")
    names(monkeypatch, Actor(ActorDiedError()))
    with pytest.raises(BarkspiderError, match="no crawl of job is on this cluster"):
        client.answer(Path("job"), "status")

    def refuse(*_: Any, **__: Any) -> None:
        raise RpcError("Connection refused")

    monkeypatch.setattr(ray, "get_actor", refuse)
    with pytest.raises(BarkspiderError, match="does not answer; try again"):
        client.answer(Path("job"), "status")


def test_resume_shows_a_crawl_that_ended_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = Actor({"error": "the crawl has ended", "over": True})
    monkeypatch.setattr(ray, "get_actor", lambda *_, **__: actor)
    assert client.go_on(Path("job")) is actor
    names(monkeypatch, Actor(ActorDiedError()))
    assert client.go_on(Path("job")) is None
    names(monkeypatch, actor)
    actor.answers.append({"error": "no"})
    with pytest.raises(JobError, match="refuses: no"):
        client.go_on(Path("job"))


def test_the_driver_looks_again_and_repeats_a_stop_that_was_not_heard() -> None:
    lines = list[str]()
    running = {"over": False, "lines": [], "state": "running"}
    ended = {"over": True, "lines": ["a line"], "state": "ended", "error": "", "fault": ""}
    actor = Actor(*SILENT, running, ended)
    crawl = client.ClusterCrawl(Path("job"), actor, lines.append, Limits())
    crawl.stop("signal")
    asyncio.run(crawl.run())
    assert len(lines) == 2, lines  # that nobody answers, once; what the crawl said
    assert [each for each in actor.said if each[0] == "stop"] == [("stop", "signal", False)] * 2


def test_a_crawl_that_is_gone_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch)
    crawl = client.ClusterCrawl(Path("job"), Actor(ActorDiedError()), lambda _: None, Limits())
    with pytest.raises(BarkspiderError, match="`resume` goes on with it"):
        asyncio.run(crawl.run())


def test_an_overseer_that_ray_calls_dead_and_starts_again_is_not_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does where the node of one goes: the call fails as one to the dead, and the name stays."""
    ended = {"over": True, "lines": [], "state": "ended", "error": "", "fault": ""}
    actor = Actor(ActorDiedError(), ended)
    names(monkeypatch, actor)
    crawl = client.ClusterCrawl(Path("job"), actor, lambda _: None, Limits())
    asyncio.run(crawl.run())
    assert crawl.state() == "ended"
    actor.answers = [ActorDiedError(), {"state": "paused"}]
    names(monkeypatch, actor, actor)
    assert client.answer(Path("job"), "pause") == {"state": "paused"}


def test_other_versions_are_refused() -> None:
    order = Order("/job", 0, 1, 0, "", "0.0.1", False)
    station = object.__new__(Station)
    station._order = order
    with pytest.raises(JobError, match=r"another 0\.0\.1: install the same on all nodes") as raised:
        asyncio.run(station.start([], True))
    assert "\n" not in str(raised.value)
    with pytest.raises(JobError, match=r"another 0\.0\.1: install the same"):
        Overseer("/job", "", [], False, "0.0.1")
