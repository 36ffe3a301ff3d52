"""Content-Encoding taken off, in pieces and under a cap, whatever the server packed.

A bomb unpacks to at most the cap: no decoder is ever asked for more than what is still allowed, and zstd
windows above a limit (8 MiB is the most that a browser must accept) are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import brotli
import zstandard
from isal import isal_zlib

from barkspider.core.settings import Fetch

_MOST_PARTS = 64  # members of gzip or frames of zstd: each one more is a copy of all that is left
_ERRORS: tuple[Any, ...] = (zlib.error, isal_zlib.error)
_PIECE = 1 << 16  # compressed bytes given to a decoder at a time


class DecodingError(Exception):
    """A body that is not packed as its header says. Raised and caught inside `fetch`."""


def decode(body: bytes, encodings: str, limits: Fetch, most: int) -> tuple[bytes, bool]:
    """A body without its encodings, at most `most` bytes, and whether all of it is there.

    `encodings` is the Content-Encoding header. A body that is not packed as it says, is packed more often
    than `max_encodings` or in a way that is not known, is given as it came and counts as incomplete; one that
    only its own checksum calls wrong is unpacked, and counts as incomplete, too.

    >>> decode(zlib.compress(b"text " * 100), "deflate", Fetch(), most=1000) == (b"text " * 100, True)
    True
    >>> decode(b"plain", "gzip", Fetch(), most=1000), decode(zlib.compress(b"text"), "deflate", Fetch(), most=2)
    ((b'plain', False), (b'te', False))
    """
    names = [name for part in encodings.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not names:
        return body[:most], len(body) <= most
    if len(names) > limits.max_encodings or not all(name in _DECODERS for name in names):
        return body[:most], False
    unpacked, whole = body, True
    for name in reversed(names):  # the last one named was put on last
        try:
            unpacked, ended = _DECODERS[name](unpacked, most, limits)
        except DecodingError:
            return body[:most], False
        whole = whole and ended
    if not unpacked and not whole:
        return body[:most], False
    return unpacked, whole


def _gzip(data: bytes, most: int, _limits: Fetch) -> tuple[bytes, bool]:
    return _inflate(data, most, 31)


def _deflate(data: bytes, most: int, _limits: Fetch) -> tuple[bytes, bool]:
    # The standard means zlib's format; some servers send the bare stream, as old browsers took both.
    bare = len(data) < 2 or (data[0] & 0x0F) != 8 or int.from_bytes(data[:2], "big") % 31
    return _inflate(data, most, -15 if bare else 15)


def _inflate(data: bytes, most: int, window: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    left = most
    for _ in range(_MOST_PARTS):
        unpacker = isal_zlib.decompressobj(wbits=window)
        try:
            piece = unpacker.decompress(data, left)
        except _ERRORS as error:
            piece = _unchecked(data, left, window)
            if piece:
                return b"".join((*pieces, piece)), False
            if pieces:  # what follows a whole member is no other one, only rubbish
                return b"".join(pieces), True
            raise DecodingError from error
        pieces.append(piece)
        left -= len(piece)
        data = unpacker.unused_data
        if not unpacker.eof or not data or window < 31 or not left:
            return b"".join(pieces), unpacker.eof and (not data or window < 31)
    return b"".join(pieces), False


def _unchecked(data: bytes, most: int, window: int) -> bytes:
    """What is packed in a stream that ends as it should, whatever its checksum says; b"" where it does not end."""
    unpacker = isal_zlib.decompressobj(wbits=-15)
    start = 2 if window < 31 else _gzip_header(data)
    try:
        piece = unpacker.decompress(data[start:], most) if start and window > 0 else b""
    except _ERRORS:
        return b""
    return piece if unpacker.eof else b""


def _gzip_header(data: bytes) -> int:
    """The length of the header of a gzip member (RFC 1952, 2.3); 0 when there is none."""
    if data[:3] != b"\x1f\x8b\x08" or len(data) < 10:
        return 0
    flags, end = data[3], 10
    if flags & 4:  # extra fields, with their length in front
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for text in (8, 16):  # a file's name, a comment
        if flags & text:
            end = data.find(b"\0", end) + 1
            if not end:
                return 0
    return end + (flags & 2)  # a checksum of two bytes


def _brotli(data: bytes, most: int, _limits: Fetch) -> tuple[bytes, bool]:
    unpacker = brotli.Decompressor()
    pieces, size = [], 0
    try:
        for start in range(0, len(data), _PIECE):
            piece = unpacker.process(data[start : start + _PIECE], output_buffer_limit=most - size)
            pieces.append(piece)
            size += len(piece)
            if size >= most or not unpacker.can_accept_more_data():
                break
    except brotli.error as error:
        raise DecodingError from error
    return b"".join(pieces)[:most], unpacker.is_finished() and size <= most


def _zstd(data: bytes, most: int, limits: Fetch) -> tuple[bytes, bool]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=limits.max_window)
    try:
        reader = unpacker.stream_reader(data, read_across_frames=True)
        unpacked: bytes = reader.read(most)
        if reader.read(1):
            return unpacked, False
        # The reader does not tell an end from a cut. Now that the size is known, a second pass is safe.
        for _ in range(_MOST_PARTS):
            frame = unpacker.decompressobj()
            frame.decompress(data)
            data = frame.unused_data
            if not frame.eof or not data:
                return unpacked, frame.eof
    except zstandard.ZstdError as error:
        raise DecodingError from error
    return unpacked, False


# A decoder takes packed bytes, how many it may give at most, and limits; it gives the unpacked bytes and whether the
# stream ended.
_DECODERS: dict[str, Callable[[bytes, int, Fetch], tuple[bytes, bool]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
