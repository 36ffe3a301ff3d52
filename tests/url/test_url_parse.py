"""Parsing by the cases of web-platform-tests, and splitting of canonical texts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import url as url_py
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import UrlError
from barkspider.core.settings import UrlRules
from barkspider.url import Domains, Normaliser, origin, parse, split

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "url"
AS_IS = UrlRules(
    drop_fragment=False,
    drop_userinfo=False,
    drop_index_names=False,
    trim_listings=False,
    drop_session_ids=False,
    max_length=65_535,
)


def cases(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} of web-platform-tests is not here")
    return [case for case in json.loads(path.read_text()) if isinstance(case, dict)]


def href_of(text: str, base: str | None) -> str | None:
    """What url-py makes of it by itself; None for a failure."""
    try:
        return str(url_py.URL.parse(text) if base is None else url_py.URL.parse(text, url_py.URL.parse(base)))
    except (url_py.URLError, UnicodeEncodeError):
        return None


def test_what_url_py_passes_of_urltestdata_still_passes() -> None:
    normalise = Normaliser(AS_IS, Domains())
    passed = 0
    for case in cases("urltestdata.json"):
        expected = None if case.get("failure") else case["href"]
        if href_of(case["input"], case["base"]) != expected:
            continue
        passed += 1
        base = parse(case["base"]) if case["base"] is not None and href_of(case["base"], None) else None
        if expected is None:
            with pytest.raises(UrlError, match=r"^malformed"):
                parse(case["input"], base)
            continue
        found = parse(case["input"], base)
        assert str(found) == expected, case
        if expected.startswith(("http://", "https://")):
            assert normalise(case["input"], base) == expected
            assert split(expected).host == found.host_str
        else:
            with pytest.raises(UrlError, match=r"^scheme"):
                normalise(case["input"], base)
    assert passed > 800


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("///b.org/p", "http://b.org/p"),
        (r"\\/b.org", "http://b.org/"),
        (r"/\/b.org", "http://b.org/"),
        (r"///\//\//b.org", "http://b.org/"),
        (" /\t//\nb.org/a/../c#d", "http://b.org/c#d"),
        ("///user@b.org:8080/", "http://user@b.org:8080/"),
    ],
)
def test_slashes_in_front_of_a_host_are_as_good_as_two(text: str, expected: str) -> None:
    base = parse("http://a.org/x/y")
    assert str(parse(text, base)) == expected
    assert Normaliser(AS_IS, Domains())(text, base) == expected
    assert Normaliser(AS_IS, Domains()).many([text], base, Counter()) == ([expected], False)


@pytest.mark.parametrize("text", ["///", "////", "///:80/", "///a b/", "\\\\\\"])
def test_slashes_without_a_host_are_no_url(text: str) -> None:
    refused: Counter[str] = Counter()
    assert Normaliser(AS_IS, Domains()).many([text], parse("http://a.org/x/y"), refused) == ([], False)
    assert refused == {"malformed": 1}


def test_every_case_of_the_web_with_slashes_in_front_passes() -> None:
    tried = 0
    for case in cases("urltestdata.json"):
        if case["input"].startswith("///") and (case["base"] or "").startswith("http"):
            tried += 1
            assert str(parse(case["input"], parse(case["base"]))) == case["href"], case
    assert tried == 7


def test_what_url_py_passes_of_toascii_still_passes() -> None:
    normalise = Normaliser(AS_IS, Domains())
    passed = 0
    for case in cases("toascii.json"):
        text = f"https://{case['input']}/x"
        expected = f"https://{case['output']}/x" if case["output"] is not None else None
        if href_of(text, None) != expected:
            continue
        passed += 1
        if expected is None:
            with pytest.raises(UrlError, match=r"^malformed"):
                parse(text)
        else:
            assert str(parse(text)) == normalise(text) == expected
    assert passed > 50


@pytest.mark.parametrize(
    "text", ["", "x", "//example.com/", "http://", "http://a b/", "http://a:65536/", "http://\ud800/"]
)
def test_what_is_no_url_is_malformed(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse(text)
    assert caught.value.reason == "malformed"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.b/", ("http", "a.b", 80, "/")),
        ("https://a.b:8443/x?y", ("https", "a.b", 8443, "/x?y")),
        ("https://[2001:db8::1]/", ("https", "[2001:db8::1]", 443, "/")),
        ("http://[2001:db8::1]:81/x", ("http", "[2001:db8::1]", 81, "/x")),
        ("http://u:p@a.b:81/x@y:3/z#f/g?h", ("http", "a.b", 81, "/x@y:3/z")),
        ("http://a.b/?u=http://c.d:8/", ("http", "a.b", 80, "/?u=http://c.d:8/")),
    ],
)
def test_split(url: str, expected: tuple[str, str, int, str]) -> None:
    assert split(url) == expected


@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "u@", "u:p@"]),
    st.sampled_from(["a.b", "[::1]", "[1:2::3]", "127.0.0.1", "xn--zca"]),
    st.sampled_from([80, 443, 8080, 65535]),
    st.text(max_size=20),
)
def test_split_and_origin_agree_with_the_parser(
    scheme: str, user: str, host: str, port: int, rest: str
) -> None:
    found = parse(f"{scheme}://{user}{host}:{port}/{rest.encode('utf-8', 'replace').decode()}")
    parts = split(str(found))
    target = found.path + ("" if found.query is None else f"?{found.query}")
    assert parts == (scheme, found.host_str, port, target)
    default = port == (443 if scheme == "https" else 80)
    assert origin(str(found)) == f"{scheme}://{host}" + ("" if default else f":{port}")
