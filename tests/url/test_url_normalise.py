"""Each rule by example, and the promise that normalising twice changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UrlError
from barkspider.core.settings import UrlRules
from barkspider.url import Domains, Normaliser, parse

DOMAINS = Domains()
PAPERS = Normaliser(UrlRules(drop_index_names=True), DOMAINS)  # all rules of Viúva Negra but `www.`
WWW = Normaliser(UrlRules(drop_index_names=True, add_www=True), DOMAINS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a.com", "http://a.com/"),
        ("http://a.com/x#y?z", "http://a.com/x"),
        ("http://u:p@a.com:8080/@x", "http://a.com:8080/@x"),
        ("http://a.com/@x", "http://a.com/@x"),
        # index names: without a query, and in this case only
        ("http://a.com/x/index.html", "http://a.com/x/"),
        ("http://a.com/index.html#a", "http://a.com/"),
        ("http://a.com/Index.html", "http://a.com/Index.html"),
        ("http://a.com/index.html?x", "http://a.com/index.html?x"),
        ("http://a.com/index.html?", "http://a.com/index.html?"),
        ("http://a.com/?/index.html", "http://a.com/?/index.html"),
        ("http://a.com/myindex.html", "http://a.com/myindex.html"),
        ("http://a.com/index.html/index.html", "http://a.com/index.html/"),
        ("http://index.html/", "http://index.html/"),
        # listings: the whole query, below a slash
        ("http://a.com/kit/?N=D", "http://a.com/kit/"),
        ("http://a.com/kit/?C=M;O=A", "http://a.com/kit/"),
        ("http://a.com/kit/?C=M&O=A", "http://a.com/kit/"),
        ("http://a.com/kit?N=D", "http://a.com/kit?N=D"),
        ("http://a.com/kit/?N=D&x=1", "http://a.com/kit/?N=D&x=1"),
        ("http://a.com/kit/?X=D", "http://a.com/kit/?X=D"),
        ("http://a.com/kit/?N=DD", "http://a.com/kit/?N=DD"),
        # session ids
        ("http://a.com/?sid=12", "http://a.com/?sid=12"),
        ("http://a.com/?sid=12345678", "http://a.com/"),
        ("http://a.com/?a=1&PhpSessId=12345678&b=2", "http://a.com/?a=1&b=2"),
        ("http://a.com/?sid=12345678;b=2", "http://a.com/?b=2"),
        ("http://a.com/?a=1;b=2;sessionid=1234/6789", "http://a.com/?a=1;b=2"),
        ("http://a.com/?inside=12345678", "http://a.com/?inside=12345678"),
        ("http://a.com/x;jsessionid=12345678/y;v=1;JSESSIONID=abcdefgh?z", "http://a.com/x/y;v=1?z"),
        ("http://a.com/x;jsessionid=1234", "http://a.com/x;jsessionid=1234"),
        ("http://a.com/sid=12345678", "http://a.com/sid=12345678"),
        # one rule's work shows another's
        ("http://a.com/kit/?N=D&sid=12345678", "http://a.com/kit/"),
        ("http://a.com/index.html?sid=12345678", "http://a.com/"),
        ("http://a.com/index.html;jsessionid=12345678", "http://a.com/"),
        ("http://a.com/x/..;sid=12345678/y", "http://a.com/y"),
        ("http://a.com/x/%2e;sid=12345678", "http://a.com/x/"),
    ],
)
def test_default_rules(text: str, expected: str) -> None:
    assert PAPERS(text) == expected
    assert PAPERS(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://sapo.pt/x", "http://www.sapo.pt/x"),
        ("http://sapo.pt:8080/", "http://www.sapo.pt:8080/"),
        ("http://example.co.uk:8080/", "http://example.co.uk:8080/"),
        ("http://u@sapo.pt/", "http://www.sapo.pt/"),
        ("http://www.sapo.pt/", "http://www.sapo.pt/"),
        ("http://news.sapo.pt/", "http://news.sapo.pt/"),
        ("http://co.uk/", "http://co.uk/"),
        ("http://localhost/", "http://localhost/"),
        ("http://10.0.0.1/", "http://10.0.0.1/"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("http://[::1]/", "http://[::1]/"),
    ],
)
def test_www_rule(text: str, expected: str) -> None:
    assert WWW(text) == expected


def test_www_rule_leaves_userinfo_that_is_kept() -> None:
    normalise = Normaliser(UrlRules(add_www=True, drop_userinfo=False), DOMAINS)
    assert normalise("http://u:p@sapo.pt/") == "http://u:p@www.sapo.pt/"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mailto:a@b", "scheme"),
        ("javascript:void(0)", "scheme"),
        ("data:text/html,x", "scheme"),
        ("ftp://a.com/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("http://", "malformed"),
        ("x.html", "malformed"),
        ("http://\ud800/", "malformed"),
        ("http://a.com/" + "x" * 2048, "too_long"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(UrlError) as caught:
        PAPERS(text)
    assert caught.value.reason == reason


def test_length_is_that_of_the_result() -> None:
    assert PAPERS("http://a.com/" + "y/../" * 5000 + "#" + "f" * 9000) == "http://a.com/"


def test_relative_links() -> None:
    base = parse("http://a.com/x/y.html?z")
    assert [PAPERS(text, base) for text in ("q.html", "?a=1", "//b.com", "../index.html", "")] == [
        "http://a.com/x/q.html",
        "http://a.com/x/y.html?a=1",
        "http://b.com/",
        "http://a.com/",
        "http://a.com/x/y.html?z",
    ]


# Pieces from which the rules could make something new for each other, or for the parser.
_PIECES = st.sampled_from(
    (
        *(
            "/",
            "//",
            "?",
            "#",
            "&",
            ";",
            "=",
            "@",
            ":",
            "..",
            ".",
            "%2e",
            "%2E%2e",
            "index.html",
            "default.htm",
        ),
        *("N=D", "C=M;O=A", "C=M&O=A", "sid=", "SID=", "jsessionid=", ";jsessionid=", "phpsessid=12345678"),
        *(
            "12345678",
            "1234567",
            "abcdefgh",
            "www.",
            "sapo.pt",
            "\\",
            "\t",
            " ",
            "%",
            "%zz",
            "é",
            "\udfff",
            "a",
        ),
    )
)
_HOSTS = st.sampled_from(
    ["a.com", "sapo.pt", "co.uk", "www.ck", "x.ck", "www.com", "localhost", "[::1]", "10.1", "é.fr", "A.Com."]
)
_PORTS = st.sampled_from(["", ":80", ":443", ":8080"])
_TEXTS = st.builds(
    lambda scheme, user, host, port, pieces: f"{scheme}://{user}{host}{port}/{''.join(pieces)}",
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["", "u@", "u:p@", "@", "sid=12345678@"]),
    _HOSTS,
    _PORTS,
    st.lists(_PIECES, max_size=12),
)
_FLAGS = (
    "drop_fragment",
    "drop_userinfo",
    "drop_index_names",
    "add_www",
    "trim_listings",
    "drop_session_ids",
)
_RULES = st.fixed_dictionaries({flag: st.booleans() for flag in _FLAGS}).map(
    lambda flags: replace(UrlRules(), **flags)
)


@settings(max_examples=600, deadline=None)
@given(_RULES, st.one_of(_TEXTS, st.text(max_size=40).map(lambda text: f"http://a.com/{text}")))
def test_normalising_twice_changes_nothing(rules: UrlRules, text: str) -> None:
    normalise = Normaliser(rules, DOMAINS)
    try:
        once = normalise(text)
    except UrlError:
        return
    assert normalise(once) == once
    assert str(parse(once)) == once


@settings(max_examples=300, deadline=None)
@given(_TEXTS)
def test_without_rules_it_is_the_parser(text: str) -> None:
    rules = replace(UrlRules(), **dict.fromkeys(_FLAGS, False))
    try:
        expected = str(parse(text))
    except UrlError:
        return
    assert Normaliser(rules, DOMAINS)(text) == expected


@settings(max_examples=600, deadline=None)
@given(
    _RULES,
    st.integers(20, 60),
    st.lists(
        st.one_of(
            _TEXTS, st.text(max_size=20), st.sampled_from(["mailto:a", "#top", "httpx://a/", "//b.org/c"])
        ),
        max_size=6,
    ),
)
def test_many_are_normalised_like_one(rules: UrlRules, longest: int, texts: list[str]) -> None:
    normalise, base = Normaliser(replace(rules, max_length=longest), DOMAINS), parse("http://a.com/x/y.html")
    expected, reasons = {}, Counter[str]()
    for text in texts:
        try:
            expected[normalise(text, base)] = None
        except UrlError as error:
            reasons[error.reason] += 1
    refused = Counter[str]()
    assert normalise.many(texts, base, refused) == (list(expected), False)
    assert refused == reasons
