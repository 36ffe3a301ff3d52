"""What processes send each other: who gets what, and that a batch is a function of what went in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Received, Seal, Sealed
from barkspider.core.load import load_settings
from barkspider.core.records import Flag, UrlRow
from barkspider.frontier.batches import NAME, batch_name, checksum_of, inbox, scope_of
from barkspider.frontier.exchange import Exchange
from barkspider.frontier.sorting import Sorting
from barkspider.frontier.source import Found
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store

# Of four processes each has 1,024 slots; the slot of a domain is the end of its key.
OWNERS = {0: 7, 1: 1024 + 7, 2: 2048 + 7, 3: 4095}


def row(owner: int, number: int = 1, flags: int = 0) -> UrlRow:
    """A page of the domain of a process."""
    domain = OWNERS[owner] + 4096 * 99
    return UrlRow(number << 20, domain, domain, 0, 1, 0, flags, f"http://d{owner}.example/{number}".encode())


def batch(*rows: UrlRow) -> UrlBatch:
    return UrlBatch.from_rows(rows)


class Process:
    """An exchange with its store."""

    def __init__(
        self, job: Path, part: int, mode: str = "exchange", outbox: str = "1GB", more: Sequence[str] = ()
    ) -> None:
        options = ["parallel.processes=4", f"parallel.part={part}", f"parallel.mode={mode}", *more]
        settings = load_settings(options=[*options, f"parallel.outbox={outbox}", "parallel.interval=10s"])
        self.folder = job / f"part-{part:04d}"
        self.store = Store.open(Env(), self.folder)
        self.trails = Trails(100)
        sorting = Sorting(settings, Env(), self.folder, self.trails)
        self.exchange = Exchange(settings, Env(), self.folder, sorting, self.store.state(NAME))
        self.store.add(self.exchange)
        self.asked: dict[int, Seal] = {}

    def seal(self, to: int) -> Path:
        self.asked |= {seal.to: seal for seal in self.exchange.due(0, True, 0.0)}
        asked = self.asked.pop(to)
        self.exchange.seal(Sealed(asked), 0)
        return self.folder / NAME / batch_name(to, asked.number)


def send(sender: Process, to: Process, path: Path, number: int) -> Received:
    """What the post does."""
    part = int(sender.folder.name[-4:])
    there = inbox(to.folder, int(to.folder.name[-4:])) / batch_name(part, number)
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_bytes(path.read_bytes())
    return Received(part, number, checksum_of(Env(), there))


def test_own_links_stay_and_others_go_to_their_owners_once_each(tmp_path: Path) -> None:
    one, two = Process(tmp_path, 0), Process(tmp_path, 2)
    page, links = row(0), batch(row(0, 5), row(2, 6), row(1, 7), row(2, 6), row(2, 8))
    (left,) = one.exchange.sorting.split([Found(page, links)], 0.0)
    assert [each.url for each in left.links.rows()] == [b"http://d0.example/5"]
    (found,) = two.exchange.receive(send(one, two, one.seal(2), 1))
    assert found.links.rows() == [row(2, 6), row(2, 8)]
    assert found.edges is not None
    assert [side.tolist() for side in found.edges] == [[page.pld_key], [row(2).pld_key]]
    assert (one.exchange.sent, two.exchange.received) == (2, 2)
    assert one.asked == {1: Seal(1, 1)}


def test_seeds_that_all_processes_get_are_taken_by_one_of_them(tmp_path: Path) -> None:
    given = batch(*(row(owner) for owner in OWNERS))
    taken = [Process(tmp_path, part).exchange.sorting.own(given).rows() for part in OWNERS]
    assert taken == [[row(owner)] for owner in OWNERS]


def test_a_redirect_takes_its_trail_along_and_makes_no_edge(tmp_path: Path) -> None:
    one, two, three = Process(tmp_path, 0), Process(tmp_path, 1), Process(tmp_path, 2)
    target = row(1, 9, int(Flag.SEED | Flag.REDIRECT))
    one.trails.put(target.key, (11, 12))
    one.exchange.sorting.split([Found(row(0), batch(target), target=target)], 0.0)
    (found,) = two.exchange.receive(send(one, two, path := one.seal(1), 1))
    assert two.trails.pop(target.key) == (11, 12)
    assert one.trails.pop(target.key) == ()
    assert found.edges is not None
    assert not len(found.edges[0])
    # What a seed leads to belongs to the scope, everywhere.
    assert scope_of(Env(), path) == scope_of(Env(), one.seal(2)) == ["http://d1.example/9"]
    assert (
        three.exchange.receive(send(one, three, one.folder / NAME / batch_name(2, 1), 1))[0].links.rows()
        == []
    )


def test_what_a_seed_redirects_to_is_in_scope_everywhere_also_within_a_process(tmp_path: Path) -> None:
    one = Process(tmp_path, 0)
    target = row(0, 9, int(Flag.SEED))
    (left,) = one.exchange.sorting.split([Found(row(0), batch(target), target=target)], 0.0)
    assert len(left.links) == 1
    assert {tuple(scope_of(Env(), one.seal(to))) for to in (1, 2, 3)} == {("http://d0.example/9",)}


def test_a_firewall_drops_and_counts_what_is_not_ours(tmp_path: Path) -> None:
    one = Process(tmp_path, 0, mode="firewall")
    (left,) = one.exchange.sorting.split([Found(row(0), batch(row(1), row(0, 2), row(3)))], 0.0)
    assert len(left.links) == 1
    assert one.exchange.sorting.dropped == 2
    assert one.exchange.due(9, True, 99.0) == []


def test_a_batch_is_due_after_pages_after_a_time_and_when_nothing_is_left(tmp_path: Path) -> None:
    def collected() -> Exchange:
        one = Process(tmp_path, 0)
        one.exchange.sorting.split([Found(row(0), batch(row(1)))], 5.0)
        return one.exchange

    assert collected().due(999, False, 14.9) == []
    assert collected().next_time() == 15.0
    for due in ((1000, False, 5.0), (0, False, 15.0), (0, True, 5.0)):
        exchange = collected()
        assert exchange.due(*due) == [Seal(1, 1)]
        assert exchange.due(*due) == []  # it was asked for


def test_the_same_batch_is_made_after_a_crash(tmp_path: Path) -> None:
    one = Process(tmp_path, 0)
    first = Found(row(0), batch(row(1, 5), row(1, 5), row(1, 6)))
    second = Found(row(0, 2), batch(row(1, 6), row(1, 7)))
    one.exchange.sorting.split([first], 0.0)
    one.store.commit()
    one.exchange.sorting.split([second], 0.0)
    made = one.seal(1).read_bytes()
    again = Process(tmp_path, 0)  # the batch is not in the checkpoint, and gone
    assert not (again.folder / NAME / batch_name(1, 1)).exists()
    again.exchange.sorting.split([second], 3.0)
    assert again.seal(1).read_bytes() == made
    again.store.commit()
    assert Process(tmp_path, 0).exchange.sealed == [0, 1, 0, 0]


def test_a_batch_counts_once_and_only_in_its_order(tmp_path: Path) -> None:
    one, two = Process(tmp_path, 0), Process(tmp_path, 1)
    sent = []
    for number in (1, 2):
        one.exchange.sorting.split([Found(row(0), batch(row(1, number)))], 0.0)
        sent.append(send(one, two, one.seal(1), number))
    with pytest.raises(StorageError, match="is not the batch that came after 0"):
        two.exchange.receive(sent[1])
    assert len(two.exchange.receive(sent[0])[0].links) == 1
    assert two.exchange.receive(sent[0]) == []
    with pytest.raises(StorageError, match="is not the batch"):
        two.exchange.receive(Received(0, 2, sent[1].checksum ^ 1))


def test_a_batch_stays_until_it_is_safe_elsewhere(tmp_path: Path) -> None:
    one = Process(tmp_path, 0, outbox="1KB")
    one.exchange.sorting.split([Found(row(0), batch(*(row(1, number) for number in range(1, 30))))], 0.0)
    assert one.exchange.is_full
    path = one.seal(1)
    one.store.commit()
    assert path.exists()
    assert one.exchange.is_full
    assert list(Process(tmp_path, 0, outbox="1KB").exchange.unacknowledged()) == [(1, 1)]
    one.exchange.acknowledge(1, 1)
    one.store.commit()
    assert not path.exists()
    assert not one.exchange.is_full
    assert not list(one.exchange.unacknowledged())


def test_what_is_applied_is_acknowledged_after_a_checkpoint_only(tmp_path: Path) -> None:
    one, two = Process(tmp_path, 0), Process(tmp_path, 1)
    one.exchange.sorting.split([Found(row(0), batch(row(1)))], 0.0)
    two.exchange.receive(send(one, two, one.seal(1), 1))
    assert two.exchange.committed_applied == [0, 0, 0, 0]
    two.store.commit()
    assert two.exchange.committed_applied == [1, 0, 0, 0]
    assert np.array_equal(Process(tmp_path, 1).exchange.applied, [1, 0, 0, 0])
