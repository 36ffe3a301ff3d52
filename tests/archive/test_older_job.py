"""A job of an earlier version, tests/data/job-1, read when its tables have more columns; and files of a later one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barkspider import open_job
from barkspider.archive import open_table, schemas
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.verify import Checked, verify_archive
from barkspider.engine import verify_job
from barkspider.storage.env import Env
from barkspider.storage.store.verify import DAMAGE
from tests.cli.program import run

DATA = Path(__file__).parents[1] / "data"
ADDED = {"pages": pa.field("mood", pa.string()), "links": pa.field("weight", pa.float64())}
VERSION = "barkspider.archive.tables.VERSION"
PRESENT, NEXT = dict(SCHEMAS), schemas.VERSION + 1


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "job-1", tmp_path / "job"))


def grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next version would be: one more column in two tables."""
    for name, field in ADDED.items():
        monkeypatch.setitem(SCHEMAS, name, SCHEMAS[name].append(field))
    monkeypatch.setattr(VERSION, NEXT)


def as_written(job: Path, name: str) -> pa.Table:
    """The rows of a table by another reader; its files hold them in order."""
    return pa.concat_tables(map(pq.read_table, sorted((job / "archive" / "tables" / name).iterdir())))


def as_now(job: Path, name: str) -> pa.Table:
    """The same with the columns of today."""
    rows = as_written(job, name)
    for field in PRESENT[name]:
        if field.name not in rows.schema.names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


def grown(rows: pa.Table, name: str, value: object) -> pa.Table:
    """The first two rows once more, with a value in the column that was added."""
    return rows.slice(0, 2).append_column(ADDED[name], pa.array([value] * 2))


def version(path: Path) -> bytes | None:
    found: bytes | None = pq.read_metadata(path).metadata.get(b"barkspider.schema")
    return found


@pytest.mark.parametrize("kept", ["job-1", "job-1-killed"])
def test_all_rows_of_an_older_job_are_there_and_what_was_added_is_null(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(monkeypatch)
    job = open_job(DATA / kept)
    for name, field in ADDED.items():
        expected = as_now(job.path, name)
        found = job.table(name)
        assert found.num_rows == expected.num_rows > 0
        assert found.schema.equals(SCHEMAS[name])
        assert found.drop_columns(field.name).equals(expected)
        assert found[field.name].null_count == expected.num_rows
        (batch,) = open_table(Env(), job.archives[0], name).batches([field.name], skip=expected.num_rows - 1)
        assert batch.to_pylist() == [{field.name: None}]
        asked = job.query(f"SELECT * FROM {name}")
        assert asked.schema.names[: len(SCHEMAS[name])] == SCHEMAS[name].names
        assert asked[field.name].type == field.type
        assert asked[field.name].null_count == asked.num_rows == expected.num_rows
    assert not [problem for problem in verify_job(job.path) if problem.kind == DAMAGE]


def test_commands_read_an_older_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grow(monkeypatch)
    job = str(DATA / "job-1")

    def said(*arguments: str) -> str:
        assert run(monkeypatch, *arguments) == 0
        return capsys.readouterr().out

    sql = "SELECT count(*) AS n, count(mood) AS moods, count(duplicate_of) AS same FROM pages WHERE mood IS NULL"
    assert json.loads(said("query", job, sql, "--json")) == [{"n": 15, "moods": 0, "same": 0}]
    shown = json.loads(said("show", job, "http://www.tuprisu.com/", "--json"))
    assert (shown["status"], shown["captures"]) == (200, 1)
    assert len(said("export", job).splitlines()) == 15
    edges = [line.split("\t") for line in said("export", job, "--what", "graph").splitlines()]
    (domains,) = json.loads(said("query", job, "SELECT sum(links_out) AS n FROM domains", "--json"))
    assert sum(int(links) for _, _, links in edges) == domains["n"] > 0
    ranked = json.loads(said("rank", job, "--merge-redirects", "--json"))
    assert {name for name, _ in ranked["top"]} == {name for edge in edges for name in edge[:2]}


def test_old_files_are_merged_with_new_ones_into_a_file_of_the_present_columns(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(monkeypatch)
    job, checked = open_job(older), Checked()
    for (name, field), value in zip(ADDED.items(), ("calm", 0.5), strict=True):
        table = open_table(Env(), job.archives[0], name)
        before = as_now(older, name)
        table.write(grown(before, name, value))
        assert [version(path) for path in table.files()] == [None, b"%d" % NEXT]
        for merged in (False, True):
            if merged:
                table.compact()
            values = [None] * before.num_rows + [value] * 2
            assert [
                row[field.name] for batch in table.batches([field.name]) for row in batch.to_pylist()
            ] == values
            assert table.read().drop_columns(field.name).slice(0, before.num_rows).equals(before)
            (counts,) = job.query(
                f"SELECT count(*) AS n, count(*) FILTER ({field.name} = {value!r}) AS new FROM {name}"
            ).to_pylist()
            assert counts == {"n": len(values), "new": 2}
            assert list(verify_archive(Env(), job.archives[0], checked)) == []
        (path,) = table.files()
        assert pq.read_schema(path).equals(SCHEMAS[name])
        assert version(path) == b"%d" % NEXT
    assert checked.rows > 4 * 100


def test_a_file_of_a_later_version_is_read_and_left_as_it_is(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, before = open_job(older), as_now(older, "pages")
    with monkeypatch.context() as later:
        grow(later)
        open_table(Env(), job.archives[0], "pages").write(grown(before, "pages", "calm"))
    table = open_table(Env(), job.archives[0], "pages")
    for number in (3, 4):
        table.write(before.slice(number, 1))
    for _ in range(2):
        assert table.read().equals(before.take([*range(15), 0, 1, 3, 4]))
        assert job.query("SELECT count(*) AS n FROM pages").to_pylist() == [{"n": 19}]
        assert list(verify_archive(Env(), job.archives[0])) == []
        table.compact()
    assert [version(path) for path in table.files()] == [None, b"%d" % NEXT, b"%d" % (NEXT - 1)]
    assert pq.read_table(table.files()[1])["mood"].to_pylist() == ["calm", "calm"]


def test_columns_that_do_not_belong_to_the_version_of_a_file_are_damage(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(monkeypatch)
    table = open_table(Env(), older / "archive", "links")
    (path,) = table.files()
    rows = as_written(older, "links")

    def complaints(columns: pa.Table, said: str) -> list[str]:
        pq.write_table(columns.replace_schema_metadata({"barkspider.schema": said}), path)
        return [problem.what for problem in verify_archive(Env(), older / "archive")]

    whole = table.read()
    assert complaints(rows, "1") == complaints(whole, str(NEXT)) == []
    assert complaints(whole.append_column("more", pa.nulls(len(rows), pa.int8())), str(NEXT + 1)) == []
    for columns, said in (
        (rows, str(NEXT)),
        (rows, str(NEXT + 1)),
        (rows.select([1, 0]), "1"),
        (whole.append_column("more", whole["anchor"]), "1"),
    ):
        assert complaints(columns, said) == ["has other columns"]
    (damage,) = complaints(rows, "one")
    assert damage.endswith("is damaged: its version is b'one'")
