"""Charsets by the standard's order and labels, and what counts as HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.page import find_charset, is_html, read_page
from barkspider.page.charset import decode, standard_name

URL = "http://example.com/"


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
        (b" " * 2000 + b"<meta charset=koi8-r>", None, "utf-8"),
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
    "charset", ["shift_jis", "euc-jp", "gbk", "big5", "koi8-r", "windows-1251", "iso-8859-2", "utf-8"]
)
def test_links_of_any_charset_read_back(charset: str) -> None:
    word = {"koi8-r": "дом", "windows-1251": "дом", "iso-8859-2": "dům"}.get(charset, "日")
    body = f"<title>{word}</title><a href='/{word}'>".encode(charset)
    page = read_page(body, f"text/html; charset={charset}", URL)
    assert (page.title, page.links, page.charset) == (word, [f"/{word}"], charset)


def test_utf16_reads_back() -> None:
    page = read_page("\ufeff<a href=é>".encode("utf-16-be"), "text/html", URL)
    assert page.links == ["é"]


@pytest.mark.parametrize("label", ["iso-2022-kr", "hz-gb-2312"])
def test_dangerous_encodings_give_nothing(label: str) -> None:
    page = read_page(b"<a href=x>", f"text/html; charset={label}", URL)
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
        ("text/plain", b"<p>\x00", False),
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
