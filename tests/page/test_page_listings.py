"""Sitemaps and feeds: what they name, whatever they look like, within bounds."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.page.listings import MOST, Listed, read_listing

SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="i" xmlns:xhtml="x" xmlns:news="n">
  <url>
    <loc> http://a.example/1?a=b&amp;c=d
    </loc><lastmod>2024-01-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority>
    <image:image><image:loc>http://a.example/1.png</image:loc></image:image>
    <xhtml:link rel="alternate" hreflang="de" href="http://a.example/de/1"/>
  </url>
  <url><loc>http://a.example/2</loc>
    <news:news><news:publication_date>2023-05-06</news:publication_date></news:news></url>
  <url><lastmod>of nothing</lastmod></url>
</urlset>"""
INDEX = """<sm:sitemapindex xmlns:sm="s"><sm:sitemap><sm:loc>http://a.example/s1.xml.gz</sm:loc>
<sm:lastmod>2024</sm:lastmod></sm:sitemap></sm:sitemapindex>"""
RSS = """<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://n.example/rss.dtd">
<rss version="2.0"><channel><link>http://a.example/</link><image><url>http://a.example/logo</url></image>
<item><title>1</title><link>http://a.example/1</link><guid>http://a.example/guid</guid><pubDate>Mon</pubDate></item>
<item><guid isPermaLink="true">http://a.example/2</guid></item>
<item><guid isPermaLink="false">tag:3</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/feed"/><link rel="next" href="/feed?2"/>
<entry><link href="/1"/><link rel="edit" href="/edit"/><updated>2024</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="r"><channel rdf:about="x"><link>http://a.example/</link></channel>
<item rdf:about="http://a.example/1"><link>http://a.example/1</link><dc:date>2024</dc:date></item></rdf:RDF>"""
BOMB = '<!DOCTYPE u [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>http://a.example/&b;</loc></url></urlset>'


def read(text: str | bytes, media_type: str = "text/xml", most: int = 1_000_000):  # type: ignore[no-untyped-def]
    return read_listing(media_type, text.encode() if isinstance(text, str) else text, most)


def test_a_sitemap_names_pages_their_dates_and_their_other_languages() -> None:
    found = read(SITEMAP)
    assert found.pages == [
        Listed("http://a.example/1?a=b&c=d", "2024-01-01", "daily", "0.8"),
        Listed("http://a.example/2", "2023-05-06"),
    ]
    assert (found.others, found.lists, found.is_sitemap) == (["http://a.example/de/1"], [], True)
    assert not found.cut


def test_an_index_names_further_sitemaps() -> None:
    found = read(INDEX)
    assert found.lists == [Listed("http://a.example/s1.xml.gz", "2024")]
    assert found.pages == []


@pytest.mark.parametrize(
    ("feed", "pages", "others"),
    [
        (RSS, [Listed("http://a.example/1", "Mon"), Listed("http://a.example/2")], ["http://a.example/"]),
        (ATOM, [Listed("/1", "2024")], ["/feed?2"]),
        (RDF, [Listed("http://a.example/1", "2024")], ["http://a.example/"]),
    ],
)
def test_items_of_feeds_are_links(feed: str, pages: list[Listed], others: list[str]) -> None:
    found = read(feed)
    assert (found.pages, found.others) == (pages, others)
    assert not found.is_sitemap
    assert not found.cut


def test_lists_come_packed_in_other_encodings_and_as_lines() -> None:
    assert read(gzip.compress(SITEMAP.encode()), "application/x-gzip") == read(SITEMAP)
    latin = (
        '<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>http://a.example/é</loc></url></urlset>'
    )
    assert read(latin.encode("latin-1")).pages[0].url == "http://a.example/é"
    assert read(SITEMAP.replace("UTF-8", "UTF-16").encode("utf-16")) == read(SITEMAP)
    assert [
        each.url for each in read("\ufeffhttp://a.example/1\r\nhttps://a.example/2", "text/plain").pages
    ] == [
        "http://a.example/1",
        "https://a.example/2",
    ]


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        ("<html><body>http://a.example/</body></html>", "text/html"),
        ("see http://a.example/\n", "text/plain"),
        ("", "text/plain"),
        ("<svg xmlns='s'/>", "image/svg+xml"),
        (gzip.compress(b"a tar file", mtime=0), "application/gzip"),
        (b"\x1f\x8bnothing", "application/gzip"),
    ],
)
def test_what_is_no_list_is_left_alone(body: str | bytes, media_type: str) -> None:
    assert read(body, media_type) is None


def test_what_came_before_a_fault_counts() -> None:
    found = read(
        SITEMAP.replace("</urlset>", "<url><loc>http://a.example/3</loc></url><url><loc>http://a.exa")
    )
    assert [page.url for page in found.pages][-1] == "http://a.example/3"
    assert found.cut
    assert found.damage


def test_nothing_that_a_document_declares_is_expanded() -> None:
    found = read(BOMB)
    assert found.pages == []
    assert found.damage == "it declares entities"


def test_a_list_without_end_is_read_up_to_a_bound() -> None:
    long = "<urlset>" + "<url><loc>http://a.example/</loc></url>" * (MOST + 10)
    assert len(read(long, most=10_000_000).pages) == MOST
    cut = read(long, most=1000)
    assert cut.cut
    assert not cut.damage
    assert 10 < len(cut.pages) < 30
    packed = read(gzip.compress(long.encode()), "application/gzip", most=1000)
    assert len(packed.pages) == len(cut.pages)
    deep = read("<urlset>" + "<url>" * 100_000)
    assert deep.damage == "its elements are too deep within each other"
    lines = read(b"http://a.example/x\n" * (MOST + 1), "text/plain", most=10_000_000)
    assert (len(lines.pages), lines.cut) == (MOST, True)


@given(
    st.binary(max_size=300),
    st.sampled_from(["text/xml", "text/plain", "application/gzip", "application/rss+xml"]),
)
def test_no_bytes_raise(body: bytes, media_type: str) -> None:
    for text in (body, b"<urlset>" + body, b"<rss><channel><item>" + body):
        found = read_listing(media_type, text, 100)
        assert found is None or len(found.pages) <= 100


ENTRY = b"<url><loc>http://a.example/1</loc></url>"


@pytest.mark.parametrize(
    ("rest", "damage"),
    [
        (b"<a/>" * 100_000, "too many small elements"),
        (b"".join(b"<a%s/>" % b"".join(b" b%d=''" % n for n in range(1000)) for _ in range(50)), "too many small elements"),
        (b"<!--" + b"x" * 1_000_000 + b"-->", "no end"),
        (b"<a b='" + b"x" * 1_000_000 + b"'/>", "no end"),
        (b"<?a " + b"x" * 1_000_000 + b"?>", "no end"),
    ],
)  # fmt: skip
def test_what_makes_much_work_of_few_bytes_ends_the_reading(rest: bytes, damage: str) -> None:
    found = read(b"<urlset>" + ENTRY + rest + ENTRY + b"</urlset>", most=2_000_000)
    assert found.pages == [Listed("http://a.example/1")]
    assert found.cut
    assert damage in found.damage


def test_long_texts_and_many_entries_are_read() -> None:
    text = (
        b"<item><description><![CDATA["
        + b"x" * 1_000_000
        + b"]]></description><link>http://a.example/1</link></item>"
    )
    assert len(read(b"<rss><channel>" + text + b"</channel></rss>", most=2_000_000).pages) == 1
    entry = b"<url><loc>/%d</loc><lastmod>2024</lastmod><priority>1</priority></url>"
    many = read(b"<urlset>" + b"".join(entry % n for n in range(MOST - 1)) + b"</urlset>", most=8_000_000)
    assert (len(many.pages), many.cut) == (MOST - 1, False)


def test_of_a_text_no_more_lines_are_taken_than_count() -> None:
    found = read(b"http://a/\n" * 3 * MOST, "text/plain", 8_000_000)
    assert (len(found.pages), found.cut, found.pages[-1].url) == (MOST, True, "http://a/")
