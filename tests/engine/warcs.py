"""Looking into the WARC files of a job with the field's own tools."""

from __future__ import annotations

from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType


def archived(job: Path, prefix: str) -> list[str]:
    """The URLs of all response records, in the order in which they were written."""
    urls = []
    for path in sorted((job / "archive").glob(f"{prefix}-*.warc.gz")):
        with path.open("rb") as file:
            urls += [
                record.headers["WARC-Target-URI"]
                for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=False)
            ]
    return urls


def check_warcs(job: Path) -> int:
    """The number of records in all files of a closed job, every digest recomputed; none may be left open."""
    names = [path.name for path in (job / "archive").iterdir()]
    assert names
    assert all(name.endswith(".warc.gz") for name in names)
    count = 0
    for name in names:
        with (job / "archive" / name).open("rb") as file:
            for record in ArchiveIterator(file, parse_http=False):
                count += 1
                assert record.verify_block_digest(consume=False)
                record.parse_http()
                if record.record_type == WarcRecordType.response:
                    assert record.verify_payload_digest()
    return count
