"""Stores that others made to do harm: what is brought back comes from the store and goes into the job, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.errors import BarkspiderError, JobError
from barkspider.engine.copying import restore_job
from barkspider.storage.env import Env
from barkspider.storage.format import checksum
from barkspider.storage.store.copies import CopiedFile, Copies
from barkspider.storage.store.remote import Remote


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy of a job, and a file of the user's beside it."""
    (tmp_path / "secret").write_bytes(b"precious")
    (tmp_path / "settings.toml").write_bytes(b"seed = 7\n")
    copies = Copies.claim(Remote.at(str(tmp_path / "store")), "whole")
    copies.copy({"settings.toml": CopiedFile(tmp_path / "settings.toml", 9)})
    return tmp_path / "store"


def forge(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the index of the copy, and make its checksum right."""
    (index,) = (store / "whole" / "indexes").iterdir()
    head, body = map(json.loads, index.read_bytes().splitlines())
    change(body)
    text = json.dumps(body).encode()
    head["checksum"] = f"{checksum(text):016x}"
    index.write_bytes(json.dumps(head).encode() + b"\n" + text + b"\n")


def set_object(name: str) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        body["files"]["settings.toml"][0][:3] = [name, 0, 8]

    return change


def refused(store: Path, tmp_path: Path) -> str:
    with pytest.raises(BarkspiderError) as raised:
        restore_job(Env(), str(store), tmp_path / "job")
    found = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert found.count(b"precious") == 1  # it was copied nowhere
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_copy_comes_back(store: Path, tmp_path: Path) -> None:
    assert restore_job(Env(), str(store), tmp_path / "job") == 1
    assert (tmp_path / "job" / "settings.toml").read_bytes() == b"seed = 7\n"


@pytest.mark.parametrize("name", ["../secret", "whole/../../secret", "{folder}/secret"])
def test_no_object_outside_of_the_store_is_read(store: Path, tmp_path: Path, name: str) -> None:
    forge(store, set_object(name.format(folder=tmp_path)))
    assert "not in its folder" in refused(store, tmp_path)


def test_no_link_in_a_store_is_followed(store: Path, tmp_path: Path) -> None:
    (store / "whole" / "away").symlink_to(tmp_path)
    forge(store, set_object("whole/away/secret"))
    assert "leads out of it" in refused(store, tmp_path)


@pytest.mark.parametrize("name", ["../settings.toml", "/tmp/x", "archive/../../x", ""])
def test_no_file_outside_of_the_job_is_written(store: Path, tmp_path: Path, name: str) -> None:
    forge(store, lambda body: body["files"].update({name: body["files"].pop("settings.toml")}))
    assert "not in its folder" in refused(store, tmp_path)


@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 62), (1 << 62, 1 << 62), (-8, 4), (0, -1)])
def test_a_piece_without_end_is_damage(store: Path, tmp_path: Path, offset: int, length: int) -> None:
    forge(store, lambda body: body["files"]["settings.toml"][0].__setitem__(slice(1, 3), [offset, length]))
    assert "damaged" in refused(store, tmp_path)


def test_only_parts_of_a_crawl_are_brought_back(store: Path, tmp_path: Path) -> None:
    (store / "whole").rename(store / "elsewhere")
    assert "no copy of a crawl" in refused(store, tmp_path)


def test_folders_that_lead_into_themselves_are_not_walked(store: Path, tmp_path: Path) -> None:
    for name in "ab":
        (store / "whole" / name).symlink_to(store)  # two to the forty folders
    assert restore_job(Env(), str(store), tmp_path / "job") == 1


def test_a_claim_that_is_none_is_told(store: Path) -> None:
    (store / "whole" / "claims" / "z").write_bytes(b"")
    with pytest.raises(BarkspiderError, match="is no claim"):
        Copies.claim(Remote.at(str(store)), "whole")


def test_a_store_of_another_name_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="no copy"):
        restore_job(Env(), str(tmp_path), tmp_path / "job")
