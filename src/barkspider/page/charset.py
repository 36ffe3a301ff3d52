"""Which characters the bytes of a page stand for: the order of the WHATWG standard.

A byte order mark, then the Content-Type header, then a `<meta>` near the beginning, then one further on, for
which a browser begins again; without any of these UTF-8 when the bytes are valid UTF-8, else what they look
like. Only the labels of the WHATWG Encoding Standard count, so that no page can ask for one of Python's other
codecs.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from turbohtml import parse
from turbohtml.detect import detect  # importing it registers the codecs named whatwg-…

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_MARKED = tuple(mark for mark, _ in _MARKS)
# The part of a page in which the standard looks for a declaration.
_PRESCAN = 1024
# How far on a declaration still counts: no author puts it there, and looking for it costs 80 ms a megabyte at worst.
_LATEST = 1 << 17
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.S)
# Where what looks like a `<meta>` is none: a browser that has come so far reads tags, not only bytes.
_HIDDEN = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(title|textarea|style|xmp|iframe|noembed|noframes|script)[\s/>].*?(?:</\1|\Z)", re.S
)
_META = re.compile(rb"<meta[\s/]([^>]*+)(>?)")  # without its end it is no tag yet
_CHARSET = re.compile(rb"charset\s*+=\s*+[\"']?\s*+([^\s\"'/>;]++)")
_STYLE_CHARSET = re.compile(rb'@charset "([^"]{1,40})";')
_HEADER = re.compile(r";\s*+charset\s*+=\s*+[\"']?\s*+([^\s\"';,]++)", re.I)
# The longest label of the standard has 19 letters.
_LONGEST_LABEL, _LONGEST_HEADER = 40, 100
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Signs of windows-1252 that stand by themselves, such as © and £, and pairs of « and »: in other encodings they are
# letters, and a detector that counts letters takes ©1996 for Š1996.
_LONE_SIGNS = re.compile(
    rb"(?<![A-Za-z\x80-\xff])(?:[\x80-\xbf\xd7\xf7]|\xab([^\xab\xbb<]{1,80})\xbb)(?![A-Za-z\x80-\xff])"
)
# One letter alone could be any: it takes two to tell.
_FEWEST_LETTERS = 2
# What tells encodings apart is the letters beyond ASCII; the detector reads 15 MB a second, so not all of them.
_SAMPLE = 32_768
# What Python calls an encoding, where it is not the standard's name; the standard's decoders cannot encode.
_ENCODERS = {
    "euc-kr": "cp949",
    "iso-8859-8-i": "iso8859-8",
    "big5": "big5hkscs",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}
# One byte a character, and the characters of markup are those of ASCII.
SINGLE_BYTES = frozenset(
    (
        *(f"iso-8859-{part}" for part in (*range(2, 9), "8-i", 10, *range(13, 17))),
        *("windows-874", *(f"windows-{page}" for page in range(1250, 1259))),
        *("ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic"),
    )
)
_AS_UTF8 = frozenset(("utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"))
_UNITS = {"utf-16le": np.dtype("<u2"), "utf-16be": np.dtype(">u2")}
# Each byte as a query of http has it.
_IN_QUERY = [chr(b) if 0x20 < b < 0x7F and b not in b"\"#<>'" else f"%{b:02X}" for b in range(256)]
_MOST_ESCAPES = 30_000  # letters of an encoding whose escapes are remembered: 4 MB


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
    >>> find_charset("Привет, как дела?".encode("koi8-r"), None)
    'koi8-u'
    """
    return (
        _told(body, content_type)
        or _declared(_COMMENT.sub(b"", body[:_PRESCAN].lower()))
        or _declared_late(body)
        or _detected(body)
    )


def style_charset(body: bytes, content_type: str | None) -> str:
    """The encoding of a style sheet (CSS Syntax, section 3.2), by its standard name in lower case.

    >>> style_charset(b'@charset "koi8-r";', "text/css"), style_charset(b"a { b: caf\\xe9 }", None)
    ('koi8-r', 'utf-8')
    """
    told = _told(body, content_type)
    if told is None and (declared := _STYLE_CHARSET.match(body)):
        told = standard_name(declared[1].decode("latin-1").lower())
        told = "utf-8" if told in ("utf-16le", "utf-16be") else told
    return told or "utf-8"


def _told(body: bytes, content_type: str | None) -> str | None:
    """What a byte order mark says, or the header."""
    if body.startswith(_MARKED):
        return next(name for mark, name in _MARKS if body.startswith(mark))
    if content_type is None:
        return None
    # There are a few, on millions of pages; long ones are not worth the memory.
    return (_in_header if len(content_type) <= _LONGEST_HEADER else _in_header.__wrapped__)(content_type)


@lru_cache(maxsize=512)
def _in_header(content_type: str) -> str | None:
    label = _HEADER.search(content_type)
    return standard_name(label[1].lower()) if label else None


def _declared_late(body: bytes) -> str | None:
    markup = body[:_LATEST].lower()
    if b"charset" not in markup or _declared(markup) is None:  # most pages are done here
        return None
    return _declared(_HIDDEN.sub(b"", markup))


def _declared(markup: bytes) -> str | None:
    for attributes, end in _META.findall(markup):
        # `content` declares a charset only beside `http-equiv`.
        counts = b"http-equiv" in attributes or b"content" not in attributes
        declared = _CHARSET.search(attributes) if counts and end else None
        found = standard_name(declared[1].decode("latin-1")) if declared else None
        if found is not None:
            # What could be read as ASCII is not UTF-16, whatever it says; the standard corrects these two.
            return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(
                found, found
            )
    return None


def _detected(body: bytes) -> str:
    if body.isascii():
        return "utf-8"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A page that was cut may end inside a character; it is UTF-8 if it had whole ones before.
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return "utf-8"
        first = _NOT_ASCII.search(body)
        start = max(0, first.start() - 64) if first else 0
        sample = _LONE_SIGNS.sub(rb" \1 ", body[start : start + _SAMPLE])
        if len(_NOT_ASCII.findall(sample)) < _FEWEST_LETTERS:
            return "windows-1252"
        return (detect(sample).encoding or "windows-1252").lower()
    return "utf-8"


def decode(body: bytes, charset: str) -> str:
    """The text of a page; what cannot be decoded becomes U+FFFD.

    >>> decode(b"\\xef\\xbb\\xbfa", "utf-8"), decode(b"\\x80", "windows-1252")
    ('a', '€')
    """
    body = _without_mark(body, charset)
    if charset in _UNITS:
        body = _without_lone_surrogates(body, _UNITS[charset])
    # Python's own decoder gives the same for UTF-8, and sooner.
    return body.decode("utf-8", "replace") if charset == "utf-8" else body.decode(f"whatwg-{charset}")


def _without_lone_surrogates(body: bytes, unit: np.dtype[np.uint16]) -> bytes:
    """UTF-16 with U+FFFD for each half of a pair that stands alone: a decoder takes 100 ns for each of them."""
    units = np.frombuffer(body, unit, len(body) // 2)
    if not (units & 0xF800 == 0xD800).any():
        return body
    first, second = units & 0xFC00 == 0xD800, units & 0xFC00 == 0xDC00
    paired = first[:-1] & second[1:]
    first[:-1] &= ~paired
    second[1:] &= ~paired
    first[-1] = False  # at the end the decoder counts it together with half a unit
    return np.where(first | second, unit.type(0xFFFD), units).astype(unit).tobytes() + body[2 * len(units) :]


def to_utf8(body: bytes, charset: str) -> bytes:
    """The page in UTF-8; one that is in UTF-8 is given as it is, invalid bytes and all."""
    return (
        _without_mark(body, charset)
        if charset == "utf-8"
        else decode(body, charset).encode("utf-8", "replace")
    )


def _without_mark(body: bytes, charset: str) -> bytes:
    if body.startswith(_MARKED):
        for mark, name in _MARKS:
            if name == charset and body.startswith(mark):
                return body[len(mark) :]
    return body


def encode_query(link: str, charset: str) -> str:
    """A link with the query in the page's own encoding, as browsers send it (WHATWG URL, query state).

    >>> encode_query("/ж?q=ж#ж", "windows-1251"), encode_query("?q=日", "windows-1252")
    ('/ж?q=%E6#ж', '?q=%26%2326085%3B')
    """
    if link.isascii() or charset in _AS_UTF8 or "?" not in link:
        return link
    address, hash_sign, fragment = link.partition("#")
    path, mark, query = address.partition("?")
    codec = _ENCODERS.get(charset, charset)
    try:
        encoded = "".join(map(_IN_QUERY.__getitem__, query.encode(codec)))
    except UnicodeEncodeError:
        encoded = query.translate(_escapes(codec))
    return path + mark + encoded + hash_sign + fragment


class _Escapes(dict[int, str]):
    """What each letter becomes in the query of a link; one that the encoding lacks is a reference to its number."""

    def __init__(self, codec: str) -> None:
        self._codec = codec

    def __missing__(self, letter: int) -> str:
        encoded = chr(letter).encode(self._codec, "ignore")  # an exception would take three times as long
        escape = "".join(map(_IN_QUERY.__getitem__, encoded)) or f"%26%23{letter}%3B"
        if len(self) < _MOST_ESCAPES:
            self[letter] = escape
        return escape


_escapes = lru_cache(maxsize=4)(_Escapes)
