"""Hazards 1 to 20 and 42: what a server can do to one fetch."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import brotli
import zstandard

from tests.hostile.hazard import CHUNKED, PLAIN, Hazard, drips, endless, fetched, host_of, says
from tests.hostile.server import End, Line, Request, Serve, moved, ok

_MIB = 1 << 20


def _steady(line_of: bytes, pause: float) -> Serve:
    async def serve(line: Line, _request: Request) -> None:
        await line.send(PLAIN)
        while True:
            await line.send(line_of)
            await asyncio.sleep(pause)

    return serve


async def _reset(line: Line, _request: Request) -> None:
    line.reset()
    raise End


async def _reset_in_body(line: Line, _request: Request) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nxxx")
    await asyncio.sleep(0.05)  # or the reset would take the headers with it
    line.reset()
    raise End


def _headers(lines: bytes, body: bytes = b"") -> Serve:
    return says(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n" + body, stay=True)


TRANSPORT = [
    fetched(
        1, "headers byte by byte", drips(b"", b"HTTP/1.1 200 OK\r\n" * 9, 0.04), outcome="timeout_headers"
    ),
    fetched(1, "no answer at all", says(stay=True), outcome="timeout_headers"),
    fetched(
        2,
        "a body byte by byte",
        drips(PLAIN, b"x" * 99, 0.04),
        outcome="cut_rate",
        truncated="time",
        status=200,
    ),
    fetched(
        2,
        "a body byte by byte in chunks",
        drips(CHUNKED, b"1\r\nx\r\n" * 20, 0.04),
        outcome="cut_rate",
        truncated="time",
    ),
    fetched(
        2,
        "a body just fast enough that never ends",
        _steady(b"x" * 200, 0.02),
        outcome="cut_time",
        truncated="time",
    ),
    fetched(
        3,
        "an endless body",
        endless(PLAIN, b"x" * 50_000),
        outcome="cut_length",
        truncated="length",
        body=2_000_000,
    ),
    fetched(
        3,
        "an endless body in chunks",
        endless(CHUNKED, b"c350\r\n" + b"x" * 50_000 + b"\r\n"),
        outcome="cut_length",
        truncated="length",
        body=2_000_000,
    ),
    fetched(
        3,
        "a body of an exabyte",
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\n", b"x" * 50_000),
        outcome="cut_length",
        body=2_000_000,
    ),
    fetched(
        3,
        "an endless chunk line",
        endless(CHUNKED + b"5;", b"x" * 50_000),
        "fetch.max_size=100KB",
        outcome="cut_length",
        body=0,
    ),
    fetched(
        4, "endless interim responses", endless(b"", b"HTTP/1.1 103 Early\r\n\r\n"), outcome="protocol_error"
    ),
    fetched(5, "closed without a word", says(), outcome="disconnected"),
    fetched(5, "closed within the headers", says(b"HTTP/1.1 200 OK\r\nServ"), outcome="disconnected"),
    fetched(
        5,
        "closed within the body",
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nxxx"),
        outcome="cut_disconnect",
        truncated="disconnect",
        body=3,
    ),
    fetched(
        5,
        "closed between chunks",
        says(CHUNKED + b"3\r\nabc\r\n"),
        outcome="cut_disconnect",
        truncated="disconnect",
        body=3,
    ),
    fetched(5, "reset without a word", _reset, outcome="disconnected"),
    fetched(
        5, "reset within the body", _reset_in_body, outcome="cut_disconnect", truncated="disconnect", body=3
    ),
    fetched(6, "two lengths in one", _headers(b"Content-Length: 3, 4\r\n", b"abc"), outcome="protocol_error"),
    fetched(6, "a negative length", _headers(b"Content-Length: -3\r\n", b"abc"), outcome="protocol_error"),
    fetched(
        6,
        "a length of 2 to the 80",
        _headers(b"Content-Length: %d\r\n" % 2**80, b"abc"),
        outcome="protocol_error",
    ),
    fetched(
        6, "a length in hexadecimal", _headers(b"Content-Length: 0x3\r\n", b"abc"), outcome="protocol_error"
    ),
    fetched(
        7,
        "a chunk size that is no number",
        says(CHUNKED + b"three\r\nabc\r\n", stay=True),
        outcome="protocol_error",
    ),
    fetched(
        7,
        "a chunk size of 2 to the 80",
        says(CHUNKED + b"1%020x\r\nabc" % 0, stay=True),
        outcome="protocol_error",
    ),
    fetched(
        7,
        "a second response behind the first",
        says(ok() + ok(b"smuggled"), stay=True),
        outcome="protocol_error",
    ),
    fetched(
        8,
        "a million chunks of a byte",
        says(CHUNKED + b"1\r\nx\r\n" * 1_000_000 + b"0\r\n\r\n"),
        "fetch.parse_timeout=20ms",
        outcome="cut_parse",
        truncated="time",
    ),
    fetched(9, "endless trailers", endless(CHUNKED + b"0\r\n", b"X: y\r\n" * 100), outcome="protocol_error"),
    fetched(
        10, "a header of 200 KiB", _headers(b"X: " + b"y" * 200_000 + b"\r\n"), outcome="headers_too_large"
    ),
    fetched(10, "200 KiB of headers", _headers(b"X: y\r\n" * 40_000), outcome="headers_too_large"),
    fetched(
        10, "an endless status line", endless(b"HTTP/1.1 200 ", b"x" * 9_000), outcome="headers_too_large"
    ),
    fetched(
        11,
        "NUL in the name of a header",
        _headers(b"X\0Y: 1\r\nContent-Length: 2\r\n", b"hi"),
        outcome="protocol_error",
    ),
    fetched(
        11, "NUL in a header", _headers(b"X: a\0b\r\nContent-Length: 2\r\n", b"hi"), outcome="protocol_error"
    ),
    fetched(
        11,
        "a control byte in a header",
        _headers(b"X: a\x01b\r\nContent-Length: 2\r\n", b"hi"),
        outcome="protocol_error",
    ),
    fetched(
        11,
        "a bare CR in a header",
        _headers(b"X: a\rb\r\nContent-Length: 2\r\n", b"hi"),
        outcome="protocol_error",
    ),
    fetched(12, "the greeting of SSH", says(b"SSH-2.0-OpenSSH_9.6\r\n", stay=True), outcome="protocol_error"),
    fetched(
        12, "bytes of no meaning", says(bytes(range(128, 256)) * 40, stay=True), outcome="protocol_error"
    ),
    fetched(12, "a page without headers", says(b"<html><p>HTTP/0.9</html>"), outcome="protocol_error"),
    fetched(
        12,
        "HTTP/2 without being asked",
        says(b"\0\0\x12\x04\0\0\0\0\0" + bytes(18), stay=True),
        outcome="protocol_error",
    ),
    fetched(
        12,
        "a streaming protocol",
        says(b"ICE/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        outcome="protocol_error",
    ),
    fetched(
        12,
        "a change to another protocol",
        says(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", stay=True),
        outcome="protocol_error",
    ),
    fetched(
        12,
        "an answer of 304 with a length",
        says(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", stay=True),
        outcome="not_modified",
    ),
]


def packed(body: bytes, encoding: str, status: str = "200 OK") -> bytes:
    """A response with a Content-Encoding."""
    return ok(body, headers=f"Content-Encoding: {encoding}\r\n", status=status)


def _gzip_bomb(mebibytes: int) -> bytes:
    """Zeros; after each full flush the stream can be repeated, so a gigabyte takes no time to make."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(bytes(_MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(_MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + again * (mebibytes - 1)


def _brotli_bomb(mebibytes: int) -> bytes:
    packer = brotli.Compressor(quality=9, lgwin=24)
    step = 16 * _MIB
    start = packer.process(bytes(step)) + packer.flush()
    packer.process(bytes(step))
    packer.flush()
    again: bytes = packer.process(bytes(step)) + packer.flush()
    return bytes(start + again * (mebibytes // 16))


def _zstd_frame(window: int, content: bytes) -> bytes:
    """A frame that asks for a window of 2 to the power of `window`, and holds its content as it is."""
    block = (len(content) << 3 | 1).to_bytes(3, "little") + content
    return b"\x28\xb5\x2f\xfd\x00" + bytes(((window - 10) << 3,)) + block


_WORDS = b"<p>" + b"some words " * 500
_FRAME = zstandard.ZstdCompressor(level=3).compress(bytes(32 * _MIB))
_EMPTY_FRAME = zstandard.ZstdCompressor().compress(b"")
_MOST = 8_000_000  # fetch.max_decoded

ENCODING = [
    fetched(14, "a gigabyte in gzip", says(packed(_gzip_bomb(1024), "gzip")), outcome="ok", decoded=False, body=_MOST),
    fetched(
        14, "64 MiB in deflate", says(packed(zlib.compress(bytes(64 * _MIB), 9), "deflate")), outcome="ok", decoded=False, body=_MOST
    ),
    fetched(15, "gigabytes in brotli", says(packed(_brotli_bomb(4096), "br")), outcome="ok", decoded=False, body=_MOST),
    fetched(16, "gigabytes in zstd", says(packed(_FRAME * 100, "zstd")), outcome="ok", decoded=False, body=_MOST),
    fetched(
        16, "a zstd window of 2 GiB", says(packed(_zstd_frame(31, _WORDS), "zstd")), outcome="ok", decoded=False, as_sent=True
    ),
    fetched(16, "a zstd window of 8 MiB", says(packed(_zstd_frame(23, _WORDS), "zstd")), outcome="ok", decoded=True, body=len(_WORDS)),
    fetched(
        16, "two hundred thousand empty zstd frames", says(packed(_EMPTY_FRAME * 200_000, "zstd")), outcome="ok"
    ),
    fetched(17, "three encodings", says(packed(gzip.compress(gzip.compress(gzip.compress(_WORDS))), "gzip, gzip, gzip")), outcome="ok", decoded=False, as_sent=True),
    fetched(17, "a bomb in a bomb", says(packed(gzip.compress(_gzip_bomb(1024)), "gzip, gzip")), outcome="ok", decoded=False, body=_MOST),
    fetched(17, "two encodings", says(packed(gzip.compress(gzip.compress(_WORDS)), "gzip, gzip")), outcome="ok", decoded=True, body=len(_WORDS)),
    fetched(17, "a thousand encodings", says(packed(_WORDS, ", ".join(["gzip"] * 1000))), outcome="ok", decoded=False, as_sent=True),
    fetched(
        18,
        "a redirect with a bomb",
        says(moved("/next").replace(b"Content-Length: 0", b"Content-Encoding: gzip\r\nContent-Length: 9000") + _gzip_bomb(20)[:9000]),
        outcome="redirect",
        as_sent=True,
        body=9000,
    ),
    fetched(19, "plain text called gzip", says(packed(_WORDS, "gzip")), outcome="ok", decoded=False, as_sent=True),
    fetched(19, "gzip with a broken middle", says(packed(gzip.compress(bytes(range(256)) * 99)[:60] + b"\xff" * 60, "gzip")), outcome="ok", decoded=False, as_sent=True),
    fetched(19, "gzip with a wrong checksum", says(packed(gzip.compress(_WORDS)[:-8] + bytes(8), "gzip")), outcome="ok", decoded=False, body=len(_WORDS)),
    fetched(19, "gzip that ends too soon", says(packed(gzip.compress(_WORDS)[:-8], "gzip")), outcome="ok", decoded=False, body=len(_WORDS)),
    fetched(19, "an unknown encoding", says(packed(_WORDS, "pack200-gzip")), outcome="ok", decoded=False, as_sent=True),
    *(
        fetched(20, f"charset={name}", says(ok(b"<p>caf\xe9 \\u0041", kind=f"text/html; charset={name}")), outcome="ok", charset="windows-1252")
        for name in ("punycode", "unicode_escape", "rot13", "undefined", "idna")
    ),
    fetched(20, "charset=utf-7", says(ok(b"+ADw-script+AD4-", kind="text/html; charset=utf-7")), outcome="ok", charset="utf-8"),
]  # fmt: skip

TLS = [
    *(
        fetched(42, f"a certificate that is {fault}", says(ok()), scheme="https", outcome="tls_certificate")
        for fault in ("expired", "self-signed", "for another name")
    ),
    *(
        fetched(
            42,
            f"a certificate that is {fault} and let pass",
            says(ok()),
            "fetch.verify_tls=false",
            scheme="https",
            outcome="ok",
            body=2,
        )
        for fault in ("expired", "self-signed", "for another name")
    ),
    Hazard(
        42,
        "https where nobody speaks TLS",
        url=f"https://{host_of(42, 'nobody speaks TLS')}:80/",
        expect={"outcome": "timeout_tls"},
    ),
    fetched(42, "a good certificate", says(ok()), scheme="https", outcome="ok", body=2),
]

WIRE: list[Hazard] = [*TRANSPORT, *ENCODING, *TLS]
