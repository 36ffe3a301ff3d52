"""A store with a queue and two DRUMs at work, and what of it must be there after a crash.

`work` runs a random but repeatable scenario with merges and commits beside a model of lists and dicts.
`content` opens a store after a crash and reads out everything. The one must equal what the other noted at
the last commit that was acknowledged, or at the one that was under way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.storage import env as env_module
from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE, UPDATE, Drum
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import Disk, FaultyEnv

FOLDER = Path("/store")
_EXTREMES = (0, 2**64 - 1, 2**63)
_NEVER = 1 << 62
_NAMED = re.compile(r"^(disk full: )?cannot \w+ /store\S*")


@dataclass
class Content:
    """All that a store holds, as plain values."""

    items: list[bytes] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    new: Counter[tuple[int, bytes]] = field(default_factory=Counter)  # results of `seen` not yet taken
    counts: dict[int, int] = field(default_factory=dict)
    answers: Counter[tuple[int, int]] = field(default_factory=Counter)  # those of `counts`; -1: unique

    def copy(self) -> Content:
        """A copy that does not change with this one."""
        return Content(
            list(self.items), set(self.seen), Counter(self.new), dict(self.counts), Counter(self.answers)
        )


class Moment(NamedTuple):
    """A commit: how many operations were done when it began and when it was acknowledged."""

    began: int
    ended: int
    content: Content


class Opened:
    """A store and its structures."""

    def __init__(self, env: Env, background: bool = False) -> None:
        sizing = Sizing(buckets=2, buffer=200, bucket_bytes=600, disk=1 << 20)
        common: dict[str, Any] = {"sizing": sizing, "segment": 1024, "background": background}
        self.store = Store.open(env, FOLDER)
        self.queue = DiskQueue(env, FOLDER, "queue", block=100, segment=400, state=self.store.state("queue"))
        self.seen = Drum(
            env, FOLDER, "seen", aux=True, output="unique", state=self.store.state("seen"), **common
        )
        self.counts = Drum(
            env, FOLDER, "counts", value="<u4", update="add", state=self.store.state("counts"), **common
        )
        for structure in (self.queue, self.seen, self.counts):
            self.store.add(structure)

    def close(self) -> None:
        """Close the files."""
        for structure in (self.queue, self.seen, self.counts):
            structure.close()


@contextmanager
def many_operations() -> Iterator[None]:
    """Hand every small write to the system at once, so that there are more moments to crash at."""
    before, env_module._GATHER = env_module._GATHER, 64
    try:
        yield
    finally:
        env_module._GATHER = before


def work(
    env: FaultyEnv,
    seed: int,
    steps: int,
    moments: list[Moment] | None = None,
    background: bool = False,
) -> list[Moment]:
    """Run a scenario on top of the last of the `moments`, and add its commits to them."""
    random = Random(seed)
    moments = [Moment(0, 0, Content())] if moments is None else moments
    model = moments[-1].content.copy()
    opened = Opened(env, background)
    for step in range(steps):
        _change(opened, model, random)
        if step % 4 == 3:
            began = len(env.operations)
            moments.append(Moment(began, _NEVER, model.copy()))
            write = opened.store.prepare()
            if random.random() < 0.7:  # as when another thread writes, and the owner goes on
                _change(opened, model, random)
            write()
            moments[-1] = moments[-1]._replace(ended=len(env.operations))
            if random.random() < 0.3:
                _change(opened, model, random)
            opened.store.committed()
        if random.random() < 0.1:
            opened.close()
            opened, model = Opened(env, background), moments[-1].content.copy()
    opened.close()
    return moments


def content(env: Env) -> Content:
    """Open the store and take out everything it holds."""
    opened, found = Opened(env), Content()
    opened.queue.verify()
    while len(taken := opened.queue.pop_batch(1000)):
        found.items += taken.to_pylist()
    _take(opened, found, Random(0), share=1, sign=1)
    for drum in (opened.seen, opened.counts):
        drum.merge()
    _take(opened, found, Random(0), share=1, sign=1)
    found.seen = {key for keys, _ in opened.seen.items() for key in keys.tolist()}
    for keys, values in opened.counts.items():
        assert isinstance(values, np.ndarray)
        found.counts |= zip(keys.tolist(), values.tolist(), strict=True)
    opened.close()
    return found


def allowed(moments: list[Moment], done: int) -> list[Content]:
    """What may be found after a crash when so many operations were done."""
    ended = [moment.content for moment in moments if moment.ended <= done]
    return [ended[-1], *(moment.content for moment in moments if moment.began < done < moment.ended)]


def survives(disk: Disk, how: str, random: Random, moments: list[Moment], done: int) -> bool:
    """Whether after this power loss the store opens and holds what it must."""
    return content(FaultyEnv(disk.after_power_loss(how, random))) in allowed(moments, done)


def withstands(begin: Disk, seed: int, steps: int, number: int, fault: str) -> bool:
    """Whether the scenario goes through with the fault at this operation, or ends with the last commit intact."""
    env, moments = FaultyEnv(begin.copy()), [Moment(0, 0, Content())]
    env.faults[number] = fault
    try:
        work(env, seed, steps, moments)
    except StorageError as error:
        if not _NAMED.search(str(error)):
            return False
    done = len(env.operations)
    return content(FaultyEnv(env.disk.copy())) in allowed(moments, done)


class Damage(NamedTuple):
    """A bit that flips in a file, or the end that is cut off."""

    path: Path
    bit: int = -1
    size: int = -1


def damages(disk: Disk, count: int, random: Random) -> Iterator[Damage]:
    """Damages to all files alike, whatever their size."""
    sizes = {path: len(disk.data(file)) for path, file in sorted(disk.paths().items()) if disk.data(file)}
    for number in range(count):
        path, size = [*sizes.items()][number % len(sizes)]
        if random.random() < 0.2:
            yield Damage(path, size=random.choice((0, size - 1, random.randrange(size))))
        else:
            yield Damage(path, bit=random.randrange(size * 8))


def damaged(disk: Disk, damage: Damage) -> FaultyEnv:
    """A copy of a disk with a damage."""
    env = FaultyEnv(disk.copy())
    data = env.disk.data(env.disk.paths()[damage.path])
    if damage.bit >= 0:
        data[damage.bit // 8] ^= 1 << damage.bit % 8
    else:
        del data[damage.size :]
    return env


def notices(disk: Disk, damage: Damage, whole: Content) -> str:
    """What becomes of a damage: "named", "harmless", or what is wrong."""
    try:
        found = content(damaged(disk, damage))
    except StorageError as error:
        return "named" if damage.path.name in str(error) else f"not named: {error}"
    return "harmless" if found == whole else "unnoticed"


def _change(opened: Opened, model: Content, random: Random) -> None:
    items = [random.randbytes(random.choice((0, 3, 20, 150))) for _ in range(random.randint(0, 12))]
    opened.queue.append_batch(pa.array(items, pa.binary()))
    opened.queue.append(b"one")
    model.items += [*items, b"one"]
    for _ in range(random.randint(0, 2)):
        taken = opened.queue.pop_batch(random.randint(1, 8)).to_pylist()
        assert taken == model.items[: len(taken)]
        del model.items[: len(taken)]

    keys = _keys(random)
    texts = [b"%d" % random.getrandbits(40) for _ in keys]
    opened.seen.feed(CHECK_UPDATE, np.array(keys, np.uint64), aux=texts)
    for key, text in zip(keys, texts, strict=True):
        if key not in model.seen:
            model.seen.add(key)
            model.new[key, text] += 1

    keys = _keys(random)
    values = [random.randint(0, 9) for _ in keys]
    kinds = [random.choice((CHECK, UPDATE, CHECK_UPDATE)) for _ in keys]
    opened.counts.feed(
        np.array(kinds, np.uint8), np.array(keys, np.uint64), values=np.array(values, np.uint32)
    )
    for kind, key, value in zip(kinds, keys, values, strict=True):
        if kind != UPDATE:
            model.answers[key, model.counts.get(key, -1)] += 1
        if kind != CHECK:
            model.counts[key] = model.counts.get(key, 0) + value

    if random.random() < 0.3:
        random.choice((opened.seen, opened.counts)).merge()
    _take(opened, model, random, share=0.5, sign=-1)


def _keys(random: Random) -> list[int]:
    count = random.randint(0, 50)
    return [random.choice((random.randint(1, 300) << 55, random.choice(_EXTREMES))) for _ in range(count)]


def _take(opened: Opened, into: Content, random: Random, share: float, sign: int) -> None:
    """Take results, and add them to or subtract them from the ones that are expected."""
    if random.random() < share:
        for rows in opened.seen.results():
            assert rows.aux is not None
            for pair in zip(rows.keys.tolist(), rows.aux.tolist(), strict=True):
                into.new[pair] += sign
            if random.random() > share:
                break
    if random.random() < share:
        for rows in opened.counts.results():
            assert isinstance(rows.values, np.ndarray)
            stored = np.where(rows.unique, -1, rows.values.astype(np.int64))
            for answer in zip(rows.keys.tolist(), stored.tolist(), strict=True):
                into.answers[answer] += sign
            if random.random() > share:
                break
    into.new, into.answers = +into.new, +into.answers
