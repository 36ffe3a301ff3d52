"""Other crawlers on the same web: Scrapy (Python) and wget2 (C), each in a process of its own on the crawler's core.

The web answers as a proxy does, so they need neither its name server nor its ports, and keep their connections to one
address: that is in their favour. Neither writes a WARC file.

    python -m benchmarks._peers < {"seeds": […], "pages": 500}     (Scrapy, with `http_proxy` in its environment)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from barkspider.lab.synthweb import RunningWeb
from benchmarks._crawling import cores

_PACKED = 9_000  # bytes of a small page on the wire: wget2 counts no pages
_RAM = Path("/dev/shm")
_AT_ONCE, _A_HOST = 100, 16  # more made Scrapy no faster
_TIMEOUT = 600  # seconds
CONFIGURED = {
    "Scrapy": f"uvloop, no delay, {_AT_ONCE} requests at once and {_A_HOST} a host, links by LinkExtractor, filter of duplicates on; "
    "robots.txt not obeyed; cookies, retries, log off; nothing stored",
    # More threads than its five cost more CPU a page. A disk takes longer to remove the files than wget2 to get them.
    "wget2": "recursive over all hosts, any depth, robots.txt obeyed, gzip, five threads; files saved in RAM",
}


def missing() -> list[str]:
    """What is not there, and how to get it."""
    scrapy = [] if find_spec("scrapy") else ["Scrapy: pip install -r requirements-bench.lock"]
    return scrapy + ([] if shutil.which("wget2") else ["wget2: apt-get install wget2"])


def scrapy(served: RunningWeb, seeds: list[str], pages: int) -> dict[str, float] | None:
    """Pages, CPU seconds and peak RSS of a crawl of the first `pages` pages; None without Scrapy."""
    if not find_spec("scrapy"):
        return None
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._peers"],
        input=json.dumps({"seeds": seeds, "pages": pages}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_TIMEOUT,
        env=os.environ | {"http_proxy": _proxy(served)},
        preexec_fn=_pin,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def wget2(served: RunningWeb, seeds: list[str], pages: int) -> dict[str, float] | None:
    """The same of a crawl of about so many small pages; None without wget2."""
    if not shutil.which("wget2"):
        return None
    command = ["wget2", "--quiet", "--no-config", "--recursive", "--level=0", "--span-hosts", "--tries=1"]
    command += [f"--http-proxy={_proxy(served)}", f"--quota={pages * _PACKED}", "--compression=gzip"]
    with tempfile.TemporaryDirectory(dir=_RAM if _RAM.is_dir() else None) as folder:
        process = subprocess.Popen([*command, *seeds], cwd=folder, preexec_fn=_pin)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for
        names = [path.name for path in Path(folder).rglob("*") if path.is_file()]
    saved = sum(name != "robots.txt" for name in names)
    return {"pages": saved, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss * 1024}


def _pin() -> None:
    os.sched_setaffinity(0, set(cores()[:1]))


def _proxy(served: RunningWeb) -> str:
    return f"http://{served.web.server(served.web.seeds(1)[0].split('/')[2])}:{served.http_port}"


def _scrapy_main(order: dict[str, Any]) -> None:
    import resource

    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import Response, TextResponse
    from scrapy.linkextractors import LinkExtractor

    pages = 0

    class Follow(Spider):
        name = "follow"
        start_urls = order["seeds"]
        extractor = LinkExtractor()

        def parse(self, response: Response) -> Iterator[Request]:
            nonlocal pages
            pages += 1
            if isinstance(response, TextResponse):
                for link in self.extractor.extract_links(response):
                    yield Request(link.url)

    process = CrawlerProcess(
        {
            "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
            "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
            "CONCURRENT_REQUESTS": _AT_ONCE,
            "CONCURRENT_REQUESTS_PER_DOMAIN": _A_HOST,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
            "CLOSESPIDER_PAGECOUNT": order["pages"],
        }
    )
    start = time.process_time()
    process.crawl(Follow)
    process.start()
    cpu = time.process_time() - start
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"pages": pages, "cpu": cpu, "rss": rss}))


if __name__ == "__main__":
    _scrapy_main(json.load(sys.stdin))
