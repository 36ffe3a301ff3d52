"""What headers say: the request we send, when to come back, cookies, and how a body is packed."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from importlib.metadata import version

from isal import isal_zlib
from isal.igzip_lib import IsalError

from barkspider.core.settings import Agent
from barkspider.fetch.connection import Exchange


def user_agent(agent: Agent) -> str:
    """What we call ourselves: product, version, contact.

    >>> user_agent(Agent(contact="https://example.org/bot")).startswith("barkspider/")
    True
    """
    contact = f" (+{agent.contact})" if agent.contact else ""
    return f"{agent.name}/{version('barkspider')}{contact}"


def request_bytes(authority: str, target: str, agent: str, cookie: str) -> bytes:
    """A GET request. `authority` and `target` come from a parsed URL, so they hold no line breaks."""
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {authority}",
        f"User-Agent: {agent}",
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
        "Accept-Encoding: gzip",
    ]
    if cookie:
        lines.append(f"Cookie: {cookie}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def retry_after(exchange: Exchange, wall: float) -> float | None:
    """Seconds until a server wants to see us again, from either form of Retry-After; None without one.

    Negative and absurd values come as they are: whoever waits keeps the wait within its own bounds.

    >>> retry_after(Exchange(headers=[(b"Retry-After", b"120")]), 0.0)
    120.0
    >>> retry_after(Exchange(headers=[(b"retry-after", b"Thu, 01 Jan 1970 00:02:00 GMT")]), 60.0)
    60.0
    """
    text = exchange.header(b"retry-after")
    if re.fullmatch(r"-?[0-9]+", text):
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - wall
    except (ValueError, OverflowError, OSError):
        return None


def cookies(exchange: Exchange) -> str:
    """The names and values that a response sets, as a Cookie header sends them back.

    >>> cookies(Exchange(headers=[(b"Set-Cookie", b"a=1; Path=/"), (b"set-cookie", b"b=2")]))
    'a=1; b=2'
    """
    pairs = []
    for name, value in exchange.headers[:64]:  # nobody needs more, and a hostile server may send thousands
        if name.lower() == b"set-cookie":
            pair = value.partition(b";")[0].strip()
            if b"=" in pair and len(pair) <= 4096 and pair.isascii() and pair.decode().isprintable():
                pairs.append(pair.decode())
    return "; ".join(pairs)


def decoded(exchange: Exchange, most: int) -> tuple[bytes, bool]:
    """The body without its Content-Encoding, at most `most` bytes, and whether all of it is there.

    A body that is not packed as its header says is given as it came.

    >>> decoded(Exchange(body=b"plain"), 10)
    (b'plain', True)
    """
    encoding = exchange.header(b"content-encoding").lower()
    window = {"gzip": 31, "x-gzip": 31, "deflate": 15}.get(encoding)
    if window is None:
        return exchange.body, True
    unpacker = isal_zlib.decompressobj(wbits=window)
    try:
        body = unpacker.decompress(exchange.body, most)
    except IsalError:  # type: ignore[misc]  # isal's stubs take the type for an instance
        return exchange.body, False
    return body or exchange.body, unpacker.eof
