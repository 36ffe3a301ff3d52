"""Pages: links and their order, what is no link, robots, hostile markup, real pages."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turbohtml import parse as parse_tree

from barkspider.page import Page, read_page

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "html" / "real-pages.zip"
URL = "http://example.com/dir/page.html"


def read(markup: str, **more: object) -> Page:
    return read_page(markup.encode(), "text/html; charset=utf-8", URL, **more)  # type: ignore[arg-type]


def test_links_in_document_order_each_once() -> None:
    page = read(
        "<link rel='canonical alternate' href=c><link rel=ALTERNATE href=f.rss><link rel=stylesheet href=s.css>"
        "<meta http-equiv=Refresh content='0; url=r.html'>"
        "<a href='a?x=1&amp;y=2'>1</a><A HREF = \"b\"/>2</a><area href=c2><frame src=d><iframe src=e></iframe>"
        "<a href=b>again</a><a name=x>none</a><a href>empty</a><img src=i.png>"
    )
    assert page.links == ["c", "f.rss", "r.html", "a?x=1&y=2", "b", "c2", "d", "e", ""]
    assert page.canonical == "c"


@pytest.mark.parametrize(
    "markup",
    [
        "<!-- <a href=x> -->",
        "<!-- a > b <a href=x> --!>",
        "<script>document.write('<a href=x>')</script>",
        "<style><a href=x></style>",
        "<textarea><a href=x></textarea>",
        "<title><a href=x></title>",
        "<xmp><a href=x></xmp>",
        "<iframe><a href=x></iframe>",
        "<template><a href=x><template></template><a href=y></template>",
        "<a rel='external NoFollow' href=x>",
        "<link rel='alternate nofollow' href=x>",
        '<div title="<a href=x>">',
        "<a title='href=x'>",
        "<plaintext><a href=x>",
        "<meta http-equiv=refresh content=5>",
        "<meta http-equiv=refresh content='x; url=x'>",
        "< a href=x>",
        "<svg><title>",
    ],
)
def test_what_is_no_link(markup: str) -> None:
    assert read(markup).links == []


@pytest.mark.parametrize(
    "markup",
    [
        "<noscript><a href=x></noscript>",
        "<head><noscript><meta http-equiv=refresh content='0;url=x'></noscript>",
        "<a title=it's href=x>",
        "<template></template><a href=x>",
        "</template><a href=x>",
        "<b><a\nhref\n=\n'x'",
        "<a href=x",
        "<script></script ><a href=x>",
        "<svg><a href=x>",
        "<a href=x rel=nofollowing>",
        "<noscript></noscript><a href=x>",
    ],
)
def test_what_is_a_link(markup: str) -> None:
    # The two that break off inside a tag are no tags at all to the standard.
    expected = [] if markup.endswith(("'x'", "<a href=x")) else ["x"]
    assert read(markup).links == expected


def test_base() -> None:
    assert read("<a href=x>").base == URL
    assert read("<base target=_top><base href='/b/?q'><base href=/c/>").base == "http://example.com/b/?q"
    assert read("<base href='https://other.org'>").base == "https://other.org/"
    assert read("<base href='javascript:1'><base href='http://['>").base == URL
    assert read("<template><base href=/b/></template>").base == URL


def test_title() -> None:
    assert read("<title>\n A &amp; <b>B</b>\t\tc </title><title>second</title>").title == "A & <b>B</b> c"
    assert read("<svg><title>drawing</title></svg><title>page</title>").title == "page"
    assert len(read(f"<title>{'x' * 1000}</title>").title) == 500
    assert read("<p>").title == ""
    assert read("<title></title><a href=x>").links == ["x"]


def test_links_beyond_the_limit_are_cut_and_said() -> None:
    markup = "".join(f"<a href={number}>" for number in range(10))
    assert not read(markup * 2, max_links=10).links_cut
    page = read(markup, max_links=9)
    assert len(page.links) == 9
    assert page.links_cut


@pytest.mark.parametrize(
    ("markup", "header", "follow", "index"),
    [
        ("", None, True, True),
        ("<meta name=robots content='noindex'>", None, True, False),
        ("<META NAME=ROBOTS CONTENT='NoIndex,NoFollow'>", None, False, False),
        ("<meta name=robots content=none>", None, False, False),
        ("<meta name=robots content='index, follow, noarchive'>", None, True, True),
        ("<meta name=BarkSpider content=nofollow>", None, False, True),
        ("<meta name=googlebot content=none>", None, True, True),
        ("<meta name=robots content=all><meta name=robots content=nofollow>", None, False, True),
        ("<template><meta name=robots content=none></template>", None, True, True),
        ("", "noindex", True, False),
        ("", "None", False, False),
        ("", "otherbot: none", True, True),
        ("", "otherbot: noindex, nofollow", True, True),
        ("", "otherbot: noindex\nnofollow", False, True),
        ("", "barkspider: nofollow", False, True),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", False, True),
    ],
)
def test_robots(markup: str, header: str | None, follow: bool, index: bool) -> None:
    page = read(markup + "<a href=x>", headers_robots=header)
    assert (page.follow, page.index) == (follow, index)
    assert page.links == ["x"]


def tree_links(markup: str) -> list[str]:
    """The links of a page by way of a tree, the reference twin of the stream."""
    found: dict[str, None] = {}
    selector = "a[href], area[href], frame[src], iframe[src], link[href], meta[content]"
    for element in parse_tree(markup).select(selector):
        if element.closest("template") is not None:
            continue
        relations = str(element.attr("rel") or "").lower().split()
        if "nofollow" in relations:
            continue
        if element.tag == "link" and not {"canonical", "alternate"} & set(relations):
            continue
        if element.tag == "meta":
            if str(element.attr("http-equiv") or "").lower() == "refresh" and "=" in str(
                element.attr("content")
            ):
                found[str(element.attr("content")).partition("=")[2]] = None
            continue
        found[str(element.attr("src" if element.tag in ("frame", "iframe") else "href"))] = None
    return list(found)


def test_real_pages_give_the_links_of_their_trees() -> None:
    if not REAL.exists():
        pytest.skip("the pages of mozilla/readability are not here")
    total = 0
    with zipfile.ZipFile(REAL) as archive:
        for name in archive.namelist():
            body = archive.read(name)
            page = read_page(body, "text/html; charset=utf-8", URL, max_links=1_000_000)
            assert sorted(page.links) == sorted(tree_links(body.decode("utf-8", "replace"))), name
            total += len(page.links)
    assert total > 5_000


_HOSTILE = {
    "formatting": "".join(f"<font a={n}><p>" for n in range(125_000))[:2_000_000],
    "nested": "<div>" * 100_000,
    "bold": "<b><i>" * 6_400,
    "noscripts": "<noscript>" * 100_000,
    "comments": "<!--" * 100_000,
    "templates": "<template>" * 100_000,
    "attributes": "<a " + " ".join(f"x{n}=1" for n in range(150_000)) + ">",
    "tags": "<a" * 500_000,
    "links": "".join(f"<a href={n}>" for n in range(140_000)),
    "title": "<title>" + "&amp;" * 300_000,
}
_PROGRAM = """
import json, re, sys
from pathlib import Path
from barkspider.page import read_page
def peak():  # of this program alone; what getrusage gives begins with that of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
read_page(b"<a href=x>", None, "http://example.com/")
body = sys.stdin.buffer.read()
before = peak()
page = read_page(body, None, "http://example.com/", max_links=10_000)
grown = peak() - before
print(json.dumps([grown, len(page.links), "last" in page.links]))
"""


@pytest.mark.parametrize("name", list(_HOSTILE))
def test_hostile_markup_costs_no_more_than_any_other(name: str) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory is read from /proc")
    # A program of its own gets the page ready-made, so that its peak is that of reading alone.
    markup = (_HOSTILE[name] + "<a href=last>").encode()
    # Reading takes a tenth of a second; a parser that is not linear would need minutes and run into the timeout.
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], input=markup, capture_output=True, check=True, timeout=60
    )
    kibibytes, links, deepest = json.loads(done.stdout)
    assert kibibytes < 64 * 1024
    assert links <= 10_000
    if name in ("formatting", "nested", "bold"):
        assert deepest


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=300), st.none() | st.text(max_size=40))
def test_any_bytes_give_a_page(body: bytes, content_type: str | None) -> None:
    page = read_page(body, content_type, URL, headers_robots=content_type)
    assert len(page.links) <= 10_000


_PIECES = st.sampled_from(
    (
        *(
            "<a href=x>",
            "<a ",
            "href='",
            "'",
            '"',
            ">",
            "<",
            "</",
            "<!--",
            "-->",
            "<script>",
            "</script>",
            "]]>",
        ),
        *(
            "<noscript>",
            "</noscript>",
            "<template>",
            "</template>",
            "<svg>",
            "<title>",
            "</title>",
            "<base href=",
            "é",
        ),
    )
)


@settings(deadline=None)
@given(st.lists(_PIECES, max_size=40).map("".join))
def test_any_markup_gives_a_page(markup: str) -> None:
    assert read(markup).base
