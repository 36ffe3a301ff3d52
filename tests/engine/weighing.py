"""What a crawl takes of memory, phase by phase: run by a process of its own, which reads what the system says of it.

python -m tests.engine.weighing < {"options": ["memory=50MB", …], "seeds": ["http://…/"]}
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Weight(TypedDict):
    """Bytes of RSS: before anything is crawled, and the highest while it is and while it ends; CPU seconds from then on."""

    idle: int
    crawling: int
    closing: int
    pages: int
    cpu: float


def weigh(options: Sequence[str], seeds: Sequence[str], timeout: float = 600) -> Weight:
    """Crawl in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.weighing"],
        input=json.dumps({"options": list(options), "seeds": list(seeds)}),
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: Weight = json.loads(done.stdout)
    return found


def peak() -> int:
    """The highest RSS since the last call."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    CLEAR.write_text("5")
    return int(lines["VmHWM"].split()[0]) * 1024


def main() -> None:
    given = json.load(sys.stdin)

    import uvloop

    import barkspider.cli.app
    import barkspider.cli.run  # noqa: F401
    from barkspider.core.allotment import share_arenas
    from barkspider.core.load import load_settings
    from barkspider.engine import Crawl, Job
    from barkspider.storage.env import Env

    gc.collect()
    peak()
    idle, start = peak(), time.process_time()
    gc.freeze()  # as the program does it
    gc.set_threshold(50_000, 20, 20)
    share_arenas()
    crawling = 0

    async def run(folder: Path) -> int:
        job = Job.create(folder / "job", load_settings(options=given["options"]), given["seeds"], Env())
        crawl = Crawl.open(job)
        close = crawl._close

        async def closing() -> None:
            nonlocal crawling
            crawling = peak()
            await close()

        crawl._close = closing  # type: ignore[method-assign]
        try:
            return (await crawl.run()).pages
        finally:
            job.close()

    with tempfile.TemporaryDirectory() as folder:
        pages = uvloop.run(run(Path(folder)))
    cpu = round(time.process_time() - start, 3)
    print(json.dumps(Weight(idle=idle, crawling=crawling, closing=peak(), pages=pages, cpu=cpu)))


if __name__ == "__main__":
    main()
