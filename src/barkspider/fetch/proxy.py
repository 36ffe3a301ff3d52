"""Tunnels through a proxy: HTTP CONNECT and SOCKS5. Bytes in, bytes out, no sockets.

A tunnel always leads to an address that was checked, never to a name: what the proxy would make of a name
is nothing that our rules could see.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from barkspider.core.errors import SettingsError

_MOST_BYTES = 16 * 1024  # from a proxy before its tunnel stands
_HOST = re.compile(r"[a-z0-9.:-]+")
_REFUSALS = {  # RFC 1928, section 6
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}

# What a handshake does next: send these bytes, then read up to this many bytes or to the end of this text.
Step = tuple[bytes, int | bytes]
Script = Generator[Step, bytes, None]


class ProxyError(Exception):
    """A proxy refused a tunnel or made no sense. Raised by `Handshake.feed` only."""


class Handshake:
    """What is said before a tunnel stands. Write `send` and clear it, feed what comes, and so on.

    >>> handshake = Proxy.parse("socks5://127.0.0.1:1080").handshake("8.8.8.8", 443)
    >>> handshake.send, handshake.feed(bytes([5, 0]))
    (b'\\x05\\x01\\x00', False)
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._received = b""
        self._count = 0
        self.send, self._wanted = next(script)

    def feed(self, data: bytes) -> bool:
        """Whether the tunnel stands after these bytes. Raises `ProxyError`, also for bytes after its end.

        The server behind the tunnel speaks only when it was spoken to, so such bytes are nobody's.
        """
        self._count += len(data)
        if self._count > _MOST_BYTES:
            raise ProxyError(f"the proxy said more than {_MOST_BYTES} bytes")
        self._received += data
        while (end := self._end()) > 0:
            piece, self._received = self._received[:end], self._received[end:]
            try:
                send, self._wanted = self._script.send(piece)
            except StopIteration:
                if self._received:
                    raise ProxyError("the proxy went on speaking after its answer") from None
                return True
            self.send += send
        return False

    def _end(self) -> int:
        """Where the piece that is wanted ends; 0 while it is not complete."""
        if isinstance(self._wanted, int):
            return self._wanted if len(self._received) >= self._wanted else 0
        found = self._received.find(self._wanted)
        return found + len(self._wanted) if found >= 0 else 0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy of the settings. Neither its repr nor any error shows the user and password.

    >>> Proxy.parse("http://me:secret@127.0.0.1:3128")
    Proxy(kind='http', host='127.0.0.1', port=3128)
    """

    kind: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> Proxy:
        """Read `http://HOST:PORT` or `socks5://HOST:PORT`, with `USER:PASSWORD@` (percent-encoded) or not."""
        try:
            url = urlsplit(text)
            host, port = url.hostname or "", url.port
            if ":" in host:
                ipaddress.IPv6Address(host)
            user, password = (unquote(part or "", errors="strict") for part in (url.username, url.password))
        except ValueError:  # whose text may hold the password
            raise _refused() from None
        plain = url.path in ("", "/") and not url.query and not url.fragment and text.isprintable()
        if url.scheme not in ("http", "socks5") or not _HOST.fullmatch(host) or not port or not plain:
            raise _refused()
        if url.scheme == "socks5" and "@" in url.netloc:
            if not all(0 < len(part.encode()) < 256 for part in (user, password)):
                raise SettingsError("network.proxy: a user and a password of SOCKS5 have 1 to 255 bytes each")
        elif ":" in user:
            raise SettingsError("network.proxy: a user of an HTTP proxy cannot have a colon in the name")
        return cls(url.scheme, host, port, user, password)

    def handshake(self, address: str, port: int) -> Handshake:
        """Begin a tunnel to a checked address."""
        target = ipaddress.ip_address(address)
        return Handshake(self._connect(target, port) if self.kind == "http" else self._socks(target, port))

    def _connect(self, target: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> Script:
        """RFC 9110, section 9.3.6."""
        authority = f"{target}:{port}" if target.version == 4 else f"[{target}]:{port}"
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if self.user or self.password:
            login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {login}")
        request = "\r\n".join([*lines, "", ""]).encode()
        begin = yield request, len(b"HTTP/1.1 200")
        status = re.fullmatch(rb"HTTP/1\.[01] ([1-9][0-9]{2})", begin)
        if status is None:
            raise ProxyError("the proxy does not speak HTTP")
        rest = yield b"", b"\r\n\r\n"
        if not rest.startswith((b" ", b"\r")):
            raise ProxyError("the proxy does not speak HTTP")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the proxy answered {status[1].decode()}")

    def _socks(self, target: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> Script:
        """RFC 1928, with the log-in of RFC 1929 where there is a user."""
        methods = b"\x00\x02" if self.user else b"\x00"
        version, method = yield b"\x05" + bytes([len(methods)]) + methods, 2
        if version != 5:
            raise ProxyError("the proxy does not speak SOCKS5")
        if method not in methods:
            raise ProxyError("the proxy wants another way to log in")
        if method == 2:
            user, password = self.user.encode(), self.password.encode()
            login = b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password
            version, status = yield login, 2
            if version != 1 or status != 0:
                raise ProxyError("the proxy refused the user and password")
        kind = b"\x01" if target.version == 4 else b"\x04"
        request = b"\x05\x01\x00" + kind + target.packed + port.to_bytes(2, "big")
        version, reply, _, kind_bound = yield request, 4
        if version != 5:
            raise ProxyError("the proxy does not speak SOCKS5")
        if reply:
            raise ProxyError(f"the proxy refused: {_REFUSALS.get(reply, f'code {reply}')}")
        if kind_bound == 3:
            (length,) = yield b"", 1
        elif kind_bound in (1, 4):
            length = 4 if kind_bound == 1 else 16
        else:
            raise ProxyError("the proxy answered with an address of no known type")
        yield b"", length + 2


def _refused() -> SettingsError:
    return SettingsError(
        "network.proxy: write it like http://127.0.0.1:3128 or socks5://user:password@[::1]:1080, with the port"
    )
