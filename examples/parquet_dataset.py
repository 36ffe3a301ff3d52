"""Write the texts of a job as a dataset of Parquet files, each page exactly once.

    python parquet_dataset.py jobs/example dataset/

The cursor is in the metadata of the newest file, which gets its name when it is whole: so there is never one without the
other, and a run that was killed leaves nothing but a `.new` file, which the next one replaces. Run it as often as you like,
also while the job is crawled.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import barkspider

SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("language", pa.string()),
        ("text", pa.string()),
    ]
)
ROWS = 10_000  # pages of a file, at most


def write(job: str, folder: str, most: int = ROWS) -> int:
    """Write the pages that are new since the last run; how many these were."""
    target, count = Path(folder), 0
    target.mkdir(exist_ok=True)
    files = sorted(target.glob("*.parquet"))
    cursor = (pq.read_schema(files[-1]).metadata or {})[b"cursor"].decode() if files else ""
    pages = (page for page in barkspider.open_job(job).changes(since=cursor) if page.outcome == "ok")
    while portion := list(islice(pages, most)):
        rows = [
            {"url": page.url, "time": page.time, "language": page.language, "text": page.text}
            for page in portion
        ]
        table = pa.Table.from_pylist(rows, SCHEMA.with_metadata({"cursor": portion[-1].cursor}))
        number = len(files) + count // most
        path = target / f"{number:06d}.parquet"
        pq.write_table(table, path.with_suffix(".new"), compression="zstd")
        path.with_suffix(".new").replace(path)
        count += len(portion)
    return count


if __name__ == "__main__":
    print(write(*sys.argv[1:3]), "pages")
