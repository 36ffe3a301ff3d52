"""The crawler's side, in a process of its own: orders come as lines of JSON, and so do the results.

An order is a fetch or a crawl. With each result goes what it cost: how far the memory of the process grew
above what it was before, at its highest, and the CPU seconds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barkspider import crawl, load_settings
from barkspider.core.errors import UrlError
from barkspider.core.settings import Page
from barkspider.fetch import Fetcher, Resolution
from barkspider.page import PageReader
from barkspider.url import Domains, Normaliser, split
from tests.engine.warcs import archived, check_warcs

_LONGEST = (
    300.0  # seconds for all orders: a multiple of what they take; without it a hang would hang the tests
)
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(field: str) -> int:
    """Bytes of resident memory: VmRSS is now, VmHWM the highest since the last reset."""
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1]) * 1024


def reset_memory() -> int:
    """Bytes of resident memory now; the highest counts from here."""
    gc.collect()
    _CLEAR.write_text("5")
    return memory("VmRSS")


Fetchers = dict[tuple[str, ...], tuple[Fetcher, Normaliser]]


async def measured(order: Mapping[str, Any], fetchers: Fetchers) -> dict[str, Any]:
    """Do what an order says; its result, `memory` in bytes and `cpu` in seconds.

    Fetches with the same options share a fetcher, which takes longer to make than most of them.
    """
    options = tuple(order["options"])
    if "seeds" not in order and options not in fetchers:
        settings = load_settings(options=options)
        fetchers[options] = Fetcher(settings), Normaliser(settings.url, Domains())
    before, cpu = reset_memory(), time.process_time()
    if "seeds" in order:
        result = await asyncio.to_thread(run_crawl, order)  # it has a loop of its own
    else:
        result = await run_fetch(order, *fetchers[options])
    cost = {"memory": memory("VmHWM") - before, "cpu": time.process_time() - cpu}
    return {"title": order["title"]} | result | cost


async def run_fetch(order: Mapping[str, Any], fetcher: Fetcher, normalise: Normaliser) -> dict[str, Any]:
    """Normalise, resolve, fetch: how it ended."""
    try:
        url = normalise(order["url"])
    except UrlError as error:
        return {"outcome": error.reason}
    found = Resolution((order["address"],), "", 60.0)
    if not order["address"]:
        found = await fetcher.resolve(split(url).host)
    if found.error or not order["connects"]:
        return {"outcome": found.error or f"allowed {found.addresses}"}
    response = await fetcher.fetch(url, found.addresses[0])
    exchange = response.exchange
    kind = exchange.header(b"content-type") or None
    return {
        "outcome": exchange.outcome,
        "detail": exchange.detail,
        "status": exchange.status,
        "truncated": exchange.truncated,
        "repaired": exchange.repaired,
        "address": response.address,
        "decoded": response.decoded,
        "body": len(response.body),
        "as_sent": response.body == exchange.body,
        "charset": PageReader(Page()).read(response.body, kind, url).charset,
    }


def run_crawl(order: Mapping[str, Any]) -> dict[str, Any]:
    """A crawl to its end: its statistics, and the URLs in its archive."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        statistics = crawl(order["seeds"], job, load_settings(options=order["options"]))
        check_warcs(job)
        log = [json.loads(line) for line in (job / "log.jsonl").read_text().splitlines()]
        return {
            "statistics": statistics.as_dict(),
            "pages": archived(job, "pages"),
            "robots": archived(job, "robots"),
            "internal_errors": [entry for entry in log if entry["event"] == "internal_error"],
        }


def results(orders: Sequence[Mapping[str, Any]], environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What came of each order, by title, in a new process; fewer than were asked for if it broke down."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.client"],
        input="".join(json.dumps(order) + "\n" for order in orders),
        stdout=subprocess.PIPE,
        text=True,
        env=dict(environment),
        timeout=_LONGEST,
    )
    found = (json.loads(line) for line in done.stdout.splitlines())
    return {result["title"]: result for result in found}


async def main() -> None:
    """Take orders until there are no more."""
    fetchers: Fetchers = {}
    gc.collect()
    gc.freeze()  # what was imported is not looked at again by the collections between orders
    for line in sys.stdin:
        order = json.loads(line)
        try:
            result = await measured(order, fetchers)
        except Exception:  # the others are met all the same
            result = {"title": order["title"], "broken": traceback.format_exc()}
        print(json.dumps(result), flush=True)
    for fetcher, _ in fetchers.values():
        await fetcher.aclose()


if __name__ == "__main__":
    asyncio.run(main())
