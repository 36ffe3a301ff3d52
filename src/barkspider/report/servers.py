"""Which software answered: the header `Server` of a sample of the pages, read from the archive."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from barkspider.archive.captures import read_capture
from barkspider.core.errors import StorageError
from barkspider.engine import StoredJob
from barkspider.storage.env import Env

SAMPLE = 1_000  # pages: three digits of a share, a second of reading
_COMMON = 12
# By their keys, which are spread evenly: the same pages each time, from all of the crawl.
_CHOSEN = f"""
    SELECT {{part}} AS part, warc_filename AS filename, warc_record_offset AS "offset" FROM pages
    WHERE warc_filename IS NOT NULL ORDER BY hash(key) LIMIT {SAMPLE}
"""


def servers(job: StoredJob) -> tuple[dict[str, int], int]:
    """How many of the pages that were looked at each software served, without its version; and how many these were."""
    found: Counter[str] = Counter()
    part = "part" if len(job.archives) > 1 else "0"
    rows = job.query(_CHOSEN.format(part=part)).to_pylist()
    for row in sorted(rows, key=lambda each: (each["part"], each["filename"], each["offset"])):
        name = _server(job.env, job.archives[row["part"]], row)
        if name is not None:
            found[name] += 1
    common = dict(found.most_common(_COMMON))
    others = found.total() - sum(common.values())
    return common | ({"others": others} if others else {}), found.total()


def _server(env: Env, archive: Path, row: dict[str, object]) -> str | None:
    """What a response says of its software; None when it cannot be read."""
    try:
        block = read_capture(env, archive, row).block
    except (StorageError, OSError):  # moved away, or not complete yet
        return None
    head = block.partition(b"\r\n\r\n")[0]
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"server":
            product = value.decode("latin-1").strip().partition("/")[0].partition(" ")[0]
            return product[:40] or "not said"
    return "not said"
