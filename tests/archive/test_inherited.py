"""What an archive knows of those that there were before its crawl was divided anew."""

from __future__ import annotations

from pathlib import Path

from barkspider.archive import ArchiveWriter, Fetched, PageFacts, batches_of, open_table
from barkspider.archive.captures import captures, read_capture, whole_response
from barkspider.archive.inherited import Inherited
from barkspider.core.batch import NO_URLS
from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"some words " * 200


def kept(folder: Path, settings: Settings, earlier: list[Path], pages: dict[str, bytes]) -> list[bool]:
    """Archive pages; whether each was stored as a reference to another."""
    folder.mkdir()
    archive = ArchiveWriter(Env(), folder, settings, {}, earlier=earlier)
    notes, revisits = [], []
    for number, (url, response) in enumerate(pages.items()):
        fetched = Fetched(url, "192.0.2.1", b"GET /", response, "", 1_800_000_000.0 + number, 0.1)
        stored = archive.keep_page(fetched)
        revisits.append(stored.revisit)
        row = UrlRow(hash(url) & 0xFFFFFFFF, 1, 1, 0, 0, 0, 0, url.encode())
        notes.append(archive.describe_page(row, fetched, stored, "ok", PageFacts()))
    archive.add(batches_of(notes), NO_URLS)
    archive.close()
    return revisits


def test_what_an_earlier_archive_has_is_not_stored_again_and_is_a_duplicate(tmp_path: Path) -> None:
    settings = load_settings(options=["parallel.processes=2", "parallel.part=1", "seed=7"])
    owns = Inherited((), 7, 2, 1).owns
    mine = [name for name in (f"d{number}.example" for number in range(20)) if owns([name])[0]]
    other = next(name for name in (f"d{number}.example" for number in range(20)) if not owns([name])[0])
    before = {f"http://{mine[0]}/a": PAGE, f"http://{other}/": PAGE + b"of another"}
    assert kept(tmp_path / "old", Settings(), [], before) == [False, False]
    after = {f"http://{mine[0]}/b": PAGE, f"http://{mine[1]}/": PAGE + b"of another"}
    new = tmp_path / "new"
    assert kept(new, settings, [tmp_path / "old"], after) == [True, True]
    (capture,) = captures(Env(), new, f"http://{mine[0]}/b")
    record = read_capture(Env(), new, capture)
    assert whole_response(Env(), new, record, [tmp_path / "old"]) == PAGE
    # Of equal pages those count that this part would have had.
    (row,) = open_table(Env(), new, "duplicates").read().to_pylist()
    first = open_table(Env(), tmp_path / "old", "pages").read().to_pylist()[0]
    assert row["duplicate_of"] == first["key"]
