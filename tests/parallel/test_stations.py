"""What stations are made of, without Ray: mail between folders, the wire of a part, turns and leases."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.errors import StorageError
from barkspider.core.load import load_settings
from barkspider.frontier.batches import NAME, batch_name
from barkspider.model.budgets import Distribution
from barkspider.parallel.cluster.desk import Desk
from barkspider.parallel.cluster.lease import Lease, now
from barkspider.parallel.cluster.mail import Letter, Mail
from barkspider.parallel.cluster.wire import OVER, Wire, lease_line
from barkspider.parallel.post import Post
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import write_snapshot


class Node:
    """One of two parts on a node of its own: its mail, and the post of its process."""

    def __init__(self, root: Path, part: int) -> None:
        self.folder = root / f"part-{part:04d}"
        self.mail = Mail(Env(), root, part, 2)
        settings = load_settings(options=["parallel.processes=2", f"parallel.part={part}", "seed=7"])
        self.post = Post(Env(), self.folder, settings)
        self._part = part

    def seal(self, number: int) -> None:
        path = self.folder / NAME / batch_name(1 - self._part, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_snapshot(Env(), path, {"scope": [f"http://{number}.example/"]}, {})


def nodes(tmp_path: Path) -> tuple[Node, Node]:
    return Node(tmp_path / "a", 0), Node(tmp_path / "b", 1)


def carry(one: Node, two: Node) -> int:
    """What a station does again and again; how many batches went."""
    letter = one.mail.outgoing(1)
    carried = letter or Letter([])
    one.mail.carried(1, carried, two.mail.take_in(0, carried))
    return len(carried.batches)


def test_batches_go_from_node_to_node_until_they_are_acknowledged(tmp_path: Path) -> None:
    one, two = nodes(tmp_path)
    for number in (1, 2):
        one.seal(number)
    one.post.deliver([(1, 1), (1, 2)])
    assert carry(one, two) == 2
    assert carry(one, two) == 0
    found = two.post.arrived([0, 0])
    assert [(batch.sender, batch.number) for batch in found] == [(0, 1), (0, 2)]
    assert two.post.scope_of(found[1]) == ["http://2.example/"]
    assert one.mail.awaits(1)
    two.post.acknowledge([1, 0])
    assert carry(one, two) == 0
    one.post._read_at = 0.0
    assert list(one.post.acknowledged()) == [0, 1]
    two.post.acknowledge([2, 0])
    carry(one, two)
    assert not one.mail.awaits(1)
    one.post.deliver([(1, 1), (1, 2)])  # as after a restart
    assert one.mail.outgoing(1) is None
    one.post.close(), two.post.close()


def test_a_new_station_is_sent_all_that_it_has_not_acknowledged(tmp_path: Path) -> None:
    one, two = nodes(tmp_path)
    for number in (1, 2, 3):
        one.seal(number)
    one.post.deliver([(1, 1), (1, 2), (1, 3)])
    carry(one, two)
    two.post.acknowledge([1, 0])
    carry(one, two)
    successor = Node(tmp_path / "c", 1)
    successor.post.acknowledge([1, 0])  # as its copy has it
    one.mail.forget(1)
    assert carry(one, successor) == 2
    assert [batch.number for batch in successor.post.arrived([1, 0])] == [2, 3]
    one.post.close(), two.post.close(), successor.post.close()


def test_what_is_no_batch_is_not_kept(tmp_path: Path) -> None:
    one, two = nodes(tmp_path)
    one.seal(1)
    data = bytearray((one.folder / NAME / batch_name(1, 1)).read_bytes())
    data[-1] ^= 1
    for bad in (bytes(data), b"cos\nsystem\n(S'true'\ntR.", b""):
        with pytest.raises(StorageError):
            two.mail.take_in(0, Letter([(1, bad)]))
    assert two.post.arrived([0, 0]) == []
    one.post.close(), two.post.close()


def test_ranks_go_when_they_are_new(tmp_path: Path) -> None:
    one, two = nodes(tmp_path)
    one.post.publish(Distribution(np.array([1, 5]), np.array([7, 1])))
    carry(one, two)
    found = two.post.ranks()
    assert found is not None
    assert found.counts.tolist() == [7, 1]
    assert one.mail.outgoing(1) is None
    one.post.close(), two.post.close()


def test_a_new_desk_gives_out_nothing_until_all_before_it_is_over() -> None:
    time = [0.0]
    desk = Desk(lease=60.0, opens=60.0, clock=lambda: time[0])
    assert desk.take("192.0.2.1") == 60.0
    time[0] = 59.0
    assert desk.take("192.0.2.1") == 1.0
    time[0] = 60.0
    assert desk.take("192.0.2.1") == 0.0


class Left(Exception):  # noqa: N818  not an error: how a process that leaves is seen
    pass


def wired() -> tuple[Wire, socket.socket]:
    """The wire of a part, with a lease, and the other end of it."""
    ours, theirs = socket.socketpair()

    def leave(code: int) -> None:
        raise Left(code)

    lease = Lease(30.0)
    lease.renew(now())
    ours.sendall(lease_line(lease))
    return Wire(theirs.detach(), leave), ours


def test_a_turn_is_asked_for_answered_and_given_back() -> None:
    async def main() -> None:
        wire, ours = wired()
        told: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        wire.answered = lambda address, wait: told.put_nowait((address, wait))
        await wire.open(lambda: None)
        reader, writer = await asyncio.open_connection(sock=ours)
        wire.take("192.0.2.1")
        wire.take("192.0.2.2")
        assert json.loads(await reader.readline()) == {"take": ["192.0.2.1", "192.0.2.2"], "rest": []}
        writer.write(b'{"turns": [["192.0.2.1", 0.0], ["192.0.2.2", 5.0]]}\n')
        assert [await told.get(), await told.get()] == [("192.0.2.1", 0.0), ("192.0.2.2", 5.0)]
        wire.rest("192.0.2.1", 1.5)
        assert json.loads(await reader.readline()) == {"take": [], "rest": [["192.0.2.1", 1.5]]}
        wire.close()
        writer.close()

    asyncio.run(main())


def test_a_part_whose_lease_is_over_takes_no_turn() -> None:
    async def main() -> None:
        wire, ours = wired()
        await wire.open(lambda: None)
        wire._lease.until = now() - 1
        with pytest.raises(Left, match=str(OVER)):
            wire.take("192.0.2.1")
        wire.close()
        ours.close()

    asyncio.run(main())


def test_a_part_ends_when_its_station_goes() -> None:
    async def main() -> None:
        wire, ours = wired()
        gone = asyncio.Event()
        await wire.open(gone.set)
        ours.close()
        async with asyncio.timeout(30):
            await gone.wait()
        wire.close()

    asyncio.run(main())
