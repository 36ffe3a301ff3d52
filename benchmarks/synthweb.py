"""How many pages a second the synthetic web serves with one core.

Keep-alive, uncompressed, pages of 25 KB chosen at random from a million. What counts is the processor time
of the server process, so that a slow client does not matter. `wrk` makes the load if it is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

TARGET = 10_000
_CONNECTIONS = 32

_WRK_SCRIPT = """
local requests = {}
for line in io.lines("%s") do
  local host, path = line:match("^(%%S+) (%%S+)$")
  requests[#requests + 1] = wrk.format("GET", path, {Host = host})
end
local n = 0
request = function() n = n %% #requests + 1 return requests[n] end
"""


def run(quick: bool) -> dict[str, Any]:
    """Measures for 5 seconds, or 20 when not `quick`."""
    seconds = 5 if quick else 20
    wrk = shutil.which("wrk")
    # One address for all hosts, because a load generator connects to one.
    with running_web(WebSpec(pages=1_000_000, servers=1)) as running, tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests.txt"
        _choose_pages(running, requests)
        _load(running, requests, 1, None)  # warms caches of host names
        before = _cpu_seconds(running.process.pid)
        began = time.monotonic()
        pages, size = _load(running, requests, seconds, wrk)
        wall = time.monotonic() - began
        cpu = _cpu_seconds(running.process.pid) - before
    rate = round(pages / cpu)
    return {
        "figures": {
            "pages": pages,
            "seconds": round(wall, 2),
            "server_cpu_seconds": round(cpu, 2),
            "pages_per_second": round(pages / wall),
            "pages_per_core_second": rate,
            "mean_page_bytes": round(size / pages),
            "wrk": wrk,
        },
        "targets": [
            {
                "name": "synthetic web: pages of 25 KB per second and core",
                "value": rate,
                "target": TARGET,
                "holds": rate >= TARGET,
            }
        ],
    }


def _choose_pages(running: RunningWeb, path: Path) -> None:
    chooser = random.Random(1)
    urls = [running.web.url(chooser.randrange(running.spec.pages)) for _ in range(20_000)]
    path.write_text("".join(url.removeprefix("http://").replace("/", " /", 1) + "\n" for url in urls))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _load(running: RunningWeb, requests: Path, seconds: int, wrk: str | None) -> tuple[int, int]:
    address = "127.16.0.1"
    if wrk is None:
        command = [
            sys.executable,
            __file__,
            "load",
            address,
            str(running.http_port),
            str(seconds),
            str(requests),
        ]
        counts = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return counts["pages"], counts["bytes"]
    script = requests.with_suffix(".lua")
    script.write_text(_WRK_SCRIPT % requests)
    url = f"http://{address}:{running.http_port}/"
    command = [wrk, "-t1", f"-c{_CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    pages = int(words[words.index("requests") - 1])
    size = words[words.index("read") - 1].rstrip(",")
    units = {"KB": 1024, "MB": 1024**2, "GB": 1024**3}
    return pages, round(float(size[:-2]) * units[size[-2:]])


class _Client(asyncio.Protocol):
    # Sends the next request when a response is complete.
    pages = 0
    size = 0

    def __init__(self, requests: list[bytes]) -> None:
        self._requests = requests
        self._next = random.randrange(len(requests))
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        self._next = (self._next + 1) % len(self._requests)
        self._transport.write(self._requests[self._next])

    def data_received(self, data: bytes) -> None:
        _Client.size += len(data)
        if not self._left:
            if not data.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(data[:100].decode("latin-1"))
            begin = data.index(b"Content-Length: ") + 16
            self._left = int(data[begin : data.index(b"\r", begin)]) + data.index(b"\r\n\r\n") + 4
        self._left -= len(data)
        if not self._left:
            _Client.pages += 1
            self._ask()


async def _generate(address: str, port: int, seconds: float, lines: list[str]) -> None:
    requests = [
        "GET {1} HTTP/1.1\r\nHost: {0}\r\nUser-Agent: load\r\n\r\n".format(*line.split()).encode()
        for line in lines
    ]
    loop = asyncio.get_running_loop()
    for _ in range(_CONNECTIONS):
        await loop.create_connection(lambda: _Client(requests), address, port)
    await asyncio.sleep(seconds)
    print(json.dumps({"pages": _Client.pages, "bytes": _Client.size}), flush=True)
    os._exit(0)  # connections in the middle of a response need no farewell


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        import uvloop

        uvloop.run(
            _generate(
                sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]).read_text().splitlines()
            )
        )
    else:
        print(json.dumps(run("--quick" in sys.argv), indent=2))
