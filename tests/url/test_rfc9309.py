"""Nowhere less strict than RFC 9309: ours beside a slow reading of it, on Google's cases and on files made at random."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barkspider.url import RobotsRules
from tests.url.rfc9309 import allows, rules_of, targets, with_folders
from tests.url.test_url_robots import google, target_of

# Google's parser reads more than the RFC defines: these it reads in its own way, and so do we.
_BEYOND = ("GoogleOnly_IndexHTMLisDirectory", "GoogleOnly_LineTooLong")
_PATH = st.text("/ab*$?=:%26Ff.é~-", max_size=8)
_LINE = st.one_of(
    st.builds("{}: {}{}".format, st.sampled_from(["Disallow", "allow", " ALLOW ", "Dissallow"]), st.sampled_from(["/", "*", ""]), _PATH),
    st.sampled_from(["User-agent: *", "user-agent:barkspider", "User-Agent: BarkSpider/1.0", "User-agent: other", "User-agent:"]),
    st.sampled_from(["", "# a: b", "Sitemap: http://a.example/", "Crawl-delay: 1", "Allow: /a/index.html", "x", "Disallow: /a /b"]),
)  # fmt: skip


@given(st.lists(_LINE, max_size=12), st.sampled_from(["\n", "\r", "\r\n"]), st.lists(_PATH, max_size=3))
@example(["User-agent: *", "Disallow: /%62"], "\n", ["b"])
@example(["User-agent: *", "Disallow: /?a=b%2Fc"], "\n", ["?a=b/c"])
@example(["user-agent:barkspider", "Dissallow: ", "User-agent: *", "Disallow: /"], "\n", [])
@example(["User-agent: *", "Disallow: /", "Sitemap: x", "Allow: /a/index.html"], "\n", ["a/", "a/b"])
def test_what_the_standard_forbids_is_forbidden(lines: list[str], end: str, paths: list[str]) -> None:
    body = end.join(["User-agent: *", *lines]).encode()
    mine, theirs = RobotsRules.parse(body, "barkspider", "http://a.example"), rules_of(body, "barkspider")
    for target in (*targets(theirs), *targets([(True, f"/{path}") for path in paths])):
        assert allows(with_folders(theirs), target) or not mine.allows(target), (target, theirs)


def test_the_slow_reading_forbids_what_googles_parser_forbids_but_where_that_goes_beyond() -> None:
    differ = {
        case["test"]
        for case in google("allowed")
        if allows(rules_of(case["robots"].encode(), case["ua"]), target_of(case["url"])) < case["allowed"]
    }
    assert differ == set(_BEYOND)


@pytest.mark.parametrize(
    ("rules", "target"),
    [
        ("Disallow: /\nAllow: /a%2Fb", "/a/b"),
        ("Disallow: /\nAllow: /A", "/a"),
        ("Disallow: /a\nAllow: /a b", "/a"),
        ("Disallow: /x\nUser-agent: barkspiders\nAllow: /", "/x"),
        ("Disallow: /*a$\nAllow: /", "/xa"),
    ],
)
def test_the_slow_reading_forbids(rules: str, target: str) -> None:
    assert not allows(rules_of(f"User-agent: *\n{rules}\n".encode(), "barkspider"), target)
