"""How many items of 100 bytes a disk queue takes in and gives back per second of processor time.

All items go in, then all come out, in batches, through files: at no time does more than a block lie in
RAM. Items are like URLs: `https`, names and paths of words, and numbers. One commit follows each of the
two phases, so the sync is counted too. LZ4 alone, from RAM to RAM, is measured beside it: the compressed
queue cannot be faster.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_ITEM = 100  # bytes
_BATCH = 10_000
_TARGETS = {"compressed": 3_000_000, "uncompressed": 10_000_000}


def run(quick: bool) -> dict[str, Any]:
    """Passes 10 million items, or 4 million when `quick`, through a queue of each kind; best of five."""
    batches = _batches(100)
    rounds = (4_000_000 if quick else 10_000_000) // (_BATCH * len(batches))
    figures: dict[str, Any] = {"items": rounds * _BATCH * len(batches), "item_bytes": _ITEM}
    figures["lz4_alone_items_per_cpu_second"] = _lz4_alone(batches)
    targets = []
    for kind, target in _TARGETS.items():
        best = max((_measure(batches, rounds, kind == "compressed") for _ in range(5)), key=_rate)
        figures |= {f"{kind}_{name}": value for name, value in best.items()}
        rate = _rate(best)
        targets.append(
            {
                "name": f"{kind}_items_per_cpu_second",
                "value": rate,
                "target": target,
                "holds": rate >= target,
            }
        )
    return {"figures": figures, "targets": targets}


def _rate(figures: dict[str, Any]) -> int:
    return int(figures["items_per_cpu_second"])


def _measure(batches: list[pa.Array], rounds: int, compress: bool) -> dict[str, Any]:
    items = rounds * sum(map(len, batches))
    with tempfile.TemporaryDirectory() as folder:
        queue = DiskQueue(Env(), Path(folder), "q", compress=compress)
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(rounds):
            for batch in batches:
                queue.append_batch(batch)
        size = sum(queue.prepare()()["files"].values())
        queue.committed()
        middle = time.process_time()
        popped = 0
        while taken := len(queue.pop_batch(_BATCH)):
            popped += taken
        queue.prepare()()
        queue.committed()
        end = time.process_time()
        wall = time.perf_counter() - wall
        queue.close()
    assert popped == items
    return {
        "items_per_cpu_second": round(items / (end - cpu)),
        "items_per_second": round(items / wall),
        "in_per_cpu_second": round(items / (middle - cpu)),
        "out_per_cpu_second": round(items / (end - middle)),
        "stored_bytes_per_item": round(size / items, 1),
    }


def _lz4_alone(batches: list[pa.Array]) -> int:
    codec, pieces = pa.Codec("lz4_raw"), [b"".join(batch.to_pylist()) for batch in batches]
    best = float("inf")
    for _ in range(3):
        cpu = time.process_time()
        for piece in pieces:
            codec.decompress(codec.compress(piece).slice(0), len(piece))
        best = min(best, time.process_time() - cpu)
    return round(sum(map(len, batches)) / best)


def _batches(count: int) -> list[pa.Array]:
    random = Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(random.choices(letters, k=random.randint(3, 9))) for _ in range(5_000)]
    choices = np.random.default_rng(1).zipf(1.3, (count, _BATCH, 6)) % len(words)
    return [pa.array([_url(row, words, random) for row in batch], pa.binary()) for batch in choices.tolist()]


def _url(row: list[int], words: list[str], random: Random) -> bytes:
    a, b, c, d, e, f = (words[number] for number in row)
    text = f"https://www.{a}-{b}.com/{c}/{d}/{e}-{f}/article-{random.getrandbits(30)}.html?session="
    return (text + f"{random.getrandbits(256):064x}")[:_ITEM].encode()
