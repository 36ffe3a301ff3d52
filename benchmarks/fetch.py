"""Requests per CPU-second of the client: ours, aiohttp, pycurl and wrk against one server, in one run.

`new`: a new connection for every request, spread over 250 addresses, as a polite crawl does. `kept`: 200
connections that stay open. The server is the synthetic web on the other core; pages are about 23 KB,
not compressed. Each client runs in a process of its own, 200 requests at a time.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from barkspider.core.load import load_settings
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

_AT_ONCE = 200
_ADDRESSES = [f"127.16.0.{number}" for number in range(1, 251)]
_SPEC = WebSpec(seed=1, pages=20_000, servers=250, page_bytes=23_000)


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    requests, rounds = (6_000, 1) if quick else (20_000, 3)
    figures: dict[str, Any] = {}
    with running_web(_SPEC) as served:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(served.process.pid, {cores[-1]})
        sizes = {url: len(served.web.page(url).body) for url in served.web.seeds(100)}
        url = min(sizes, key=lambda each: abs(sizes[each] - 23_000))
        figures["page_bytes"] = sizes[url]
        for way in ("new", "kept"):
            for client in ("barkspider", "aiohttp", "pycurl", "wrk"):
                best = [_measure(client, way, served, url, requests, cores[0]) for _ in range(rounds)]
                known = [figure for figure in best if figure is not None]
                figures[f"{client}_{way}"] = round(max(known)) if known else None
    ours_new, ours_kept = figures["barkspider_new"], figures["barkspider_kept"]
    targets = [
        _target("new connections: times aiohttp", ours_new, figures["aiohttp_new"], 4.0),
        _target("new connections: times pycurl", ours_new, figures["pycurl_new"], 2.0),
        _target("new connections: share of wrk", ours_new, figures["wrk_new"], 0.6),
        _target("kept connections: times aiohttp", ours_kept, figures["aiohttp_kept"], 6.0),
    ]
    return {"figures": figures, "targets": targets}


def _target(name: str, ours: float, theirs: float | None, target: float) -> dict[str, Any]:
    value = round(ours / theirs, 2) if theirs else None
    return {
        "name": name,
        "value": value,
        "target": target,
        "holds": None if value is None else value >= target,
    }


def _measure(client: str, way: str, served: RunningWeb, url: str, requests: int, core: int) -> float | None:
    if client == "wrk":
        return _wrk(way, served, url, core)
    command = [
        sys.executable,
        "-m",
        "benchmarks.fetch",
        client,
        way,
        url,
        str(served.http_port),
        str(requests),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})
    )
    if done.returncode == 3:  # the peer is not installed
        return None
    if done.returncode:
        raise RuntimeError(f"{client} failed: {done.stderr[-500:]}")
    return float(done.stdout)


def _wrk(way: str, served: RunningWeb, url: str, core: int) -> float | None:
    if shutil.which("wrk") is None:
        return None
    headers = ["-H", f"Host: {url.split('/')[2]}", *(["-H", "Connection: close"] if way == "new" else [])]
    command = ["wrk", "-t1", f"-c{_AT_ONCE}", "-d3", *headers, f"http://{_ADDRESSES[0]}:{served.http_port}/"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count = re.search(r"(\d+) requests in", done.stdout)
    return int(count[1]) / seconds if count else None


# ── clients, each in a process of its own ─────────────────────────────────────────────────────────


async def _spread(fetch: Callable[[int], Awaitable[int]], requests: int) -> float:
    """CPU seconds of so many requests by workers; `fetch` takes a number and gives the size of the page."""
    numbers = iter(range(requests))
    sizes = 0

    async def worker(mine: int, kept: bool) -> None:
        nonlocal sizes
        for number in numbers:
            size = await fetch(mine if kept else number)
            sizes += size > 10_000

    kept = sys.argv[2] == "kept"
    before = time.process_time()
    await asyncio.gather(*(worker(number, kept) for number in range(_AT_ONCE)))
    seconds = time.process_time() - before
    assert sizes == requests, f"{requests - sizes} requests failed"
    return seconds


async def _barkspider(way: str, url: str, port: int, requests: int) -> float:
    from barkspider.fetch import Fetcher

    options = ["network.allow=127.0.0.0/8", f"network.ports=127.0.0.0/8:80={port}", "fetch.encodings="]
    options.append(f"fetch.idle_connections={0 if way == 'new' else _AT_ONCE}")
    fetcher = Fetcher(load_settings(options=options))

    async def fetch(number: int) -> int:
        response = await fetcher.fetch(url, _ADDRESSES[number % len(_ADDRESSES)])
        return len(response.body)

    seconds = await _spread(fetch, requests)
    await fetcher.aclose()
    return seconds


async def _aiohttp(way: str, url: str, port: int, requests: int) -> float:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, force_close=way == "new")
    headers = {"Host": url.split("/")[2], "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def fetch(number: int) -> int:
            async with session.get(f"http://{_ADDRESSES[number % len(_ADDRESSES)]}:{port}/") as response:
                return len(await response.read())

        return await _spread(fetch, requests)


def _pycurl(way: str, url: str, port: int, requests: int) -> float:
    import pycurl

    multi = pycurl.CurlMulti()
    handles = [pycurl.Curl() for _ in range(_AT_ONCE)]
    places = {id(handle): number for number, handle in enumerate(handles)}
    sizes: list[int] = []
    started = 0
    before = time.process_time()

    def start(handle: Any) -> None:
        nonlocal started
        number = started if way == "new" else places[id(handle)]
        chunks: list[bytes] = []
        handle.setopt(pycurl.URL, f"http://{_ADDRESSES[number % len(_ADDRESSES)]}:{port}/")
        handle.setopt(pycurl.HTTPHEADER, [f"Host: {url.split('/')[2]}"])
        handle.setopt(pycurl.WRITEFUNCTION, chunks.append)
        if way == "new":
            handle.setopt(pycurl.FORBID_REUSE, 1)
            handle.setopt(pycurl.FRESH_CONNECT, 1)
        handle.chunks = chunks
        multi.add_handle(handle)
        started += 1

    for handle in handles:
        start(handle)
    while len(sizes) < requests:
        while multi.perform()[0] == pycurl.E_CALL_MULTI_PERFORM:
            pass
        left, good, bad = 1, [], []
        while left:
            left, good, bad = multi.info_read()
            assert not bad, bad
            for handle in good:
                sizes.append(len(b"".join(handle.chunks)))
                multi.remove_handle(handle)
                if started < requests:
                    start(handle)
        multi.select(1.0)
    assert min(sizes) > 10_000
    return time.process_time() - before


def _client_main() -> None:
    import uvloop

    client, way, url, port, requests = (
        sys.argv[1],
        sys.argv[2],
        sys.argv[3],
        int(sys.argv[4]),
        int(sys.argv[5]),
    )
    try:
        if client == "pycurl":
            seconds = _pycurl(way, url, port, requests)
        else:
            chosen = _barkspider if client == "barkspider" else _aiohttp
            seconds = uvloop.run(chosen(way, url, port, requests))
    except ImportError:
        sys.exit(3)
    print(requests / seconds)


if __name__ == "__main__":
    _client_main()
