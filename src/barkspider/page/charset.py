"""Which characters the bytes of a page stand for: the order of the WHATWG standard.

A byte order mark, then the Content-Type header, then a `<meta>` near the beginning; without any of these
UTF-8 when the bytes are valid UTF-8, else windows-1252. Only the labels of the WHATWG Encoding Standard
count, so that no page can ask for one of Python's other codecs.
"""

from __future__ import annotations

import re
from functools import lru_cache

import turbohtml.detect  # noqa: F401  (registers the codecs named whatwg-…)
from turbohtml import parse

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
# The part of a page in which the standard looks for a declaration.
_PRESCAN = 1024
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.S)
_META = re.compile(rb"<meta[\s/][^>]*?charset\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.I)
_HEADER = re.compile(r";\s*charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.I)
# The longest label of the standard has 19 letters.
_LONGEST_LABEL = 40


@lru_cache(maxsize=512)
def standard_name(label: str) -> str | None:
    """The encoding's name in lower case, or None when the label is not one of the standard's.

    >>> standard_name("Latin1"), standard_name("SJIS"), standard_name("unicode_escape")
    ('windows-1252', 'shift_jis', None)
    """
    if len(label) > _LONGEST_LABEL or not label.isascii() or not label.isprintable():
        return None
    try:
        name = parse(b"", encoding=label).encoding
    except LookupError:
        return None
    return name.lower() if name else None


def find_charset(body: bytes, content_type: str | None) -> str:
    """The encoding of a page, by its standard name in lower case.

    >>> find_charset(b"<meta charset=koi8-r>", "text/html"), find_charset(b"caf\\xe9", None)
    ('koi8-r', 'windows-1252')
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name
    if content_type is not None and (label := _HEADER.search(content_type)):
        found = standard_name(label[1].lower())
        if found is not None:
            return found
    declared = _META.search(_COMMENT.sub(b"", body[:_PRESCAN]))
    if declared is not None:
        found = standard_name(declared[1].decode("latin-1").lower())
        if found is not None:
            # What could be read as ASCII is not UTF-16, whatever it says; the standard corrects these two.
            return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(
                found, found
            )
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A page that was cut may end inside a character; it is UTF-8 if it had whole ones before.
        cut = error.reason == "unexpected end of data" and not body[: error.start].isascii()
        return "utf-8" if cut else "windows-1252"
    return "utf-8"


def decode(body: bytes, charset: str) -> str:
    """The text of a page; what cannot be decoded becomes U+FFFD.

    >>> decode(b"\\xef\\xbb\\xbfa", "utf-8"), decode(b"\\x80", "windows-1252")
    ('a', '€')
    """
    for mark, name in _MARKS:
        if name == charset and body.startswith(mark):
            body = body[len(mark) :]
    # Python's own decoder gives the same for UTF-8, and sooner.
    return body.decode("utf-8", "replace") if charset == "utf-8" else body.decode(f"whatwg-{charset}")
