"""All hazards are served and met once, by two processes side by side; the tests look at what came out."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.certificates import server_context
from tests.hostile.client import results
from tests.hostile.hazard import DOMAIN, Found, Hazard, host_of, site
from tests.hostile.llhttp import CASES
from tests.hostile.names import below
from tests.hostile.server import ADDRESS, Hostile, hostile_server, ok
from tests.hostile.table import CRAWLS, FETCHES

# Short deadlines: nobody is harmed, and a test need not wait for a server that never answers.
SHORT = [
    *("fetch.timeout=1s", "fetch.header_timeout=600ms", "fetch.connect_timeout=600ms"),
    *("fetch.rate_window=200ms", "dns.timeout=500ms", "dns.tries=1", "agent.contact=https://example.org/"),
]
QUICK = [
    *("politeness.host_delay=1ms", "politeness.server_delay=0s", "politeness.retry_delay=50ms"),
    "politeness.slow_factor=0",
    *("politeness.retries=1", "politeness.park_time=100ms", "politeness.max_crawl_delay=1s"),
    *("limits.grace=0s", "limits.time=10s", "scope.level=web", "seed=7"),
    # Tables of a fixed size are no cost of a hazard: by default those of digests alone may take 64 MB, or not, as
    # the allocator gives memory that was used before.
    *("memory=64MB", "archive.recent_digests=1000"),
]
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "socks_proxy")
_WARM = Hazard(
    0, "warming up", {host_of(0, "warming up"): site({"/": ok()})}, url=f"http://{host_of(0, 'warming up')}/"
)


@dataclass(frozen=True)
class Met:
    """What came of every hazard, and what the server saw of it."""

    server: Hostile
    results: dict[str, dict[str, Any]]
    proxy: socket.socket  # where the variables of the environment point to

    def of(self, hazard: Hazard) -> dict[str, Any]:
        """The result of a hazard."""
        assert hazard.title in self.results, "the process of the client ended before it came to this"
        result = self.results[hazard.title]
        assert "broken" not in result, result["broken"]
        return result

    def found(self, hazard: Hazard) -> Found:
        """The result of a crawl."""
        result = self.of(hazard)
        hosts = dict.fromkeys(hazard.scripts, True)
        requests = [request for request in self.server.requests if below(hosts, request.host)]
        return Found(result["statistics"], result["pages"], result["robots"], requests)


def settings(server: Hostile, authority: Path) -> list[str]:
    """The options with which a crawler finds the server."""
    network = "127.66.0.0/16"
    return [
        f"network.allow={network}",
        # At 25 nobody may ask; who does is seen.
        f"network.ports={network}:80={server.http_port},{network}:443={server.https_port},"
        f"{network}:25={server.http_port}",
        f"dns.servers=127.0.0.1:{server.dns_port}",
        f"fetch.tls_authority={authority}",
        *SHORT,
    ]


def _fetch_orders(base: list[str], hazards: Sequence[Hazard]) -> list[dict[str, Any]]:
    return [
        {
            "title": hazard.title,
            "url": hazard.url,
            "address": hazard.address,
            "connects": hazard.connects,
            "options": [*base, *hazard.options],
        }
        for hazard in hazards
    ]


def _crawl_orders(base: list[str], hazards: Sequence[Hazard]) -> list[dict[str, Any]]:
    return [
        {
            "title": hazard.title,
            "seeds": hazard.seeds or [hazard.url],
            "options": [*base, *QUICK, *hazard.options],
        }
        for hazard in hazards
    ]


@pytest.fixture(scope="session")
def met(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Met]:
    """Every hazard, met once."""
    folder = tmp_path_factory.mktemp("hostile")
    authority = folder / "authority.pem"
    context = server_context(folder, authority)
    fetches = [_WARM, *FETCHES, *CASES]
    table = [*fetches, *CRAWLS]
    assert len({hazard.title for hazard in table}) == len(table)
    scripts = {host: serve for hazard in table for host, serve in hazard.scripts.items()}
    records = {name: script for hazard in table for name, script in hazard.records.items()}
    with (
        hostile_server(scripts, {**records, f"*.{DOMAIN}": [[ADDRESS]]}, certificates=context) as server,
        socket.create_server(("127.0.0.1", 0)) as proxy,
    ):
        base = settings(server, authority)
        variables = {name: f"http://127.0.0.1:{proxy.getsockname()[1]}" for name in _PROXY_VARIABLES}
        variables |= {name.upper(): value for name, value in variables.items()}
        environment = {**os.environ, **variables, "no_proxy": "", "NO_PROXY": ""}
        with ThreadPoolExecutor() as threads:
            under_way = [
                threads.submit(results, _fetch_orders(base, fetches), environment),
                threads.submit(results, _crawl_orders(base, [_WARM, *CRAWLS]), environment),
            ]
            found = {title: result for future in under_way for title, result in future.result().items()}
        yield Met(server, found, proxy)
