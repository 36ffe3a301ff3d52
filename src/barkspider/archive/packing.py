"""How records are packed, one by one, so that a reader can begin at any of them.

gzip: each record is a member of its own, by ISA-L; a payload that is packed already lies in it as it is. zstd
(`.warc.zst`): each record is a frame of its own, and the file may begin with a dictionary, in a skippable frame of a
magic number that other tools know.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import zstandard
from isal import igzip_lib, isal_zlib

from barkspider.core.errors import StorageError
from barkspider.core.settings import Archive

_DICTIONARY = (0x184D2A5D).to_bytes(4, "little")
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_FRAME = zstandard.FRAME_HEADER
# Training on this much takes 0.05 s of CPU with these segments; letting the trainer look for the best segments
# takes four times that and gives the same sizes.
_SAMPLES = 4_000_000
_DICTIONARY_SIZE = 100_000
_SEGMENT, _WORD = 1024, 8
_LEAST_SAMPLES = 16  # a trainer needs some variety
_WINDOW = 1 << 27  # memory that a frame may ask of its reader; ours ask for 8 MiB at most
_STEP = 2048  # bytes of zstd unpacked at a time: 64 MiB at most
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # RFC 1952: deflate, no name, no time, no system
_GZIP_END = struct.Struct("<II")  # checksum and length
# RFC 1951, 3.2.4: whether a block is the last; its length, and that with each bit turned.
_BLOCK = struct.Struct("<BHH")
_LONGEST_BLOCK = 65_535
# Of so many bytes taken from all over a payload, more than this are different ones where it is packed: 101 on average,
# 4 more or less. Texts have half as many.
_SAMPLE, _DIFFERENT = 128, 88

Bytes = bytes | memoryview

UNPACKING_ERRORS: tuple[type[Exception], ...] = (
    zlib.error,
    isal_zlib.error,  # type: ignore[assignment]  # isal's stubs name an instance
    zstandard.ZstdError,
)


class Packer(Protocol):
    """Packs the records of one writer. One thread."""

    suffix: str

    def start(self) -> bytes:
        """What a new file begins with."""
        ...

    def pack(self, head: bytes, payload: Bytes = b"", end: bytes = b"") -> Sequence[Bytes]:
        """One record, packed: up to three parts, one behind the other. What it gives belongs together, in pieces."""
        ...

    def wants_new_file(self) -> bool:
        """Whether records can be packed better from the next file on."""
        ...


def packer(settings: Archive) -> Packer:
    """The packer that the settings ask for."""
    return Zstd(settings.zstd_level) if settings.compression == "zstd" else Gzip(settings.gzip_level)


def is_packed(payload: Bytes) -> bool:
    """Whether packing a payload again would gain nothing, as far as a few of its bytes tell.

    >>> is_packed(zlib.compress(b"".join(b"%d" % (n * n) for n in range(5000)))), is_packed(b"Once upon a time " * 500)
    (True, False)
    """
    step = len(payload) // _SAMPLE
    return step > 0 and len(set(payload[: step * _SAMPLE : step])) > _DIFFERENT


class Gzip:
    """A gzip member a record."""

    suffix = ".warc.gz"

    def __init__(self, level: int) -> None:
        self._level = level

    def start(self) -> bytes:
        """Nothing."""
        return b""

    def pack(self, head: bytes, payload: Bytes = b"", end: bytes = b"") -> Sequence[Bytes]:
        """One member: the head packed, and the others with it or as they are."""
        if payload and is_packed(payload):
            return self._store(head, payload, end)
        record = b"".join((head, payload, end)) if end else head
        return (igzip_lib.compress(record, self._level, igzip_lib.COMP_GZIP),)

    def _store(self, head: bytes, payload: Bytes, end: bytes) -> Sequence[Bytes]:
        """The head is flushed to the end of a byte; what follows it is blocks of bytes as they are, not even copied."""
        deflate = isal_zlib.compressobj(self._level, isal_zlib.DEFLATED, -15)
        before = _GZIP_HEAD + deflate.compress(head) + deflate.flush(isal_zlib.Z_SYNC_FLUSH)
        pieces: list[Bytes] = []
        view = payload if len(payload) <= _LONGEST_BLOCK else memoryview(payload)
        for start in range(0, len(payload), _LONGEST_BLOCK):
            block = view[start : start + _LONGEST_BLOCK]
            pieces += (before + _BLOCK.pack(0, len(block), len(block) ^ 0xFFFF), block)
            before = b""
        checksum = isal_zlib.crc32(end, isal_zlib.crc32(payload, isal_zlib.crc32(head)))
        length = len(head) + len(payload) + len(end) & 0xFFFF_FFFF
        last = _BLOCK.pack(1, len(end), len(end) ^ 0xFFFF) + end + _GZIP_END.pack(checksum, length)
        return [*pieces, before + last]

    def wants_new_file(self) -> bool:
        """Never."""
        return False


class Zstd:
    """A zstd frame a record.

    The first records of a crawl are packed without a dictionary and serve to train one: then the file is
    closed, and every later one begins with it.
    """

    suffix = ".warc.zst"

    def __init__(self, level: int) -> None:
        self._level = level
        self._samples: list[bytes | bytearray | memoryview] = []
        self._size = 0
        self._dictionary: zstandard.ZstdCompressionDict | None = None
        self._fresh = False  # trained, and no file has begun with it yet
        self._compressor = self._make()

    def start(self) -> bytes:
        """The dictionary, when there is one."""
        if self._dictionary is None:
            return b""
        self._fresh = False
        self._compressor = self._make()
        packed = zstandard.ZstdCompressor(level=19).compress(self._dictionary.as_bytes())
        return _DICTIONARY + len(packed).to_bytes(4, "little") + packed

    def pack(self, head: bytes, payload: Bytes = b"", end: bytes = b"") -> Sequence[Bytes]:
        """One frame, with its checksum."""
        record = b"".join((head, payload, end)) if end else head
        if self._dictionary is None:
            self._learn(record)
        return (self._compressor.compress(record),)

    def wants_new_file(self) -> bool:
        """Whether a dictionary was just trained."""
        return self._fresh

    def _make(self) -> zstandard.ZstdCompressor:
        return zstandard.ZstdCompressor(
            level=self._level, dict_data=self._dictionary, write_checksum=True, write_content_size=True
        )

    def _learn(self, record: bytes) -> None:
        self._samples.append(record[: _SAMPLES // _LEAST_SAMPLES])
        self._size += len(self._samples[-1])
        if self._size < _SAMPLES:
            return
        try:
            trained = zstandard.train_dictionary(
                _DICTIONARY_SIZE, self._samples, k=_SEGMENT, d=_WORD, level=self._level
            )
            trained.precompute_compress(level=self._level)
            self._dictionary, self._fresh = trained, True
        except zstandard.ZstdError:
            pass  # nothing in common: try again with other samples
        self._samples, self._size = [], 0


class Unpacker(Protocol):
    """Unpacks one record, in pieces; `rest` is what is behind it, once it has ended. One thread."""

    ended: bool
    rest: bytes

    def feed(self, data: bytes, most: int) -> bytes:
        """What these bytes unpack to; more than `most` bytes of it, if there are that many, but not much more."""
        ...


def unpackers(suffix: str, dictionary: bytes) -> Callable[[], Unpacker]:
    """Makes objects that unpack one record each."""
    if suffix == Gzip.suffix:
        return _GzipUnpacker
    known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    return partial(_ZstdUnpacker, zstandard.ZstdDecompressor(dict_data=known, max_window_size=_WINDOW))


class _GzipUnpacker:
    def __init__(self) -> None:
        self.ended, self.rest = False, b""
        self._inflate = isal_zlib.decompressobj(wbits=31)

    def feed(self, data: bytes, most: int) -> bytes:
        unpacked: bytes = self._inflate.decompress(data, most + 1)
        self.ended, self.rest = self._inflate.eof, self._inflate.unused_data
        return unpacked


class _ZstdUnpacker:
    """Four bytes of zstd stand for 128 KiB at most (RFC 8878, 3.1.1.2), so a few bytes at a time bound what comes."""

    def __init__(self, unpacker: zstandard.ZstdDecompressor) -> None:
        self.ended, self.rest = False, b""
        self._unpacker = unpacker.decompressobj()

    def feed(self, data: bytes, most: int) -> bytes:
        pieces, size = [], 0
        for start in range(0, len(data), _STEP):
            pieces.append(self._unpacker.decompress(data[start : start + _STEP]))
            size += len(pieces[-1])
            if self._unpacker.eof:
                self.ended, self.rest = True, self._unpacker.unused_data + data[start + _STEP :]
                break
            if size > most:
                break
        return b"".join(pieces)


def first_frame(head: bytes, name: str) -> tuple[int, bytes | None]:
    """The length of a skippable frame at the beginning of a file, 0 if there is none, and its content.

    The content is the dictionary when all of it is in `head`, else None.
    """
    if len(head) < 8 or int.from_bytes(head[:4], "little") not in _SKIPPABLE:
        return 0, b""
    size = 8 + int.from_bytes(head[4:8], "little")
    if head[:4] != _DICTIONARY:
        return size, b""
    if len(head) < size:
        return size, None
    content = head[8:size]
    if content[:4] != _FRAME:
        return size, content
    try:
        return size, zstandard.ZstdDecompressor().decompress(content, max_output_size=1 << 27)
    except zstandard.ZstdError as error:
        raise StorageError(f"{name} is damaged at byte 8: its dictionary cannot be unpacked") from error
