"""Lists: rules of people, by name, about what is blocked and what is allowed all the same.

    example.org               a pay-level domain with all its hosts; host:www.example.org, or *.www.example.org, less of it
    http://example.org/a/*    URLs: `*` stands for any text; without one it is this URL alone
    192.0.2.7, 192.0.2.0/24   servers, by their addresses
    re:/tag/[0-9]+/           a regular expression, found anywhere in a URL

What allows comes before what blocks. As with exclusions of scope, a rule that blocks looks through other ways of writing
the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from barkspider.core.errors import SettingsError, UrlError
from barkspider.url.domains import Domains, is_address
from barkspider.url.parse import origin, parse, split
from barkspider.url.patterns import PathPattern, comparable, plain_escapes
from barkspider.url.regexes import Patterns, checked
from barkspider.url.scope import canonical_host, plain_host

URL, HOST, TREE, DOMAIN, NETWORK, REGEX = "url", "host", "tree", "domain", "network", "re"
_REMEMBERED = 4_096  # addresses whose verdict is kept
_HOW = "write a URL, example.org, host:www.example.org, *.example.org, 192.0.2.0/24 or re:PATTERN"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Rule(NamedTuple):
    """One line of a list, in the one form that it has whoever wrote it; `str` gives a line that means the same."""

    kind: str
    value: str

    def __str__(self) -> str:
        return {
            URL: self.value,
            NETWORK: self.value,
            TREE: f"*.{self.value}",
        }.get(self.kind, f"{self.kind}:{self.value}")


def parse_rule(text: str, domains: Domains | None = None) -> Rule:
    """The rule that a line says; `SettingsError` for one that says none.

    >>> str(parse_rule("Example.ORG")), str(parse_rule("www.example.org")), str(parse_rule("http://example.org"))
    ('domain:example.org', 'host:www.example.org', 'http://example.org/')
    >>> str(parse_rule("192.0.2.7")), str(parse_rule("*.a.example.org")), str(parse_rule("re:/x+$"))
    ('192.0.2.7/32', '*.a.example.org', 're:/x+$')
    """
    text = text.strip()
    kind, colon, rest = text.partition(":")
    if kind == REGEX and colon:
        return Rule(REGEX, checked(rest))
    if kind in (HOST, DOMAIN) and colon:
        return _named(kind, rest, domains)
    if "://" in text:
        return Rule(URL, _url(text))
    if (network := _network(text)) is not None:
        return Rule(NETWORK, str(network))
    if text.startswith("*."):
        return Rule(TREE, plain_host(canonical_host(text[2:])))
    return _named("", text, domains)


def _named(kind: str, name: str, domains: Domains | None) -> Rule:
    try:
        host = plain_host(canonical_host(name))
    except SettingsError as error:
        raise SettingsError(f"{name!r} is no rule of a list; {_HOW}") from error
    if "." not in host and not is_address(host) and not kind:
        raise SettingsError(f"{name!r} is no rule of a list; {_HOW}")
    is_domain = (domains or Domains()).pay_level(host) == host
    if kind == DOMAIN and not is_domain:
        raise SettingsError(
            f"{name!r} is no pay-level domain; for a host write host:{host}, for its domain the name of that"
        )
    return Rule(kind or (DOMAIN if is_domain else HOST), host)


def _url(text: str) -> str:
    try:
        found = str(parse(text).with_fragment(None).with_username("").with_password(None))
        if not found.startswith(("http://", "https://")):
            raise UrlError("scheme", f"{text[:200]!r}")
    except UrlError as error:
        raise SettingsError(f"{text[:200]!r} is no URL: {_HOW}") from error
    return found


def _network(text: str) -> Network | None:
    plain = text.strip("[]")
    if not plain[:1].isalnum() or (
        ":" not in plain and not plain.replace("/", "").replace(".", "").isdigit()
    ):
        return None
    try:
        return ipaddress.ip_network(plain)
    except ValueError as error:
        raise SettingsError(
            f"{text!r} is neither an address nor a network; write it like 192.0.2.0/24"
        ) from error


class _Side:
    """The rules of one list, by what they are about; each has a name under which it counts."""

    def __init__(self, rules: Mapping[Rule, str]) -> None:
        of = {
            kind: {rule.value: name for rule, name in rules.items() if rule.kind == kind}
            for kind in (HOST, TREE, DOMAIN)
        }
        self._hosts, self._trees, self._domains = of[HOST], of[TREE], of[DOMAIN]
        self._urls: dict[str, str] = {}
        self._within: dict[str, list[tuple[PathPattern, str]]] = {}  # by origin
        for rule, name in rules.items():
            if rule.kind == URL and "*" not in rule.value:
                self._urls[rule.value] = name
            elif rule.kind == URL:
                pattern = PathPattern(f"{split(rule.value).target}$")
                self._within.setdefault(origin(rule.value), []).append((pattern, name))
        self._networks = [
            (ipaddress.ip_network(r.value), name) for r, name in rules.items() if r.kind == NETWORK
        ]
        self._names = {rule.value: name for rule, name in rules.items() if rule.kind == REGEX}
        self._patterns = Patterns(self._names)
        self.has_networks = bool(self._networks)
        self.of_address = lru_cache(_REMEMBERED)(self._of_address)

    def of_host(self, host: str, domain: str) -> str:
        """The name of the rule that a plain host falls under."""
        name = self._hosts.get(host) or self._domains.get(domain, "")
        above = host
        while not name and above and self._trees:
            name = self._trees.get(above, "")
            above = above.partition(".")[2]
        return name

    def of_url(self, url: str) -> str:
        """That of a URL, regular expressions left out."""
        if not (self._urls or self._within):
            return ""
        place, target = origin(url), split(url).target
        for reading in {target, plain_escapes(target)} if "%" in target else (target,):
            if name := self._urls.get(place + reading, ""):
                return name
            for pattern, name in self._within.get(place, ()):
                if pattern.matches(comparable(reading)):
                    return name
        return ""

    def of_texts(self, urls: Sequence[str]) -> list[str]:
        """Those of regular expressions."""
        found = self._patterns.which(urls)
        others = [place for place, url in enumerate(urls) if "%" in url and not found[place]]
        if others and self._patterns:
            readings = self._patterns.which([plain_escapes(urls[place]) for place in others])
            for place, reading in zip(others, readings, strict=True):
                found[place] = reading
        return [self._names[pattern] if pattern else "" for pattern in found]

    def speaks_of(self, host: str) -> bool:
        """Whether URLs of a plain host may fall under rules that are not about all of it."""
        places = {plain_host(split(f"{place}/").host) for place in self._within}
        return (
            bool(self._patterns)
            or host in places
            or any(plain_host(split(url).host) == host for url in self._urls)
        )

    def _of_address(self, address: str) -> str:
        found = ipaddress.ip_address(address)
        for network, name in self._networks:
            if found in network:
                return name
        return ""


class Lists:
    """All rules in force. Frozen; made anew when they change.

    `block` and `allow` have each rule with the name under which it counts: its own, or that of its file.

    >>> block = {parse_rule(text): text for text in ("bad.example", "http://a.example/x/*", "re:sid=", "192.0.2.0/24")}
    >>> lists = Lists(block, {parse_rule("http://www.bad.example/good"): "mine"}, Domains())
    >>> lists.judge(["http://www.bad.example/", "http://www.bad.example/good", "http://a.example/x/1", "http://a.example/?sid=1"])
    ['bad.example', '', 'http://a.example/x/*', 're:sid=']
    >>> lists.judge(["http://a.example/"], "192.0.2.9"), lists.closes("shop.bad.example"), lists.closes("www.bad.example")
    (['192.0.2.0/24'], 'bad.example', '')
    """

    def __init__(self, block: Mapping[Rule, str], allow: Mapping[Rule, str], domains: Domains) -> None:
        self._block, self._allow, self._domains = _Side(block), _Side(allow), domains
        self._allows = bool(allow)
        self.blocks = bool(block)
        self.has_networks = self._block.has_networks

    def judge(self, urls: Sequence[str], address: str = "") -> list[str]:
        """For each canonical URL the name of the rule that blocks it, "" if none does; `address` is that of its server, if
        that is known."""
        if not self.blocks:
            return [""] * len(urls)
        server = self._block.of_address(address) if address and self.has_networks else ""
        by_text, found = self._block.of_texts(urls), list[str]()
        for url, name in zip(urls, by_text, strict=True):
            host = plain_host(split(url).host)
            found.append(
                self._block.of_host(host, self._domains.pay_level(host))
                or self._block.of_url(url)
                or name
                or server
            )
        if self._allows and any(found):
            allowed = self._allow.of_texts(urls)
            for place, url in enumerate(urls):
                if found[place] and (allowed[place] or self._lets(url, address)):
                    found[place] = ""
        return found

    def closes(self, host: str, address: str = "") -> str:
        """The rule by which nothing of a canonical host is to be asked, its robots.txt included; "" if there is none."""
        host = plain_host(host)
        domain = self._domains.pay_level(host)
        name = self._block.of_host(host, domain)
        if not name and address and self.has_networks:
            name = self._block.of_address(address)
        if name and self._allows and (self._lets_host(host, domain, address) or self._allow.speaks_of(host)):
            return ""
        return name

    def allows(self, url: str) -> bool:
        """Whether a list of those that are allowed has a URL: then it is no part of a trap."""
        return self._allows and (self._lets(url, "") or bool(self._allow.of_texts([url])[0]))

    def _lets(self, url: str, address: str) -> bool:
        host = plain_host(split(url).host)
        return self._lets_host(host, self._domains.pay_level(host), address) or bool(self._allow.of_url(url))

    def _lets_host(self, host: str, domain: str, address: str) -> bool:
        server = bool(address and self._allow.has_networks and self._allow.of_address(address))
        return server or bool(self._allow.of_host(host, domain))


def read_rules(text: str, name: str, domains: Domains | None = None) -> list[Rule]:
    """The rules of a file, one to a line; `#` at the beginning of a line, or behind a space, begins a comment.
    `SettingsError` names the file and the line that says none.

    >>> read_rules("# mine\\nexample.org  # since May\\n\\n", "mine.txt")
    [Rule(kind='domain', value='example.org')]
    >>> read_rules("fine.example\\n10.0.0.0/33", "mine.txt")
    Traceback (most recent call last):
    barkspider.core.errors.SettingsError: mine.txt:2: '10.0.0.0/33' is neither an address nor a network; write it like 192.0.2.0/24
    """
    found, domains = [], domains or Domains()
    for number, line in enumerate(text.splitlines(), 1):
        said = "" if line.startswith("#") else line.partition(" #")[0].partition("\t#")[0].strip()
        if said:
            try:
                found.append(parse_rule(said, domains))
            except SettingsError as error:
                raise SettingsError(f"{name}:{number}: {error}") from error
    return found
