"""The one way in which this package compiles: numba without the GIL, cached, signatures given.

numba notices when the file of a cached kernel changes, but not when a kernel that it calls does, which may
be in another file and is compiled into it. Here the cache goes by the text of all files with kernels: after
any change in them all are compiled anew, in about fifteen seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

# numba and numpy under names without static types: within a kernel a number is a number, and what a type
# checker knows about numpy's scalars is not what the compiler does with them.
types: Any = numba.types
uint64: Any = np.uint64
int64: Any = np.int64

# Files with kernels, and those whose constants kernels use.
_FILES = ("changes", "kernels", "model", "names", "prose", "reach", "render", "sites", "text")
_TEXTS = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in _FILES]
_STAMP = hashlib.sha256(b"\0".join(_TEXTS)).hexdigest()


def kernel(signature: Any) -> Callable[[Function], Function]:
    """A decorator that compiles a function for `signature` when its module is imported, or loads it
    from the cache."""

    def compile_now(function: Function) -> Function:
        dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(function)
        dispatcher.enable_caching()
        # Where numba keeps the stamp that it compares; without it the cache only goes by one file.
        cache_file: Any = getattr(dispatcher._cache, "_cache_file", None)
        if hasattr(cache_file, "_source_stamp"):
            cache_file._source_stamp = _STAMP
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return cast(Function, dispatcher)

    return compile_now
