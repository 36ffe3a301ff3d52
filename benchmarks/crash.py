"""Whether anything is lost when the power fails, a call fails, or a bit flips.

The scenario is a store with a queue and two DRUMs through merges, commits and reopenings, on a disk in RAM
that knows what was synced (see tests/storage/faulty.py). Four things are done to it:

- the power fails after every single operation; of what was not synced all is lost, all is kept, or a
  random part, torn and out of order;
- the power fails at random moments of many scenarios, merges in a thread of their own among them;
- every single operation fails once: EIO, ENOSPC, half of the bytes;
- bits flip and ends are cut off in every file.

After that the store is opened, and read to the last byte. It must hold what the last acknowledged commit
held; or, damaged, name the file, or give the same answers as before.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.storage.faulty import Disk, FaultyEnv
from tests.storage.scenarios import (
    Moment,
    content,
    damages,
    many_operations,
    notices,
    survives,
    withstands,
    work,
)

from barkspider.core.errors import StorageError

_IMAGES = 10_000
_DAMAGES = 5_000


def run(quick: bool) -> dict[str, Any]:
    """All of it takes minutes; `quick` takes a tenth."""
    images, count = (_IMAGES // 10, _DAMAGES // 10) if quick else (_IMAGES, _DAMAGES)
    with many_operations():
        every, lost_every = _every_operation(8 if quick else 40)
        done, lost_images = _random_images(images)
        faults, wrong = _every_fault(5 if quick else 12)
    outcomes = _damage(count)
    bad = count - outcomes["named"] - outcomes["harmless"]
    figures = {
        "crashes_after_every_operation": every,
        "power_loss_images": done,
        "failed_operations": faults,
        "damages": count,
        "damages_named": outcomes["named"],
        "damages_harmless": outcomes["harmless"],
    }
    targets = [
        _none("losses_after_every_operation", lost_every),
        _none("losses_in_power_loss_images", lost_images),
        _none("losses_after_failed_operations", wrong),
        _none("damages_not_noticed", bad),
        _enough("power_loss_images", done, _IMAGES, quick),
        _enough("damages", count, _DAMAGES, quick),
    ]
    return {"figures": figures, "targets": targets}


def _every_operation(steps: int) -> tuple[int, int]:
    env, random = FaultyEnv(), Random(1)
    moments = work(env, 1, steps)
    crashes = lost = 0
    for done, disk in env.crashes():
        for how in ("drop", "keep", "random"):
            crashes += 1
            lost += not _survives(disk, how, random, moments, done)
    return crashes, lost


def _random_images(images: int) -> tuple[int, int]:
    done = lost = 0
    seed = 0
    while done < images:
        seed += 1
        env, random = FaultyEnv(), Random(seed)
        moments = work(env, seed, 24, background=seed % 2 == 0)
        for operations, disk in env.crashes():
            if random.random() < 0.2 and done < images:
                done += 1
                lost += not _survives(disk, "random", random, moments, operations)
    return done, lost


def _survives(disk: Disk, how: str, random: Random, moments: list[Moment], done: int) -> bool:
    try:
        return survives(disk, how, random, moments, done)
    except StorageError:  # what was committed cannot be read
        return False


def _every_fault(steps: int) -> tuple[int, int]:
    env = FaultyEnv()
    work(env, 2, steps)
    faults = [
        (number, fault) for number in range(len(env.operations)) for fault in ("EIO", "ENOSPC", "short")
    ]
    return len(faults), sum(not withstands(Disk(), 2, steps, number, fault) for number, fault in faults)


def _damage(count: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for seed in range(10):
        env = FaultyEnv()
        work(env, seed, 16)
        disk = env.disk.copy()
        whole = content(FaultyEnv(disk.copy()))
        for damage in damages(disk, count // 10, Random(seed)):
            outcomes[notices(disk, damage, whole)] += 1
    return outcomes


def _none(name: str, value: int) -> dict[str, Any]:
    return {"name": name, "value": value, "target": 0, "holds": value == 0}


def _enough(name: str, value: int, target: int, quick: bool) -> dict[str, Any]:
    if quick:
        return {"name": name, "value": None, "target": target, "holds": None}
    return {"name": name, "value": value, "target": target, "holds": value >= target}
