"""Addresses in style sheets: those that the tokens of CSS say, in time that grows with the sheet alone."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barkspider.page.css import style_urls

CASES = {
    "p { background: url(a.png) }": ["a.png"],
    "url( a ) URL(b) Url('c') uRl(\"d\")": ["a", "b", "c", "d"],
    "@import 'a'; @IMPORT \"b\" print; @import url(c); @import url('d') screen; @import/**/ 'e'": list(
        "abcde"
    ),
    "@imports 'no'; @import-x 'no'; x@import 'yes'": ["yes"],
    "/* url(no) */ url(a) /* 'url(no) */ url(b) /**/url(c)/*/ url(no) */": ["a", "b", "c"],
    "/* url(no)": [],
    "a { content: 'url(no)' } b { content: \"@import 'no'\" } url(yes)": ["yes"],
    "content: 'it\\'s url(no)' url(yes)": ["yes"],
    "content: 'ends with the line\n url(yes)": ["yes"],
    "content: 'goes \\\n on; url(no)' url(yes)": ["yes"],
    "url('bad\n) url(yes)": ["yes"],
    "url(a b) url(a'b) url(a(b) url(yes)": ["yes"],
    "url(a\\ b) url(a\\)b) url(\\61 b) url(\\000061b) url('\\22 a\\\nb')": ["a b", "a)b", "ab", "ab", '"ab'],
    "url(\\0) url(\\d800) url(\\110000)": ["\ufffd"] * 3,
    "u\\72l(a) \\75 rl(b) \\55\\52\\4c(c) @\\69mport 'd'": ["a", "b", "c", "d"],
    "my-url(no) -url(no) url-(no) urlx(no) 5url(no) #url(no) \\url(yes) .url(yes) 5%url(yes)": ["yes"] * 3,
    "<!--url(yes)--> <!-- url(yes) -->": ["yes"] * 2,
    "@namespace url(no); @namespace x 'n;o'; @namespace url('no') ; url(yes)": ["yes"],
    "@font-face { src: local('no'), url(a.woff2) format('woff2'), url(b.woff) }": ["a.woff2", "b.woff"],
    "url(a": ["a"],
    "url('a": ["a"],
    "@import 'a": ["a"],
    "url(": [""],
    "url()url('')": ["", ""],
    "url(é.png) url('日本')": ["é.png", "日本"],
    "url(a)\r\n/* \f */@import\r'b'": ["a", "b"],
    "url(data:image/gif;base64,R0lGOD==)": ["data:image/gif;base64,R0lGOD=="],
    "\\": [],
    "a\\\nurl(yes)": ["yes"],
}


@pytest.mark.parametrize("style", CASES)
def test_what_is_an_address(style: str) -> None:
    assert list(style_urls(style)) == CASES[style]


# ── the same by the standard, sign by sign ──────────────────────────────────────────────────────────────────

_HEX = frozenset(string.hexdigits)


class Tokens:
    """The tokenizer of CSS Syntax Level 3, section 4.3, for what may hold an address."""

    def __init__(self, style: str) -> None:
        self.style = style.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
        self.place = 0

    def peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.style[place] if place < len(self.style) else ""

    def take(self) -> str:
        sign = self.peek()
        self.place += 1
        return sign

    def is_escape(self, ahead: int = 0) -> bool:
        return self.peek(ahead) == "\\" and self.peek(ahead + 1) not in ("\n", "")

    def is_name(self, ahead: int = 0) -> bool:
        sign = self.peek(ahead)
        return bool(sign) and (sign in "-_" or (sign.isascii() and sign.isalnum()) or sign >= "\x80")

    def starts_name(self) -> bool:
        first = 1 if self.peek() == "-" else 0
        if first and self.peek(1) == "-":
            return True
        sign = self.peek(first)
        return self.is_escape(first) or (self.is_name(first) and sign != "-" and not sign.isdigit())

    def escape(self) -> str:
        sign = self.take()
        if sign not in _HEX:
            return sign
        while len(sign) < 6 and self.peek() in _HEX and self.peek():
            sign += self.take()
        if self.peek() in ("\n", "\t", " "):
            self.take()
        code = int(sign, 16)
        return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)

    def name(self) -> str:
        found = ""
        while True:
            if self.is_escape():
                self.take()
                found += self.escape()
            elif self.is_name():
                found += self.take()
            else:
                return found

    def blanks(self) -> None:
        while self.peek() in (" ", "\t", "\n"):
            self.take()

    def string(self) -> str | None:
        end, found = self.take(), ""
        while True:
            sign = self.peek()
            if sign == "\n":
                return None
            self.take()
            if sign in (end, ""):
                return found
            if sign != "\\":
                found += sign
            elif self.peek() == "\n":
                self.take()
            elif self.peek():
                found += self.escape()

    def unquoted(self) -> str | None:
        found = ""
        while True:
            sign = self.take()
            if sign in (")", ""):
                return found
            if sign in (" ", "\t", "\n"):
                self.blanks()
                if self.peek() in (")", ""):
                    self.take()
                    return found
            if (
                sign in " \t\n\"'("
                or (sign < " " or sign == "\x7f")
                or (sign == "\\" and self.peek() == "\n")
            ):
                while (sign := self.take()) not in (")", ""):
                    if sign == "\\":
                        self.take()
                return None
            found += self.escape() if sign == "\\" else sign

    def number(self) -> bool:
        sign = 1 if self.peek() in ("+", "-") else 0
        digit = self.peek(sign).isdigit() or (self.peek(sign) == "." and self.peek(sign + 1).isdigit())
        if not digit:
            return False
        for _ in range(sign):
            self.take()
        while self.peek().isdigit():
            self.take()
        if self.peek() == "." and self.peek(1).isdigit():
            self.take()
        while self.peek().isdigit():
            self.take()
        signed = 1 if self.peek(1) in ("+", "-") else 0
        if self.peek() in ("e", "E") and self.peek(1 + signed).isdigit():
            self.place += 1 + signed
            while self.peek().isdigit():
                self.take()
        if self.starts_name():
            self.name()
        return True

    def all(self) -> list[tuple[str, str | None]]:
        """Tokens as kind and value; `url` for both forms, with None for what is none."""
        found: list[tuple[str, str | None]] = []
        while self.peek():
            sign = self.peek()
            if self.style.startswith("/*", self.place):
                end = self.style.find("*/", self.place + 2)
                self.place = len(self.style) if end < 0 else end + 2
            elif sign in " \t\n":
                self.take()
            elif sign in "\"'":
                found.append(("string", self.string()))
            elif sign == "#" and (self.is_name(1) or self.is_escape(1)):
                self.take()
                self.name()
                found.append(("hash", None))
            elif self.style.startswith("<!--", self.place):
                self.place += 4
                found.append(("open", None))
            elif self.style.startswith("-->", self.place):
                self.place += 3
                found.append(("close", None))
            elif sign == "@":
                self.take()
                found.append(("at", self.name().lower() if self.starts_name() else ""))
            elif self.number():
                found.append(("number", None))
            elif self.starts_name():
                name = self.name().lower()
                if self.peek() == "(":
                    self.take()
                    if name == "url":
                        self.blanks()
                        found.append(
                            ("function", None) if self.peek() in ('"', "'") else ("url", self.unquoted())
                        )
                        continue
                found.append(("name", name))
            else:
                found.append(("sign", self.take()))
        return found


def by_the_standard(style: str) -> list[str]:
    found = []
    tokens = Tokens(style).all()
    naming = False
    for before, (kind, value) in zip([("", None), *tokens], tokens, strict=False):
        naming = naming and (kind, value) != ("sign", ";")
        if (kind, value) == ("at", "namespace"):
            naming = True
        is_address = kind == "url" or (
            kind == "string" and (before[0] == "function" or before == ("at", "import"))
        )
        if is_address and value is not None and not naming:
            found.append(value)
    return found


_PIECES = (
    *("url(", "URL(", "u\\72 l(", "\\75rl(", "\\url(", "@import", "@IMPORT ", "@\\69 mport", "@im", "xurl("),
    *("'", '"', ")", "(", " ", "\n", "\r\n", "\f", "\t", "/*", "*/", "/", "*", "\\", "\\\n", "\\41 ", "\\0"),
    *(
        "#",
        "<!--",
        "-->",
        "-",
        "5",
        "5e3",
        "+5.",
        "%",
        ".",
        ";",
        "{",
        "}",
        "a",
        "b.png",
        "é",
        "\x01",
        "\x7f",
        "@",
    ),
    *("@namespace ", "\\6e", "f", "\u2028", "\x0b", "\x85", "\\\r"),
)


@settings(max_examples=2000, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
@example("url(\\")
@example("5e+3url(a)5e+url(b)")
def test_addresses_are_those_of_the_standards_tokenizer(style: str) -> None:
    style = style.rstrip("\\")  # at the very end it would be U+FFFD, or nothing
    if "@namespace" not in style:
        assert list(style_urls(style)) == by_the_standard(style)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "/*",
            "/",
            "url(",
            "url('",
            "url(\\",
            "@import ",
            "@import/*",
            "'",
            '"\\',
            "\\",
            "u",
            "\\75",
            "a b:c;",
        ),
        *(
            "<!-",
            "#",
            "@",
            "@namespace 'x",
            "*",
            "-",
            "url( ",
            "url(a) ",
            "é",
            "@import 'x';",
            "5",
            "\n'",
            "url(a b",
        ),
    ],
)
def test_time_is_linear_in_the_sheet(piece: str) -> None:
    """A megabyte is through in a moment; what reads anything twice would not end."""
    style = piece * (1_000_000 // len(piece))
    assert sum(1 for _ in style_urls(style)) <= len(style)
