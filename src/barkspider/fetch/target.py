"""What a connection is given: where it goes, and what it shares with all others of its fetcher."""

from __future__ import annotations

import asyncio
import ssl
from typing import NamedTuple

from barkspider.core.settings import Fetch
from barkspider.fetch.deadlines import Deadlines
from barkspider.fetch.intake import Intake
from barkspider.fetch.poll import Poller
from barkspider.fetch.proxy import Proxy

PIECE = 64 * 1024  # the most that one look at a socket reads: a millisecond of parsing at worst


class Target(NamedTuple):
    """Where a connection goes: an address that was checked, and the name that TLS must prove."""

    address: str
    port: int
    name: str = ""
    tls: ssl.SSLContext | None = None
    proxy: tuple[Proxy, str] | None = None  # the way there, and the address of the proxy


class Shared:
    """What all connections of a fetcher use together."""

    def __init__(
        self, settings: Fetch, loop: asyncio.AbstractEventLoop, poller: Poller, intake: Intake
    ) -> None:
        self.settings, self.loop, self.poller, self.intake = settings, loop, poller, intake
        self.deadlines = Deadlines()
        self.buffer = memoryview(bytearray(PIECE))
