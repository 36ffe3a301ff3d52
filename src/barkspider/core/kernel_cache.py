"""A place for compiled kernels where there is none: without one, numba refuses to define them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"


def ensure_kernel_cache(package: Path) -> None:
    """See to it that numba finds a folder to write to: beside the package, in the user's cache, or one of our own.

    It looks at the first two itself. The last one is for this user alone, since what lies in it is executed.
    """
    if _VARIABLE in os.environ or _writable(package / "core" / "__pycache__") or _writable(_user_cache()):
        return
    folder = Path(tempfile.gettempdir(), f"barkspider-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    except OSError:
        private = False
    os.environ[_VARIABLE] = str(folder) if private else tempfile.mkdtemp(prefix="barkspider-")


def _user_cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if named else Path(os.path.expanduser("~"), ".cache")  # noqa: PTH111  never raises


def _writable(folder: Path) -> bool:
    """Whether a folder, or the first above it that exists, may be written to."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
