"""A content store without duplicates: a million pages, three in ten of them seen before, however long ago.

Exchanges of a web without a network go straight into WARC files, with memory for the digests of a fiftieth of them; in the
midst the writer is closed and opened again, its notes thrown away, as if it had been killed. Each content is to be stored
once, and memory is to stay what it is. Quick: 30,000 pages.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from barkspider.archive.warc import WarcWriter
from barkspider.core.settings import Archive
from barkspider.storage.env import Env

_BODY = 1_500  # bytes: above the least for which a revisit record is written
_SHARE = 0.3
_GROWTH = 20_000_000  # bytes of memory between a third of the pages and the end


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    pages, random = 30_000 if quick else 1_000_000, Random(1)
    settings = Archive(recent_digests=pages // 50, warc_size=20_000_000)
    stored, contents, early, early_with_files = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = WarcWriter(Env(), folder, "pages", settings, {})
        cpu = time.process_time()
        for number in range(pages):
            if number == pages // 2:
                writer.close()
                shutil.rmtree(folder / "payloads")
                writer = WarcWriter(Env(), folder, "pages", settings, {})
            is_new = not contents or random.random() >= _SHARE
            content = contents if is_new else random.randrange(contents)
            contents += is_new
            url = f"http://h{number % 1000}.example/{number}"
            kept = writer.write_exchange(
                url, b"GET / HTTP/1.1\r\n\r\n", _answer(content), "127.0.0.1", 1.8e9 + number
            )
            stored += not kept.revisit
            if number == pages // 3:
                early, early_with_files = _rss(), _rss("VmRSS")
        writer.close()
        seconds = time.process_time() - cpu
        size = sum(path.stat().st_size for path in folder.glob("*.warc.gz"))
        runs = len(list((folder / "payloads").iterdir()))
    growth = _rss() - early
    figures = {
        "pages": pages,
        "contents": contents,
        "stored": stored,
        "runs": runs,
        "warc_bytes": size,
        "rss_growth": growth,
        "rss_growth_with_mapped_files": _rss("VmRSS") - early_with_files,
        "cpu_us_per_page": round(1e6 * seconds / pages, 1),
    }
    targets = [
        _target("contents stored more than once", stored - contents, 0),
        _target("growth of memory after a third of the pages", None if quick else growth, _GROWTH),
    ]
    return {"figures": figures, "targets": targets}


def _answer(content: int) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % _BODY
    return head + (b"<p>%d</p>" % content).ljust(_BODY, b".")


def _rss(kind: str = "RssAnon") -> int:
    """Memory of this process; files that are mapped, which the system takes back when it likes, are in `VmRSS` only."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    return 0


def _target(name: str, value: int | None, target: int) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "target": target,
        "holds": None if value is None else value <= target,
    }
