"""Links by compiled functions are those that parsing, normalising and judging one by one gives."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UrlError
from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.core.settings import Page as PageSettings
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.page import Hrefs, PageReader
from barkspider.url import Domains, KeyMaker, Normaliser, ScopeRules, parse, split
from barkspider.url.origins import OriginNumbers
from barkspider.url.resolve import LinkResolver

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SEED = "http://a.example/"
CONTROLS = "".join(map(chr, range(33)))
OPTIONS = [
    ["scope.level=web"],
    ["scope.level=domain", "url.drop_index_names=true"],
    ["scope.level=site", "scope.depth=4"],
    ["scope.level=page"],
    ["scope.level=web", "scope.depth=4", "scope.depth_from=site"],
    ["scope.level=web", "scope.exclude_paths=/a", "scope.exclude_extensions=html", "scope.schemes=http"],
    ["scope.level=web", "url.drop_userinfo=false", "scope.ports=80,8443", "scope.exclude_hosts=*.b.example"],
    ["scope.level=web", "url.add_www=true"],
    ["scope.level=web", "url.drop_fragment=false"],
    ["scope.level=web", "url.max_length=40", "url.session_names=a,b"],
    ["scope.level=web", "url.trim_listings=false", "url.drop_session_ids=false"],
    ["scope.level=web", "limits.page_link_bytes=300B"],
]
SETTINGS = [load_settings(options=[*options, "seed=7"]) for options in OPTIONS]
MAKERS = [LinkMaker(settings, [SEED]) for settings in SETTINGS]
BASES = [
    *("http://a.example/", "http://a.example/x/y/z.html", "http://a.example/x//y/", "http://a.example//"),
    *("https://b.example:8443/q?a=b", "http://a.example/d/?N=D", "http://a.example/index.html"),
    *("http://u:p@a.example/x/", "http://a.example/p;jsessionid=abcdefgh1/x", "http://a.example/a=b/c"),
    *("http://[::1]/x/", "http://127.0.0.1/x", "http://a.example/x/..%2f/'", "http://a.example/b?c=/../d#e"),
]
PIECES = [
    *("http://", "https://", "//", "/", "/", "..", "../", "./", ".", "a", "b", "A", "index.html", "%2e"),
    *("%2E", "%41", "%zz", "?", "?", "&", "=", "sid=", "PHPSESSID=", "12345678", "jsessionid=abcdefgh1"),
    *(";", ":", ":80", "@", "user@", "a.example", "www.a.example", "127.0.0.1", "0x7f.1", "[::1]"),
    *(
        "xn--bcher-kva.example",
        "é",
        "\\",
        " ",
        "'",
        '"',
        "<",
        "`",
        "{",
        "|",
        "^",
        "~",
        "!",
        "$",
        "#",
        "#x",
    ),
    *("mailto:", "javascript:", "ftp://", "file:///", "ws:", "HTTP://", "http:", "https:/", "x-y+z.1:"),
    *("1:", "N=D", "C=M;O=A", "\x7f", "\x01", "\0", "\ufffd", "日", "[", "]", "http://a.example"),
    *("//a.example", "https://b.example:8443", "http://c.example/", "data:x", "x" * 40),
]
_links = st.lists(st.sampled_from(PIECES), max_size=6).map("".join).map(lambda link: link.strip(CONTROLS))
_cases = st.lists(_links, min_size=1, max_size=30)


def by_itself(settings: Settings, texts: list[str], base: str, page: UrlRow) -> tuple[Any, ...]:
    """Rows, those outside, refusals and whether there were too many, without anything compiled."""
    domains, keys, refused = Domains(), KeyMaker(settings.seed), Counter[str]()
    normaliser, scope = Normaliser(settings.url, domains), ScopeRules(settings.scope, domains, [SEED])
    rows, outside = [], []
    urls, cut = normaliser.many(texts, parse(base), refused, settings.limits.page_link_bytes)
    for url in urls:
        host = split(url).host
        inside = settings.scope.depth_from == "seed" or host == split(page.url.decode()).host
        depth = page.depth + 1 if inside else 0
        reason = scope.refuses(url, host, depth)
        if reason is None:
            text, domain = url.encode(), domains.pay_level(host)
            found = (keys.of(text), keys.of(host), keys.of(domain), min(depth, 65_535), 0, 0, 0, text)
            rows.append(UrlRow(*found, parent=page.key))
        else:
            refused[reason] += 1
            outside.append(url)
    return rows, outside, refused, cut


def by_kernels(maker: LinkMaker, hrefs: Hrefs, base: str, page: UrlRow) -> tuple[Any, ...]:
    maker.refused = Counter()
    (links,) = maker.links(hrefs, base, page)
    return links.urls.rows(), links.outside, maker.refused, links.cut


def compare(number: int, texts: list[str], base: str, depth: int = 4, most: int = 10_000) -> None:
    maker, hrefs = MAKERS[number], Hrefs.of(texts, most)
    page = UrlRow(9, 2, 3, depth, 0, 0, 0, base.partition("#")[0].replace("u:p@", "").encode())
    expected = by_itself(SETTINGS[number], hrefs.texts(), base, page)
    # Twice: origins are known the second time.
    assert by_kernels(maker, hrefs, base, page) == expected
    assert by_kernels(maker, hrefs, base, page) == expected


@settings(max_examples=1000)
@given(
    st.integers(0, len(OPTIONS) - 1),
    _cases,
    st.sampled_from(BASES),
    st.sampled_from((0, 4, 65_535)),
    st.sampled_from((2, 10_000)),
)
@example(
    0,
    ["http:", "http://", "//", "?", "#", "", ".", "..", "/..", "a/../..", "//a.example?b", "a #b", "é ü?<'"],
    BASES[1],
    4,
    99,
)
def test_links_are_what_normalising_and_judging_one_by_one_gives(
    number: int, texts: list[str], base: str, depth: int, most: int
) -> None:
    compare(number, texts, base, depth, most)


@settings(max_examples=300)
@given(_cases, st.sampled_from((1, 2, 5, 10_000)))
def test_targets_are_counted_as_texts_are(texts: list[str], most: int) -> None:
    hrefs = Hrefs.of(texts, most)
    kept = hrefs.texts()
    targets = Counter(text.partition("#")[0] for text in kept)
    found = {hrefs.lines[start:end].decode(): times for start, end, times in hrefs.targets.tolist()}
    assert (len(hrefs), found, list(found)) == (len(kept), targets, list(targets))
    everything = len(texts) <= 16 * most and len({text.partition("#")[0] for text in texts}) <= most
    assert hrefs.cut is not everything


def test_the_cases_of_the_url_standard_are_the_same() -> None:
    path = DATA / "url" / "urltestdata.json"
    if not path.exists():
        pytest.skip("the cases of web-platform-tests are not here")
    inputs = [case["input"] for case in json.loads(path.read_text()) if isinstance(case, dict)]
    bases = {case.get("base") for case in json.loads(path.read_text()) if isinstance(case, dict)}
    texts = [text.strip(CONTROLS).translate(dict.fromkeys(b"\t\n\r")) for text in inputs]
    whole = [text for text in texts if text.encode("utf-8", "replace").decode() == text]
    tried = 0
    for base in [*BASES, *filter(None, bases)]:
        try:
            url = str(parse(base))
        except UrlError:
            continue
        if url.startswith(("http://", "https://")):
            tried += 1
            compare(0, whole, url)
    assert tried > len(BASES)


def test_real_pages_have_the_same_links_and_few_of_them_are_unusual() -> None:
    path = DATA / "html" / "real-pages.zip"
    if not path.exists():
        pytest.skip("the pages of mozilla/readability are not here")
    reader, base = PageReader(PageSettings()), "http://example.com/dir/page.html"
    rules = load_settings().url
    origins, resolver = (
        OriginNumbers(lambda _: (0, 0, 0), 10_000, 10_000, 7),
        LinkResolver(rules, 7, 1_000_000),
    )
    links = unusual = 0
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            page = reader.read(archive.read(name), "text/html; charset=utf-8", base)
            compare(0, page.links, page.base)
            (known,) = MAKERS[0].links(page.hrefs, page.base, UrlRow(1, 2, 3, 0, 0, 0, 0, base.encode()))
            for url in map(bytes.decode, known.urls.url.tolist()):
                origins.number(url[: url.find("/", 8)])
            resolved = resolver.resolve(page.hrefs.lines, page.hrefs.targets, page.base, origins)
            assert resolved is not None
            links += len(resolved.found)
            unusual += resolved.unusual
    assert links > 10_000
    assert unusual < 0.02 * links


def test_more_origins_than_are_remembered_and_more_targets_than_a_page_may_have() -> None:
    settings = load_settings(options=["scope.level=web", "seed=7", "limits.page_links=9", "memory=32MB"])
    maker, page = LinkMaker(settings, [SEED]), UrlRow(9, 2, 3, 4, 0, 0, 0, SEED.encode())
    for first in range(0, 5000, 8):
        texts = [
            f"http://h{number % 4000}.example/{number}" for number in range(first, first + 8 + first % 3)
        ]
        expected = by_itself(settings, texts, SEED, page)
        assert by_kernels(maker, Hrefs.of(texts), SEED, page) == expected


@pytest.mark.parametrize(
    ("texts", "urls", "refused"),
    [
        (["./" * number + "a" for number in range(900)], 1, False),  # one URL, again and again
        ([f"{number}|" for number in range(900)], 130, False),  # that take a parser
        ([f"{number}|{'x' * 150}" for number in range(900)], 0, True),  # and are too long
    ],
)
def test_a_long_base_makes_no_more_work_than_links_are_worth(
    texts: list[str], urls: int, refused: bool
) -> None:
    base = f"http://a.example/{'b' * 1_900}/"
    page = UrlRow(9, 2, 3, 4, 0, 0, 0, SEED.encode())
    found = by_kernels(MAKERS[0], Hrefs.of(texts), base, page)
    expected = by_itself(SETTINGS[0], texts, base, page)
    for rows, _, reasons, cut in (found, expected):
        assert cut
        assert len(rows) == urls
        assert (200 < reasons["too_long"] < 400) is refused
