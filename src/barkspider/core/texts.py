"""Byte strings by the thousand, one behind the other in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba.core import cgutils
from numba.extending import intrinsic

Bytes: TypeAlias = npt.NDArray[np.uint8]
Rows: TypeAlias = npt.NDArray[np.int64]

NO_BYTES: Bytes = np.empty(0, np.uint8)

# Without static types: within a kernel a number is a number, and what a type checker knows about numpy's
# scalars is not what the compiler does with them.
nb: Any = numba
memory: Any = cgutils

BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)

# For functions that kernels call for every few bytes: they count no references to the arrays they are given, which
# whoever calls them holds. Four atomic steps a call took longer than finding the end of a tag. Such a function can make no array.
SMALL: Any = {"nogil": True, "cache": True, "_nrt": False}


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings one after the other: text i is `data[offsets[i] : offsets[i + 1]]`. Never changed.

    >>> texts = Texts.of([b"one", b"", b"three"])
    >>> texts.take(np.array([2, 0])).tolist(), len(texts)
    ([b'three', b'one'], 3)
    """

    offsets: Rows
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, items: Iterable[bytes]) -> Texts:
        """From Python bytes."""
        listed = list(items)
        lengths = np.fromiter(map(len, listed), np.int64, len(listed))
        return cls(ends(lengths), np.frombuffer(b"".join(listed), np.uint8))

    @classmethod
    def from_arrow(cls, array: Any) -> Texts:
        """The same memory as an Arrow array of binary or string values; nulls are empty texts.

        >>> Texts.from_arrow(pa.array([b"a", b"bc"], pa.binary()).slice(1)).tolist()
        [b'bc']
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        if not large and not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
            raise TypeError(f"an Arrow array of {array.type} has no bytes; give binary or string")
        _, places, data = array.buffers()
        if len(array) == 0 or places is None:
            return cls(np.zeros(len(array) + 1, np.int64), NO_BYTES)
        stored: npt.NDArray[Any] = np.frombuffer(places, np.int64 if large else np.int32)
        stored = stored[array.offset : array.offset + len(array) + 1]
        return cls(
            stored.astype(np.int64, copy=False), NO_BYTES if data is None else np.frombuffer(data, np.uint8)
        )

    @classmethod
    def join(cls, parts: Sequence[Texts]) -> Texts:
        """Those of all parts, in their order.

        >>> Texts.join([Texts.of([b"a"]), Texts.of([b"", b"b"])]).tolist()
        [b'a', b'', b'b']
        """
        if len(parts) < 2:
            return parts[0] if parts else NO_TEXTS
        lengths = [part.lengths() for part in parts]
        data = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
        return cls(ends(np.concatenate(lengths)), np.concatenate(data))

    def to_arrow(self) -> Any:
        """An Arrow array of binary values over the same data."""
        kind = (pa.binary(), np.int32) if len(self.data) < 1 << 31 else (pa.large_binary(), np.int64)
        buffers = [None, pa.py_buffer(self.offsets.astype(kind[1])), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind[0], len(self), buffers)

    def take(self, rows: npt.NDArray[Any]) -> Texts:
        """A copy of some of the texts, in the order given."""
        rows = rows.astype(np.int64, copy=False)
        offsets = ends(self.offsets[rows + 1] - self.offsets[rows])
        out = np.empty(offsets[-1], np.uint8)
        gather(self.data, self.offsets, rows, out, offsets)
        return Texts(offsets, out)

    def slice(self, start: int, stop: int) -> Texts:
        """Some of the texts in a row, without a copy."""
        return Texts(self.offsets[start : stop + 1], self.data)

    def lengths(self) -> Rows:
        """The length of each."""
        return self.offsets[1:] - self.offsets[:-1]  # np.diff takes three times as long for a page's links

    def size(self) -> int:
        """The bytes of all."""
        return int(self.offsets[-1] - self.offsets[0])

    def tolist(self) -> list[bytes]:
        """As Python bytes."""
        first = int(self.offsets[0])
        whole, places = self.data[first : self.offsets[-1]].tobytes(), (self.offsets - first).tolist()
        return [whole[start:stop] for start, stop in pairwise(places)]


NO_TEXTS = Texts(np.zeros(1, np.int64), NO_BYTES)


def ends(lengths: npt.NDArray[Any]) -> Rows:
    """The offsets of texts that have these lengths.

    >>> ends(np.array([3, 0, 5])).tolist()
    [0, 3, 3, 8]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@intrinsic
def _memcpy(typing, target, to, source, start, count):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """target[to : to + count] = source[start : start + count], as memcpy.

    A loop over bytes took 80 ns for a text of 70 bytes, this takes 9.
    """
    signature = nb.types.void(target, nb.int64, source, nb.int64, nb.int64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        into = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        out_of = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        into = builder.gep(into, [arguments[1]])
        out_of = builder.gep(out_of, [arguments[3]])
        size = context.get_abi_sizeof(context.get_value_type(signature.args[0].dtype))
        count = builder.mul(arguments[4], arguments[4].type(size))
        memory.raw_memcpy(builder, into, out_of, count, 1)
        return context.get_dummy_value()

    return signature, generate


# Compiled into the kernels that call it: numba's cache does not see when it changes, but it is only memcpy.
copy: Any = _memcpy


@nb.njit(nb.void(BYTES, PLACES, PLACES, nb.uint8[::1], PLACES), nogil=True, cache=True)
def gather(data, offsets, rows, out, out_offsets):  # type: ignore[no-untyped-def]
    """Copy the texts of some rows one behind the other, to where `out_offsets` says."""
    for i in range(len(rows)):
        row = rows[i]
        copy(out, out_offsets[i], data, offsets[row], offsets[row + 1] - offsets[row])
