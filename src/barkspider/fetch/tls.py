"""TLS between bytes on the wire and bytes in the clear; no I/O.

On a socket of its own TLS takes thirty system calls more for a page: two to read each record, others to look at the
socket. Here what arrives is handed over in large pieces, and what is to be sent goes in one (docs/performance.md).
"""

from __future__ import annotations

import ssl


class TlsSession:
    """Our end of one TLS connection. Raises `ssl.SSLError` and `ValueError` for what the peer or the name has wrong."""

    __slots__ = ("_incoming", "_outgoing", "_tls")

    def __init__(self, context: ssl.SSLContext, name: str) -> None:
        """`name` is what the peer must prove to be."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def shake_hands(self) -> bool:
        """Whether the handshake is over; if not, it goes on when more has come."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    @property
    def has_input(self) -> bool:
        """Whether there is anything to `read`: to try in vain costs more than a system call."""
        return bool(self._incoming.pending or self._tls.pending())

    def feed(self, data: memoryview) -> None:
        """Take what came over the wire; nothing means that the peer has closed."""
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def read(self, buffer: memoryview) -> int | None:
        """Put what is in the clear into a buffer: how many bytes, 0 when the peer has closed, None when more must come."""
        try:
            size: int = self._tls.read(len(buffer), buffer)  # type: ignore[assignment]
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLEOFError:  # closed without a word, as many do
            return 0
        return size

    def write(self, data: bytes) -> None:
        """Encrypt what is to be sent."""
        self._tls.write(data)

    def outgoing(self) -> bytes:
        """What is to go over the wire, each byte once."""
        return self._outgoing.read()
