"""The supervisor of a crawl on a cluster: in a detached actor, so that whoever started it may go away and come back.

Its folder, JOB on its node, has the settings, the seeds and the log; with a store, copies of these lie there. It is on the head of the
cluster; when its process dies Ray starts it again, and it goes on with the stations that there are.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from barkspider.core.errors import BarkspiderError, JobError, StorageError
from barkspider.core.load import dump_settings, parse_settings
from barkspider.core.settings import Settings
from barkspider.engine.copying import copy_about, read_about
from barkspider.engine.folder import DIVISION, LOCK, SETTINGS, read_division
from barkspider.engine.job import SEEDS, Job
from barkspider.engine.trust import write_settings
from barkspider.parallel.cluster.station import Order, check_version
from barkspider.parallel.cluster.stations import RemotePart, Stations
from barkspider.parallel.division import write_division
from barkspider.parallel.supervisor import Supervisor
from barkspider.storage.env import Env

_DRAINED = 4  # looks at the parts between two at the nodes
_SUCCESSION = 60.0  # seconds for the process of one before this to end
_KEPT = 20  # lines for a person


class ClusterSupervisor(Supervisor):
    """A supervisor whose parts have stations."""

    def __init__(self, job: Job, stations: Stations, tell: Any) -> None:
        self._stations = stations
        self._lamented = set[str]()  # what was told of parts and nodes
        lease, count = job.settings.parallel.lease, job.settings.parallel.processes
        self.parts = [RemotePart(part, stations, lease, job.seeds, not job.resumed) for part in range(count)]
        super().__init__(job, tell, self.parts)

    async def _wait_for_parts(self) -> None:
        while True:
            try:
                adopted = await asyncio.to_thread(self._stations.adopt)
                break
            except RayError:  # the cluster does not answer now
                await asyncio.sleep(1.0)
        for part, station in adopted:
            self.parts[part].adopt(station)
        if self._job.resumed and not self._stations.has_store:
            for number, node in (await asyncio.to_thread(self._stations.find)).items():
                self.parts[number].home = node

    def _prepare(self) -> None:
        self._copy_about()

    async def _look(self) -> None:
        if self._looks % _DRAINED == 0 and not self._stopped_by:
            await self._look_who_leaves()
        await super()._look()
        for part in self.parts:
            if part.lost:
                self._lament(f"{part.folder.name}: {part.lost}")
            if part.lost and part.given_up and self.fault is None:
                self.fault = BarkspiderError(f"{part.lost}; the others went on")

    async def _look_who_leaves(self) -> None:
        """Parts whose node is about to go, and whose copies lie in a store, go on elsewhere at once."""
        with suppress(RayError):
            await asyncio.to_thread(self._stations.look_who_leaves)
        for part in self.parts:
            node = self._stations.nodes[part.number]
            if node not in self._stations.leaving:
                continue
            if part.leave():
                self._lament(f"{part.folder.name} goes on elsewhere: node {node[:12]} is about to go")
            elif not self._stations.has_store:
                self._lament(
                    f"node {node[:12]} is about to go, and without a store {part.folder.name} goes with it"
                )

    def _lament(self, line: str) -> None:
        """Tell something once."""
        if line not in self._lamented:
            self._lamented.add(line)
            self._tell(line)
            self._log("told", line=line)

    def _is_over(self) -> bool:
        over = super()._is_over()
        late = [part for part in self.parts if part.code not in (0, None)]
        if over and self._stopped_by == "done" and late and self.fault is None:
            self.fault = BarkspiderError(
                f"{late[0].folder.name} was lost after all was fetched and before its last copy: "
                f"`barkspider resume {self._job.path} --ray …` fetches again what is missing"
            )
        return over

    def whereabouts(self) -> dict[str, Any]:
        """Where the parts are, for whoever asks."""
        return {
            part.folder.name: {"node": self._stations.nodes[part.number], "pid": part.pid}
            for part in self.parts
        }


class Overseer:
    """The actor. Asynchronous: its methods and the crawl share a loop."""

    def __init__(self, path: str, settings: str, seeds: list[str], resumed: bool, version_: str) -> None:
        check_version(version_)
        self._env, self._path = Env(), Path(path)
        self._lines: list[str] = []  # the last of what was said
        self._said = 0
        chosen = parse_settings(settings, "the settings of the crawl")
        self._job = self._open(chosen, seeds, resumed)
        generation = read_division(self._path).get("generation", 0)
        order = Order(path, 0, 0, generation, dump_settings(self._job.settings), version_, False)
        me = ray.get_runtime_context().current_actor
        has_store = bool(chosen.store.url)
        stations = Stations(order, me, chosen.parallel.processes, has_store)
        self._stations = stations
        self._supervisor: ClusterSupervisor | None = None
        self._running: asyncio.Task[Any] | None = None
        self._error = ""

    def _open(self, settings: Settings, seeds: list[str], resumed: bool) -> Job:
        """The folder of the whole on this node: as it is, as the store has it, or new."""
        # Ray starts it again with what it was given at first.
        resumed = resumed or ray.get_runtime_context().was_current_actor_reconstructed
        if SETTINGS not in self._env.list(self._path):
            known = read_about(settings.store.url, SEEDS) if settings.store.url else None
            if known is not None:
                seeds = [*dict.fromkeys([*known.decode().split(), *seeds])]
                resumed = True
            Job.create(self._path, settings, seeds, self._env).close()
        else:
            resumed = True
        division = read_about(settings.store.url, DIVISION) if settings.store.url else None
        if division is None:
            write_division(self._env, self._path, settings)
        else:  # it may have been divided anew, elsewhere
            self._env.write_whole(self._path / DIVISION, division)
        write_settings(self._env, self._path, settings)
        # Another that Ray took for dead, and started this one in its place, ends when it hears of that.
        end = time.monotonic() + (_SUCCESSION if resumed else 0.0)
        while (lock := self._env.lock(self._path / LOCK)) is None:
            if time.monotonic() >= end:
                raise JobError(
                    f"{self._path} is in use by another barkspider; wait for it, or choose another --job"
                )
            time.sleep(1.0)
        return Job(self._path, settings, self._env, lock, resumed)

    async def run(self) -> None:
        """Begin, if that is not done yet."""
        if self._running is None:
            self._supervisor = ClusterSupervisor(self._job, self._stations, self._say)
            self._running = asyncio.create_task(self._run(self._supervisor))

    async def _run(self, supervisor: ClusterSupervisor) -> Any:
        try:
            return await supervisor.run()
        except BarkspiderError as error:
            self._error = str(error)
        except Exception as error:  # whoever looks at the crawl must hear of it
            traceback.print_exc()
            self._error = f"whoever oversees the crawl has failed: {error!r}"
        finally:
            if self._job.settings.store.url:
                with suppress(StorageError):
                    await asyncio.to_thread(copy_about, self._env, self._path, self._job.settings.store.url)
            for handle in self._stations.handles:
                if handle is not None:
                    with suppress(RayError, ValueError):  # it is gone already
                        ray.kill(handle)

    async def renew(self, part: int, number: int) -> bool:
        """Whether a station may go on."""
        await self.run()  # if Ray has started this one again
        return self._supervisor is not None and self._supervisor.parts[part].renew(number)

    async def poll(self, heard: int = 0) -> dict[str, Any]:
        """How the crawl is, for whoever shows it and has heard so many lines."""
        await self.run()
        # One that Ray has started again has said less than its predecessor.
        fresh = self._said - heard if heard <= self._said else self._said
        about = {"lines": self._lines[-fresh:] if fresh else [], "said": self._said, "error": self._error}
        if self._supervisor is None or self._running is None:
            return {"state": "starting", "over": False, "fault": "", **about}
        supervisor, over = self._supervisor, self._running.done()
        final = self._running.result() if over else None
        told = final or supervisor.statistics()
        return {
            "state": "ended" if over else supervisor.state(),
            "over": over,
            **about,
            "fault": str(supervisor.fault) if supervisor.fault else "",
            "where": supervisor.whereabouts(),
            "statistics": told.as_dict(),
        }

    async def answer(self, command: str, details: dict[str, Any]) -> dict[str, Any]:
        """What `engine.control` would answer."""
        await self.run()  # as in `renew`
        if self._supervisor is None or self._running is None or self._running.done():
            return {"error": "the crawl has ended", "over": True}
        try:
            answer = self._supervisor.answer(command, details)
            return answer if isinstance(answer, dict) else await answer
        except BarkspiderError as error:
            return {"error": str(error)}

    async def stop(self, reason: str, at_once: bool) -> None:
        """See `Supervisor.stop` and `abort`."""
        if self._supervisor is not None:
            self._supervisor.stop(reason)
            if at_once:
                self._supervisor.abort()

    def _say(self, line: str) -> None:
        self._lines, self._said = [*self._lines, line][-_KEPT:], self._said + 1
