"""Rules of lists: how they are written, what they match, and what is refused."""

from __future__ import annotations

import time

import pytest

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Scope
from barkspider.url import Domains, ScopeRules
from barkspider.url.lists import Lists, parse_rule, read_rules

DOMAINS = Domains()


def lists(*block: str, allow: tuple[str, ...] = ()) -> Lists:
    return Lists(
        {parse_rule(text): text for text in block}, {parse_rule(text): text for text in allow}, DOMAINS
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("example.org", "domain:example.org"),
        ("www.example.org.", "host:www.example.org"),
        ("host:example.org", "host:example.org"),
        ("HTTP://Example.org:80/a b", "http://example.org/a%20b"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::1]", "2001:db8::1/128"),
        ("xn--bcher-kva.example", "domain:xn--bcher-kva.example"),
        ("bücher.example", "domain:xn--bcher-kva.example"),
    ],
)
def test_a_rule_has_one_form(text: str, rule: str) -> None:
    assert str(parse_rule(text)) == rule
    assert parse_rule(rule) == parse_rule(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "a/b",
        "10.0.0.1/8",
        "10.0.0.256",
        "ftp://a.example/",
        "http://",
        "re:",
        "re:(",
        "re:(?=x)",
        "*.",
        "domain:www.a.example",
    ],
)
def test_what_is_no_rule_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_rule(text)
    if text:
        with pytest.raises(SettingsError, match=r"^mine\.txt:3: "):
            read_rules(f"# one\nfine.example\n{text}\n", "mine.txt")


@pytest.mark.parametrize(
    ("rule", "url", "blocked"),
    [
        ("a.example", "http://x.y.a.example/", True),
        ("a.example", "http://x.y.a.example./", True),
        ("a.example", "http://ba.example/", False),
        ("*.x.a.example", "http://y.x.a.example:8080/", True),
        ("*.x.a.example", "http://x.a.example/", True),
        ("*.x.a.example", "http://a.example/", False),
        ("host:a.example", "http://www.a.example/", False),
        ("http://a.example/private/*", "http://a.example/private/x?y", True),
        ("http://a.example/private/*", "http://a.example/%70rivate/x", True),
        ("http://a.example/private/*", "https://a.example/private/x", False),
        ("http://a.example/x", "http://a.example/x?y", False),
        ("http://a.example/x", "http://a.example/x", True),
        ("http://a.example/x", "http://a.example/%78", True),
        ("http://a.example/*.pdf", "http://a.example/1/2.pdf", True),
        ("re:/tag/[0-9]+$", "http://a.example/tag/12", True),
        ("re:/tag/[0-9]+$", "http://a.example/%74ag/12", True),
        ("re:/tag/[0-9]+$", "http://a.example/tag/x12", False),
    ],
)
def test_what_a_rule_is_about(rule: str, url: str, blocked: bool) -> None:
    assert bool(lists(rule).judge([url])[0]) is blocked
    assert lists("re:.", allow=(rule,)).judge([url]) == (["" if blocked else "re:."])


def test_addresses_are_judged_where_they_are_known() -> None:
    rules = lists("192.0.2.0/24", "2001:db8::/32", allow=("192.0.2.7",))
    url = ["http://a.example/"]
    assert [
        bool(rules.judge(url, address)[0])
        for address in ("", "192.0.2.1", "192.0.2.7", "2001:db8::5", "198.51.100.1")
    ] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert [bool(rules.closes("a.example", address)) for address in ("", "192.0.2.1", "192.0.2.7")] == [
        False,
        True,
        False,
    ]


def test_no_pattern_makes_it_slow() -> None:
    """Both would take ages in an engine that tries again."""
    url = "http://a.example/" + "a" * 2000
    rules = lists("re:(a+)+$x", "http://a.example/*a*a*a*a*a*a*a*a*b")
    before = time.process_time()
    assert rules.judge([url] * 20) == [""] * 20
    assert time.process_time() - before < 5  # a generous bound: 2^2000 steps would not end


def test_regular_expressions_of_scope() -> None:
    rules = ScopeRules(
        Scope(level="web", include_regexes=("/a$", "/a[?]", "/b$"), exclude_regexes=("[?]page=",)),
        DOMAINS,
        [],
    )
    urls = [f"http://a.example{path}" for path in ("/a", "/b", "/c", "/a?page=2", "/a?%70age=2")]
    assert [rules.refuses(url, "a.example", 0) for url in urls] == [None, None, "regex", "regex", "regex"]
    assert [rules.excludes(url) for url in urls] == [None, None, None, "regex", "regex"]
    with pytest.raises(SettingsError, match="no regular expression"):
        ScopeRules(Scope(exclude_regexes=("(",)), DOMAINS, [])
