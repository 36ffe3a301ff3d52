"""`barkspider drum` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from barkspider.cli.drum import drum_app
from barkspider.core.errors import BarkspiderError, StorageError, UsageError
from barkspider.storage.env import Env


def run(*arguments: str | Path, stdin: bytes | None = None) -> str:
    result: Result = CliRunner().invoke(drum_app, [str(argument) for argument in arguments], input=stdin)
    if isinstance(result.exception, BarkspiderError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("alpha\nbeta\n\nalpha\r\ngamma\n")
    return path


def test_load_check_dump_stats_verify(tmp_path: Path, texts: Path) -> None:
    folder = tmp_path / "seen"
    assert json.loads(run("load", folder, texts, "--json")) == {"rows": 4, "new": 3, "keys": 3}
    assert "4 rows read, 0 of them new; 3 keys" in run("load", folder, texts)
    asked = b"beta\ndelta\ndelta\n"
    assert run("check", folder, "-", stdin=asked).splitlines() == ["delta", "delta"]
    assert run("check", folder, "-", "--known", stdin=asked).splitlines() == ["beta"]
    assert json.loads(run("check", folder, "-", "--add", "--json", stdin=asked)) == {
        "rows": 3,
        "new": 1,
        "known": 2,
    }
    assert run("check", folder, "-", stdin=asked) == ""
    keys = run("dump", folder).splitlines()
    assert keys == sorted(keys)
    assert json.loads(run("dump", folder, "--json")) == keys
    assert len(keys) == 4
    found = json.loads(run("stats", folder, "--json"))
    assert (found["keys"], found["pending"]) == (4, 0)
    assert "4 keys, 0 rows waiting" in run("stats", folder)
    assert run("verify", folder) == "4 keys, all sound\n"
    assert json.loads(run("verify", folder, "--json")) == {"keys": 4, "sound": True}


def test_parquet(tmp_path: Path) -> None:
    table = pa.table({"id": [5, 6], "url": ["a", None], "size": [1.5, 2.5]})
    pq.write_table(table, tmp_path / "t.parquet")
    folder = tmp_path / "seen"
    assert json.loads(run("load", folder, tmp_path / "t.parquet", "--json"))["keys"] == 2
    assert run("dump", folder).splitlines() == [f"{5:016x}", f"{6:016x}"]
    run("load", folder, tmp_path / "t.parquet", "--column", "url")
    assert run("check", folder, "-", "--known", stdin=b"a\n") == "a\n"
    with pytest.raises(UsageError, match="has no column 'uri'; it has id, url, size"):
        run("load", folder, tmp_path / "t.parquet", "--column", "uri")
    with pytest.raises(UsageError, match="holds double"):
        run("load", folder, tmp_path / "t.parquet", "--column", "size")
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(UsageError, match="not a Parquet file"):
        run("load", folder, tmp_path / "bad.parquet")


def test_wrong_usage_changes_nothing(tmp_path: Path, texts: Path) -> None:
    with pytest.raises(UsageError, match="is not a DRUM; make one with"):
        run("stats", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match=r"cannot read .*absent\.txt"):
        run("load", tmp_path / "none", tmp_path / "absent.txt")
    with pytest.raises(UsageError, match="neither a DRUM nor an empty folder"):
        run("load", tmp_path, texts)
    with pytest.raises(UsageError, match="is not a size"):
        run("load", tmp_path / "none", texts, "--ram", "much")
    assert not (tmp_path / "none").exists()


def test_one_process_at_a_time(tmp_path: Path, texts: Path) -> None:
    folder = tmp_path / "seen"
    run("load", folder, texts)
    lock = Env().lock(folder / "lock")
    assert lock is not None
    with pytest.raises(UsageError, match="in use by another process"):
        run("stats", folder)
    lock.release()
    assert "3 keys" in run("stats", folder)


def test_damage_is_named(tmp_path: Path, texts: Path) -> None:
    folder = tmp_path / "seen"
    run("load", folder, texts)
    (path,) = (folder / "keys").glob("*.known")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=f"{path.name} is damaged at byte 16"):
        run("verify", folder)
