"""What a user lets a crawl say to hosts of their choice: headers and passwords, each for one origin."""

from __future__ import annotations

import base64
import re

from barkspider.core.errors import SettingsError

_ORIGIN = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?/?", re.ASCII | re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
# What requests have already, what frames them, and what has settings of its own.
OURS = frozenset(
    [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "from",
        "host",
        "if-modified-since",
        "if-none-match",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    ]
)


def parse_header(text: str) -> tuple[str, str, str]:
    """The origin, the name and the value of `ORIGIN NAME: VALUE`. No complaint shows a value.

    >>> parse_header("https://Intranet.example:443 X-Key: abc")
    ('https://intranet.example', 'X-Key', 'abc')
    """
    place, _, rest = text.partition(" ")
    name, colon, value = rest.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise SettingsError("fetch.headers: write each like https://intranet.example X-Key: abc, in ASCII")
    if name.lower() in OURS:
        raise SettingsError(f"fetch.headers: {name} cannot be set: every request has its own")
    return _origin("fetch.headers", place), name, value


def parse_login(text: str) -> tuple[str, str, str]:
    """As `parse_header`, the header for Basic authentication of `ORIGIN USER:PASSWORD`.

    >>> parse_login("http://intranet.example me:secret")
    ('http://intranet.example', 'Authorization', 'Basic bWU6c2VjcmV0')
    """
    place, _, login = text.partition(" ")
    if ":" not in login:
        raise SettingsError("fetch.logins: write each like https://intranet.example USER:PASSWORD")
    return (
        _origin("fetch.logins", place),
        "Authorization",
        f"Basic {base64.b64encode(login.strip().encode()).decode()}",
    )


def _origin(setting: str, text: str) -> str:
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise SettingsError(f"{setting}: begin each with whom it is for, like https://intranet.example")
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return f"{scheme}://{host}" + (f":{int(port)}" if port and port != _PORTS[scheme] else "")
