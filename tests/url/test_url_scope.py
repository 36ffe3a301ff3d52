"""Scope: levels, restrictions, redirects from seeds."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Scope, UrlRules
from barkspider.url import Domains, Normaliser, ScopeRules, parse, split

DOMAINS = Domains()
SEEDS = ("http://www.example.com/start", "http://10.0.0.1:8080/")


def refuses(url: str, depth: int = 1, **scope: Any) -> str | None:
    return ScopeRules(Scope(**scope), DOMAINS, SEEDS).refuses(url, split(url).host, depth)


@pytest.mark.parametrize(
    ("level", "inside", "outside"),
    [
        (
            "page",
            ["http://www.example.com/start"],
            ["http://www.example.com/", "https://www.example.com/start"],
        ),
        (
            "site",
            ["https://www.example.com/x", "http://10.0.0.1/"],
            ["http://example.com/", "http://10.0.0.2/"],
        ),
        (
            "domain",
            ["http://a.b.example.com/", "http://example.com/"],
            ["http://example.org/", "http://10.0.0.2/"],
        ),
        ("web", ["http://example.org/", "http://[::1]/"], []),
    ],
)
def test_levels(level: str, inside: list[str], outside: list[str]) -> None:
    assert [refuses(url, level=level) for url in inside] == [None] * len(inside)
    assert [refuses(url, level=level) for url in outside] == ["scope"] * len(outside)


@pytest.mark.parametrize(
    ("url", "scope", "reason"),
    [
        ("http://a.com/", {"schemes": ("https",)}, "scheme"),
        ("https://a.com/", {"schemes": ("https",)}, None),
        ("http://a.com:25/", {}, "port"),
        ("http://a.com:6379/", {"ports": (6379,)}, "port"),
        ("http://[::1]:22/", {}, "port"),
        ("http://a.com:8080/", {}, None),
        ("http://a.com:8080/", {"ports": (80,)}, "port"),
        ("http://a.com/", {"ports": (80,)}, None),
        ("https://a.com/", {"ports": (80,)}, "port"),
        ("http://b.a.com/", {"exclude_hosts": ("*.A.com",)}, "host"),
        ("http://a.com/", {"exclude_hosts": ("*.a.com",)}, "host"),
        ("http://ba.com/", {"exclude_hosts": ("*.a.com",)}, None),
        ("http://b.a.com/", {"exclude_hosts": ("a.com",)}, None),
        ("http://b.a.com/", {"include_hosts": ("a.com",)}, "host"),
        ("http://b.a.com/", {"include_hosts": ("*.a.com",), "exclude_hosts": ("b.a.com",)}, "host"),
        ("http://xn--mnchen-3ya.de/", {"include_hosts": ("münchen.de",)}, None),
        ("http://b.a.com/", {"include_domains": ("a.com",)}, None),
        ("http://b.a.org/", {"include_domains": ("a.com",)}, "domain"),
        ("http://b.a.com/", {"exclude_domains": ("a.com",)}, "domain"),
        ("http://a.com/news/1", {"include_paths": ("/news/", "/*.pdf$")}, None),
        ("http://a.com/x.pdf", {"include_paths": ("/news/", "/*.pdf$")}, None),
        ("http://a.com/x.pdf?y", {"include_paths": ("/news/", "/*.pdf$")}, "path"),
        ("http://a.com/news/old/", {"include_paths": ("/news/",), "exclude_paths": ("/news/old",)}, "path"),
        ("http://a.com/%e3%83%84", {"exclude_paths": ("/ツ",)}, "path"),
        ("http://a.com/a.ZIP?x=y.html", {"exclude_extensions": ("zip",)}, "extension"),
        ("http://a.com/a.html", {"include_extensions": (".html",)}, None),
        ("http://a.com/a.pdf", {"include_extensions": ("html",)}, "extension"),
        ("http://a.com/b.c/a", {"include_extensions": ("html",)}, None),
        ("http://a.com/", {"exclude_extensions": ("com",)}, None),
        ("http://a.com/b.zip#part", {"exclude_extensions": ("zip",)}, "extension"),
        ("http://a.com/b.zip/c", {"exclude_extensions": ("zip",)}, None),
        ("http://a.com/b?to=/c.zip", {"exclude_extensions": ("zip",)}, None),
        ("http://a.com/?x=b.pdf", {"include_extensions": ("html",)}, None),
    ],
)
def test_restrictions(url: str, scope: dict[str, Any], reason: str | None) -> None:
    assert refuses(url, level="web", **scope) == reason


def test_depth() -> None:
    url = "http://www.example.com/x"
    assert refuses(url, depth=65_535) is None
    rules = ScopeRules(Scope(depth=5), DOMAINS, SEEDS)
    assert [rules.refuses(url, "www.example.com", depth) for depth in (0, 5, 6)] == [None, None, "depth"]


@pytest.mark.parametrize("level", ["page", "site", "domain"])
def test_a_redirect_from_a_seed_takes_its_target_in(level: str) -> None:
    rules = ScopeRules(Scope(level=level, exclude_hosts=("bad.org",)), DOMAINS, SEEDS)
    target = "https://example.org/home"
    assert rules.refuses(target, "example.org", 0) == "scope"
    assert rules.excludes(target) is None
    assert rules.excludes("http://bad.org/") == "host"
    rules.extend(target)
    assert rules.refuses(target, "example.org", 0) is None
    assert rules.refuses("http://example.net/", "example.net", 0) == "scope"


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ({"include_paths": ("/news/",)}, None),
        ({"include_extensions": ("pdf",)}, None),
        ({"include_hosts": ("other.example",)}, None),
        ({"include_domains": ("other.example",)}, None),
        ({"exclude_paths": ("/start",)}, "path"),
        ({"exclude_extensions": ("html",)}, "extension"),
        ({"exclude_hosts": ("a.example",)}, "host"),
        ({"exclude_domains": ("a.example",)}, "domain"),
        ({"schemes": ("https",)}, "scheme"),
        ({"ports": (8080,)}, "port"),
    ],
)
def test_what_is_included_is_for_links_and_not_for_seeds(scope: dict[str, Any], reason: str | None) -> None:
    seed = "http://a.example/start.html"
    rules = ScopeRules(Scope(**scope), DOMAINS, [seed])
    assert rules.excludes(seed) == reason
    assert rules.refuses("http://a.example/start2.html", "a.example", 1) is not None


@pytest.mark.parametrize("name", ["", "a b", "a.com/x", "a.com:80", "u@a.com"])
def test_a_wrong_host_in_settings_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match="host name"):
        ScopeRules(Scope(include_hosts=(name,)), DOMAINS, SEEDS)


def test_userinfo_that_is_kept_does_not_hide_a_port() -> None:
    assert refuses("http://u:p@a.com:25/", level="web") == "port"
    assert refuses("http://u:p@a.com/", level="web") is None


# Each URL is written as a page might write it; the exclusions are of victim.example, all below tree.example, two
# addresses, and a name in letters that have to be encoded.
WAYS_AROUND = [
    "http://victim.example/",
    "http://victim.example./",
    "http://victim.example../",
    "http://.victim.example/",
    "http://victim.example.:8080/",
    "http://VICTIM.Example/",
    "https://victim.example:8443/",
    "http://user:password@victim.example/",
    "http://other.example@victim.example./",
    "http://%76ictim.example/",
    "http://victim%2Eexample%2e/",
    "http://victim\u3002example/",
    "http://victim.example\uff0e/",
    "http://\uff56\uff49ctim.example/",
    "http://vic\u00adtim.example/",
    "http://vic\u200btim.example/",
    "http:\\\\victim.example\\",
    "https:victim.example/",
    "http:////victim.example/",
    " http://vict\tim.ex\nample/",
    "//victim.example./a",
    "/\\victim.example./a",
    "http://tree.example./",
    "http://a.b.TREE.example./",
    "http://a..tree.example/",
    "http://93.184.216.34/",
    "http://93.184.216.34./",
    "http://1572395042/",
    "http://0x5db8d822/",
    "http://0x5d.0270.55330/",
    "http://\u2468\u2462.184.216.34/",
    "http://[::ffff:93.184.216.34]/",
    "http://[0:0:0:0:0:ffff:5db8:d822]/",
    "http://[::93.184.216.34]/",
    "http://[64:ff9b::5db8:d822]/",
    "http://[2002:5db8:d822::1]/",
    "http://[2001:db8::1]/",
    "http://[2001:0db8:0:0::0001]/",
    "http://[2001:DB8:0:0:0:0:0.0.0.1]/",
    "http://b\u00fccher.example/",
    "http://B\u00dcCHER.example/",
    "http://bu\u0308cher.example./",
    "http://xn--bcher-kva.example/",
    "http://XN--BCHER-KVA.example./",
]
EXCLUDED = ("victim.example", "*.tree.example", "93.184.216.34", "[2001:db8::1]", "b\u00fccher.example")


@pytest.mark.parametrize("text", WAYS_AROUND, ids=ascii)
def test_an_excluded_host_stays_out_however_it_is_written(text: str) -> None:
    url = Normaliser(UrlRules(), DOMAINS)(text, parse("http://elsewhere.example/"))
    rules = ScopeRules(Scope(level="web", exclude_hosts=EXCLUDED), DOMAINS, ["http://elsewhere.example/"])
    assert rules.refuses(url, split(url).host, 1) == "host"
    assert rules.excludes(url) == "host"


@pytest.mark.parametrize("text", WAYS_AROUND[:24], ids=ascii)
def test_and_so_does_an_excluded_domain(text: str) -> None:
    url = Normaliser(UrlRules(), DOMAINS)(text, parse("http://elsewhere.example/"))
    excluded = Scope(level="web", exclude_domains=("Victim.example.", "tree.example"))
    assert ScopeRules(excluded, DOMAINS, []).excludes(url) == "domain"


@pytest.mark.parametrize(
    "text",
    [
        "http://notvictim.example/",
        "http://victim.example.org/",
        "http://a.victim.example/",
        "http://[::1]/",
        "http://[::5db8:d823]/",
    ],
)
def test_others_are_not_excluded(text: str) -> None:
    assert ScopeRules(Scope(level="web", exclude_hosts=EXCLUDED), DOMAINS, []).excludes(text) is None


@pytest.mark.parametrize("written", ["victim.example", "VICTIM.example.", "%76ictim.example"])
def test_an_exclusion_may_be_written_in_any_way_too(written: str) -> None:
    rules = ScopeRules(Scope(level="web", exclude_hosts=(written,)), DOMAINS, [])
    assert [rules.excludes(f"http://victim.example{end}/") for end in ("", ".", ":81")] == ["host"] * 3


@pytest.mark.parametrize(
    ("target", "scope"),
    [
        ("/private/a", {"exclude_paths": ("/private/",)}),
        ("/%70rivate/a", {"exclude_paths": ("/private/",)}),
        ("/%70%72ivate/a", {"exclude_paths": ("/priv%61te/",)}),
        ("/a/../private/a", {"exclude_paths": ("/private/",)}),
        ("/a/%2e%2E/private/a", {"exclude_paths": ("/private/",)}),
        ("\\private\\a", {"exclude_paths": ("/private/",)}),
        ("/a.zip", {"exclude_extensions": ("zip",)}),
        ("/a.ZIP?b=/c.html", {"exclude_extensions": ("zip",)}),
        ("/a.zi%70", {"exclude_extensions": ("zip",)}),
        ("/a%2Ezip", {"exclude_extensions": ("zip",)}),
        ("/a.zip;b=c", {"exclude_extensions": ("zip",)}),
    ],
)
def test_an_excluded_path_stays_out_however_it_is_written(target: str, scope: dict[str, Any]) -> None:
    url = Normaliser(UrlRules(), DOMAINS)(target, parse("http://www.example.com/"))
    assert refuses(url, **scope) in ("path", "extension")


def test_a_filter_of_ones_own_and_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeps(url: str) -> bool:
        if "fails" in url:
            raise ValueError("no idea")
        return "calendar" not in url

    module = ModuleType("their_filters")
    module.keeps = keeps  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_filters", module)
    rules = ScopeRules(Scope(filter="their_filters:keeps"), Domains(), ["http://a.example/"])
    host = "a.example"
    assert rules.looks_at_urls
    assert rules.refuses("http://a.example/page", host, 1) is None
    assert rules.refuses("http://a.example/calendar/1", host, 1) == "filter"
    assert rules.refuses("http://a.example/fails", host, 1) is None
    assert rules.filter_error == "http://a.example/fails: ValueError: no idea"
    with pytest.raises(SettingsError, match="cannot load"):
        ScopeRules(Scope(filter="their_filters:none"), Domains(), [])
