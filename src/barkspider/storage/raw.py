"""Any piece of memory, seen as a row of bytes without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# bytes, memoryview, Arrow buffers and contiguous arrays of any dtype
Data: TypeAlias = "ReadableBuffer | npt.NDArray[Any]"


def as_bytes(data: Data) -> memoryview:
    """The same memory; writable when the original is.

    >>> bytes(as_bytes(np.array([1, 2], "<u2")))
    b'\\x01\\x00\\x02\\x00'
    """
    if isinstance(data, bytes):
        return memoryview(data)
    if isinstance(data, np.ndarray):
        if not data.flags.c_contiguous:
            raise ValueError("an array with gaps cannot be seen as one row of bytes")
        return (
            data.data if data.dtype == np.uint8 and data.ndim == 1 else data.reshape(-1).view(np.uint8).data
        )
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 else as_bytes(np.asarray(view))
