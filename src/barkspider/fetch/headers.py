"""What headers say: the request that we send, and when to come back. Which cookies go along, `cookies` says."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import NamedTuple

from barkspider.core.credentials import parse_header, parse_login
from barkspider.core.settings import Agent, Fetch, Settings
from barkspider.fetch.exchange import HttpExchange


class Validators(NamedTuple):
    """What an earlier answer said about its version: for asking whether there is a newer one."""

    etag: str = ""
    last_modified: str = ""


def user_agent(agent: Agent) -> str:
    """What we call ourselves: product, version, contact.

    >>> user_agent(Agent(contact="https://example.org/bot")).startswith("barkspider/")
    True
    """
    contact = f" (+{agent.contact})" if agent.contact else ""
    return f"{agent.name}/{version('barkspider')}{contact}"


def common_headers(settings: Settings) -> str:
    """The headers that every request of a crawl has."""
    lines = [
        f"User-Agent: {user_agent(settings.agent)}",
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
    ]
    email = settings.agent.email or settings.agent.contact
    if re.fullmatch(r"[^@/\s]+@[^@/\s]+", email):
        lines.append(f"From: {email}")
    if settings.fetch.encodings:
        lines.append(f"Accept-Encoding: {', '.join(settings.fetch.encodings)}")
    if not settings.fetch.idle_connections:
        lines.append("Connection: close")
    return "\r\n".join(lines)


def own_headers(settings: Fetch) -> dict[str, str]:
    """The lines that the user wants to be sent to certain origins, by origin.

    >>> own_headers(Fetch(headers=("http://a.example X-Key: abc",)))
    {'http://a.example': '\\r\\nX-Key: abc'}
    """
    found: dict[str, str] = {}
    given = [*map(parse_header, settings.headers), *map(parse_login, settings.logins)]
    for place, name, value in given:
        found[place] = found.get(place, "") + f"\r\n{name}: {value}"
    return found


def request_bytes(
    authority: str, target: str, headers: str, cookie: str = "", validators: Validators | None = None
) -> bytes:
    """A GET request. `authority` and `target` come from a parsed URL, so they hold no line breaks.

    >>> request_bytes("a.example", "/", "User-Agent: me", validators=Validators('"v1"')).splitlines()[3]
    b'If-None-Match: "v1"'
    """
    if cookie:
        headers += f"\r\nCookie: {cookie}"
    if validators is not None:
        for name, value in zip(("If-None-Match", "If-Modified-Since"), validators, strict=True):
            if value.isascii() and value.isprintable() and value:
                headers += f"\r\n{name}: {value}"
    return f"GET {target} HTTP/1.1\r\nHost: {authority}\r\n{headers}\r\n\r\n".encode("latin-1")


def retry_after(exchange: HttpExchange, wall: float) -> float | None:
    """Seconds until a server wants to see us again, from either form of Retry-After; None without one.

    Negative and absurd values come as they are: whoever waits keeps the wait within its own bounds.

    >>> retry_after(HttpExchange(headers=[(b"Retry-After", b"120")]), 0.0)
    120.0
    >>> retry_after(HttpExchange(headers=[(b"retry-after", b"Thu, 01 Jan 1970 00:02:00 GMT")]), 60.0)
    60.0
    """
    text = exchange.header(b"retry-after")
    if re.fullmatch(r"-?[0-9]+", text):
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - wall
    except (ValueError, OverflowError, OSError):
        return None
