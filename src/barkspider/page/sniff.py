"""Is it HTML? What the server says, checked against the first bytes."""

from __future__ import annotations

import re

_HTML = frozenset(("text/html", "application/xhtml+xml"))
# Types that servers give to what they do not know.
_UNSURE = frozenset(
    ("", "text/plain", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*")
)
_LOOKED_AT = 1024
# The beginnings that the WHATWG MIME Sniffing Standard takes for HTML, after white space.
_BEGINNING = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*+(?:<!--|<(?:!doctype\s++html|html|head|script|iframe|h1|div|font|table|a|style"
    rb"|title|b|body|br|p)[\t\n\x0c\r >]|<\?xml[^>]*+>\s*+(?:<!doctype\s++html|<html)[\t\n\x0c\r >])",
    re.I,
)


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is HTML: declared as such and not binary, or undeclared and beginning like HTML.

    >>> is_html("text/html; charset=utf-8", b"hello"), is_html("text/html", b"\\x89PNG\\r\\n\\x1a\\n\\x00\\x00")
    (True, False)
    >>> is_html("text/plain", b"<!DOCTYPE html><p>"), is_html("text/plain", b"to do: buy <b>bread</b>")
    (True, False)
    """
    essence = (content_type or "").partition(";")[0].strip().lower()
    head = body[:_LOOKED_AT]
    if essence in _HTML:
        return b"\x00" not in head or _is_utf16(head, content_type)
    return essence in _UNSURE and b"\x00" not in head and _BEGINNING.match(head) is not None


def _is_utf16(head: bytes, content_type: str | None) -> bool:
    return head.startswith((b"\xff\xfe", b"\xfe\xff")) or "utf-16" in (content_type or "").lower()
