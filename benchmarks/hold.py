"""For how long a page may hold the loop at worst: a search for pages that are slow to read, by name and at random.

Each page is a few fragments, made to be expensive, again and again up to the size that the loop reads itself, in some
encoding; it goes all the way from bytes to a batch of URLs, with the default settings and with everything switched on.
Beside them robots.txt files of 500 KiB: CPU to read one, and to judge a URL by it. All figures are CPU, the best of two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Any

from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.engine.contents import LARGE
from barkspider.engine.links import LinkMaker
from barkspider.page import PageReader, sniff
from barkspider.url import RobotsRules

_SIZE = LARGE - 1  # what is larger is read in a thread
# Milliseconds, of each target. What bounds pages are ten thousand links to as many hosts, each of which is judged by scope
# at 4 µs; where texts of links are wanted, they are resolved once more.
_MOST = (60.0, 120.0, 110.0, 0.25)
_URL = "http://example.com/a/"
_EVERYTHING = [
    f"page.{name}=true" for name in ("simhash", "requisites", "anchors", "forms", "detect_language")
]
# `#` stands for a number that is another each time.
_FRAGMENTS = (
    *("<a href='?", "<a href='", "'>", "<a href=#>", "<a href=a##>", "<a href=//h#.com>", "<a href=//ü#ä.com>x</a>"),
    *("<a href='http://[#'>", "<a href='///////#'>", "<a href='x#:a'>", "<a href='?sid=12345678&sid=#2345678'>", "</a>"),
    *("&lt;", "&gt", "&a", "&#x26;", "&#123;", "&", "\x81", "é", "日", "\0", "\t\n", "\ud800", "%61", "../", "/", "@"),
    *("<meta name=robots content=follow>", "<meta name=description content='", "<meta http-equiv=refresh content='0;url=#'>"),
    *("<meta charset=x#>", "<meta charset=koi8-r ", "<link rel=next href=#>", "<link rel=stylesheet href=#>", "<base href=#>"),
    *("<iframe src=#></iframe>", "<img src=#>", "<img srcset='a 1x, ", "b#, ", "<form action=#></form>", "<html lang=a>"),
    *("<style>", "</style>", "url(x)", "url(#)", "url(\\61)", "@import 'x#'", "@i", "@", "\\75 ", "/*", "*/", "a{b:c}"),
    *("<p style='a:url(x#)'>", "<p background=#>", "<svg>", "<g>", "<![CDATA[", "<!--", "-->", "<script>", "</script>"),
    *("<title>", "<p>", "a ", "a" * 31, " ", "<", "</x>", "<template>", "<b><i>", "<x y=", "\xab", "\xab\xbb"),
)  # fmt: skip
_CHARSETS = ("utf-8", "utf-8", "windows-1252", "utf-16le", "gb18030", "shift_jis", "iso-2022-jp", "")
_LINES = (
    *("Disallow: /#", "Disallow: /é#", "Disallow: /%70#", "Disallow: /#$", "Disallow: /*#", "Disallow: /#*"),
    *("Disallow: /*?p#=", "Disallow: /*/p#/*.html$", f"Disallow: /{'*a' * 245}", f"Disallow: /*{'a' * 200}b{'a' * 200}"),
    *(f"Disallow:{' /a' * 50}", "Allow: /#/index.html", "Disallow: http://a.example/#", "User-agent: #\nDisallow: /", ":", "a b"),
)  # fmt: skip
_TARGETS = ("/a/b?c=d", f"/{'a' * 250}c", f"/{'a' * 2000}", f"/{'ab' * 1000}", f"/{'%61' * 600}")


def run(quick: bool) -> dict[str, Any]:
    """See the module; `quick` tries fewer pages."""
    figures: dict[str, Any] = {}
    most = dict[str, float]()
    for name, options in (("by default", []), ("with everything on", _EVERYTHING)):
        read = _reader(options)
        pages = _pages(100 if quick else 2_000)
        found = sorted((_least(partial(read, body, kind)), what) for what, body, kind in pages)
        figures |= {f"{name}: {what}": f"{spent:.1f} ms" for spent, what in reversed(found[-3:])}
        most[f"a page that the loop reads, {name}: most ms"] = found[-1][0]
    files = [b"User-agent: *\n" + _repeated([line + "\n"], 500 * 1024).encode() for line in _LINES]
    read_file = partial(RobotsRules.parse, agent="barkspider", origin="http://a.example")
    most["a robots.txt: most ms to read"] = max(_least(partial(read_file, body)) for body in files)
    numbers = count()  # so that no verdict is remembered

    def judge(rules: RobotsRules, target: str) -> bool:
        return rules.allows(f"{target}{next(numbers)}")

    judged = (_least(partial(judge, rules, each), 5) for rules in map(read_file, files) for each in _TARGETS)
    most["a URL: most ms to judge"] = max(judged)
    targets = [
        {"name": name, "value": round(value, 3), "target": target, "holds": value <= target}
        for (name, value), target in zip(most.items(), _MOST, strict=True)
    ]
    return {"figures": figures, "targets": targets}


def _least(work: Callable[[], object], times: int = 2) -> float:
    """CPU milliseconds, the best of some."""
    spent = []
    for _ in range(times):
        before = time.process_time()
        work()
        spent.append(1000 * (time.process_time() - before))
    return min(spent)


def _reader(options: list[str]) -> Callable[[bytes, str | None], None]:
    settings = load_settings(options=[*options, "scope.level=web", "seed=1"])
    reader, row = PageReader(settings.page), UrlRow(1, 2, 3, 0, 0, 0, 0, _URL.encode())

    def read(body: bytes, content_type: str | None) -> None:
        sniff(content_type, body)
        page = reader.read(body, content_type, _URL)
        maker = LinkMaker(settings, [_URL])
        links = maker.links(page.hrefs, page.base, row, page.requisites)
        maker.anchors(page.anchors or {}, page.base)
        maker.batch(links)

    return read


def _pages(tries: int) -> Iterator[tuple[str, bytes, str | None]]:
    """Pages of each fragment alone, then of some at random, where the first may stand only once."""
    random = Random(11)
    chosen = [([""], [fragment], "utf-8") for fragment in _FRAGMENTS]
    for _ in range(tries):
        first = random.choices(_FRAGMENTS, k=random.randint(0, 2))
        parts = random.choices(_FRAGMENTS, k=random.randint(1, 4))
        chosen.append((first, parts, random.choice(_CHARSETS)))
    for first, parts, charset in chosen:
        text = "".join(first) + _repeated(parts, _SIZE)
        body = _encoded(text, charset or "windows-1252")[:_SIZE]
        name = f"{''.join(first)!r:.60} + {''.join(parts)!r:.80} in {charset or 'what it looks like'}"
        yield name, body, f"text/html; charset={charset}" if charset else None


def _repeated(parts: list[str], size: int) -> str:
    """The parts again and again, with a number in the place of each `#` but those of references."""
    unit = "".join(parts)
    numbered = unit.replace("&#", "\1").replace("#", "{0}" if "{" not in unit else "#")
    if "{0}" not in numbered:
        return (unit * (size // len(unit) + 1))[:size]
    found = [numbered.format(number) for number in range(size // len(unit) + 1)]
    return "".join(found).replace("\1", "&#")[:size]


def _encoded(text: str, charset: str) -> bytes:
    """Letters that an encoding lacks become bytes that no one reads."""
    if charset == "utf-16le":
        return text.encode("utf-16-le", "surrogatepass")
    return text.encode(charset, "surrogatepass" if charset == "utf-8" else "replace").replace(
        b"?\x81", b"\x81"
    )
