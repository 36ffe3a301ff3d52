"""Content-Encoding taken off, in pieces and under a cap, whatever the server packed.

A bomb unpacks to at most the cap: no decoder is ever asked for more than what is still allowed, and zstd
windows above 8 MiB, the most that a browser must accept, are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli
import zstandard
from isal import isal_zlib

_MOST_ENCODINGS = 2  # more are a trick, not a need
_MOST_WINDOW = 8 << 20  # RFC 8878, 3.1.1.1.2
_PIECE = 1 << 16  # compressed bytes given to a decoder at a time


class DecodingError(Exception):
    """A body that is not packed as its header says. Raised and caught inside `fetch`."""


def decode(body: bytes, encodings: str, most: int) -> tuple[bytes, bool]:
    """A body without its encodings, at most `most` bytes, and whether all of it is there.

    `encodings` is the Content-Encoding header. A body that is not packed as it says, is packed more than
    twice or in a way that is not known, is given as it came and counts as incomplete.

    >>> decode(zlib.compress(b"text " * 100), "deflate", 1000) == (b"text " * 100, True)
    True
    >>> decode(b"plain", "gzip", 1000)
    (b'plain', False)
    """
    names = [name for part in encodings.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not names:
        return body, True
    if len(names) > _MOST_ENCODINGS or not all(name in _DECODERS for name in names):
        return body, False
    unpacked, whole = body, True
    for name in reversed(names):  # the last one named was put on last
        try:
            unpacked, ended = _DECODERS[name](unpacked, most)
        except DecodingError:
            return body, False
        whole = whole and ended
    if not unpacked and not whole:
        return body, False
    return unpacked, whole


def _gzip(data: bytes, most: int) -> tuple[bytes, bool]:
    return _inflate(data, most, 31)


def _deflate(data: bytes, most: int) -> tuple[bytes, bool]:
    # The standard means zlib's format; some servers send the bare stream, as old browsers took both.
    bare = len(data) < 2 or (data[0] & 0x0F) != 8 or int.from_bytes(data[:2], "big") % 31
    return _inflate(data, most, -15 if bare else 15)


def _inflate(data: bytes, most: int, window: int) -> tuple[bytes, bool]:
    unpacker = isal_zlib.decompressobj(wbits=window)
    try:
        return unpacker.decompress(data, most), unpacker.eof
    except (zlib.error, isal_zlib.error) as error:  # type: ignore[misc]  # isal's stubs name an instance
        raise DecodingError from error


def _brotli(data: bytes, most: int) -> tuple[bytes, bool]:
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


def _zstd(data: bytes, most: int) -> tuple[bytes, bool]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
    try:
        reader = unpacker.stream_reader(data, read_across_frames=True)
        unpacked: bytes = reader.read(most)
        if reader.read(1):
            return unpacked, False
        # The reader does not tell an end from a cut. Now that the size is known, a second pass is safe.
        while data:
            frame = unpacker.decompressobj()
            frame.decompress(data)
            if not frame.eof:
                return unpacked, False
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise DecodingError from error
    return unpacked, True


# A decoder takes packed bytes and a limit; it gives the unpacked bytes and whether the stream ended.
_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
