"""Jobs with damaged files: one line from every command, no traceback, and `verify` finds what is wrong."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from barkspider.archive import WarcFile
from barkspider.archive.packing import unpackers
from barkspider.archive.reader import LARGEST
from barkspider.engine import verify_job
from barkspider.storage.env import Env
from tests.cli.program import run
from tests.cli.small_job import commands, copied, make_small_job, on
from tests.cli.test_foreign_jobs import forge

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("made") / "job")


@pytest.fixture(scope="module")
def known(made: Path) -> dict[str, list[str]]:
    return commands(made)


def cut(pattern: str) -> Damage:
    def do(job: Path) -> None:
        for path in job.glob(pattern):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return do


def written(name: str, content: bytes | str) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda job: [path.write_bytes(data) for path in [*job.glob(name)] or [job / name]]


def lines(ending: bytes) -> Damage:
    """Other ends of all lines of indexes."""

    def do(job: Path) -> None:
        for path in job.glob("archive/*.cdxj"):
            starts = [line.partition(b" {")[0] for line in path.read_bytes().splitlines()]
            path.write_bytes(b"".join(start + ending + b"\n" for start in starts))

    return do


def state(name: str, value: object, manifest: str = "manifest.json") -> Damage:
    """Another state of a structure in a manifest, whose checksum is right."""

    def do(job: Path) -> None:
        body = json.loads((job / manifest).read_bytes().partition(b"\n")[2])
        forge(job, "structures", body["structures"] | {name: value}, manifest)

    return do


WRITING = ("resume", "recrawl", "add")
DIGESTS = "archive/digests/manifest.json"
CRAWL = {"format": "x", "sequence": [], "seconds": {}, "extended": 7, "tally": []}
ENDED = {"event": "ended", "pages": "x", "gauges": 7, "time": 1e300} | dict.fromkeys(
    ("links", "unique_urls", "pages_per_second", "bytes", "cpu_seconds", "out_of_scope"), 7
)
# The damage, the file that `verify` names, and the commands that cannot go on; others do not need the file.
CASES: dict[str, tuple[Damage, str, tuple[str, ...]]] = {
    "a cut table": (cut("archive/tables/pages/*"), "pages/000000-000000.parquet", (*WRITING, "query")),
    "a table of rubbish": (
        written("archive/tables/links/*", b"PAR1" + b"x" * 500 + b"PAR1"),
        "links/000000-000000.parquet",
        ("resume", "rank"),
    ),
    "an empty table": (
        written("archive/tables/pages/*", b""),
        "pages/000000-000000.parquet",
        (*WRITING, "query"),
    ),
    "seeds that are no text": (written("seeds.txt", b"http://a/\n\xff\xfe\n"), "seeds.txt", WRITING),
    "seeds that are no URLs": (written("seeds.txt", "hello\n"), "seeds.txt", WRITING),
    "no seeds": (lambda job: (job / "seeds.txt").unlink(), "seeds.txt", WRITING),
    "settings that are no text": (
        written("settings.toml", b"\xff\xfe"),
        "settings.toml",
        (*WRITING, "show", "export"),
    ),
    "settings that are no TOML": (written("settings.toml", "[[["), "settings.toml", (*WRITING, "plan")),
    "settings nested deeply": (written("settings.toml", "seed=" + "[" * 100_000), "settings.toml", WRITING),
    "settings of wrong types": (written("settings.toml", "seed='x'"), "settings.toml", WRITING),
    "cut indexes": (cut("archive/*.cdxj"), ".cdxj", ()),
    "indexes that are no JSON": (lines(b" {x"), ".cdxj", ("show",)),
    "indexes of wrong types": (lines(b' {"url": 7, "offset": [], "filename": 3}'), ".cdxj", ("show",)),
    "indexes that lead elsewhere": (
        lines(b' {"url": "x", "status": "200", "offset": "0", "filename": "../../x.warc.gz"}'),
        ".cdxj",
        ("show",),
    ),
    "a cut file of digests": (cut("archive/digests/seen/*.known"), ".known", ("resume",)),
    "no manifest of digests": (written(DIGESTS, ""), "digests/manifest.json", ("resume",)),
    "an empty manifest": (written("manifest.json", ""), "manifest.json", WRITING),
    "a cut manifest": (cut("manifest.json"), "manifest.json", WRITING),
    "a manifest of lists": (state("kept", {"tables": [], "places": 7}), "manifest.json", WRITING),
    "a manifest of texts": (state("crawl", CRAWL), "manifest.json", WRITING),
    "a manifest without a frontier": (state("frontier", {"files": {}}), "manifest.json", WRITING),
    "a cut snapshot": (cut("frontier/*"), ".snapshot", ("resume", "recrawl")),
    "cut cookies": (cut("cookies/*"), ".snapshot", ("resume",)),
    "a cut WARC file": (cut("archive/pages-*.warc.gz"), ".warc.gz", ("export",)),
    "a damaged note of re-crawls": (
        written("recrawl.json", '{"before": 1e300}'),
        "recrawl.json",
        ("recrawl",),
    ),
}
# What only a forger writes, since the checksum is right: nobody can go on with it, but every file is whole.
FORGED: dict[str, tuple[Damage, tuple[str, ...]]] = {
    "cookies": (state("cookies", {"number": [], "files": {}}), ("resume",)),
    "seen": (state("seen", {}), ("resume",)),
    "digests": (state("seen", {"x": 1}, DIGESTS), ("resume",)),
    "progress": (state("progress", {"rows": "x"}, DIGESTS), ("resume",)),
    "log": (written("log.jsonl", json.dumps(ENDED)), ("status", "plan")),
    "events": (written("log.jsonl", '{"event": []}\n[]\n' + "[" * 200_000 + "\n\xff\n"), ("plan",)),
}


@pytest.mark.parametrize("name", CASES)
def test_damage_is_found_and_told_in_one_line(
    name: str,
    made: Path,
    known: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage, file, failing = CASES[name]
    damage(copied(made, tmp_path / "job"))
    found = [problem for problem in verify_job(tmp_path / "job") if problem.kind == "damage"]
    assert any(problem.file.endswith(file) for problem in found)
    fails(failing, tmp_path / "job", known, monkeypatch, capsys)


@pytest.mark.parametrize("name", FORGED)
def test_what_is_forged_is_told_in_one_line(
    name: str,
    made: Path,
    known: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage, failing = FORGED[name]
    damage(copied(made, tmp_path / "job"))
    fails(failing, tmp_path / "job", known, monkeypatch, capsys)


def fails(
    failing: tuple[str, ...],
    job: Path,
    known: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in failing:
        copied(job, job.parent / command)
        arguments = on(job.parent / command, known[command])
        if command in WRITING:
            arguments.append("--trust-settings")
        assert run(monkeypatch, *arguments) in (1, 2), command
        output = capsys.readouterr()
        said = [line for line in output.err.splitlines() if line.startswith("barkspider: ")]
        assert len(said) == 1, output.err
        assert "mistake of barkspider's own" not in said[0]
        shutil.rmtree(job.parent / command)


def test_a_damaged_table_fails_only_who_asks_for_it_and_is_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = copied(made, tmp_path / "job")
    cut("archive/tables/links/*")(job)
    assert run(monkeypatch, "query", job, "SELECT count(*) AS n FROM pages", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["n"] > 20
    for table in ("links", "domains"):
        assert run(monkeypatch, "query", job, f"SELECT count(*) FROM {table}") == 1
        assert "archive/tables/links/000000-000000.parquet" in capsys.readouterr().err


class Counted:
    """An unpacker that counts what it was made to unpack."""

    def __init__(self, make: Callable[[], Any], counts: list[int]) -> None:
        self._unpacker, self._counts = make(), counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unpacker, name)

    def feed(self, data: bytes, most: int) -> bytes:
        unpacked: bytes = self._unpacker.feed(data, most)
        self._counts.append(len(unpacked))
        return unpacked


@pytest.mark.parametrize("suffix", [".warc.gz", ".warc.zst"])
def test_a_record_that_unpacks_to_gigabytes_is_not_unpacked(
    suffix: str,
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The bound is a hundredth of the real one here, and the record has a hundredth of 4.6 GB."""
    most, size = LARGEST // 100, 46_000_000
    monkeypatch.setattr("barkspider.archive.reader.LARGEST", most)
    head = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n" % size
    data = head + bytes(size) + b"\r\n\r\n"
    packed = gzip.compress(data, 1, mtime=0) if suffix == ".warc.gz" else zstandard.compress(data)
    assert len(packed) < size / 200
    job = copied(made, tmp_path / "job")
    warc = job / "archive" / f"pages-20270115080000-00009{suffix}"
    warc.write_bytes(packed)
    counts: list[int] = []
    make = unpackers(suffix, b"")
    monkeypatch.setattr("barkspider.archive.reader.unpackers", lambda *_: lambda: Counted(make, counts))
    with WarcFile(Env(), warc) as file:
        assert next(file.records(), None) is None
        assert sum(counts) <= most + (64 << 20 if suffix == ".warc.zst" else 1)
        counts.clear()
        assert file.header(0) in ({}, {"warc-type": "response", "content-length": str(size)})
    damage = [problem for problem in verify_job(job) if problem.file == warc.name]
    assert "there is no whole record at byte 0" in damage[0].what
    assert run(monkeypatch, "export", job) == 1
    assert "is damaged at byte 0" in capsys.readouterr().err
