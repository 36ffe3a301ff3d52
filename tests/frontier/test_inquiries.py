"""Inquiries against a set in RAM, with commits and kills in every phase of a round."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.records import UrlRow
from barkspider.frontier.inquiries import Asked, Inquiries, keys_of
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
KEYS = 400


def links_of(numbers: list[int]) -> UrlBatch:
    rows = [UrlRow((number + 1) << 20, 2, 3, 0, 0, 0, 0, b"http://a.example/") for number in numbers]
    return UrlBatch.from_rows(rows)


class Model:
    """What a set in RAM would say of the entries that wait, in their order."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.waiting: list[tuple[int, list[int]]] = []
        self.answered = 0


class Run:
    """The two side by side; what is marked of an entry depends on the entry alone."""

    def __init__(self, random: Random, background: bool) -> None:
        self.env, self.random, self.background = FaultyEnv(), random, background
        self.model = Model()
        self.kept: tuple[Model, tuple[dict[str, Any], dict[str, Any]], Any] | None = None
        self.number = 0
        self.open()

    def open(self) -> None:
        self.store = Store.open(self.env, FOLDER)
        self.asked = Inquiries(self.env, FOLDER, 2_000_000, self.store.state, self.background)
        if self.kept is not None:
            model, (head, arrays), recent = self.kept
            self.model = deepcopy(model)
            self.asked.recent.add(recent)
            self.asked.load(head, {name: array.tobytes() for name, array in arrays.items()})
        for structure in self.asked.structures:
            self.store.add(structure)

    def ask(self) -> None:
        entries = []
        for _ in range(self.random.randrange(4)):
            self.number += 1
            numbers = [int(KEYS * self.random.random() ** 2) for _ in range(self.random.randrange(12))]
            self.model.waiting.append((self.number % 200, numbers))
            entries.append(Asked(self.number % 200, NO_URLS, links_of(numbers)))
        if entries:
            self.asked.ask(entries)

    def answer(self, most: int) -> None:
        for kind, page, links in self.asked.answered(most):
            expected_kind, numbers = self.model.waiting.pop(0)
            keys = keys_of(links)
            new = links.where(self.asked.recent.missing(keys))
            assert (kind, len(page)) == (expected_kind, 0)
            found = [int(key >> 20) - 1 for key in new.key]
            assert found == [number for number in numbers if number not in self.model.seen]
            taken = [number for number in found if (number * 7 + kind) % 3 == 0]
            assert self.asked.mark(keys_of(links_of(taken))).sum() == len(set(taken))
            self.model.seen |= set(taken)
            self.model.answered += 1

    def commit(self) -> None:
        saved, recent = self.asked.save(), self.asked.recent.keys()
        self.store.commit()
        self.kept = deepcopy(self.model), saved, recent

    def kill(self) -> None:
        self.asked.close()
        if self.kept is None:
            self.model = Model()
        self.open()


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_a_set_whatever_happens(seed: int, background: bool) -> None:
    random = Random(seed)
    run = Run(random, background)
    for _ in range(1500):
        happens = random.random()
        if happens < 0.45:
            run.ask()
        elif happens < 0.8:
            run.answer(random.randrange(5))
        elif happens < 0.9 and run.asked.is_open:
            run.asked.merge()
        elif happens < 0.97:
            run.commit()
        elif happens > 0.98:
            run.kill()
        run.asked.validate()
    while len(run.asked):
        if run.asked.is_open:
            run.asked.merge()
        run.answer(100)
    assert not run.model.waiting
    assert run.model.answered > 100
    assert run.asked.seen == len(run.model.seen) > 50
    run.asked.close()


def test_what_is_known_is_asked_once(tmp_path: Path) -> None:
    asked = Inquiries(Env(), tmp_path, 64_000_000, lambda _: None, background=False)
    links = links_of(list(range(100)))
    for turn in range(6):
        asked.ask([Asked(0, NO_URLS, links)])
        asked.merge()
        for _, _, new in asked.answered(1):
            assert len(new) == (100 if turn == 0 else 0)
            asked.mark(keys_of(new))
    assert asked.traffic()["checks"] == 200  # in the second round they were recent, in the third nobody knew
    assert np.array_equal(np.sort(asked.recent.keys()), np.empty(0, np.uint64))
    asked.close()
