"""Scope: which URLs belong to the crawl.

A verdict has two parts. What depends on the origin alone (scheme, host, port) a caller may remember, because
most links of a page lie at a few origins; path, extension and depth are looked at for each URL.

What is excluded stays out however it is written: parsing has made one text of most ways to write a host, and an exclusion
looks through those that are left, the final dot of a name, the IPv6 forms of an IPv4 address, escapes of plain letters.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from barkspider.core.errors import SettingsError, UrlError
from barkspider.core.settings import Scope
from barkspider.url.domains import Domains, is_address
from barkspider.url.parse import origin, parse, split
from barkspider.url.patterns import PathPattern, comparable, plain_escapes
from barkspider.url.regexes import Patterns

# The ports that the WHATWG fetch standard blocks: a request there would speak to another protocol.
_BLOCKED_BY_BROWSERS = (
    *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103),
    *(
        104,
        109,
        110,
        111,
        113,
        115,
        117,
        119,
        123,
        135,
        137,
        139,
        143,
        161,
        179,
        389,
        427,
        465,
        512,
        513,
        514,
    ),
    *(515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723),
    *(2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
)
# Databases, caches and queues that take a line of text for a command; no browser blocks them.
_STORES = (1433, 1521, 2181, 3306, 5432, 5672, 6379, 9042, 11211, 27017)
OTHER_PROTOCOLS = frozenset(_BLOCKED_BY_BROWSERS + _STORES)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def landing(location: str, base: str) -> str:
    """Where a Location header leads from `base`, without user and fragment; "" if that is not for us.

    >>> landing("/b#c", "http://a.example/"), landing("ftp://a.example/", "http://a.example/")
    ('http://a.example/b', '')
    >>> landing("http://a.example:25/", "http://a.example/"), landing("file:///etc", "http://a.example/")
    ('', '')
    """
    try:
        target = parse(location, parse(base))
    except UrlError:
        return ""
    if target.scheme not in ("http", "https") or not target.host_str:
        return ""
    url = str(target.with_fragment(None).with_username("").with_password(None))
    return "" if split(url).port in OTHER_PROTOCOLS else url


class ScopeRules:
    """The scope of one crawl, made from its settings and its seeds (canonical URLs).

    >>> rules = ScopeRules(Scope(exclude_extensions=("zip",)), Domains(), ["http://www.example.com/"])
    >>> rules.refuses("http://other.example.com/a.html", "other.example.com", depth=3)
    >>> rules.refuses("http://www.example.com/a.zip", "www.example.com", depth=1)
    'extension'
    >>> rules.refuses("http://example.org/", "example.org", depth=1)
    'scope'
    """

    def __init__(self, scope: Scope, domains: Domains, seeds: Iterable[str]) -> None:
        self.scope = scope
        self._domains = domains
        self.most_depth = scope.depth or 65_536  # more than a depth column can hold
        self._prefixes = tuple(f"{scheme}://" for scheme in scope.schemes)
        self._ports = frozenset(scope.ports)
        self._include_hosts = _HostSet(scope.include_hosts)
        self._exclude_hosts = _HostSet(scope.exclude_hosts, plain=True)
        self._include_domains = frozenset(map(canonical_host, scope.include_domains))
        self._exclude_domains = frozenset(plain_host(canonical_host(name)) for name in scope.exclude_domains)
        self._include_paths = [PathPattern(pattern) for pattern in scope.include_paths]
        self._exclude_paths = [
            PathPattern(reading)
            for pattern in scope.exclude_paths
            for reading in {pattern, plain_escapes(pattern)}
        ]
        self._include_regexes, self._exclude_regexes = (
            Patterns(scope.include_regexes),
            Patterns(scope.exclude_regexes),
        )
        self._include_extensions = frozenset(map(_canonical_extension, scope.include_extensions))
        self._exclude_extensions = frozenset(map(_canonical_extension, scope.exclude_extensions))
        self._looks_at_paths = bool(self._include_paths or self._exclude_paths)
        self._looks_at_texts = bool(self._include_regexes or self._exclude_regexes)
        self._looks_at_extensions = bool(self._include_extensions or self._exclude_extensions)
        self._exact_urls = scope.level == "page"
        self._seed_urls: set[str] = set()
        self._seed_hosts: set[str] = set()
        # Whether a verdict takes more than the origin and the depth.
        self.looks_at_urls = (
            self._exact_urls or self._looks_at_paths or self._looks_at_extensions or self._looks_at_texts
        )
        for seed in seeds:
            self.extend(seed)

    def extend(self, url: str) -> None:
        """Take a canonical URL in as if it had been a seed: its page, host or domain, as the level says."""
        host = split(url).host
        self._seed_urls.add(url)
        if self.scope.level == "site":
            self._seed_hosts.add(host)
        elif self.scope.level == "domain":
            self._seed_hosts.add(self._domains.pay_level(host))

    def refuses(self, url: str, host: str, depth: int) -> str | None:
        """None when the canonical `url` on `host` is in scope, else why not.

        Reasons: `scheme`, `port`, `host`, `domain`, `scope` (the level), `path`, `extension`, `regex`, `depth`.
        """
        return self.refuses_origin(origin(url), host) or self.refuses_url(url, depth)

    def excludes(self, url: str) -> str | None:
        """As `refuses` for a seed, what one redirects to, and what a page needs to be shown: the user asked for it,
        whatever the level is and whatever is included. Schemes, ports and exclusions hold for it too."""
        return self.exclude_all([url])[0]

    def exclude_all(self, urls: Sequence[str]) -> list[str | None]:
        """As `excludes`, of many: regular expressions then cost little more than of one."""
        found = list[str | None]()
        for url, text in zip(urls, self._judge_texts(urls, asked_for=True), strict=True):
            _, host, _, target = split(url)
            found.append(
                self._judge_door(origin(url))
                or self._judge_host(host, asked_for=True)
                or self._judge_target(target, asked_for=True)
                or text
            )
        return found

    def bars(self, url: str, origin: str) -> bool:
        """Whether the robots.txt of an origin is not to be followed to `url`: it is of another domain, and the user
        excluded its host or its port. Schemes and paths are for pages.

        >>> rules = ScopeRules(Scope(exclude_hosts=("shy.example",)), Domains(), [])
        >>> rules.bars("http://shy.example/x", "http://a.example"), rules.bars("http://b.example/", "http://a.example")
        (True, False)
        """
        _, host, port, _ = split(url)
        if self._domains.pay_level(host) == self._domains.pay_level(split(f"{origin}/").host):
            return False
        closed = bool(self._ports) and port not in self._ports
        return closed or self._judge_host(host, asked_for=True) is not None

    def refuses_url(self, url: str, depth: int) -> str | None:
        """As `refuses`, when it is known that the origin of the URL is not refused."""
        reason = self.refuse_all([url])[0] if self.looks_at_urls else None
        return reason or ("depth" if depth > self.most_depth else None)

    def refuse_all(self, urls: Sequence[str]) -> list[str | None]:
        """As `refuses_url`, of many and without their depth."""
        return [
            "scope"
            if self._exact_urls and url not in self._seed_urls
            else self._judge_target(split(url).target) or text
            for url, text in zip(urls, self._judge_texts(urls), strict=True)
        ]

    def refuses_origin(self, place: str, host: str) -> str | None:
        """Why nothing of an origin is in scope, or None. It holds until `extend` is called."""
        return self._judge_door(place) or self._judge_host(host)

    def _judge_door(self, place: str) -> str | None:
        if not place.startswith(self._prefixes):
            return "scheme"
        if not self._ports and ":" not in place[6:]:
            return None  # the usual port
        port = split(place + "/").port
        if port in OTHER_PROTOCOLS or (self._ports and port not in self._ports):
            return "port"
        return None

    def _judge_host(self, host: str, asked_for: bool = False) -> str | None:
        if self._exclude_hosts or self._exclude_domains:
            plain = plain_host(host)
            if plain in self._exclude_hosts:
                return "host"
            if self._domains.pay_level(plain) in self._exclude_domains:
                return "domain"
        if asked_for:
            return None
        if self._include_hosts and host not in self._include_hosts:
            return "host"
        if self._include_domains and self._domains.pay_level(host) not in self._include_domains:
            return "domain"
        level = self.scope.level
        if level == "site":
            return None if host in self._seed_hosts else "scope"
        if level == "domain":
            return None if self._domains.pay_level(host) in self._seed_hosts else "scope"
        return None

    def _judge_texts(self, urls: Sequence[str], asked_for: bool = False) -> list[str | None]:
        if not self._looks_at_texts:
            return [None] * len(urls)
        out = self._exclude_regexes.which(urls)
        if self._exclude_regexes and any("%" in url for url in urls):
            plain = self._exclude_regexes.which([plain_escapes(url) for url in urls])
            out = [one or other for one, other in zip(out, plain, strict=True)]
        if asked_for or not self._include_regexes:
            return ["regex" if pattern else None for pattern in out]
        within = self._include_regexes.which(urls)
        return ["regex" if no or not yes else None for no, yes in zip(out, within, strict=True)]

    def _judge_target(self, target: str, asked_for: bool = False) -> str | None:
        if self._looks_at_paths:
            compared, included = comparable(target), [] if asked_for else self._include_paths
            readings = {compared, comparable(plain_escapes(target))} if "%" in target else (compared,)
            if any(pattern.matches(reading) for reading in readings for pattern in self._exclude_paths) or (
                included and not any(pattern.matches(compared) for pattern in included)
            ):
                return "path"
        if self._looks_at_extensions:
            name = target.partition("?")[0].rpartition("/")[2].partition(";")[0]
            if "%" in name:
                name = comparable(plain_escapes(name))
            extension = name.rpartition(".")[2].lower() if "." in name else ""
            if extension and (
                extension in self._exclude_extensions
                or (self._include_extensions and not asked_for and extension not in self._include_extensions)
            ):
                return "extension"
        return None


class _HostSet:
    """Host names, and `*.name` for a host and all below it."""

    def __init__(self, names: Iterable[str], plain: bool = False) -> None:
        """If `plain`, whoever asks gives plain hosts."""
        self._hosts: set[str] = set()
        self._trees: set[str] = set()
        for name in names:
            below = name.removeprefix("*.")
            host = canonical_host(below)
            (self._hosts if below == name else self._trees).add(plain_host(host) if plain else host)

    def __bool__(self) -> bool:
        return bool(self._hosts or self._trees)

    def __contains__(self, host: str) -> bool:
        if host in self._hosts:
            return True
        while host and self._trees:
            if host in self._trees:
                return True
            host = host.partition(".")[2]
        return False


def canonical_host(name: str) -> str:
    """A host as canonical URLs write it; `SettingsError` for what is none.

    >>> canonical_host("Example.COM")
    'example.com'
    """
    try:
        host = parse(f"http://{name}/").host_str
    except UrlError:
        host = None
    # Only a bare name: neither a port nor anything else that the parser would take off again.
    if not host or any(sign in name for sign in "/?#@\\") or (":" in name and name[-1] != "]"):
        raise SettingsError(f"{name!r} is not a host name; write it like example.com or *.example.com")
    return host


def plain_host(host: str) -> str:
    """A canonical host as exclusions are compared with it: however it is written, it is this one that answers.

    >>> plain_host("a.example."), plain_host("[::ffff:7f00:1]"), plain_host("[64:ff9b::7f00:1]"), plain_host("[::1]")
    ('a.example', '127.0.0.1', '127.0.0.1', '[::1]')
    """
    if not host.startswith("["):
        return host if is_address(host) else host.strip(".")
    address = ipaddress.IPv6Address(host[1:-1])
    within = address.ipv4_mapped or address.sixtofour
    if within is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) >> 16)):
        within = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return str(within) if within else host


def _canonical_extension(name: str) -> str:
    return name.lower().removeprefix(".")
