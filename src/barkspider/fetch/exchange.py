"""What one request came to: the bytes that went over the wire, how it ended, and how long each part took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

STALE = "stale_connection"  # an idle connection died before it carried a request
NO_FILES = "no_file_handles"  # the system had none left for a connection
OURS = frozenset({STALE, NO_FILES})  # nothing was learnt about the server: to be asked again, and no failure
# What another try may cure. Everything else is the same tomorrow.
TEMPORARY = frozenset(
    {
        "timeout_connect",
        "timeout_tls",
        "timeout_headers",
        "connect_failed",
        "disconnected",
        "proxy_error",
    }
)
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Our words for why a body was cut, in those of WARC-Truncated.
_WARC_WORDS = {"rate": "time", "parse": "time", "memory": "unspecified"}


class Timing(NamedTuple):
    """Seconds of each phase of a request; 0 for a phase that did not happen.

    `first_byte` counts from the request to the first byte of the answer, `body` from there to the end.
    """

    connect: float = 0.0
    tls: float = 0.0
    first_byte: float = 0.0
    body: float = 0.0


_NO_TIME = Timing()


@dataclass(slots=True)
class HttpExchange:
    """What went over the wire. `failure` is "" when a response with headers arrived, else one of

    refused_address, no_contact                            never contacted
    connect_failed, timeout_connect, no_file_handles       no connection
    tls_error, tls_certificate, timeout_tls, proxy_error   no way to speak
    timeout_headers, disconnected, stale_connection        no answer
    protocol_error, headers_too_large                      no HTTP
    unwanted_type                                          left at the headers

    and `detail` says more for people. `head` and `payload` are the exact bytes of the answer, `body` is the
    payload without chunk lines. `cut` says why a body is not whole: length, time (the deadline of
    the fetch), rate (slower than the least), parse (too costly), memory (large and slow while it was short),
    disconnect. `claim` counts its memory for as long as it is kept; `digests` are what somebody has found of the payload
    and of all of it. `repaired` names what was put right
    in an answer that no strict parser reads (docs/http.md); `headers` are those that came out.
    """

    failure: str = ""
    detail: str = ""
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    head: bytes = b""
    payload: bytes = b""
    body: bytes = b""
    cut: str = ""
    repaired: str = ""
    timing: Timing = _NO_TIME
    claim: object = field(default=None, repr=False, compare=False)
    digests: tuple[bytes, bytes] | None = field(default=None, repr=False, compare=False)
    _named: dict[bytes, list[bytes]] | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> str:
        """The one name for how it ended: ok, redirect, not_modified, http_404 …, cut_length …, or a failure.

        >>> HttpExchange(status=200).outcome, HttpExchange(status=302).outcome, HttpExchange(status=200, cut="rate").outcome
        ('ok', 'redirect', 'cut_rate')
        """
        if self.failure:
            return self.failure
        if self.status == 304:
            return "not_modified"
        if self.status in REDIRECTS:
            return "redirect"
        if not 200 <= self.status < 300:
            return f"http_{self.status}"
        return f"cut_{self.cut}" if self.cut else "ok"

    @property
    def truncated(self) -> str:
        """Why the body is not whole in the words of WARC-Truncated (length, time, disconnect, unspecified), or ""."""
        return _WARC_WORDS.get(self.cut, self.cut)

    def header(self, name: bytes) -> str:
        """The first header of this (lower-case) name, or ""."""
        values = (self._named or self._by_name()).get(name)
        return values[0].decode("latin-1").strip() if values else ""

    def all_headers(self, name: bytes) -> list[str]:
        """Every header of this (lower-case) name."""
        values = (self._named or self._by_name()).get(name, ())
        return [value.decode("latin-1").strip() for value in values]

    def forget_headers(self) -> None:
        """Have none: others are to come."""
        self.headers.clear()
        self._named = None

    def _by_name(self) -> dict[bytes, list[bytes]]:
        """The values of headers by their names, when all are there: each page is asked for a dozen."""
        named: dict[bytes, list[bytes]] = {}
        for name, value in self.headers:
            name = name.lower()
            if name in named:
                named[name].append(value)
            else:
                named[name] = [value]
        self._named = named
        return named
