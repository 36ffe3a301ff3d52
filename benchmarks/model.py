"""A million random operations on a DRUM and a queue, each beside a dict or a list that must agree.

Rows of every kind of DRUM, items of a queue, and between them merges, commits, reopenings and power losses,
on a file system in RAM. Any difference ends the run with an AssertionError.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from tests.storage.drum_model import NUMBER, Config, Pair, Row
from tests.storage.faulty import FaultyEnv

from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE, UPDATE
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.storage.store.manifest import Store

_KINDS = [
    (None, "replace"),
    (bytes, "replace"),
    (bytes, "union"),
    (NUMBER, "replace"),
    (NUMBER, "add"),
    (NUMBER, "max"),
]
_FOLDER = Path("/job")


def run(quick: bool) -> dict[str, Any]:
    """A million operations, or 60,000 when `quick`."""
    goal, began = 60_000 if quick else 1_000_000, time.perf_counter()
    done: Counter[str] = Counter()
    seed = 0
    while done.total() < goal:
        seed += 1
        random = Random(seed)
        for value, update in _KINDS:
            _drum(random, value, update, done)
        _queue(random, done)
    return {
        "figures": {
            "rounds": seed,
            **{f"operations_{name}": count for name, count in sorted(done.items())},
            "seconds": round(time.perf_counter() - began, 1),
        },
        "targets": [
            {
                "name": "operations without a difference",
                "value": done.total(),
                "target": 1_000_000,
                "holds": None if quick else done.total() >= 1_000_000,
            }
        ],
    }


def _drum(random: Random, value: Any, update: str, done: Counter[str]) -> None:
    output = random.choice(["all", "unique"])
    config = Config(
        value,
        update,
        output,
        buckets=random.choice([1, 2, 16, 64]),
        buffer=random.choice([64, 1000, 10_000]),
        bucket_bytes=random.choice([500, 5_000, 1_000_000]),
        segment=random.choice([500, 20_000, 1 << 26]),
        front=random.choice([0, 256, 8192]) if value is None and output == "unique" else 0,
        background=random.random() < 0.3,
    )
    pair = Pair(FaultyEnv(), config)
    for _ in range(40):
        rows = _rows(random, value, update)
        pair.feed(rows)
        done["rows"] += len(rows)
        action = random.choice(["merge", "commit", "commit", "reopen", "crash", "take", "check", "none"])
        if action == "merge":
            pair.merge(wait=random.random() < 0.5)
        elif action == "commit":
            pair.commit()
        elif action == "reopen":
            pair.reopen()
        elif action == "crash":
            pair.reopen(random.choice(["drop", "keep", "random"]), random)
        elif action == "take":
            pair.take(random.choice([1, 1000]))
        elif action == "check":
            pair.check()
        if random.random() < 0.03:
            pair.expunge(random.randrange(2, 6))
            done["expunge"] += 1
        done[action] += 1
    pair.check()
    pair.drum.close()


def _rows(random: Random, value: Any, update: str) -> list[Row]:
    ops = random.choice([[CHECK_UPDATE], [UPDATE], [CHECK], [CHECK, UPDATE, CHECK_UPDATE]])
    count, span = random.choice([0, 5, 300, 1000]), random.choice([20, 3000, 2**64])
    keys = [
        random.choice((0, 2**64 - 1)) if random.random() < 0.01 else random.randrange(span)
        for _ in range(count)
    ]
    if span < 2**64 and random.random() < 0.7:  # the same few keys in every bucket
        keys = [key * (2**64 // span) if key < span else key for key in keys]
    if random.random() < 0.2:
        keys.sort()
    return [Row(random.choice(ops), key, _value(random, value, update), _text(random)) for key in keys]


def _value(random: Random, value: Any, update: str) -> Any:
    if value is None:
        return None
    if value is NUMBER:
        return random.randrange(-1000, 1000)
    if update == "union":
        return b"".join(random.randrange(6).to_bytes(8, "little") for _ in range(random.randrange(4)))
    return _text(random)


def _text(random: Random) -> bytes:
    return random.randbytes(random.choice((0, 1, 8, 8, 8, 70, 400)))


def _queue(random: Random, done: Counter[str]) -> None:
    env = FaultyEnv()
    settings: dict[str, Any] = {
        "compress": random.random() < 0.5,
        "block": random.choice([100, 5000]),
        "segment": random.choice([500, 20_000]),
    }
    store = Store.open(env, _FOLDER)
    queue = DiskQueue(env, _FOLDER, "queue", **settings)
    store.add(queue)
    store.commit()
    model: deque[bytes] = deque()
    committed = list(model)
    for _ in range(120):
        items = [_text(random) for _ in range(random.choice([0, 1, 20, 300]))]
        queue.append_batch(pa.array(items, pa.binary()))
        model.extend(items)
        for _ in range(random.choice([0, 1, 3, 50])):
            taken = queue.pop_batch(random.choice([1, 7, 1000])).to_pylist()
            assert taken == [model.popleft() for _ in taken]
            assert taken or not model
            done["items"] += len(taken)
        done["items"] += len(items)
        action = random.choice(["commit", "commit", "reopen", "crash", "none", "none"])
        if action == "commit":
            store.commit()
            committed = list(model)
        elif action in ("reopen", "crash"):
            queue.close()
            if action == "crash":
                env = env.crash(random.choice(["drop", "keep", "random"]), random)
            store = Store.open(env, _FOLDER)
            queue = DiskQueue(env, _FOLDER, "queue", **settings, state=store.state("queue"))
            store.add(queue)
            model = deque(committed)
        done[action] += 1
        queue.validate()
        assert len(queue) == len(model)
    queue.close()
