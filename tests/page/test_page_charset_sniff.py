"""Charsets by the standard's order and labels, and what counts as HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.settings import Page as PageSettings
from barkspider.page import Page, PageReader, find_charset, is_html, sniff
from barkspider.page.charset import SINGLE_BYTES, decode, standard_name

URL = "http://example.com/"


def read_page(body: bytes, content_type: str) -> Page:
    return PageReader(PageSettings()).read(body, content_type, URL)


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        (b"abc", None, "utf-8"),
        ("é".encode(), None, "utf-8"),
        (b"\xe9t\xe9", None, "windows-1252"),
        (("é" * 9).encode()[:-1], None, "utf-8"),
        (b"caf\xe9", None, "windows-1252"),
        (b"abc", "text/html; charset=ISO-8859-1", "windows-1252"),
        (b"abc", 'text/html;charset="Shift_JIS"', "shift_jis"),
        (b"<meta charset=koi8-r>", "text/html; charset=gb2312", "gbk"),
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=gb2312", "utf-8"),
        (b"\xff\xfea\x00", "text/html; charset=gb2312", "utf-16le"),
        (b"\xfe\xff\x00a", None, "utf-16be"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=euc-jp">', None, "euc-jp"),
        (b"<!-- <meta charset=koi8-r> --><meta charset='big5'>", None, "big5"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b" " * 2000 + b"<meta charset=koi8-r>", None, "koi8-r"),
        (b" " * 2000 + b"<META http-equiv=content-type content='text/html; charset=koi8-r'>", None, "koi8-r"),
        (b" " * 2000 + b"<meta charset=koi8-r>", "text/html; charset=big5", "big5"),
        (b"\xef\xbb\xbf" + b" " * 2000 + b"<meta charset=koi8-r>", None, "utf-8"),
        (b"<meta charset=big5>" + b" " * 2000 + b"<meta charset=koi8-r>", None, "big5"),
        (b" " * 2000 + b"<meta charset=nonsense><meta charset=big5><meta charset=koi8-r>", None, "big5"),
        (b" " * 2000 + b"<meta charset=utf-16>", None, "utf-8"),
        (b" " * 2000 + b"<!-- <meta charset=koi8-r> -->", None, "utf-8"),
        (b" " * 2000 + b"<script>'<meta charset=koi8-r>'</script><meta charset=big5>", None, "big5"),
        (b" " * 2000 + b"<TEXTAREA rows=2><meta charset=koi8-r>", None, "utf-8"),
        # One that the first 1,024 bytes cut in two declares what it says, not what its first half says.
        (b" " * 1000 + b"<meta charset=iso-8859-15>", None, "iso-8859-15"),
        ("é".encode() * 2000 + b"<meta charset=windows-1252>", None, "windows-1252"),
        (b"<meta name=description content='charset=koi8-r'>", None, "utf-8"),
        (b"<meta name=a><meta charset=nonsense><META CHARSET = ' Big5 '>", None, "big5"),
        # Python knows these codecs; the standard does not.
        (b"abc", "text/html; charset=punycode", "utf-8"),
        (b"abc", "text/html; charset=unicode_escape", "utf-8"),
        (b"<meta charset=utf-7>\xe9", "text/html; charset=rot13", "windows-1252"),
        (b"abc", "text/html; charset=" + "x" * 10_000, "utf-8"),
        (b"abc", "text/html; charset=a\x00b", "utf-8"),
    ],
)
def test_charset(body: bytes, content_type: str | None, charset: str) -> None:
    assert find_charset(body, content_type) == charset


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", "windows-1251"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", "koi8-u"),
        ("色は匂へど散りぬるを我が世誰ぞ常ならむ有為の奥山今日越えて", "shift_jis"),
        ("色は匂へど散りぬるを我が世誰ぞ常ならむ有為の奥山今日越えて", "euc-jp"),
        ("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏", "gbk"),
        ("天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏", "big5"),
        ("키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다", "euc-kr"),
        ("Ξεσκεπάζω την ψυχοφθόρα βδελυγμία με μεγάλη χαρά", "windows-1253"),
        ("Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis", "windows-1252"),
        ("Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis", "utf-8"),
    ],
)
def test_an_undeclared_charset_is_told_from_the_letters(text: str, charset: str) -> None:
    body = b"<title>" + b"x" * 100_000 + b"</title><p>" + text.encode(charset) * 3
    assert find_charset(body, "text/html") == charset
    assert text in decode(body, charset)


@pytest.mark.parametrize(
    "text",
    [
        "Copyright ©1996 Smith",
        "© 1998-2001 Company, Inc. All rights reserved · ®",
        "only £100",
        "«bonjour»",
        "il a dit : «\u00a0oui\u00a0» hier",
        "«Bonjour» a dit le café",
        "Copyright ©1996 Smith & Söhne",
        "25° × 3 – “quoted” … ½ cup",
        "naïve",
        "Èesko",
    ],
)
def test_thin_evidence_is_taken_for_western(text: str) -> None:
    body = f"<title>Some page</title><p>plain words <b>{text}</b> and others".encode("windows-1252")
    assert find_charset(body, "text/html") == "windows-1252"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("© 2001 Szőlő, Budapest", "windows-1250"),
        ("Škoda auto je česká firma. Šest lidí šlo přes most.", "iso-8859-2"),
        ("Są takie dni. Łódź i Żary. Ósma.", "iso-8859-2"),
        ("© 1999 Türkçe ağaç", "windows-1254"),
        ("© 2001 Компания", "windows-1251"),
        ("日本 © 2001", "shift_jis"),
    ],
)
def test_signs_do_not_hide_the_letters_of_others(text: str, charset: str) -> None:
    body = b"<p>" + text.encode(charset, "ignore")  # not every one of them has ©
    assert find_charset(body, "text/html") == charset


def test_a_late_declaration_counts_for_what_came_before_it() -> None:
    body = (
        "<title>дом</title>".encode("koi8-r")
        + b" " * 2000
        + b"<meta charset=koi8-r><a href='/%s'>" % ("дом".encode("koi8-r"))
    )
    page = read_page(body, "text/html")
    assert (page.title, page.links, page.charset) == ("дом", ["/дом"], "koi8-r")


@pytest.mark.parametrize(
    "charset", ["shift_jis", "euc-jp", "gbk", "big5", "koi8-r", "windows-1251", "iso-8859-2", "utf-8"]
)
def test_links_of_any_charset_read_back(charset: str) -> None:
    word = {"koi8-r": "дом", "windows-1251": "дом", "iso-8859-2": "dům"}.get(charset, "日")
    body = f"<title>{word}</title><a href='/{word}'>".encode(charset)
    page = read_page(body, f"text/html; charset={charset}")
    assert (page.title, page.links, page.charset) == (word, [f"/{word}"], charset)


def test_utf16_reads_back() -> None:
    page = read_page("\ufeff<a href=é>".encode("utf-16-be"), "text/html")
    assert page.links == ["é"]


@pytest.mark.parametrize("label", ["iso-2022-kr", "hz-gb-2312"])
def test_dangerous_encodings_give_nothing(label: str) -> None:
    page = read_page(b"<a href=x>", f"text/html; charset={label}")
    assert (page.links, page.charset) == ([], "replacement")


@given(
    st.binary(max_size=60),
    st.sampled_from(
        ["utf-8", "utf-16le", "gbk", "big5", "euc-jp", "iso-2022-jp", "windows-1252", "x-user-defined"]
    ),
)
def test_any_bytes_decode(body: bytes, charset: str) -> None:
    assert standard_name(charset) == charset
    assert isinstance(decode(body, charset), str)


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"", True),
        ("TEXT/HTML;charset=x", b"anything", True),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html/>", True),
        ("text/html", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", False),
        ("text/html", "\ufeff<p>".encode("utf-16-le"), True),
        ("text/html; charset=utf-16", "<p>".encode("utf-16-le"), True),
        (None, b" \n<HTML>", True),
        ("", b"<!-- x -->", True),
        ("text/plain", b"\xef\xbb\xbf<!DocType  HTML>", True),
        ("text/plain", b"<hello>", False),
        ("text/plain", b"hello <html>", False),
        ("text/plain", b"<p>\x00\x00\x00", False),
        ("text/html", b"<p>padded\x00with a \x00 few" + b"." * 100, True),
        ("text/plain", b"<html>padded\x00" + b"." * 100, True),
        ("text/html", bytes(range(1, 32)) * 9, False),
        ("text/html", b"\x00" * 100, False),
        ("text/html", b"%PDF-1.7", False),
        ("text/html", b"<?xml version='1.0'?><rss version=2>", False),
        ("text/html", b"<?xml version='1.0'?><html>", True),
        ("application/xml", b"<?xml version='1.0'?><!-- a --><!DOCTYPE html>", True),
        ("text/xml", b"<urlset>", False),
        ("application/octet-stream", b"<body class=x>", True),
        ("application/octet-stream", b"PK\x03\x04\x00", False),
        (None, b"<?xml version='1.0'?>\n<!DOCTYPE html >", True),
        (None, b"<?xml version='1.0'?><rss>", False),
        ("application/pdf", b"<html>", False),
        ("image/svg+xml", b"<svg>", False),
        (None, b"<abbr>", False),
    ],
)
def test_is_html(content_type: str | None, body: bytes, expected: bool) -> None:
    assert is_html(content_type, body) is expected


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        (None, b"", "text/plain"),
        ("nonsense", b"plain text", "text/plain"),
        ("text/plain; charset=x", "\ufeffa".encode("utf-16-le"), "text/plain"),
        ("application/octet-stream", b"%PDF-1.4", "application/pdf"),
        ("text/plain", b"\x1f\x8b\x08\x00", "application/gzip"),
        ("text/html", b"PK\x03\x04", "application/zip"),
        (None, b"\x00\x01\x02\x03" * 9, "application/octet-stream"),
        ("image/jpeg", b"GIF89a", "image/gif"),
        ("image/jpeg", b"<html>", "image/jpeg"),
        ("Application/PDF; x=y", b"<html>", "application/pdf"),
        ("text/css", b"<html>", "text/css"),
        (None, b"<?xml version='1.0'?>\n<feed>", "application/atom+xml"),
        ("text/xml", b"<?xml version='1.0'?><!-- x --><rdf:RDF>", "application/rdf+xml"),
        (None, b"\xef\xbb\xbf <svg>", "text/plain"),
        (None, b"<?xml version='1.0'?><svg>", "image/svg+xml"),
        ("image/svg+xml", b"<svg>", "image/svg+xml"),
        ("text/html", b"\xff\xfe<\x00p\x00", "text/html"),
        (None, b"....ftypisom", "video/mp4"),
    ],
)
def test_the_type_is_what_the_bytes_are(content_type: str | None, body: bytes, expected: str) -> None:
    assert sniff(content_type, body) == expected


@given(st.none() | st.text(max_size=30), st.binary(max_size=100))
def test_any_bytes_have_a_type(content_type: str | None, body: bytes) -> None:
    assert "/" in sniff(content_type, body)


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTES))
def test_a_page_in_single_bytes_is_the_same_read_as_it_is_and_as_utf8(charset: str) -> None:
    high = bytes(range(128, 256))
    body = (
        b"<html lang=x" + high + b"><title>\0&amp; " + high + b"</title><base href='/" + high + b"/'>"
        b"<meta name=description content='" + high + b"&eacute;'><link rel=canonical href='c" + high + b"'>"
        b"<a href='/p" + high + b"?q=" + high + b"#f" + high + b"'>1</a><a href='?&lt;" + high + b"\0'>2</a>"
        b"<p" + high + b"><a href=plain></p" + high + b"><img src='i" + high + b"'>"
    )
    as_it_is, recoded = (
        PageReader(PageSettings(requisites=True, anchors=anchors)).read(
            body, f"text/html; charset={charset}", URL
        )
        for anchors in (False, True)
    )
    assert as_it_is == replace(recoded, anchors=None)
    assert len(as_it_is.links) == 4
