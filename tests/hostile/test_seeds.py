"""Files of seeds that others made to hurt whoever reads them: bounded work and memory, one line, nothing else."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barkspider.cli.seed_files import as_url, read_seeds
from barkspider.core.errors import UsageError
from tests.cli.program import complaint, run


def found(file: Path) -> list[str]:
    return [text for text, _ in read_seeds([], file)]


def test_a_name_of_many_labels_is_told_from_a_path_at_once() -> None:
    labels = "a." * 5_000  # a backtracking match of 40 took hours
    assert as_url(f"{labels}a/path") == f"{labels}a/path"
    assert as_url(f"{labels}example") == f"http://{labels}example/"
    assert as_url("a..example") == "a..example"


@pytest.mark.parametrize("name", ["a.txt.gz", "a.zone.gz", "a.cdxj.gz"])
def test_a_packed_line_without_end_is_not_unpacked(tmp_path: Path, name: str) -> None:
    with gzip.open(tmp_path / name, "wb", compresslevel=9) as packed:
        packed.write(b"http://good.example/\n")
        for _ in range(40):
            packed.write(bytes(1 << 20))
    with pytest.raises(UsageError, match="line 2 has no end"):
        list(read_seeds([], tmp_path / name))


@pytest.mark.parametrize(
    "line",
    [
        '{"url": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"url": ' + "[" * 900 + "]" * 900 + "}",
        '{"url": ' + "9" * 10_000 + "}",
        '{"url": null}',
        '{"url": {"url": 1}}',
        "[" * 100_000,
    ],
)
def test_an_index_of_anything_but_urls_is_a_line_that_is_no_url(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.cdxj").write_text(
        f'example,good)/ 2024 {{"url": "http://good.example/"}}\nx 2024 {line}\n'
    )
    assert found(tmp_path / "a.cdxj") == ["http://good.example/", f"x 2024 {line}"]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([[["http://a.example/"]]]), "has no texts"),
        (pa.array([1]), "has no texts"),
        (pa.array([{"url": "x"}]), "has no texts"),
        (pa.array([b"http://\xff.example/"]).view(pa.string()), "is no Parquet file"),
    ],
)
def test_a_table_of_anything_but_texts_is_one_line(tmp_path: Path, column: Any, why: str) -> None:
    pq.write_table(pa.table({"url": column}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=why):
        list(read_seeds([], tmp_path / "a.parquet"))


def test_a_table_with_a_column_twice_gives_the_first(tmp_path: Path) -> None:
    columns = [pa.array([b"http://a.example/"]), pa.array(["http://b.example/"])]
    pq.write_table(pa.table(columns, names=["url", "url"]), tmp_path / "a.parquet")
    assert found(tmp_path / "a.parquet") == ["http://a.example/"]


def test_what_a_seed_says_to_the_terminal_is_shown_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.zone").write_text("a\x1b[2J\x07[/bold].example. NS ns.example.\n")
    assert run(monkeypatch, "crawl", "--seeds", tmp_path / "a.zone", "--job", tmp_path / "job") == 2
    shown = complaint(capsys)
    assert not {"\x1b", "\x07"} & set(shown)
    assert "[/bold]" in shown
