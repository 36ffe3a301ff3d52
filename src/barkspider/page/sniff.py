"""What a body is: what the server says, checked against the first bytes.

After the WHATWG MIME Sniffing Standard, with two differences that a crawler needs. Servers send HTML as
text/plain and application/octet-stream, too (Viúva Negra, section 2.2.1), so these count as unknown. And a
stray NUL makes no page binary: only the known beginnings of binary formats do, or many control bytes.
"""

from __future__ import annotations

import re
from functools import lru_cache

HTML, XHTML = "text/html", "application/xhtml+xml"
_PLAIN, _BINARY = "text/plain", "application/octet-stream"
# Types that servers give to what they do not know.
_UNSURE = frozenset(("", _PLAIN, _BINARY, "unknown/unknown", "application/unknown", "*/*"))
_XML = frozenset(("text/xml", "application/xml", XHTML))
_LOOKED_AT = 1024
_LONGEST_HEADER = 100
# The beginnings that the standard takes for HTML, after white space.
_HTML_BEGINNING = re.compile(
    rb"<!--|<(?:!doctype\s++html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\t\n\x0c\r >]",
    re.I,
)
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*+")
# What may stand before the root of XML: declarations, comments, a doctype, the last with its name.
_PROLOGUE = re.compile(rb"(?:<\?[^>]*+>|<!--.*?-->|[\t\n\x0c\r ]++)*+", re.S)
_ROOTS = (
    (re.compile(rb"<(?:!doctype\s++)?html[\t\n\x0c\r >]", re.I), XHTML),
    (re.compile(rb"<rss[\t\n\x0c\r >]"), "application/rss+xml"),
    (re.compile(rb"<feed[\t\n\x0c\r >]"), "application/atom+xml"),
    (re.compile(rb"<rdf:RDF[\t\n\x0c\r >]"), "application/rdf+xml"),
    (re.compile(rb"<svg[\t\n\x0c\r >]"), "image/svg+xml"),
)
_SIGNATURES = tuple(
    (re.compile(pattern, re.S), kind)
    for pattern, kind in (
        (rb"%PDF-", "application/pdf"),
        (rb"%!PS-Adobe-", "application/postscript"),
        (rb"\{\\rtf", "application/rtf"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"RIFF....WEBPVP", "image/webp"),
        (rb"BM....\x00\x00\x00\x00", "image/bmp"),
        (rb"\x00\x00[\x01\x02]\x00", "image/x-icon"),
        (rb"II\*\x00|MM\x00\*", "image/tiff"),
        (rb"....ftypavif", "image/avif"),
        (rb"....ftyp", "video/mp4"),
        (rb"\x1aE\xdf\xa3", "video/webm"),
        (rb"RIFF....AVI ", "video/avi"),
        (rb"RIFF....WAVE", "audio/wave"),
        (rb"OggS\x00", "application/ogg"),
        (rb"ID3|\xff[\xfb\xf3\xf2]", "audio/mpeg"),
        (rb"MThd\x00\x00\x00\x06", "audio/midi"),
        (rb"fLaC", "audio/flac"),
        (rb"\x1f\x8b\x08", "application/gzip"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"Rar!\x1a\x07", "application/x-rar-compressed"),
        (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (rb"BZh[1-9]1AY&SY", "application/x-bzip2"),
        (rb"\xfd7zXZ\x00", "application/x-xz"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
        (rb"\x7fELF|MZ.{56}", "application/x-executable"),
        (rb"wOF[F2]", "font/woff"),
    )
)
# No signature begins like this, and nearly all pages do.
_TEXTUAL = (b"<", b"\n", b"\r", b" ", b"\t", b"\xef\xbb\xbf")
# The standard's binary bytes. Random data has 10 of them in 100, text none; NUL is counted by itself, because
# some programs pad text with it.
_CONTROLS = bytes((*range(1, 9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)))
_MOST_CONTROLS, _MOST_NULS = 0.03, 0.3


def sniff(content_type: str | None, body: bytes) -> str:
    """The media type of a body, without parameters.

    >>> sniff("text/plain", b"<!DOCTYPE html><p>"), sniff("text/html", b"%PDF-1.4"), sniff(None, b"plain")
    ('text/html', 'application/pdf', 'text/plain')
    >>> sniff("text/html", b"<p>pad\\x00ded"), sniff("image/gif", b"\\x89PNG\\r\\n\\x1a\\n")
    ('text/html', 'image/png')
    """
    # There are a few, on millions of pages; long ones are not worth the memory.
    short = content_type is None or len(content_type) <= _LONGEST_HEADER
    declared, is_utf16 = (_declared if short else _declared.__wrapped__)(content_type)
    head = body[:_LOOKED_AT]
    if declared in _XML or declared.endswith("+xml"):
        return _root_of(head, declared) if declared in _XML else declared
    unsure = declared in _UNSURE
    if not unsure and declared != HTML:
        # What a browser would show as an image is one, whichever the server says; all else is believed.
        found = _signature(head) if declared.startswith("image/") else ""
        return found if found.startswith("image/") else declared
    if is_utf16 or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return HTML if declared == HTML else _PLAIN
    found = _signature(head)
    if found or _is_binary(head):
        return found or _BINARY
    rest = _after(_BLANK, head)
    if rest.startswith((b"<?xml", b"<rss", b"<feed", b"<rdf:RDF")):
        return _root_of(rest, HTML if declared == HTML else "text/xml")
    return HTML if declared == HTML or _HTML_BEGINNING.match(rest) else _PLAIN


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is HTML or XHTML, declared or not.

    >>> is_html("text/html; charset=utf-8", b"hello"), is_html("text/html", b"\\x89PNG\\r\\n\\x1a\\n\\x00\\x00")
    (True, False)
    >>> is_html("text/plain", b"<!DOCTYPE html><p>"), is_html("text/plain", b"to do: buy <b>bread</b>")
    (True, False)
    """
    return sniff(content_type, body) in (HTML, XHTML)


@lru_cache(maxsize=512)
def _declared(content_type: str | None) -> tuple[str, bool]:
    """The media type in a header, and whether it speaks of UTF-16."""
    text = (content_type or "").lower()
    essence = text.partition(";")[0].strip()
    return essence if "/" in essence else "", "utf-16" in text


def _after(pattern: re.Pattern[bytes], text: bytes) -> bytes:
    found = pattern.match(text)
    return text[found.end() :] if found else text


def _root_of(head: bytes, otherwise: str) -> str:
    root = _after(_PROLOGUE, _after(_BLANK, head))
    return next((kind for pattern, kind in _ROOTS if pattern.match(root)), otherwise)


def _signature(head: bytes) -> str:
    if head.startswith(_TEXTUAL):
        return ""
    return next((kind for pattern, kind in _SIGNATURES if pattern.match(head)), "")


def _is_binary(head: bytes) -> bool:
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls > _MOST_CONTROLS * len(head) or head.count(0) > _MOST_NULS * len(head)
