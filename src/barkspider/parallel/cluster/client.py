"""What starts a crawl on a cluster, looks at it and speaks to it: from any machine that reaches Ray, and for as long as it likes."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from barkspider.core.errors import BarkspiderError, JobError, UsageError
from barkspider.core.load import dump_settings, parse_settings
from barkspider.core.settings import Limits, Settings
from barkspider.engine.copying import read_about
from barkspider.engine.folder import SETTINGS
from barkspider.engine.statistics import Statistics
from barkspider.parallel.summing import sum_up

_CONNECT = 5.0  # seconds for somebody to answer at an address
_LOOK = 0.5  # seconds between looks at a crawl
_ANSWER = 30.0  # seconds for an answer
_BEGIN = 120.0  # seconds for the overseer to be there
_SILENT = "{} does not answer; try again in a moment, or look at the cluster with `ray status`"
_NAMESPACE = "barkspider"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # RFC 9113, section 3.4
_FRAME, _SETTINGS = 9, b"\x04"  # bytes of the head of a frame; the type of the first that a server sends


class NoCrawlError(BarkspiderError):
    """A crawl is not on the cluster, or not any longer."""


def connect(address: str) -> Any:
    """Ray, connected to a cluster; `UsageError` in one line when that cannot be."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--ray needs Ray, which is not installed: pip install 'barkspider[cluster]'"
        ) from error
    if ray.is_initialized():
        return ray
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            if not port.isdecimal():
                raise UsageError(
                    f"--ray {address}: write it like 10.0.0.1:6379, ray://10.0.0.1:10001, or auto"
                )
            with socket.create_connection((host, int(port)), _CONNECT) as there:
                _check_answer(there)
        except OSError as error:
            raise UsageError(
                f"nobody answers at {address} ({error}): start a cluster with `ray start --head`"
            ) from error
    try:
        with _quiet():
            ray.init(address, namespace=_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        why = " ".join(str(error).split())[:200]
        raise UsageError(
            f"no cluster lets us in at {address} ({why}): start one with `ray start --head`, or if it has a token, "
            "give that: RAY_AUTH_MODE=token RAY_AUTH_TOKEN=…"
        ) from error
    return ray


@contextmanager
def _quiet() -> Iterator[None]:
    """Let nothing reach standard error: what Ray is made of writes there by itself, a line for each try."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _check_answer(there: socket.socket) -> None:
    """Raise `OSError` where somebody answers who does not speak Ray's protocol, HTTP/2: Ray itself finds out in minutes."""
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return
    there.sendall(_PREFACE)
    head = b""
    while len(head) < _FRAME and (data := there.recv(_FRAME - len(head))):
        head += data
    if head[3:4] != _SETTINGS:
        raise OSError("it is no part of a Ray cluster")


def find(job: Path) -> Any | None:
    """The overseer of a job, if it is on the cluster."""
    import ray

    from barkspider.parallel.cluster.calls import UNREACHABLE, SilentError

    try:
        return ray.get_actor(_name(job), namespace=_NAMESPACE)
    except ValueError:
        return None
    except UNREACHABLE as error:
        raise SilentError(_SILENT.format("the cluster")) from error


def begin(job: Path, settings: Settings, seeds: list[str], resumed: bool = False) -> Any:
    """Start the overseer of a job; it outlives this process."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from barkspider.parallel.cluster.calls import UNREACHABLE, SilentError, line, wait_for
    from barkspider.parallel.cluster.overseer import Overseer

    if not settings.seed:
        settings = replace(settings, seed=secrets.randbits(62) + 1)
    options: dict[str, Any] = {
        "name": _name(job),
        "namespace": _NAMESPACE,
        "lifetime": "detached",
        "num_cpus": 0,
        "max_restarts": -1,
        "max_concurrency": 1000,  # of an asynchronous actor: coroutines that wait, not threads
    }
    text = dump_settings(settings)
    try:
        # On the head: without it there is no cluster. A node that may be anything else may go away.
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(_head(ray.nodes()), soft=False)
        order = (str(job.absolute()), text, seeds, resumed, version("barkspider"))
        actor = ray.remote(Overseer).options(**options).remote(*order)
        wait_for(actor.run.remote, _BEGIN)
    except ValueError as error:
        raise JobError(
            f"{job} is being crawled on this cluster: `barkspider status {job} --ray …`"
        ) from error
    except (SilentError, *UNREACHABLE) as error:
        raise JobError(f"the crawl could not be started: {line(error)}") from error
    return actor


def stored_settings(job: Path, store: str) -> Settings:
    """The settings of a job that was begun on a cluster: of its store, which others may have changed, or of its folder."""
    path = job / SETTINGS
    here = parse_settings(path.read_text("utf-8"), str(path)) if path.is_file() else None
    store = store or (here.store.url if here is not None else "")
    data = read_about(store, SETTINGS) if store else None
    if data is not None:
        there = parse_settings(data.decode(), f"{SETTINGS} in {store}")
        return replace(there, store=replace(there.store, url=store))
    if here is None:
        raise JobError(f"{job} is not on this machine: add --store URL, or ask where it was begun")
    return here


def answer(job: Path, command: str, **details: Any) -> dict[str, Any]:
    """What a crawl on the cluster answers; `BarkspiderError` when there is none."""
    found = _told(job, command, details)
    if found is None:
        raise NoCrawlError(f"no crawl of {job} is on this cluster; there is nothing to {command}")
    if "error" in found:
        raise JobError(f"the crawl of {job} refuses: {found['error']}")
    return found


def check_not_crawled(job: Path) -> None:
    """Raise `JobError` for a crawl that is on the cluster; the overseer of one that has ended, which nobody has seen, goes."""
    import ray

    found = _told(job, "status", {})
    if found is not None and found["state"] != "ended":
        raise JobError(f"{job} is being crawled: stop it first, with `barkspider stop {job} --ray …`")
    if found is not None:
        ray.kill(find(job))
        _told(job, "status", {})


def go_on(job: Path) -> Any | None:
    """The overseer of a crawl that is on the cluster, after it was told that no pause holds any longer, or that has ended
    without anybody to see it."""
    found = _told(job, "go_on", {})
    if found is not None and "error" in found and not found.get("over"):
        raise JobError(f"the crawl of {job} refuses: {found['error']}")
    return find(job) if found is not None else None


def _told(job: Path, command: str, details: dict[str, Any]) -> dict[str, Any] | None:
    """What an overseer answers, None when there is none. One that has just ended has its name for a moment longer."""
    overseer = find(job)
    if overseer is None:
        return None
    from barkspider.parallel.cluster.calls import GoneError, SilentError, wait_for

    end = time.monotonic() + _ANSWER
    while overseer is not None:
        try:
            if command == "status":
                told = wait_for(overseer.poll.remote, _ANSWER)
                return {"state": told["state"], "where": told.get("where", {}), **told.get("statistics", {})}
            asked = partial(overseer.answer.remote, command, details)
            found: dict[str, Any] = wait_for(asked, _ANSWER)
            return found
        except SilentError as error:
            # Ray calls an actor dead, too, that it is about to start elsewhere: whose name is known is not gone.
            overseer = find(job)
            if overseer is not None and (not isinstance(error, GoneError) or time.monotonic() > end):
                raise SilentError(_SILENT.format("whoever oversees the crawl")) from error
            time.sleep(_LOOK if overseer is not None else 0.0)
    return None


class ClusterCrawl:
    """A crawl on a cluster, with the face of `engine.Crawl`. Lives on one loop; `run` once."""

    replayed = 0

    def __init__(self, job: Path, overseer: Any, tell: Callable[[str], None], limits: Limits) -> None:
        """`limits` are those of the crawl, as far as they are known here."""
        self._job, self._overseer, self._tell, self.limits = job, overseer, tell, limits
        self._told: dict[str, Any] = {}
        self.fault: BarkspiderError | None = None
        self._stopping: tuple[str, bool] | None = None  # how it was told to stop

    async def run(self) -> Statistics:
        """Look at the crawl until it ends; then its overseer goes."""
        import ray

        from barkspider.parallel.cluster.calls import UNREACHABLE, GoneError, SilentError, answer_of

        silent = False
        while not self._told.get("over"):
            try:
                heard = self._told.get("said", 0)
                self._told = await answer_of(partial(self._overseer.poll.remote, heard), _ANSWER)
            except SilentError as error:
                if isinstance(error, GoneError) and await asyncio.to_thread(self._is_gone):
                    raise BarkspiderError(
                        "the crawl is gone from the cluster; `resume` goes on with it"
                    ) from error
                if not silent:
                    self._tell("whoever oversees the crawl does not answer; Ray may be starting it elsewhere")
                silent = True
                await asyncio.sleep(_LOOK)
                continue
            silent = False
            for line in self._told["lines"]:
                self._tell(line)
            if self._stopping is not None and self._told["state"] not in ("stopping", "ended"):
                self._overseer.stop.remote(*self._stopping)  # once more: it was not heard
            await asyncio.sleep(_LOOK)
        with suppress(*UNREACHABLE, ValueError):
            ray.kill(self._overseer)
        if self._told["error"] or self._told["fault"]:
            self.fault = BarkspiderError(self._told["error"] or self._told["fault"])
            if self._told["error"]:
                raise self.fault
        return self.statistics()

    def _is_gone(self) -> bool:
        """Whether Ray, which calls the overseer dead, is not about to start it elsewhere."""
        from barkspider.parallel.cluster.calls import SilentError

        with suppress(SilentError):
            return find(self._job) is None
        return False

    def stop(self, reason: str = "request") -> None:
        """See `engine.Crawl`."""
        self._stopping = (reason, False)
        self._overseer.stop.remote(*self._stopping)

    def abort(self) -> None:
        """See `engine.Crawl`."""
        self._stopping = ("request", True)
        self._overseer.stop.remote(*self._stopping)

    def statistics(self) -> Statistics:
        """What was done so far, as it was told last."""
        told = self._told.get("statistics")
        return sum_up([told], told["seconds"], told["stopped_by"]) if told else sum_up([], 0.0, "")

    def state(self) -> str:
        """What it is doing."""
        return str(self._told.get("state", "starting"))


def _head(nodes: list[dict[str, Any]]) -> str:
    alive = [node for node in nodes if node["Alive"]]
    heads = [node for node in alive if "node:__internal_head__" in node["Resources"]]
    head: str = (heads or alive)[0]["NodeID"]
    return head


def _name(job: Path) -> str:
    return f"overseer|{job.absolute()}"
