"""What servers send: pages, HTTP messages and their encodings, robots.txt, answers of name servers."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import brotli
import pycares
import zstandard

from barkspider.core.settings import Dns, Fetch, Network
from barkspider.core.settings import Page as PageSettings
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.channel import Answered
from barkspider.fetch.decoding import decode
from barkspider.fetch.dns import Resolver
from barkspider.fetch.message import Message, read_whole
from barkspider.page import PageReader
from barkspider.url import RobotsRules
from tests.fuzz.fuzzing import Fuzzer, mutate

_SHARED = Path(__file__).parents[3] / "shared" / "data"  # real data, where it is

_PAGE = (
    b"<!doctype html><html lang=pt><head><meta charset=utf-8><title>T&amp;t</title><base href='/b/'>"
    b"<meta name=robots content='nofollow'><link rel=stylesheet href=a.css><style>a{background:url(x.png)}</style>"
    b"<script>if (a<b) document.write('<a href=no>')</script></head><body><!-- c --><a href='x?y=1#z'>text</a>"
    b"<img srcset='a.png 1x, b.png 2x' src=c.png><form action=/f method=get></form><noscript><a href=n></a></noscript>"
    b"<textarea><a href=t></textarea><svg><a xlink:href=s></a></svg><iframe src=f></iframe>\xc3\xa9</body></html>"
)
_MARKUP = (
    *(
        b"<a href=",
        b"<!--",
        b"-->",
        b"<script>",
        b"</script>",
        b"<title>",
        b"<style>",
        b"<![CDATA[",
        b"<meta charset=",
    ),
    *(
        b"&notit;",
        b"&#1114112;",
        b"<plaintext>",
        b"<base href=//",
        b"url(",
        b"/*",
        b"<svg>",
        b"srcset='",
        b"\xff\xfe",
    ),
)
_TYPES = (
    None,
    "text/html",
    "text/html; charset=utf-16",
    "text/html; charset=gb18030",
    "text/css",
    "x",
    "text/html;" * 99,
)
_TAGS = (
    b"a",
    b"b",
    b"div",
    b"table",
    b"script",
    b"style",
    b"title",
    b"textarea",
    b"svg",
    b"math",
    b"select",
    b"noscript",
)


@cache
def _pages() -> list[bytes]:
    path = _SHARED / "html" / "real-pages.zip"
    if not path.is_file():
        return [_PAGE]
    with zipfile.ZipFile(path) as pages:
        return [_PAGE, *(pages.read(name) for name in pages.namelist() if name.endswith(".html"))]


@cache
def _reader() -> PageReader:
    return PageReader(
        PageSettings(forms=True, requisites=True, simhash=True, anchors=True, detect_language=True)
    )


def _nested(random: Random) -> bytes:
    """Tags upon tags, open, closed, with attributes, as no person writes them."""
    parts = []
    for _ in range(random.choice((10, 1000, 20_000))):
        tag = random.choice(_TAGS)
        form = random.choice(
            (b"<%s>", b"</%s>", b"<%s a='", b"<%s href=x>", b"<%s/>", b"<%s \0=\xff>", b"<<%s")
        )
        parts.append(form % tag)
    return b"".join(parts)


def _make_page(random: Random) -> tuple[Any, int]:
    page = _nested(random) if random.random() < 0.2 else mutate(random.choice(_pages()), random, _MARKUP)
    return (page, random.choice(_TYPES)), len(page)


def _read_page(given: tuple[bytes, str | None]) -> None:
    page, kind = given
    _reader().read(page, kind, "http://www.example.com/a/b")


def _read_text(given: tuple[bytes, str | None]) -> None:
    page, kind = given
    _reader().text(page, kind)
    _reader().read_style(page[:100_000], kind, "http://www.example.com/a/b")


_HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: t\r\n\r\n",
    b"HTTP/1.0 301 Moved\nLocation : /b\n\tc\nContent-Length: 0\n\n",
    b"HTTP/1.1 206 P\r\nContent-Encoding: gzip, br\r\nContent-Length: 3, 3\r\nSet-Cookie: a=b\r\n\r\nabc",
)
_FIELDS = (
    *(
        b"Content-Length: ",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 ",
        b"0\r\n\r\n",
        b"\r\n ",
        b": ",
    ),
    *(
        b"ffffffffffffffff\r\n",
        b"Content-Encoding: zstd\r\n",
        b"Connection: upgrade\r\n",
        b"Content-Range: bytes 0-1/2\r\n",
    ),
)
_CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstandard.compress,
}
_LIMITS = Fetch(max_decoded=1_000_000)


@cache
def _messages() -> list[bytes]:
    path = _SHARED / "http" / "llhttp_cases.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    return [*_HEADS, *(base64.b64decode(json.loads(line)["input_b64"]) for line in lines)]


def _make_message(random: Random) -> tuple[Any, int]:
    names = random.choices(tuple(_CODINGS), k=random.randint(1, 3))
    body = random.choice((b"a" * 100_000, random.randbytes(300), b"<p>text</p>" * 50))
    for name in names:
        body = _CODINGS[name](body)
    if random.random() < 0.7:
        body = mutate(body, random)
    raw = mutate(random.choice(_messages()), random, _FIELDS)
    cuts = sorted(random.randrange(len(raw) + 1) for _ in range(random.randint(0, 5)))
    pieces = [raw[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    return (pieces, body, ",".join(names)), len(raw) + len(body)


def _read_message(given: tuple[list[bytes], bytes, str]) -> None:
    pieces, body, names = given
    message = Message(_LIMITS)
    for piece in pieces:
        if message.feed(piece):
            break
    else:
        message.end()
    found = message.exchange()
    packed = found.header(b"content-encoding")
    decode(found.body, packed if isinstance(packed, str) else "", _LIMITS, _LIMITS.max_decoded)
    read_whole(b"".join(pieces))
    unpacked, _ = decode(body, names, _LIMITS, _LIMITS.max_decoded)
    assert len(unpacked) <= _LIMITS.max_decoded


_ROBOTS = (
    b"User-agent: *\nDisallow: /private/*.php$\nAllow: /p\nCrawl-delay: 2.5\nSitemap: http://a.example/s.xml\n\n"
    b"User-Agent: barkspider/1.0 # c\nDisallow: /%70rivate\nDisallow: http://a.example/x\n"
)
_LINES = (
    b"User-agent:",
    b"Disallow: /",
    b"*",
    b"$",
    b"%2A",
    b"\xef\xbb\xbf",
    b"Crawl-delay: 1e999",
    b"\r",
    b"\xff\xfe",
    b"/*/*/*",
)


@cache
def _robots() -> list[bytes]:
    path = _SHARED / "robots" / "google_robots_cases.json"
    if not path.is_file():
        return [_ROBOTS]
    texts = {case["robotstxt"] for case in json.loads(path.read_text())["allowed"] if "robotstxt" in case}
    return [_ROBOTS, *(text.encode() for text in sorted(texts))]


def _make_robots(random: Random) -> tuple[Any, int]:
    body = mutate(random.choice(_robots()), random, _LINES)
    if random.random() < 0.2:
        pattern = b"".join(
            random.choices((b"a", b"*", b"/", b"%41", b"$", b"aa*"), k=random.choice((5, 100, 2000)))
        )
        body += b"\nDisallow: /" + pattern + b"\n" * random.choice((1, 100))
    target = "/" + mutate(b"private/a.php?b=c", random, _LINES).decode("latin-1")[:2000]
    return (body, target), len(body) + len(target)


def _read_robots(given: tuple[bytes, str]) -> None:
    body, target = given
    rules = RobotsRules.parse(body, "barkspider", "http://a.example")
    allowed = rules.allows(target)
    assert RobotsRules.decode(rules.encode()).allows(target) == allowed


def _make_answers(random: Random) -> tuple[Any, int]:
    """Answers to A and to AAAA, each a list of records or an error."""
    answers: list[Any] = []
    for _ in range(2):
        if random.random() < 0.2:
            answers.append(random.choice((1, 4, 11, 12, 99, -5)))
            continue
        records = []
        for _ in range(random.choice((0, 1, 3, 300))):
            four, six = ".".join(str(random.randrange(256)) for _ in range(4)), f"{random.getrandbits(64):x}"
            data = random.choice(
                (
                    pycares.ARecordData(four),
                    pycares.AAAARecordData(f"::{six[:4]}"),
                    pycares.AAAARecordData(f"::ffff:{four}"),
                    pycares.CNAMERecordData("b.example"),
                )
            )
            records.append(SimpleNamespace(data=data, ttl=random.choice((0, -1, 60, 2**31 - 1, 2**63))))
        answers.append(SimpleNamespace(answer=records))
    name = mutate(b"www.example.com", random).decode("latin-1")
    return (answers, random.choice((name, "www.example.com", "[::1]", "1.2.3.4.", "."))), 300


class _Channel:
    """Name servers that say what they are told."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = answers

    def ask(self, name: str, kind: str, done: Answered) -> None:
        answer = self._answers[kind == "AAAA"]
        said = (None, answer) if isinstance(answer, int) else (answer, 0)
        asyncio.get_running_loop().call_soon(done, *said)

    def close(self) -> None:
        return


class _Scripted(Resolver):
    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        super().__init__(Dns(servers=("127.0.0.1:9",)), AddressRules(Network(), contact="me"))

    def _open(self) -> Any:
        return _Channel(self.answers)


def _resolve(given: tuple[list[Any], str]) -> None:
    answers, name = given

    async def run() -> None:
        resolver = _Scripted(answers)
        try:
            found = await resolver.resolve(name)
            assert bool(found.addresses) != bool(found.error)
            assert await resolver.resolve(name) is not None
            resolver.validate()
        finally:
            await resolver.close()

    asyncio.run(run())


# Bounds in seconds: of pages 50 ms a megabyte; of others what a bad one takes, with room for a slow machine.
PAGES = Fuzzer("pages", _make_page, _read_page, 0.02, 50e-9)
TEXTS = Fuzzer("texts", _make_page, _read_text, 0.02, 100e-9)
HTTP = Fuzzer("http", _make_message, _read_message, 0.1, 1e-6)
ROBOTS = Fuzzer("robots", _make_robots, _read_robots, 0.05, 1e-6)
DNS = Fuzzer("dns", _make_answers, _resolve, 0.2, 0.0)
