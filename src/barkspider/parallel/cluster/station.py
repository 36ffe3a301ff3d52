"""The actor of one part: starts its process on the node where the actor is, and carries what that has for others.

ROOT = JOB/at-NODE/0001: one part on one node, or JOB/at-NODE/0001/generation-0001 if the crawl was divided anew
  part-0001/     the job of the part
  mail/          batches, see `mail`
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayTaskError

from barkspider.core.errors import BarkspiderError, JobError
from barkspider.core.load import parse_settings
from barkspider.core.settings import Settings
from barkspider.engine.control import ask
from barkspider.engine.copying import has_copy, take_over
from barkspider.engine.folder import SETTINGS, parts_in
from barkspider.engine.job import Job, read_seeds
from barkspider.engine.trust import write_settings
from barkspider.frontier.census import KeySample, committed_census
from barkspider.parallel.cluster.calls import SilentError, answer_of
from barkspider.parallel.cluster.desk import Desk, owners
from barkspider.parallel.cluster.lease import Lease
from barkspider.parallel.cluster.mail import Letter, Mail
from barkspider.parallel.cluster.wire import lease_line
from barkspider.parallel.division import share
from barkspider.parallel.post import turn_lease
from barkspider.parallel.supervisor import end_of
from barkspider.storage.env import Env
from barkspider.url import KeyMaker

_TURNS = 0.02  # seconds for which turns at others' servers gather, to be asked for together
_MAIL = 0.1  # seconds between looks at what is to be carried
_HEAR = 2.0  # seconds between letters without content, to hear what is safe elsewhere
_RENEWALS = 5  # a lease is renewed so many times before it would be over
_PATIENCE = 10.0  # seconds for the answer of another station
_UNKNOWN = 1.0  # seconds until a server is asked for again whose owner does not answer


class Order(NamedTuple):
    """What a station needs to know of the crawl. `number` is greater than that of any station of the part before it;
    `generation` counts how often the crawl was divided anew."""

    job: str
    part: int
    number: int
    generation: int
    settings: str
    version: str
    replaces: bool


class FencedStationError(BarkspiderError):
    """A later station has taken the place of the one that asks."""


def check_version(other: str) -> None:
    """Raise `JobError` where whoever speaks to this node has another barkspider.

    >>> check_version("0.0.1")
    Traceback (most recent call last):
        ...
    barkspider.core.errors.JobError: ...: install the same on all nodes
    """
    if other != version("barkspider"):
        raise JobError(
            f"a node has barkspider {version('barkspider')}, another {other}: install the same on all nodes"
        )


def root_of(job: str, node: str, part: int) -> Path:
    """The folder of a part on a node."""
    return Path(job) / f"at-{node[:12]}" / f"{part:04d}"


def roots(job: str, part: int) -> list[Path]:
    """The folders of this machine in which a part has been, the last one first: a node has another name each time."""
    found = [path.parents[1] for path in Path(job).glob(f"at-*/{part:04d}/part-*/{SETTINGS}")]
    return sorted(found, key=lambda root: root.stat().st_mtime, reverse=True)


class Station:
    """See the module: an actor on a loop. `renew` of the overseer gives it its lease; when that is over it ends."""

    def __init__(self, order: Order, overseer: Any) -> None:
        self._order, self._overseer = order, overseer
        self._whole = parse_settings(order.settings, "the settings of the crawl")
        self._settings: Settings = share(self._whole, order.part)
        count = self._settings.parallel.processes
        self._node: str = ray.get_runtime_context().get_node_id()
        root = root_of(order.job, self._node, order.part)
        if not self._settings.store.url:  # then what lies on this machine is all there is
            root = next(iter(roots(order.job, order.part)), root)
        root = parts_in(root, {"generation": order.generation})
        self._env, self._folder = Env(), root / f"part-{order.part:04d}"
        self._env.make_folder(root)
        self._mail = Mail(self._env, root, order.part, count)
        lease = turn_lease(self._settings)
        # Whoever gave out the turns before may have given out some just now.
        self._desk = Desk(lease, lease if order.replaces else 0.0)
        self._keys = KeyMaker(self._settings.seed)
        self._lease = Lease(self._settings.parallel.lease)
        self._peers: list[Any] = [None] * count
        self._met = [0] * count  # the numbers of the stations that it was made known to
        self._numbers = [0] * count  # of the stations that may speak to this one
        self._numbers[order.part] = order.number
        self._asked: list[tuple[list[str], list[tuple[str, float]]]] = [([], []) for _ in range(count)]
        self._process: subprocess.Popen[bytes] | None = None
        self._is_starting = False
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # ── for the overseer ───────────────────────────────────────────────────────────────────────

    async def start(self, seeds: Sequence[str], fresh: bool) -> list[str]:
        """Start the process of the part, where it was or from its last copy; the seeds that it does not know of yet. `fresh`
        says that the part has never begun, and may be made."""
        check_version(self._order.version)
        self._is_starting = True
        try:
            return await self._start(seeds, fresh)
        finally:
            self._is_starting = False

    async def _start(self, seeds: Sequence[str], fresh: bool) -> list[str]:
        if not self._tasks:
            for _ in range(_RENEWALS):
                await self._renew()
                if self._lease.holds:
                    break
            else:  # it claims nothing: another may have its place
                raise FencedStationError("a new station got no lease")
            self._do(self._keep_lease(), *(self._carry(to) for to in self._others()))
            self._do(*(self._ask_turns(to) for to in self._others()))
        incarnation = await asyncio.to_thread(self._prepare, seeds, fresh)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.to_thread(self._launch, theirs.fileno(), incarnation)
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._writer.write(lease_line(self._lease))
        self._do(self._read(reader))
        known = set(read_seeds(self._env, self._folder))
        return [seed for seed in seeds if seed not in known]

    async def meet(self, peers: Sequence[Any], numbers: Sequence[int]) -> None:
        """These are the stations of all parts from now on."""
        for part in self._others():
            if numbers[part] > self._numbers[part]:
                self._mail.forget(part)
                self._numbers[part] = numbers[part]
                self._asked[part] = self._asked[part][0], []  # the owner that these were for is gone
            self._peers[part] = peers[part] if numbers[part] >= self._numbers[part] else None
        self._met = list(numbers)

    async def ask(self, command: str, details: dict[str, Any]) -> dict[str, Any]:
        """What the process answers, None if it does not; whether it has ended, and which stations this one knows."""
        answer = None
        with suppress(JobError):
            answer = await asyncio.to_thread(ask, self._folder, command, timeout=5.0, **details)
        code = self._process.poll() if self._process is not None else None
        if self._process is None and not self._is_starting:
            code = 1  # whoever had it started is gone, and so is what came of it
        return {
            "answer": answer,
            "code": code,
            "numbers": self._numbers,
            "met": self._met,
            "pid": self._pid(),
            "node": self._node,
        }

    async def ended(self) -> tuple[dict[str, Any], Mapping[str, KeySample]]:
        """What the log of the part says of its end, and the samples of what it has fetched."""
        end = await asyncio.to_thread(end_of, self._folder)
        return end, committed_census(self._env, self._folder) if end else {}

    async def end(self, how: int | None) -> None:
        """Tell the process to end, by a signal or by going away from it."""
        if self._process is not None and self._process.poll() is None:
            if how is not None:
                self._process.send_signal(how)
            elif self._process.stdin is not None:
                self._process.stdin.close()

    # ── for other stations ─────────────────────────────────────────────────────────────────────

    async def turns(
        self, sender: int, number: int, takes: list[str], rests: list[tuple[str, float]]
    ) -> list[float]:
        """Turns at servers of ours that come back, and some that are asked for: 0 for each, or how long to wait."""
        self._check(sender, number)
        for address, seconds in rests:
            self._desk.rest(address, seconds)
        return [self._desk.take(address) for address in takes]

    async def letter(self, sender: int, number: int, batches: list[tuple[int, bytes]], ranks: bytes) -> int:
        """Mail of another: it is kept when this returns; up to which of its batches all is safe here."""
        self._check(sender, number)
        return await asyncio.to_thread(self._mail.take_in, sender, Letter(batches, ranks))

    def _check(self, sender: int, number: int) -> None:
        if number < self._numbers[sender]:
            raise FencedStationError(f"part {sender} has another station by now")
        if not self._lease.holds:
            raise FencedStationError("this station may have been replaced")
        if number > self._numbers[sender]:
            self._mail.forget(sender)
            self._numbers[sender], self._peers[sender] = number, None

    # ── what it does by itself ─────────────────────────────────────────────────────────────────

    def _prepare(self, seeds: Sequence[str], fresh: bool) -> str:
        """The folder of the part as it was, or from its last copy, or new; as whom its copies are made."""
        url = self._settings.store.url
        if SETTINGS not in self._env.list(self._folder) and not (url and has_copy(self._folder, url)):
            if not fresh:
                raise JobError(f"{self._folder.name} is not on this node, and no store has a copy of it")
            Job.create(self._folder, self._settings, seeds, self._env).close()
        incarnation = take_over(self._env, self._folder, url) if url else ""
        write_settings(self._env, self._folder, self._settings)
        return incarnation

    def _launch(self, descriptor: int, incarnation: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "barkspider.parallel.part", str(self._folder)]
        return subprocess.Popen(
            [*command, str(descriptor), incarnation],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[descriptor],
        )

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Turns that the process takes and gives back: to the desk, or to who owns the address."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                told, answers = json.loads(line), []
                rests, takes = [(str(a), float(s)) for a, s in told["rest"]], [str(a) for a in told["take"]]
                names = [address for address, _ in rests] + takes
                whose = owners(self._keys, names, len(self._peers)) if names else []
                for owner, (address, seconds) in zip(whose, rests, strict=False):
                    if owner == self._order.part:
                        self._desk.rest(address, seconds)
                    else:
                        self._asked[owner][1].append((address, seconds))
                for owner, address in zip(whose[len(rests) :], takes, strict=True):
                    if owner == self._order.part:
                        answers.append((address, self._desk.take(address)))
                    else:
                        self._asked[owner][0].append(address)
                self._tell(answers)

    async def _ask_turns(self, owner: int) -> None:
        """What gathered for one owner, in one call after the other: so a turn comes back before it is asked for again."""
        while True:
            await asyncio.sleep(_TURNS)
            takes, rests = self._asked[owner]
            if not takes and not rests:
                continue
            self._asked[owner] = [], []
            waits = await self._call(owner, "turns", takes, rests)
            if waits is None:
                self._asked[owner] = self._asked[owner][0], rests + self._asked[owner][1]
                waits = [_UNKNOWN] * len(takes)
            self._tell(list(zip(takes, waits, strict=True)))

    def _tell(self, turns: list[tuple[str, float]]) -> None:
        if turns and self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps({"turns": turns}).encode() + b"\n")

    async def _carry(self, to: int) -> None:
        """Carry batches to another, in order, and hear which are safe there."""
        waited = 0.0
        while True:
            await asyncio.sleep(_MAIL)
            waited += _MAIL
            letter = await asyncio.to_thread(self._mail.outgoing, to)
            if letter is None and (waited < _HEAR or not self._mail.awaits(to)):
                continue
            waited, letter = 0.0, letter or Letter([])
            safe = await self._call(to, "letter", letter.batches, letter.ranks)
            if safe is not None:
                await asyncio.to_thread(self._mail.carried, to, letter, safe)

    async def _call(self, to: int, method: str, *arguments: Any) -> Any:
        """What another station answers; None when it does not, or is not to be spoken to."""
        peer = self._peers[to]
        if peer is None or not self._lease.holds:
            return None
        try:
            return await answer_of(
                lambda: getattr(peer, method).remote(self._order.part, self._order.number, *arguments),
                _PATIENCE,
            )
        except (SilentError, RayTaskError):  # or it refuses
            return None

    async def _renew(self) -> None:
        asked = self._lease.clock()
        with suppress(SilentError, RayTaskError):
            if await answer_of(
                lambda: self._overseer.renew.remote(self._order.part, self._order.number),
                self._lease.seconds / _RENEWALS,
            ):
                self._lease.renew(asked)
                if self._writer is not None and not self._writer.is_closing():
                    self._writer.write(lease_line(self._lease))

    async def _keep_lease(self) -> None:
        """Renew the lease again and again; when it is over, end what there is at once."""
        while self._lease.holds:
            await asyncio.sleep(self._lease.seconds / _RENEWALS / 2)
            await self._renew()
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os._exit(0)

    def _others(self) -> list[int]:
        return [part for part in range(len(self._peers)) if part != self._order.part]

    def _pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def _do(self, *work: Coroutine[Any, Any, None]) -> None:
        for each in work:
            task = asyncio.create_task(each)
            task.add_done_callback(_ended)
            self._tasks.append(task)


def _ended(task: asyncio.Task[None]) -> None:
    """Whatever goes wrong here ends the station, and with it the process: it is started again as one that died."""
    if not task.cancelled() and (error := task.exception()) is not None:
        print(f"station: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
