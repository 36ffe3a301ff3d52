"""A small client for tests: one request over a real socket, to the address that the truth names."""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit

from barkspider.lab.synthweb import RunningWeb


def get(running: RunningWeb, url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and body of one GET."""
    parts = urlsplit(url)
    host = parts.netloc
    address = running.web.server(host)
    assert address
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=str(running.authority))
        connection = _NamedHTTPSConnection(address, running.https_port, context=context, timeout=10)
        connection.server_name = host
    else:
        connection = http.client.HTTPConnection(address, running.http_port, timeout=10)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", target, headers={"Host": host, **fields})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


class _NamedHTTPSConnection(http.client.HTTPSConnection):
    """Connects to an address, asks for a name."""

    server_name = ""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(self.sock, server_hostname=self.server_name)
