"""The stations of a crawl, as the overseer sees them: which a part has, on which node, and when another takes over."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from barkspider.core.errors import JobError
from barkspider.frontier.census import KeySample
from barkspider.parallel.cluster.calls import SilentError, answer_of, line
from barkspider.parallel.cluster.lease import Lease
from barkspider.parallel.cluster.station import Order, Station, roots
from barkspider.parallel.supervisor import Part

NAMESPACE = "barkspider"
_PATIENCE = 8.0  # seconds for an answer
_TRIES = 3  # times that a station is asked for the last words of its part
_MARGIN = 1.0  # seconds behind a lease until another station is started
_ARRIVAL = (
    60.0  # seconds for a new station to ask for its first lease: a process starts and loads its modules
)
_LONGEST_START = 3600.0  # seconds to bring a copy back: a terabyte at 300 MB/s


class Stations:
    """All stations of a crawl, for whoever meets or replaces some. Lives on the loop of the overseer."""

    def __init__(self, order: Order, overseer: Any, processes: int, has_store: bool) -> None:
        """`order` is for part 0; the others have their own number."""
        self.order, self.overseer, self.has_store = order, overseer, has_store
        self.handles: list[Any] = [None] * processes
        self.numbers = [0] * processes
        self.nodes = [""] * processes
        self.suspects: set[str] = set()  # nodes whose station did not answer
        self.leaving: frozenset[str] = frozenset()  # nodes that are about to go

    def find(self) -> dict[int, str]:
        """The nodes on whose machines parts of the job lie, by the number of the part."""
        looks = {}
        for node in ray.nodes():
            if node["Alive"]:
                strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                task = ray.remote(_parts_here).options(num_cpus=0, scheduling_strategy=strategy)
                looks[node["NodeID"]] = task.remote(self.order.job, len(self.numbers))
        found: dict[int, str] = {}
        for name, look in looks.items():
            with suppress(RayError):
                found |= dict.fromkeys(ray.get(look, timeout=_PATIENCE), name)
        return found

    def choose(self, part: int, home: str) -> str:
        """The node for a part: where it was, if that is alive and it may be, else the one with the fewest parts a CPU."""
        alive = {node["NodeID"]: node["Resources"].get("CPU", 1.0) for node in ray.nodes() if node["Alive"]}
        self.suspects &= alive.keys()
        shunned = self.suspects | self.leaving
        if home in alive and (home not in shunned or not self.has_store):
            return home
        if home and not self.has_store:
            raise JobError(f"part-{part:04d} was on a node that is gone, and without a store it is lost")
        # A node that did not answer is taken when there is no other.
        fit = {node: cpus for node, cpus in alive.items() if node not in shunned} or alive
        if not fit:
            raise JobError("the cluster has no node that is alive")
        taken = Counter(node for other, node in enumerate(self.nodes) if node and other != part)
        chosen: str = min(fit, key=lambda node: ((taken[node] + 1) / max(fit[node], 1.0), node))
        return chosen

    def look_who_leaves(self) -> None:
        """Ask Ray which nodes are about to go: `ray drain-node` tells it, and so does `ray start --block` that gets SIGTERM."""
        # There is no public name for it; Ray's own libraries ask here, too.
        draining = ray._private.state.state.get_draining_nodes()
        self.leaving = frozenset(draining) if draining else frozenset()
        if self.leaving and not any(
            node["Alive"] and node["NodeID"] not in self.leaving for node in ray.nodes()
        ):
            self.leaving = frozenset()  # there is nowhere else

    def hire(self, part: int, node: str, replaces: bool) -> Any:
        """A further station for a part, on a node."""
        self.numbers[part] += 1
        order = self.order._replace(part=part, number=self.numbers[part], replaces=replaces)
        options: dict[str, Any] = {
            "name": _name(order),
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "num_cpus": 0,
            "max_concurrency": 1000,  # of an asynchronous actor: coroutines that wait, not threads
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        handle = ray.remote(Station).options(**options).remote(order, self.overseer)
        self.handles[part], self.nodes[part] = handle, node
        return handle

    def adopt(self) -> list[tuple[int, Any]]:
        """The stations that an overseer before this one has left, the latest of each part."""
        found: dict[int, tuple[int, str]] = {}
        prefix = f"{self.order.job}|"
        for each in ray.util.list_named_actors(all_namespaces=True):
            if each["namespace"] == NAMESPACE and each["name"].startswith(prefix):
                part, number = map(int, each["name"].removeprefix(prefix).split("|"))
                self.numbers[part] = max(self.numbers[part], number)
                found[part] = max(found.get(part, (0, "")), (number, each["name"]))
        adopted = []
        for part, (_, name) in found.items():
            try:
                self.handles[part] = ray.get_actor(name, namespace=NAMESPACE)
                adopted.append((part, self.handles[part]))
            except ValueError:
                continue
        return adopted

    def introduce(self, part: int, met: Sequence[int]) -> None:
        """Let a station know the others, unless it told that it has met them: a call may be lost on its way."""
        there = [
            number if handle is not None else 0
            for handle, number in zip(self.handles, self.numbers, strict=True)
        ]
        if self.handles[part] is not None and list(met) != there:
            self.handles[part].meet.remote(self.handles, there)

    def heard(self, numbers: Sequence[int]) -> None:
        """A station knows of these."""
        self.numbers = [max(pair) for pair in zip(self.numbers, numbers, strict=True)]


class RemotePart(Part):
    """A part that has a station. Lives on the loop of the overseer."""

    def __init__(self, number: int, stations: Stations, lease: float, seeds: Any, fresh: bool) -> None:
        """`seeds` gives all seeds of the crawl so far; a part that is not `fresh` has begun before."""
        super().__init__(Path(f"part-{number:04d}"), number)
        self._stations, self._seeds, self._fresh = stations, seeds, fresh
        self.lease = Lease(lease + _MARGIN, time.monotonic)
        self._station: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._census: Mapping[str, KeySample] = {}
        self._hired = 0.0  # when the station was hired
        self._owed: list[str] = []  # seeds that the part has to be told of again
        self._code: int | None = None
        self._buried = True  # whether it is known that there is no process
        self.home, self._first = "", True
        self._leaves = False  # whether it was told to end, to go on elsewhere
        self.lost = ""  # why the part cannot be had back
        self.pid = 0

    @property
    def is_running(self) -> bool:
        """Whether it has a station whose process has not ended, or is about to."""
        return self._station is not None and self._code is None and not self._buried

    @property
    def has_died(self) -> bool:
        """See `Part`."""
        return self._station is not None and self._code is not None

    @property
    def code(self) -> int | None:
        """The exit code of the process that ran last; None while it runs, -1 when nobody knows."""
        return self._code

    def bury(self) -> int | None:
        """See `Part`: a station that answers stays."""
        code, self._code, self._buried = self._code, None, True
        if code == -1:  # it is not known what became of it
            self._dismiss()
        return code

    def leave(self) -> bool:
        """Let its process make a last checkpoint and copy, because its node is about to go; where another takes over, it goes
        on with that. May be called again and again; whether it leaves."""
        begun = self._starting is None or self._starting.done()
        if self._stations.has_store and self.is_running and begun and self._station is not None:
            self._leaves = True
            self._station.end.remote(None)
        return self._leaves

    def _dismiss(self) -> None:
        self._station = self._stations.handles[self.number] = self._starting = None
        self._leaves = False

    def adopt(self, station: Any) -> None:
        """Go on with a station that runs."""
        self._station, self._first, self._buried = station, False, False
        self.lease.renew(self.lease.clock())
        self.changed = time.monotonic()

    def renew(self, number: int) -> bool:
        """The station of this number asks for its lease."""
        if number != self._stations.numbers[self.number] or self._station is None:
            return False
        self.lease.renew(self.lease.clock())
        return True

    async def start(self) -> None:
        """Start its process, at the station that there is or at a new one; what goes wrong is seen later."""
        try:
            if self._station is None:
                self.home = self._stations.choose(self.number, self.home)
                self._station = self._stations.hire(self.number, self.home, replaces=not self._first)
                self.lease, self._hired = Lease(self.lease.seconds, time.monotonic), time.monotonic()
        except JobError as error:
            self.lost, self.given_up = str(error), True
            return
        except RayError:  # the cluster does not answer now: the next look tries again
            return
        self._code, self._buried, self.changed, self.told = None, False, time.monotonic(), {}
        self._starting = asyncio.create_task(self._begin(self._station))

    async def _begin(self, station: Any) -> None:
        try:
            seeds = self._seeds()
            self._owed = await answer_of(lambda: station.start.remote(seeds, self._fresh), _LONGEST_START)
            self._first = self._fresh = False
        except RayTaskError as error:  # it could not: the node has other software, or the copy is damaged
            self.lost, self._code = line(error), 1
        except SilentError:
            if self.lease.until < 0:  # it never had a lease, so there is nothing to wait for
                self._hired -= _ARRIVAL
            self._judge()

    async def ask(self, command: str, **details: Any) -> dict[str, Any] | None:
        """See `Part`. A station that is silent is taken for gone when its lease is over."""
        if self._station is None:
            return None
        if self._starting is not None and not self._starting.done():
            self._judge()
            return None
        station = self._station
        try:
            told = await answer_of(lambda: station.ask.remote(command, details), _PATIENCE)
        except (SilentError, RayTaskError):
            self._judge()
            return None
        if station is not self._station:  # it was replaced meanwhile
            return None
        self._stations.suspects.discard(self.home)
        self._stations.heard(told["numbers"])
        self._stations.introduce(self.number, told["met"])
        self._code, self.pid = told["code"], told["pid"]
        self.home = self._stations.nodes[self.number] = told["node"]
        if self._leaves and self._code is not None:  # it has ended for sure: no lease need be waited for
            with suppress(RayError):
                ray.kill(station)
            self._dismiss()
            self._code, self._buried = None, True
        if told["answer"] is not None and self._owed:
            owed, self._owed = self._owed, []
            await self.ask("add", urls=owed, again=[])
        answer: dict[str, Any] | None = told["answer"]
        return answer

    def _judge(self) -> None:
        """It is silent: when its lease is over it is taken for gone, and its node is left alone while there are others."""
        arriving = self.lease.until < 0 and time.monotonic() < self._hired + _ARRIVAL
        if not self.lease.holds and not arriving:
            self._code = -1
            self._stations.suspects.add(self.home)

    def send(self, number: signal.Signals) -> None:
        """See `Part`."""
        if self._station is not None:
            self._station.end.remote(int(number))

    async def end(self) -> None:
        """See `Part`."""
        while self.is_running and self._station is not None:
            self._station.end.remote(None)
            await self.ask("status")
            await asyncio.sleep(0.2)

    async def last_words(self) -> dict[str, Any]:
        """See `Part`; of one that is gone, what it told last."""
        end: dict[str, Any] = {}
        for _ in range(_TRIES if self._station is not None else 0):
            with suppress(SilentError, RayTaskError):
                end, self._census = await answer_of(self._station.ended.remote, _PATIENCE)
                break
            await asyncio.sleep(1.0)
        return end or {name: value for name, value in self.told.items() if name != "others"}

    async def census(self) -> Mapping[str, KeySample]:
        """See `Part`: as `last_words` was told."""
        return self._census


def _parts_here(job: str, processes: int) -> list[int]:
    return [part for part in range(processes) if roots(job, part)]


def _name(order: Order) -> str:
    return f"{order.job}|{order.part}|{order.number}"
