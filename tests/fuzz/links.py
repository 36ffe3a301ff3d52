"""Links by compiled functions against links one by one: the pieces of tests/engine/test_link_kernel.py, without end."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.engine.test_link_kernel import BASES, CONTROLS, OPTIONS, PIECES, compare
from tests.fuzz.fuzzing import Fuzzer


def _make(random: Random) -> tuple[Any, int]:
    links = ["".join(random.choices(PIECES, k=random.randint(0, 6))) for _ in range(random.randint(1, 30))]
    texts = [link.strip(CONTROLS) for link in links]
    rules, depth, most = random.randrange(len(OPTIONS)), random.choice((0, 4, 65_535)), random.choice((2, 99))
    return (rules, texts, random.choice(BASES), depth, most), sum(map(len, texts))


def _run(given: tuple[int, list[str], str, int, int]) -> None:
    compare(*given)


LINKS = Fuzzer("links", _make, _run, 0.05, 1e-5)
