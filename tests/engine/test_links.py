"""Links of a page as a batch: in scope, with the keys of their own, and every refusal counted."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchRobots
from barkspider.core.load import load_settings
from barkspider.core.records import Flag, UrlRow
from barkspider.engine.links import LinkMaker
from barkspider.url import Domains, KeyMaker, Normaliser, ScopeRules, parse, split

SEED = "http://www.example.com/"
PAGE = UrlRow(1, 2, 3, 4, 0, 0, 0, b"http://www.example.com/dir/page.html")
HREFS = [
    *("a", "a#b", "/b.pdf", "//other.example.com/c", "http://example.org/", "https://www.example.com:8443/d"),
    *(
        "http://www.example.com:25/",
        "mailto:x",
        "http://[",
        "http://user@www.example.com/e",
        "index.html",
        "/private/f",
    ),
]


@pytest.mark.parametrize(
    "options",
    [
        ["scope.level=web"],
        ["scope.level=domain"],
        ["scope.level=site"],
        ["scope.level=page"],
        ["scope.level=web", "scope.depth=4"],
        ["scope.level=web", "scope.depth=4", "scope.depth_from=site"],
        [
            "scope.level=web",
            "scope.exclude_paths=/private",
            "scope.exclude_extensions=pdf",
            "scope.schemes=http",
        ],
        [
            "scope.level=web",
            "url.drop_userinfo=false",
            "scope.ports=80,8443",
            "scope.exclude_hosts=*.example.org",
        ],
    ],
)
def test_a_batch_is_what_normalising_and_judging_one_by_one_gives(options: list[str]) -> None:
    settings = load_settings(options=[*options, "seed=7"])
    domains, keys = Domains(), KeyMaker(7)
    normaliser, scope = Normaliser(settings.url, domains), ScopeRules(settings.scope, domains, [SEED])
    refused: Counter[str] = Counter()
    expected = []
    for url in normaliser.many(HREFS, parse(PAGE.url.decode()), refused)[0]:
        host = split(url).host
        inside = settings.scope.depth_from == "seed" or host == "www.example.com"
        depth = 5 if inside else 0
        reason = scope.refuses(url, host, depth)
        if reason is not None:
            refused[reason] += 1
            continue
        text, domain = url.encode(), domains.pay_level(host)
        expected.append(UrlRow(keys.of(text), keys.of(host), keys.of(domain), depth, 0, 0, 0, text, PAGE.key))
    maker = LinkMaker(settings, [SEED])
    assert maker.batch(maker.links(HREFS, PAGE.url.decode(), PAGE)).rows() == expected
    assert maker.refused == refused


def test_what_a_seed_redirects_to_is_in_scope_from_then_on() -> None:
    maker = LinkMaker(load_settings(options=["scope.level=site", "seed=7"]), [SEED])
    seed = maker.seeds().rows()[0]
    assert len(maker.batch(maker.links(["http://example.org/a"], SEED, seed))) == 0
    made = maker.redirect("http://example.org/", seed)
    assert made is not None
    assert made[0].flags == Flag.SEED | Flag.REDIRECT
    assert len(maker.batch(maker.links(["http://example.org/a"], SEED, seed))) == 1


def test_pages_to_be_fetched_again_are_what_they_were_and_scope_is_not_asked() -> None:
    settings = load_settings(options=["seed=7", "scope.level=web"])
    urls = [SEED, "http://a.example.org/x?y=%C3%A9", "https://www.example.com:8443/d"]
    rows = LinkMaker(settings, urls, lambda: 9.5).seeds().rows()
    stored = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([row.key for row in rows], pa.uint64()),
            "url": urls,
            "depth": pa.array([0, 3, 65_535], pa.uint16()),
            "parent": pa.array([0, 1, 2**64 - 1], pa.uint64()),
        }
    )
    narrow = load_settings(options=["seed=7", "scope.level=page"])
    found = LinkMaker(narrow, [SEED], lambda: 9.5).again(stored)
    places = zip(rows, (0, 3, 65_535), (0, 1, 2**64 - 1), strict=True)
    expected = [
        row._replace(depth=depth, parent=parent, flags=int(Flag.AGAIN | Flag.LINKED))
        for row, depth, parent in places
    ]
    assert found.rows() == UrlBatch.decode(found.encode()).rows() == expected


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("http://b.example/x", True),
        ("/rules", True),
        ("http://victim.example/x", False),
        ("http://VICTIM.example./x", False),
        ("http://www.shy.example/x", False),
        ("http://b.example:8080/x", False),
        (
            "https://www.a.example/robots.txt",
            True,
        ),  # of the same domain: its rules count, whatever is crawled
        ("http://b.example:25/", False),
        ("ftp://b.example/", False),
    ],
)
def test_a_robots_txt_leads_to_no_place_that_is_excluded(location: str, leads: bool) -> None:
    scope = {
        "scope.level": "web",
        "scope.exclude_hosts": ["victim.example"],
        "scope.exclude_domains": ["shy.example"],
        "scope.ports": [80],
    }
    links = LinkMaker(load_settings(overrides=scope), [])
    asked = FetchRobots("http://a.example", "http://a.example/robots.txt", "192.0.2.1", 1, 0)
    assert bool(links.robots_at(location, asked)) is leads


@pytest.mark.parametrize(
    ("external", "expected", "refused"),
    [
        (
            "deep",
            ["http://www.example.com/a", "http://b.example/", "http://b.example/x", "http://c.example/y"],
            0,
        ),
        ("home", ["http://www.example.com/a", "http://b.example/", "http://c.example/"], 2),
        (
            "both",
            [
                *("http://www.example.com/a", "http://b.example/", "http://b.example/x"),
                *("http://c.example/y", "http://c.example/"),
            ],
            0,
        ),
    ],
)
def test_what_is_followed_of_links_to_other_sites(external: str, expected: list[str], refused: int) -> None:
    settings = load_settings(options=["scope.level=web", f"scope.external={external}", "seed=7"])
    counted = Counter[str]()
    maker = LinkMaker(settings, [SEED], refused=counted)
    page = PAGE._replace(host_key=KeyMaker(7).of("www.example.com"))
    hrefs = ["/a", "http://b.example/", "http://b.example/x", "http://c.example/y"]
    (found,) = maker.links(hrefs, page.url.decode(), page)
    assert [url.decode() for url in found.urls.url.tolist()] == expected
    assert counted["deep_link"] == refused
