"""Batches between parts that never see each other; `python -m benchmarks resize` crawls that way."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.batch import NO_URLS
from barkspider.core.errors import BarkspiderError
from barkspider.core.load import load_settings
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.frontier.batches import NAME, batch_name
from barkspider.model.budgets import Distribution
from barkspider.parallel.carrying import Carrier
from barkspider.parallel.division import check_share, share
from barkspider.parallel.post import Post
from barkspider.parallel.supervisor import Supervisor
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import write_snapshot
from tests.cli.program import run
from tests.parallel.together import create

ONE = "http://one.example/"
HEAD = {"scope": [], "cookies": []}  # of a batch of nothing
ARRAYS = {"links": NO_URLS.encode(), "counts": b"", "edges": b"", "trails": b"", "news": b""}


class Machine:
    """One with a copy of a job of two parts, one of which is here."""

    def __init__(self, folder: Path, part: int, seed: int = 7) -> None:
        options = ["parallel.processes=2", f"parallel.here={part}", f"seed={seed}", "memory=64MB"]
        self.settings: Settings = load_settings(options=options)
        self.job, self.part, self.other = folder, part, 1 - part
        create(folder, self.settings, [ONE])
        self.post = Post(Env(), folder / f"part-{part:04d}", share(self.settings, part))

    def send(self, number: int) -> None:
        """Make a batch for the other part, and deliver it to where that would be."""
        folder = self.job / f"part-{self.part:04d}" / NAME
        folder.mkdir(exist_ok=True)
        write_snapshot(
            Env(),
            folder / batch_name(self.other, number),
            HEAD | {"scope": [f"http://{number}.example/"]},
            ARRAYS,
        )
        self.post.deliver([(self.other, number)])

    def carrier(self, stick: Path) -> Carrier:
        return Carrier(Env(), self.job, self.settings, stick)

    def arrived(self, after: int = 0) -> list[int]:
        taken = [0, 0]
        taken[self.other] = after
        return [batch.number for batch in self.post.arrived(taken)]


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(tmp_path / "a", 0), Machine(tmp_path / "b", 1)


def test_batches_are_carried_until_they_are_known_to_be_safe(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    a, b = machines
    stick, other = tmp_path / "stick", tmp_path / "other"
    a.send(1), a.send(2)
    assert (a.carrier(stick).to().batches, b.carrier(stick).fetch().batches) == (2, 2)
    assert b.arrived() == [1, 2]
    shutil.rmtree(stick)  # it is lost: what was in it is carried again, and is known
    a.send(3)
    assert (a.carrier(stick).to().batches, b.carrier(stick).fetch().batches) == (3, 1)
    b.post.acknowledge([2, 0])  # 1 and 2 are in a checkpoint
    assert b.arrived(after=2) == [3]
    b.carrier(other).to()
    gone = a.carrier(other).fetch()
    assert (gone.batches, gone.waiting) == (0, 1)
    assert a.post.acknowledged() == [0, 2]
    # An older folder takes nothing back, and brings nothing that is safe.
    assert b.carrier(stick).fetch().batches == 0
    assert a.carrier(stick).to().waiting == 1
    assert sorted(path.name for path in (stick / "mail" / "0001").iterdir()) == [batch_name(0, 3)]
    a.carrier(stick).fetch()
    assert a.post.acknowledged() == [0, 2]


def test_in_degrees_are_carried_too(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    a, b = machines
    a.post.publish(Distribution(np.array([1, 5]), np.array([7, 2])))
    a.carrier(tmp_path / "stick").to()
    b.carrier(tmp_path / "stick").fetch()
    told = b.post.ranks()
    assert told is not None
    assert told.counts.tolist() == [7, 2]


def test_what_is_damaged_or_of_another_crawl_is_refused(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    a, b = machines
    stick = tmp_path / "stick"
    a.send(1)
    a.carrier(stick).to()
    batch = stick / "mail" / "0001" / batch_name(0, 1)
    batch.write_bytes(batch.read_bytes()[:-1] + b"x")
    with pytest.raises(BarkspiderError, match="carry it once more"):
        b.carrier(stick).fetch()
    assert b.arrived() == []
    another = Machine(tmp_path / "c", 1, seed=8)
    with pytest.raises(BarkspiderError, match="of another crawl"):
        another.carrier(stick).fetch()
    with pytest.raises(BarkspiderError, match="holds something else"):
        a.carrier(a.job / "part-0000").to()
    with pytest.raises(BarkspiderError, match="is no folder that"):
        b.carrier(tmp_path / "none").fetch()


def test_a_supervisor_looks_after_the_parts_that_are_here(machines: tuple[Machine, Machine]) -> None:
    """It ends when these have done what they can until parts elsewhere take in what they have for them."""
    _, b = machines
    held = Job.open(b.job, Env(), ["limits.pages=11", "checkpoint=10s"])
    supervisor = Supervisor(held)
    (part,) = supervisor._parts
    assert (part.folder.name, part.number) == ("part-0001", 1)
    assert supervisor._pages() == 5  # of 11 it has one half
    assert share(held.settings, 1).memory == held.settings.memory
    part.told = {"others": {"is_idle": False}}
    assert not supervisor._must_wait(part)
    part.full_since = time.monotonic() - 20.0  # others here may be about to make a checkpoint
    assert not supervisor._must_wait(part)
    part.full_since -= 20.0
    assert supervisor._must_wait(part)
    part.told, part.full_since = {"others": {"is_idle": True}}, math.inf
    assert supervisor._must_wait(part)
    held.close()
    with pytest.raises(BarkspiderError, match="there are 0 to 1"):
        check_share(load_settings(options=["parallel.processes=2", "parallel.here=2", "memory=64MB"]))


def test_the_command_says_what_it_did_and_what_it_cannot_do(
    machines: tuple[Machine, Machine],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = machines
    stick = str(tmp_path / "stick")
    a.send(1)
    assert run(monkeypatch, "exchange", str(a.job), "--to", stick) == 0
    assert "1 batch" in capsys.readouterr().out
    assert run(monkeypatch, "exchange", str(b.job), "--from", stick, "--to", stick) == 0
    assert "1 batch" in capsys.readouterr().out
    assert b.arrived() == [1]
    assert run(monkeypatch, "exchange", str(a.job)) == 2
    assert "--from DIR" in capsys.readouterr().err
    create(
        tmp_path / "whole", load_settings(options=["parallel.processes=2", "seed=7", "memory=64MB"]), [ONE]
    )
    assert run(monkeypatch, "exchange", str(tmp_path / "whole"), "--to", stick) == 2
    assert "all its parts here" in capsys.readouterr().err
    create(tmp_path / "one", load_settings(options=["seed=7", "memory=64MB"]), [ONE])
    assert run(monkeypatch, "exchange", str(tmp_path / "one"), "--to", stick) == 2
    assert "one process" in capsys.readouterr().err
    assert run(monkeypatch, "resize", str(a.job), "--processes", "3") == 2
    assert "elsewhere" in capsys.readouterr().err
