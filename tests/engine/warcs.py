"""Looking into the WARC files of a job with the field's own tools."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.checker import Checker

_ANSWERS = WarcRecordType.response | WarcRecordType.revisit


def archived(job: Path, prefix: str) -> list[str]:
    """The URLs of all response and revisit records, in the order in which they were written."""
    urls = []
    for path in sorted((job / "archive").glob(f"{prefix}-*.warc.gz")):
        with path.open("rb") as file:
            urls += [
                record.headers["WARC-Target-URI"]
                for record in ArchiveIterator(file, record_types=_ANSWERS, parse_http=False)
            ]
    return urls


def check_warcs(job: Path) -> int:
    """The number of records in all files of a closed job, every digest recomputed; none may be left open."""
    assert not list((job / "archive").glob("*.open"))
    names = [path.name for path in (job / "archive").glob("*.warc.gz")]
    assert names
    # warcio takes its time: it checks the small ones, fastwarc all of them.
    small = [str(job / "archive" / name) for name in names if (job / "archive" / name).stat().st_size < 3e6]
    assert Checker(SimpleNamespace(inputs=small, verbose=False)).process_all() == 0
    count = 0
    for name in names:
        with (job / "archive" / name).open("rb") as file:
            for record in ArchiveIterator(file, parse_http=False):
                count += 1
                assert record.verify_block_digest(consume=False)
                record.parse_http()
                # A head whose lines end in LF alone is all status line to fastwarc: warcio alone can check it.
                if record.record_type == WarcRecordType.response and "\n" not in (
                    record.http_headers.status_line or ""
                ):
                    assert record.verify_payload_digest()
    return count
