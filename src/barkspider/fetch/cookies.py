"""Cookies, so that sites need no session ids in their URLs (Viúva Negra, section 4.5).

    Set-Cookie ─► bounds ─► RFC 6265, section 5.2: parse ─► 5.3: may this host set it? ─► jar of the site
    URL ─► jar of the site ─► 5.4: domain, path, secure, time ─► Cookie

Where browsers have become stricter than RFC 6265 we follow its successor (draft-ietf-httpbis-rfc6265bis):
prefixes of names, no Secure cookie set or replaced by http, none without a name.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from barkspider.core.settings import Cookies
from barkspider.url import Domains, UrlParts

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DELIMITERS = re.compile(r"[\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_SITE_COST = 300  # bytes that Python takes for a site beside its cookies
_LONGEST_ATTRIBUTE = 1024  # what is longer is passed over (RFC 6265bis, section 5.6)


class Cookie(NamedTuple):
    """A cookie as it is stored (RFC 6265, section 5.3)."""

    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    expires: float

    @property
    def size(self) -> int:
        """Bytes that count towards the limit of its site."""
        return len(self.name) + len(self.value) + len(self.path)

    def replaces(self, other: Cookie) -> bool:
        """Whether both are one cookie."""
        return (self.name, self.domain, self.path) == (other.name, other.domain, other.path)

    def is_for(self, parts: UrlParts, path: str, now: float) -> bool:
        """Whether it is sent to a URL with this path."""
        if self.expires <= now or (self.secure and parts.scheme != "https"):
            return False
        host = parts.host
        if host != self.domain and (self.host_only or not host.endswith("." + self.domain)):
            return False
        return path.startswith(self.path) and (
            len(path) == len(self.path) or self.path[-1] == "/" or path[len(self.path)] == "/"
        )


class CookieJar:
    """The cookies of the sites that were used last; `now` is always seconds since 1970.

    A site is a pay-level domain, and no cookie leaves the site that set it. A site's cookies are in the order
    in which they were first set, and packed as a line of a snapshot, so that the bytes that count are those that are
    there. Sites that the user has given cookies for are not forgotten. Lives on the loop's thread.

    >>> from barkspider.url import split
    >>> jar = CookieJar(Cookies(), Domains(private=True))
    >>> jar.take(split("https://www.example.com/shop/"), [b"id=7; Domain=example.com; Path=/; Secure"], now=0.0)
    ('id=7; Domain=example.com; Path=/; Secure',)
    >>> jar.header(split("https://example.com/"), now=0.0), jar.header(split("http://example.com/"), now=0.0)
    ('id=7', '')
    """

    def __init__(self, settings: Cookies, domains: Domains) -> None:
        self._settings = settings
        self._domains = domains
        self._sites: OrderedDict[str, bytes] = OrderedDict()
        self._given: set[str] = set()  # sites for which the user has cookies
        self._size = 0  # bytes of all sites

    def header(self, parts: UrlParts, now: float) -> str:
        """What the Cookie header for a URL says; "" means to send none."""
        if not self._sites:
            return ""
        site = self._domains.pay_level(parts.host)
        if site not in self._sites:
            return ""
        cookies = self._cookies(site)
        self._sites.move_to_end(site)
        path = parts.target.partition("?")[0]
        fitting = [cookie for cookie in cookies if cookie.is_for(parts, path, now)]
        fitting.sort(key=lambda cookie: -len(cookie.path))  # sorting keeps the older one first
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in fitting)

    def take(self, parts: UrlParts, values: Sequence[bytes | str], now: float) -> tuple[str, ...]:
        """Take the cookies that a response for a URL sets; what is malformed or not its to set is ignored.

        Returns the values that counted: who takes these again later has the same cookies.
        """
        if not values or not self._settings.enabled:
            return ()
        site = self._domains.pay_level(parts.host)
        cookies = self._cookies(site)
        taken = []
        for value in values[: self._settings.set_per_response]:
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            cookie = self._read(text, parts, site, now)
            if cookie is not None:
                taken.append(text)
                _store(cookies, cookie, safe=parts.scheme == "https")
        cookies = [cookie for cookie in cookies if cookie.expires > now]
        size = sum(cookie.size for cookie in cookies)
        while len(cookies) > self._settings.per_site or size > self._settings.site_size:
            size -= cookies.pop(0).size
        if taken:
            self._put(site, cookies)
        return tuple(taken)

    def give(self, cookies: Sequence[Cookie]) -> None:
        """Put cookies of the user's own into the jar, in the place of those that sites have set."""
        for cookie in cookies:
            site = self._domains.pay_level(cookie.domain)
            known = self._cookies(site)
            _store(known, cookie, safe=True)
            self._given.add(site)
            self._put(site, known)

    def save(self) -> bytes:
        """All cookies, for `load`."""
        return b"\n".join(self._sites.values())

    def load(self, saved: bytes) -> None:
        """Take back what `save` gave, of several jars beside each other.

        >>> from barkspider.url import split
        >>> jar, other = (CookieJar(Cookies(), Domains(private=True)) for _ in range(2))
        >>> jar.take(split("http://example.com/"), ["id=7"], now=0.0)
        ('id=7',)
        >>> other.load(jar.save()); other.header(split("http://example.com/"), now=0.0)
        'id=7'
        """
        for line in saved.splitlines():
            site, cookies = json.loads(line)
            known = self._cookies(site)
            for cookie in cookies:
                _store(known, Cookie(*cookie), safe=True)
            self._put(site, known)

    def _cookies(self, site: str) -> list[Cookie]:
        line = self._sites.get(site)
        return [Cookie(*cookie) for cookie in json.loads(line)[1]] if line else []

    def _put(self, site: str, cookies: list[Cookie]) -> None:
        """Remember the cookies of the site that was used last, and forget others if there are too many."""
        self._drop(site)
        if not cookies:
            return
        line = json.dumps([site, cookies], separators=(",", ":")).encode()
        self._sites[site] = line
        self._size += len(line) + _SITE_COST
        while self._size > self._settings.memory or len(self._sites) > self._settings.sites:
            oldest = next((each for each in self._sites if each not in self._given), None)
            if oldest is None:
                break
            self._drop(oldest)

    def _drop(self, site: str) -> None:
        line = self._sites.pop(site, None)
        if line is not None:
            self._size -= len(line) + _SITE_COST

    def validate(self) -> None:
        """Check the invariants; for tests."""
        assert len(self._sites) <= self._settings.sites + len(self._given)
        given = sum(len(self._sites.get(site, b"")) + _SITE_COST for site in self._given)
        assert self._size <= self._settings.memory + given
        assert self._size == sum(len(line) + _SITE_COST for line in self._sites.values())
        for site in self._sites:
            cookies = self._cookies(site)
            assert 0 < len(cookies) <= self._settings.per_site
            assert sum(cookie.size for cookie in cookies) <= self._settings.site_size
            assert len({(cookie.name, cookie.domain, cookie.path) for cookie in cookies}) == len(cookies)
            assert all(self._domains.pay_level(cookie.domain) == site for cookie in cookies)

    def _read(self, text: str, parts: UrlParts, site: str, now: float) -> Cookie | None:
        if not (text.isascii() and text.isprintable()):
            return None
        pair, _, rest = text.partition(";")
        name, equals, value = pair.partition("=")
        name, value = name.strip(), value.strip()
        if not name or not equals or len(name) + len(value) > self._settings.max_size:
            return None
        attributes: dict[str, str] = {}
        for attribute in rest.split(";"):
            key, _, setting = attribute.partition("=")
            if len(setting) <= _LONGEST_ATTRIBUTE:
                attributes[key.strip().lower()] = setting.strip()  # the last one counts
        domain = attributes.get("domain", "").removeprefix(".").lower()
        # A public suffix is shorter than any site below it. Where it is the host it is the site as well, and
        # no other host is in that.
        if domain and (len(domain) < len(site) or not f".{parts.host}".endswith(f".{domain}")):
            return None
        path = attributes.get("path", "")
        if not path.startswith("/"):
            path = parts.target.partition("?")[0].rpartition("/")[0] or "/"
        secure = "secure" in attributes
        if secure and parts.scheme != "https":
            return None
        prefix = name.lower()
        if prefix.startswith(("__secure-", "__host-")) and not secure:
            return None
        if prefix.startswith("__host-") and (domain or attributes.get("path") != "/"):
            return None
        return Cookie(name, value, domain or parts.host, not domain, path, secure, _expiry(attributes, now))


def _store(cookies: list[Cookie], cookie: Cookie, safe: bool) -> None:
    """Put a cookie in the place of the one it replaces, so that it keeps its age, or at the end."""
    for place, old in enumerate(cookies):
        if cookie.replaces(old):
            if safe or not old.secure:
                cookies[place] = cookie
            return
    cookies.append(cookie)


def _expiry(attributes: dict[str, str], now: float) -> float:
    """When a cookie expires: Max-Age counts before Expires; without either, never."""
    age = attributes.get("max-age", "")
    if re.fullmatch(r"-?[0-9]+", age):
        return now + float(age)
    date = parse_date(attributes.get("expires", ""))
    return math.inf if date is None else date


def parse_date(text: str) -> float | None:
    """Seconds since 1970 of a date in any of the forms that cookies have (RFC 6265, section 5.1.1).

    >>> parse_date("Thu, 01-Jan-70 00:02:00 GMT"), parse_date("Thu Jan  1 00:02:00 1970"), parse_date("soon")
    (120.0, 120.0, None)
    """
    time = day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (time := _TIME.match(token)):
            continue
        if day is None and (day := _DAY.match(token)):
            continue
        if month is None and (name := token[:3].lower()) in _MONTHS:
            month = _MONTHS.index(name) + 1
        elif year is None:
            year = _YEAR.match(token)
    if time is None or day is None or month is None or year is None:
        return None
    number = int(year[1])
    if number < 100:
        number += 2000 if number < 70 else 1900
    hour, minute, second = map(int, time.groups())
    try:
        moment = datetime(number, month, int(day[1]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() if number >= 1601 else None
