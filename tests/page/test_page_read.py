"""Pages: links and their order, what is no link, robots, titles, texts, requisites, limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.settings import Page as PageSettings
from barkspider.page import Bounds, Page, PageReader
from barkspider.page.charset import decode
from barkspider.page.fingerprint import simhash

URL = "http://example.com/dir/page.html"


def read(markup: str | bytes, content_type: str = "text/html; charset=utf-8", **more: Any) -> Page:
    headers = {name: more.pop(name) for name in ("robots_header", "content_language") if name in more}
    bounds = more.pop("bounds", Bounds())
    body = markup.encode() if isinstance(markup, str) else markup
    return PageReader(PageSettings(**more), bounds=bounds).read(body, content_type, URL, **headers)


def test_links_come_in_document_order_each_once() -> None:
    page = read(
        "<link rel='canonical alternate' href=c><link rel=ALTERNATE href=f.rss><link rel=stylesheet href=s.css>"
        "<link rel='alternate stylesheet' href=t.css><link rel=next href=2><link rel=prev href=0>"
        "<meta http-equiv=Refresh content='0; url=r.html'>"
        "<a href='a?x=1&amp;y=2'>1</a><A HREF = \"b\"/>2</a><area href=c2><iframe src=e></iframe>"
        "<a href=b>again</a><a name=x>none</a><a href>empty</a><img src=i.png><form action=find></form>"
    )
    assert page.links == ["c", "f.rss", "2", "0", "r.html", "a?x=1&y=2", "b", "c2", "e", ""]
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
        "<a href=x",
        "<b><a\nhref\n=\n'x'",
        "<frame src=x>",
        "<template><meta http-equiv=refresh content='0;url=x'><link rel=next href=x></template>",
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
        "<script></script ><a href=x>",
        "<svg><a href=x>",
        "<svg><a xlink:href=x>",
        "<a href=x rel=nofollowing>",
        "<noscript></noscript><a href=x>",
        "<a href='\n x\t\r\n'>",
        "<a href='&#120;'>",
        "<a href='\n&#1;&#x78;\r'>",
        "<frameset><frame src=x></frameset>",
    ],
)
def test_what_is_a_link(markup: str) -> None:
    assert read(markup).links == ["x"]


def test_references_in_links_are_read_as_browsers_do() -> None:
    markup = "<a href='?a=1&copy=2&amp;b=3&reg;&eacute;&#8364&#128;&notit;&amp;amp;&lt=&#xD800;&#0;'>"
    assert read(markup).links == ["?a=1&copy=2&b=3®é€€&notit;&amp;&lt=\ufffd\ufffd"]
    assert read("<a href='?a&amp;copy;'><a href=x&y>").links == ["?a&copy;", "x&y"]
    assert read("<a href='a\0b'>").links == ["a\ufffdb"]


def test_the_first_base_counts_and_only_on_the_web() -> None:
    assert read("<a href=x>").base == URL
    assert read("<base target=_top><base href='/b/?q'><base href=/c/>").base == "http://example.com/b/?q"
    assert read("<a href=x><base href='https://other.org'>").base == "https://other.org/"
    assert read("<base href='javascript:1'><base href='/c/'>").base == URL
    assert read("<base href='http://['>").base == URL
    assert read("<template><base href=/b/></template><svg><base href=/c/></svg>").base == URL


def test_the_title_is_that_of_the_page() -> None:
    assert read("<title>\n A &amp; <b>B</b>\t\tc </title><title>second</title>").title == "A & <b>B</b> c"
    assert read("<svg><title>drawing</title></svg><title>page</title>").title == "page"
    assert read("<template><title>no</title></template><title>yes</title>").title == "yes"
    assert len(read(f"<title>{'x' * 1000}</title>").title) == 500
    assert read("<p>").title == ""
    assert read("<title></title><a href=x>").links == ["x"]


def test_description_and_language_are_as_declared() -> None:
    page = read(
        "<html lang=pt-BR><meta name=Description content=' A\n&eacute; '><meta name=description content=b>"
    )
    assert (page.description, page.language) == ("A é", "pt")
    assert read("<p>", content_language="en-GB, fr").language == "en"
    assert read("<html lang=deu>", content_language="en").language == "de"
    assert (read("<p>").language, read("<p>").detected_language) == ("", "")


def test_links_beyond_the_limit_are_cut_and_said() -> None:
    markup = "".join(f"<a href={number}>" for number in range(10))
    assert not read(markup * 2, bounds=Bounds(links=10)).links_cut
    page = read(markup, bounds=Bounds(links=9))
    assert page.links == [str(number) for number in range(9)]
    assert page.links_cut
    frames = "".join(f"<iframe src={number}></iframe>" for number in range(5000))
    page = read(frames)
    assert page.links_cut
    assert len(page.links) == 4096


def test_fragments_make_no_other_target() -> None:
    links = [f"page{number % 49}.html#part{number}" for number in range(700)]
    page = read("".join(f"<a href={link}>" for link in links), bounds=Bounds(links=50))
    assert (page.links, page.links_cut) == (links, False)
    page = read("".join(f"<a href={link}>" for link in links[:100]), bounds=Bounds(links=7))
    assert page.links == [link for link in links[:100] if int(link[4:].partition(".")[0]) < 7]
    assert page.links_cut


def test_only_so_many_links_are_looked_at() -> None:
    page = read(
        "".join(f"<a href=#{number}>" for number in range(161)) + "<a href=next>", bounds=Bounds(links=10)
    )
    assert page.links == [f"#{number}" for number in range(160)]
    assert page.links_cut


def test_other_links_count_with_those_of_anchors() -> None:
    markup = (
        "".join(f"<a href=a#{number}>" for number in range(9))
        + "<iframe src=b></iframe><iframe src=c></iframe>"
    )
    page = read(markup, bounds=Bounds(links=2))
    assert (page.links[-1], len(page.links), page.links_cut) == ("b", 10, True)


def test_a_million_links_are_cut_and_said() -> None:
    page = read("".join(f"<a href={number}>" for number in range(500_000)), bounds=Bounds(links=10_000))
    assert len(page.links) == 10_000
    assert page.links_cut


def test_a_page_is_read_up_to_its_limit_and_the_cut_is_said() -> None:
    markup = "<a href=x>" + " " * 5000 + "<a href=y>"
    assert read(markup).body_cut is False
    page = read(markup, max_parse=1000)
    assert (page.links, page.body_cut) == (["x"], True)


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
def test_what_a_page_asks_of_robots(markup: str, header: str | None, follow: bool, index: bool) -> None:
    page = read(markup + "<a href=x>", robots_header=header)
    assert (page.follow, page.index) == (follow, index)
    assert page.links == ["x"]


def test_forms_are_links_when_asked_for() -> None:
    markup = "<form action=a><form action=nested></form><form method=POST action=p></form><form method=get action=g>"
    assert read(markup, forms=True).links == ["a", "g"]
    assert read(markup).links == []


def test_requisites_are_found_when_asked_for() -> None:
    markup = (
        "<link rel='shortcut icon' href=i.ico><link rel=preload href=f.woff imagesrcset='l.png 2x'>"
        "<style>@import 'a.css'; b { background: url(b.png) }</style><body background=back.gif>"
        "<img src=1.png srcset='2.png 2x, 3.png'><script src=s.js></script><picture><source srcset=4.webp></picture>"
        "<video src=v.mp4 poster=p.jpg><track src=t.vtt></video><audio src=a.ogg></audio><embed src=e.swf>"
        "<object data=o.swf></object><input type=image src=go.png><input src=no.png><image src=5.png>"
        "<svg><image xlink:href=6.png /></svg><template><img src=no.png></template><a href=x>"
    )
    page = read(markup, requisites=True)
    needed = (
        "i.ico f.woff l.png a.css b.png back.gif 1.png 2.png 3.png s.js 4.webp v.mp4 p.jpg t.vtt a.ogg e.swf"
    )
    assert " ".join(page.requisites) == f"{needed} o.swf go.png 5.png 6.png"
    assert page.links == ["x"]
    assert read(markup).requisites == []


def test_what_stands_in_attributes_of_style_frames_and_drawings_is_needed_too() -> None:
    markup = (
        "<link rel=preload as=image imagesrcset='0.png 1x'><table background=t.gif><td background=td.gif>"
        "<p style='background: url(&quot;a.png&quot;)'><b style='color: red'><a style='x: url(b.png)' href=x>"
        "<a rel=nofollow href=no style=\"background:url('c.png')\"><br style=x:&#117;rl&#40;d.png)>"
        "<svg><use href=e.svg#i /><use xlink:href=#no /><image href=f.png /></svg><iframe src=g.html></iframe>"
        "<img src=data:image/gif;base64,R0lGOD><img src=' DATA:no'><img src=#no><img src><img src=''>"
        "<style>i { background: url(data:no), url(#no), url(h.png) }</style><form action=no style=x:url(i.png)>"
    )
    page = read(markup, requisites=True)
    needed = "0.png t.gif td.gif a.png b.png c.png d.png e.svg#i f.png g.html h.png i.png"
    assert " ".join(page.requisites) == needed
    assert page.links == ["x", "g.html"]
    assert read(markup, requisites=True, anchors=True).requisites == page.requisites
    framed = read("<frameset><frame src=a><frame src=b></frameset>", requisites=True)
    assert framed.requisites == framed.links == ["a", "b"]


def test_style_sheets_are_read_in_their_own_charset() -> None:
    sheet = '@charset "windows-1252"; @import "a.css"; b { background: url(é.png) } c { d: url(data:no) }'
    reader, url = PageReader(PageSettings(requisites=True)), "http://example.com/dir/sheet.css"
    for content_type, body in (
        (None, sheet.encode("windows-1252")),
        ("text/css; charset=utf-8", sheet.encode()),
        ("text/css; charset=latin1", b"\xef\xbb\xbf" + sheet.encode()),
        ("text/css; charset=koi8-r", sheet.replace("é", "ц").encode("koi8-r")),
    ):
        page = reader.read_style(body, content_type, url)
        assert [name.replace("ц", "é") for name in page.requisites] == ["a.css", "é.png"]
        assert (page.links, page.base, page.links_cut) == ([], url, False)
    few = PageReader(PageSettings(requisites=True), bounds=Bounds(links=2)).read_style(
        b"url(a)url(b)url(a)url(c)", None, url
    )
    assert (few.requisites, few.links_cut) == (["a", "b"], True)


def test_text_is_what_people_read() -> None:
    markup = (
        "<title>T</title>\n<h1> Head </h1>\n\n<p>One\n <b>t</b>wo &lt;3 <br>three<script>no</script><style>no</style>"
        f"<template>no</template><!-- no --><ul><li>a<li>b</ul>{'x' * 31} {'y' * 30}<p>{'東' * 40}"
    )
    text = f"Head\nOne two <3\nthree\na\nb\n{'y' * 30}\n{'東' * 40}"
    assert PageReader(PageSettings()).text(markup.encode(), "text/html; charset=utf-8") == text
    short = PageReader(PageSettings(max_text=1000))
    assert short.text(b"<p>" + b"word " * 1000, "text/html") == ("word " * 200).strip()


def test_a_fingerprint_of_the_text_is_taken_when_asked_for() -> None:
    markup = "<p>The quick brown fox jumps over the lazy dog and is gone"
    assert read(markup, simhash=True).simhash == simhash(
        "The quick brown fox jumps over the lazy dog and is gone"
    )
    assert read(markup).simhash is None


def test_texts_of_links_are_given_when_asked_for() -> None:
    page = read(
        "<a href=x><img src=i></a><a href='y&#49;'> The <b>first</b><a href=z>unclosed<p>text"
        "<a href=x rel=nofollow>no</a><a href=x>later</a><a href=x>again</a>",
        anchors=True,
    )
    assert page.links == ["x", "y1", "z"]
    assert page.anchors == {"y1": "The first", "z": "unclosed text", "x": "later"}
    assert read("<a href=x>y</a>").anchors is None


def test_a_language_is_detected_when_asked_for() -> None:
    markup = "<html lang=en><p>O gato está em cima da mesa e o cão dorme no jardim, porque está cansado."
    page = read(markup, detect_language=True)
    assert (page.language, page.detected_language) == ("en", "pt")
    assert read(markup).detected_language == ""


def test_a_query_is_in_the_charset_of_its_page() -> None:
    def links(markup: str, charset: str) -> list[str]:
        return read(markup.encode(charset), f"text/html; charset={charset}").links

    assert links("<a href='/ж?q=ж&amp;r=ж#ж'>", "windows-1251") == ["/ж?q=%E6&r=%E6#ж"]
    assert links("<a href='?q=&#1078;'><a href='?r=ж'>", "windows-1251") == ["?q=%E6", "?r=%E6"]
    assert links("<a href='?q=&#1078;'>", "iso-8859-1") == ["?q=%26%231078%3B"]
    assert links("<a href='?q=表'><iframe src='?r=日'>", "shift_jis") == ["?q=%95\\", "?r=%93%FA"]
    assert links("<a href='?q=日本'>", "iso-2022-jp") == ["?q=%1B$BF|K\\%1B(B"]
    assert links("<a href='?q=ж'>", "utf-8") == ["?q=ж"]
    assert read("\ufeff<a href='?q=ж'>".encode("utf-16-le"), "text/html").links == ["?q=ж"]


def test_letters_that_an_encoding_lacks_are_references_whatever_stands_beside_them() -> None:
    markup = b"<a href='?\x81\xe9\x81&#26085;'>"
    assert read(markup, "text/html; charset=windows-1252").links == [
        "?%26%23129%3B%E9%26%23129%3B%26%2326085%3B"
    ]


def test_a_link_longer_than_any_url_is_counted() -> None:
    markup = "<base href='{0}'><a href='{0}'><link rel=next href='{0}'><iframe src='{0}'></iframe><a href=x>"
    page = read(markup.format("y" * 8_193), requisites=True)
    assert (page.links, page.base, page.requisites, page.too_long, page.links_cut) == (
        ["x"],
        URL,
        [],
        4,
        False,
    )
    page = read(markup.format("y" * 30), bounds=Bounds(url=8), requisites=True)
    assert (page.links, page.base, page.too_long) == (["y" * 30, "x"], URL, 1)
    data = read(
        f"<img src='data:{'y' * 9_000}'><p style='background: url(data:{'y' * 9_000})'>", requisites=True
    )
    assert (data.requisites, data.too_long) == ([], 0)


def test_of_references_in_links_so_many_are_resolved() -> None:
    page = read("".join(f"<a href='{number}&lt;'>" for number in range(30_000)), bounds=Bounds(links=100_000))
    assert (len(page.links), page.links[-1], page.links_cut) == (25_000, "24999<", True)


@pytest.mark.parametrize("unit", ["utf-16le", "utf-16be"])
def test_halves_of_pairs_that_stand_alone_are_replaced(unit: str) -> None:
    alone = "a\ud800b\udc00c\U0001f600d\ud800\U0001f600\udc00\ud800\ud800"
    body = alone.encode(f"{unit[:6]}-{unit[6:]}", "surrogatepass") + b"x"
    assert decode(body, unit) == body.decode(f"{unit[:6]}-{unit[6:]}", "replace")
    assert decode(body[:-1], unit) == "a\ufffdb\ufffdc\U0001f600d\ufffd\U0001f600\ufffd\ufffd\ufffd"


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300), st.none() | st.text(max_size=40))
def test_any_bytes_give_a_page(body: bytes, content_type: str | None) -> None:
    asked = PageSettings(simhash=True, requisites=True, anchors=True, forms=True)
    page = PageReader(asked).read(body, content_type, URL, robots_header=content_type)
    assert len(page.links) <= 10_000
    assert page.anchors is not None
