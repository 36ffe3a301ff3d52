"""Folders for `exchange` that others filled to do harm: what is no batch is refused, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.core.errors import BarkspiderError, JobError, StorageError
from barkspider.frontier.batches import batch_name
from barkspider.parallel.post import ACKNOWLEDGED, ranks_name
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import write_snapshot
from tests.parallel.test_carrying import ARRAYS, HEAD, Machine

TWO = np.zeros(2, np.uint64).tobytes()


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(tmp_path / "a", 0), Machine(tmp_path / "b", 1)


@pytest.mark.parametrize(
    ("head", "arrays"),
    [
        ({}, {}),
        ({}, ARRAYS),
        ({"scope": [7], "cookies": []}, ARRAYS),
        ({"scope": [], "cookies": [["x", [["y", ["z"]]]]]}, ARRAYS),
        (HEAD, ARRAYS | {"links": b"\xff" * 64}),
        (HEAD, ARRAYS | {"counts": bytes(4)}),
        (HEAD, ARRAYS | {"counts": bytes(3)}),
        (HEAD, ARRAYS | {"edges": bytes(8)}),
        (HEAD, ARRAYS | {"trails": bytes(8)}),
        (HEAD, ARRAYS | dict.fromkeys(("ranked", "answers", "scored", "supporters"), TWO) | {"decision": b"\x07"}),
    ],
)  # fmt: skip
def test_what_is_no_batch_is_not_taken(
    machines: tuple[Machine, Machine], tmp_path: Path, head: Mapping[str, Any], arrays: Mapping[str, bytes]
) -> None:
    a, b = machines
    a.send(1)
    a.carrier(tmp_path / "stick").to()
    write_snapshot(Env(), tmp_path / "stick" / "mail" / "0001" / batch_name(0, 1), head, arrays)
    with pytest.raises(StorageError, match="carry it once more"):
        b.carrier(tmp_path / "stick").fetch()
    assert b.arrived() == []


def test_what_is_larger_than_any_batch_is_not_read(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    a, b = machines
    a.send(1)
    a.carrier(tmp_path / "stick").to()
    with (tmp_path / "stick" / "mail" / "0001" / batch_name(0, 1)).open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError, match="larger than any batch"):
        b.carrier(tmp_path / "stick").fetch()


@pytest.mark.parametrize("arrays", [{}, {"degrees": bytes(8), "counts": bytes(9)}, {"degrees": bytes(8), "counts": b""}])  # fmt: skip
def test_ranks_that_are_none_are_not_taken(
    machines: tuple[Machine, Machine], tmp_path: Path, arrays: Mapping[str, bytes]
) -> None:
    a, b = machines
    a.carrier(tmp_path / "stick").to()
    write_snapshot(Env(), tmp_path / "stick" / "mail" / ranks_name(0), {}, arrays)
    with pytest.raises(StorageError):
        b.carrier(tmp_path / "stick").fetch()
    assert not (tmp_path / "b" / "mail" / ranks_name(0)).exists()


@pytest.mark.parametrize(
    "said", ["[" * 100_000, '{"0": 1, "1": 2}', "[1e3, 2]", "[true, 1]", "9" * 5000, "[-1, 0]"]
)
def test_what_is_no_acknowledgement_is_one_line(
    machines: tuple[Machine, Machine], tmp_path: Path, said: str
) -> None:
    a, b = machines
    a.send(1)
    a.carrier(tmp_path / "stick").to()
    (tmp_path / "stick" / "mail" / "0000").mkdir(exist_ok=True)
    (tmp_path / "stick" / "mail" / "0000" / ACKNOWLEDGED).write_text(said)
    with pytest.raises(BarkspiderError) as raised:
        b.carrier(tmp_path / "stick").fetch()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("place", ["mail", "mail/0001"])
def test_a_link_to_another_folder_is_not_written_through(
    machines: tuple[Machine, Machine], tmp_path: Path, place: str
) -> None:
    a, _ = machines
    a.carrier(tmp_path / "stick").to()
    mine = tmp_path / "mine"
    (mine / "0001").mkdir(parents=True)
    for kept in (mine / batch_name(0, 1), mine / "0001" / batch_name(0, 1)):
        kept.write_text("precious")
    link = tmp_path / "stick" / place
    link.rename(tmp_path / "away")
    link.symlink_to(mine if place == "mail" else mine / "0001")
    a.send(1), a.send(2)
    with pytest.raises(JobError, match="is a link"):
        a.carrier(tmp_path / "stick").to()
    assert sorted(path.name for path in mine.rglob("*")) == [batch_name(0, 1), batch_name(0, 1), "0001"]


@pytest.mark.parametrize(
    "about",
    ["a = " + "[" * 100_000, "processes = true", "processes = 0", "processes = 2\ngeneration = -1", "\xff"],
)
def test_what_is_no_division_is_one_line(
    machines: tuple[Machine, Machine], tmp_path: Path, about: str
) -> None:
    a, _ = machines
    a.carrier(tmp_path / "stick").to()
    (tmp_path / "stick" / "job.toml").write_text(about, "latin-1")
    with pytest.raises(JobError, match="is damaged"):
        a.carrier(tmp_path / "stick").to()
