"""The web on sockets: one listening socket for each of its addresses and schemes, and a name server.

Only loopback addresses are bound, never all interfaces, so nobody outside of the machine can reach it.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from barkspider.core.errors import UsageError
from barkspider.core.extras import needing
from barkspider.lab.synthweb.answer import AnyWeb
from barkspider.lab.synthweb.dns import NameServer
from barkspider.lab.synthweb.hazards import server_address
from barkspider.lab.synthweb.http import Connection, Service
from barkspider.lab.synthweb.log import LoggedRequest, RequestLog

# A port that the system picks on one address may be taken on another; after so many it is something else.
_PORT_TRIES = 20
# Clients that connect in bursts wait here instead of trying again.
_BACKLOG = 1_024
_NAME_SERVER_ADDRESS = "127.0.0.1"


class Server:
    """Serves a web on the running loop, from `start` until `stop`.

    A port of 0 is picked by the system; `https_port=None` serves no HTTPS. `log` is a file, or "memory" for
    `requests`. With HTTPS the certificate of the authority is written to `authority`.

    >>> from barkspider.lab.synthweb.web import Web
    >>> async def serve_for_a_moment() -> bool:
    ...     server = Server(Web())
    ...     await server.start()
    ...     await server.stop()
    ...     return server.http_port > 0 and server.dns_port > 0
    >>> asyncio.run(serve_for_a_moment())
    True
    """

    def __init__(
        self,
        web: AnyWeb,
        http_port: int = 0,
        https_port: int | None = None,
        dns_port: int = 0,
        log: Path | str | None = None,
        authority: Path | None = None,
    ) -> None:
        if web.has_https and https_port is None:
            raise UsageError(
                "a web with URLs of https needs an HTTPS port; give one, or 0 to have one picked"
            )
        if https_port is not None and authority is None:
            raise UsageError("HTTPS needs a file for the certificate of its authority")
        self.web = web
        self.http_port = http_port
        self.https_port = https_port
        self.dns_port = dns_port
        self.authority = authority if https_port is not None else None
        self._log = RequestLog(None if log == "memory" else Path(log)) if log is not None else None
        self._service = Service(web, self._log)
        self._servers: list[asyncio.Server] = []
        self._stack = ExitStack()

    @property
    def requests(self) -> list[LoggedRequest]:
        """The requests so far, when `log` is "memory"."""
        return self._log.entries if self._log else []

    async def start(self) -> None:
        """Binds all sockets and begins to answer; the ports are known afterwards."""
        loop = asyncio.get_running_loop()
        _allow_open_files(self.web.servers * 2 + 10_000)
        addresses = [server_address(number) for number in range(self.web.servers)]
        try:
            self.http_port = await self._listen(addresses, self.http_port, "http", None)
            if self.https_port is not None and self.authority is not None:
                with needing("cryptography", "lab"):
                    from barkspider.lab.synthweb.certificates import Authority
                signer = Authority()
                self._stack.callback(signer.close)
                self.authority.write_bytes(signer.pem)
                context = signer.server_context()
                self.https_port = await self._listen(addresses, self.https_port, "https", context)
                self.web.has_https = True
            transport, _ = await loop.create_datagram_endpoint(
                lambda: NameServer(self.web), (_NAME_SERVER_ADDRESS, self.dns_port)
            )
        except BaseException:
            await self.stop()
            raise
        self._stack.callback(transport.close)
        self.dns_port = transport.get_extra_info("sockname")[1]

    async def stop(self) -> None:
        """Closes everything at once; requests under way are lost."""
        for server in self._servers:
            server.close()
        for connection in list(self._service.connections):
            connection.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._stack.close()
        if self._log is not None:
            self._log.close()

    async def _listen(
        self, addresses: list[str], port: int, scheme: str, context: ssl.SSLContext | None
    ) -> int:
        loop = asyncio.get_running_loop()
        sockets = _bind_all(addresses, port)
        make = partial(Connection, self._service, scheme)
        for bound in sockets:
            self._servers.append(await loop.create_server(make, sock=bound, ssl=context, backlog=_BACKLOG))
        return int(sockets[0].getsockname()[1])


def _bind_all(addresses: list[str], port: int) -> list[socket.socket]:
    # The same port on every address, so that a crawler needs one rule for all of 127.0.0.0/8.
    for _ in range(_PORT_TRIES):
        bound: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                bound.append(listener)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address, chosen))
                chosen = listener.getsockname()[1]
        except OSError as error:
            for listener in bound:
                listener.close()
            if port:
                raise UsageError(
                    f"port {port} cannot be served on 127.x.y.z: {error.strerror}; choose another"
                ) from None
        else:
            return bound
    raise UsageError(f"no port is free on all {len(addresses)} addresses of the web; ask for fewer servers")


def _allow_open_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
