"""A crawl as a WACZ file, read as its specification says, and by pywb."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from barkspider.archive import ArchiveWriter, Fetched, PageFacts, WarcWriter, batches_of, cdxj
from barkspider.archive.reader import parse_record
from barkspider.archive.tables import TableFile, TableFolder
from barkspider.core.batch import NO_URLS
from barkspider.core.load import replace
from barkspider.core.records import UrlRow
from barkspider.core.settings import Archive, Settings
from barkspider.engine import Job
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.archive.journalled import describe
from tests.archive.replaying import ROOT
from tests.cli.program import complaint, run

NOW = 1_800_000_000.0
SETTINGS = replace(Settings(seed=7), {"archive.warc_size": "2KB", "archive.recent_digests": 1000})


class Crawl:
    """A crawl that is only its archive, and commits when it is told to."""

    def __init__(self, folder: Path, settings: Settings = SETTINGS) -> None:
        job = Job.create(folder, settings, ["http://a.example/"], Env())
        job.close()
        self.archive = ArchiveWriter(Env(), job.archive, settings, {})
        self.store = Store.open(Env(), folder)
        self.store.add(self.archive)
        self.kept: list[str] = []

    def keep(self, path: str, media_type: str = "text/html", status: str = "200 OK") -> None:
        number, url = len(self.kept), f"http://{'ba'[len(self.kept) % 2]}.example/{path}"
        body = f"<title>{url}</title>{'words ' * 200}" if path != "same" else "same " * 400
        head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        fetched = Fetched(url, "192.0.2.1", b"GET /", (head + body).encode(), "", NOW + number, 0.1)
        row = UrlRow(number + 1, 1, 1, 0, 0, number, 0, url.encode())
        notes = describe(self.archive, row, fetched, "ok", PageFacts(media_type, title=f"Page {number}"))
        self.archive.add(batches_of(notes), NO_URLS)
        self.kept.append(url)


def crawled(folder: Path, pages: int = 9) -> Crawl:
    crawl = Crawl(folder)
    for number in range(pages):
        crawl.keep("same" if number in (3, 4) else f"page/{number}")
    crawl.keep("picture", "image/png")
    crawl.keep("gone", status="404 Not Found")
    crawl.store.commit()
    return crawl


class Wacz:
    """A WACZ file as a reader of its specification sees it, with nothing of ours."""

    def __init__(self, path: Path) -> None:
        self.path, self.zip = path, zipfile.ZipFile(path)
        assert self.zip.testzip() is None
        self.package = json.loads(self.zip.read("datapackage.json"))
        self.check()

    def check(self) -> None:
        assert (self.package["profile"], self.package["wacz_version"]) == ("data-package", "1.1.1")
        said = {each["path"]: each for each in self.package["resources"]}
        own = {"datapackage.json", "datapackage-digest.json"}
        assert set(said) | own == set(self.zip.namelist())
        for path, each in said.items():
            data = self.zip.read(path)
            assert (each["bytes"], each["name"]) == (len(data), path.rpartition("/")[2])
            assert each["hash"] == "sha256:" + hashlib.sha256(data).hexdigest()
            if path.endswith(".gz"):
                assert self.zip.getinfo(path).compress_type == zipfile.ZIP_STORED
        digest = json.loads(self.zip.read("datapackage-digest.json"))
        package = hashlib.sha256(self.zip.read("datapackage.json")).hexdigest()
        assert digest == {"path": "datapackage.json", "hash": f"sha256:{package}"}
        assert any(path.startswith("archive/") for path in said)

    def pages(self) -> list[dict[str, Any]]:
        head, *pages = map(json.loads, self.zip.read("pages/pages.jsonl").splitlines())
        assert head["format"] == "json-pages-1.0"
        return pages

    def lines(self) -> list[bytes]:
        """Every line of the index, by the blocks that index.idx names."""
        data = self.zip.read("indexes/index.cdx.gz")
        meta, *entries = self.zip.read("indexes/index.idx").splitlines()
        assert json.loads(meta.split(b" ", 2)[2])["filename"] == "index.cdx.gz"
        lines: list[bytes] = []
        for entry in entries:
            key, time, place = entry.split(b" ", 2)
            said = json.loads(place)
            block = gzip.decompress(data[said["offset"] : said["offset"] + said["length"]]).splitlines()
            assert block[0].startswith(b"%s %s " % (key, time))
            lines += block
        assert lines == sorted(lines)
        return lines

    def captures(self) -> dict[str, str]:
        """The WARC-Type of each record that the index points to, by its URL; read from its place in the file alone."""
        found = {}
        with self.path.open("rb") as file:
            for line in self.lines():
                said = json.loads(line.split(b" ", 2)[2])
                file.seek(self.start(f"archive/{said['filename']}") + int(said["offset"]))
                packed = file.read(int(said["length"]))
                record = parse_record(gzip.decompress(packed), 0, len(packed))
                assert record is not None
                assert record.url == said["url"]
                found[record.url] = record.kind
        return found

    def start(self, path: str) -> int:
        place = self.zip.getinfo(path).header_offset
        with self.path.open("rb") as file:
            file.seek(place)
            name, extra = struct.unpack("<HH", file.read(30)[26:])
        return place + 30 + int(name) + int(extra)


def export(monkeypatch: pytest.MonkeyPatch, job: Path, output: Path) -> Wacz:
    assert run(monkeypatch, "export", job, "--format", "wacz", "--output", output) == 0
    return Wacz(output)


def test_every_capture_is_found_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("barkspider.archive.wacz._BLOCK", 4)
    monkeypatch.setattr("barkspider.archive.cdxj._MOST", 2)  # so that indexes are merged in several rounds
    crawl = crawled(tmp_path / "job")
    crawl.archive.close()
    wacz = export(monkeypatch, tmp_path / "job", tmp_path / "x.wacz")
    found = wacz.captures()
    assert set(found) == set(crawl.kept)
    assert sorted(found.values()).count("revisit") == 1
    assert len([name for name in wacz.zip.namelist() if name.startswith("archive/")]) > 3
    html = crawl.kept[:9]
    assert [page["url"] for page in wacz.pages()] == html
    assert wacz.pages()[0] == {"url": html[0], "ts": "2027-01-15T08:00:00Z", "title": "Page 0"}
    assert wacz.package["mainPageUrl"] == html[0]
    assert {path.name for path in tmp_path.iterdir()} == {"job", "x.wacz"}  # nothing is left beside it
    output = str(tmp_path / "y.wacz")
    assert run(monkeypatch, "export", tmp_path / "job", "--format", "wacz", "--output", output, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["captures"], said["pages"]) == (11, 9)


def test_a_crawl_that_runs_gives_what_it_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = crawled(tmp_path / "job")
    committed = list(crawl.kept)
    for number in range(5):  # these go into the file that is open, and into further ones
        crawl.keep(f"later/{number}")
    crawl.archive.writing_rows()()
    crawl.archive.flush()
    wacz = export(monkeypatch, tmp_path / "job", tmp_path / "x.wacz")
    assert set(wacz.captures()) == set(committed)
    assert [page["url"] for page in wacz.pages()] == committed[:9]
    crawl.store.commit()
    assert set(export(monkeypatch, tmp_path / "job", tmp_path / "y.wacz").captures()) == set(crawl.kept)
    crawl.archive.close()


def test_files_of_the_table_that_are_merged_meanwhile_give_each_page_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = crawled(tmp_path / "job", pages=4)
    for number in range(3):
        crawl.keep(f"more/{number}")
        crawl.store.commit()
    whole, merged = TableFolder._opened, False

    def opened(self: TableFolder, part: TableFile) -> Any:
        nonlocal merged
        if part.first == 2 and not merged:
            merged = True
            crawl.archive.close()  # what was listed a moment ago is gone
        return whole(self, part)

    monkeypatch.setattr(TableFolder, "_opened", opened)
    urls = [page["url"] for page in export(monkeypatch, tmp_path / "job", tmp_path / "x.wacz").pages()]
    assert merged
    assert urls == [url for url in crawl.kept if not url.endswith(("picture", "gone"))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "needs a file to write to"),
        (["--output", "x.zip"], "the name of a WACZ file ends in .wacz"),
        (["--output", "x.wacz", "--newest"], "--newest is for pages as jsonl or parquet"),
        (["--output", "x.wacz"], "there is nothing to export yet"),
    ],
)
def test_what_cannot_be_packed_is_refused_in_one_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    crawl = Crawl(tmp_path / "job")
    crawl.keep("page")  # which no checkpoint has
    crawl.archive.flush()
    assert run(monkeypatch, "export", "job", "--format", "wacz", *options) == 2
    assert message in complaint(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_records_packed_by_zstd_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = Crawl(tmp_path / "job", replace(SETTINGS, {"archive.compression": "zstd"}))
    crawl.keep("page")
    crawl.store.commit()
    crawl.archive.close()
    output = tmp_path / "x.wacz"
    assert run(monkeypatch, "export", tmp_path / "job", "--format", "wacz", "--output", output) == 2
    assert "packed by gzip" in complaint(capsys)


def test_a_file_that_lost_its_end_is_named_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = crawled(tmp_path / "job")
    crawl.archive.flush()
    (growing,) = (tmp_path / "job" / "archive").glob("pages-*.open")
    growing.write_bytes(growing.read_bytes()[:-10])
    output = tmp_path / "x.wacz"
    assert run(monkeypatch, "export", tmp_path / "job", "--format", "wacz", "--output", output) == 1
    assert f"{growing.name} is cut off" in complaint(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_many_indexes_are_merged_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barkspider.archive.cdxj._MOST", 3)
    writer = WarcWriter(Env(), tmp_path, "test", Archive(warc_size=1, recent_digests=0), {})
    for number in range(20):
        writer.write_exchange(
            f"http://a.example/{number * 7 % 20}", b"", b"HTTP/1.1 200 OK\r\n\r\n", "::1", NOW
        )
    writer.close()
    opened, most = 0, 0
    whole = Env.open

    def counting(self: Env, path: Path) -> Any:
        nonlocal opened, most
        file = whole(self, path)
        opened, most = opened + 1, max(most, opened + 1)
        close = file.close

        def closing() -> None:
            nonlocal opened
            opened, file.close = opened - 1, close  # type: ignore[method-assign]
            close()

        file.close = closing  # type: ignore[method-assign]
        return file

    monkeypatch.setattr(Env, "open", counting)
    before = sorted(tmp_path.iterdir())
    assert cdxj.merge(Env(), tmp_path) == 20
    assert 0 < most <= 3
    lines = (tmp_path / cdxj.INDEX).read_bytes().splitlines()
    assert lines == sorted(lines)
    assert len(set(lines)) == 20
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / cdxj.INDEX])


def test_pywb_replays_it(pywb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = crawled(tmp_path / "job")
    crawl.archive.close()
    wacz = export(monkeypatch, tmp_path / "job", tmp_path / "x.wacz")
    manager = [pywb, "-W", "ignore", "-m", "pywb.manager.manager"]
    for command in (["init", "job"], ["add", "--unpack-wacz", "job", wacz.path]):
        done = subprocess.run([*manager, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]
    config = tmp_path / "config.yaml"
    config.write_text(
        "collections:\n  job:\n    index_paths: ./collections/job/indexes/index.cdxj\n    archive_paths: ./collections/job/archive/\n"
    )
    asked = [f"/job/2027id_/{url}" for url in crawl.kept]
    replay = [pywb, "-W", "ignore", ROOT / "tests" / "archive" / "replay.py", config]
    done = subprocess.run(
        replay, input=json.dumps(asked), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    assert [status for status, _ in answers] == [200] * 10 + [404]
    assert f"<title>{crawl.kept[0]}</title>" in answers[0][1]
    assert answers[4][1] == "same " * 400  # a revisit, with the payload of another page


def test_parts_of_a_crawl_are_one_file_though_their_warc_files_have_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.wacz._BLOCK", 4)
    job = tmp_path / "job"
    Job.create(job, replace(SETTINGS, {"parallel.processes": 2}), ["http://a.example/"], Env()).close()
    parts = [crawled(job / f"part-{number:04d}", pages) for number, pages in enumerate((9, 3))]
    parts[0].archive.close()  # the other may still be running
    (job / "job.toml").write_text("processes = 2\n")
    first = [next(part.archive._folder.glob("pages-*-00000.warc*")).name for part in parts]
    assert first[0] == first[1].removesuffix(".open")
    wacz = export(monkeypatch, job, tmp_path / "x.wacz")
    assert len(wacz.lines()) == len(parts[0].kept) + len(parts[1].kept)
    assert set(wacz.captures()) == {url for part in parts for url in part.kept}
    names = {json.loads(line.split(b" ", 2)[2])["filename"] for line in wacz.lines()}
    assert {name[:10] for name in names} == {"part-0000-", "part-0001-"}
    times = [page["ts"] for page in wacz.pages()]
    assert (len(times), times) == (12, sorted(times))
