"""Every error that barkspider raises on purpose.

    BarkspiderError
    ├── UsageError          a wrong argument, setting, seed or file; exit code 2
    │   ├── SettingsError   a setting is unknown, malformed or out of range
    │   └── JobError        a job folder is in use, missing, or not a job
    ├── StorageError        a file is damaged, or the disk refused; exit code 1
    ├── ShortMemoryError    memory ran out; exit code 1
    └── UrlError            a text is not a URL that can be crawled; never reaches a user by itself

Each message is one line that says what was wrong and what to do about it; the command line prints
it as it is.
"""

from __future__ import annotations

import errno


class BarkspiderError(Exception):
    """The root of the tree: catch this to catch everything that barkspider raises on purpose."""

    exit_code = 1


class UsageError(BarkspiderError):
    """The user asked for something that cannot be done as asked; nothing was changed."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting is unknown, malformed or out of range. Raised while loading settings only."""


class JobError(UsageError):
    """A job folder is in use, missing, or holds something else. Raised when a job is opened."""


class StorageError(BarkspiderError):
    """A file is damaged or the file system refused. Raised by `storage` only."""


class ShortMemoryError(BarkspiderError):
    """Memory ran out during a crawl, which can go on. Raised when that has ended, in the place of MemoryError."""


class UrlError(BarkspiderError):
    """A text is not a URL that can be crawled. `reason` is a short name that counters use.

    >>> UrlError("too_long", "4,000 characters").reason
    'too_long'
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


def is_shortage(error: BaseException | None) -> bool:
    """Whether an error says that there is no memory, for whatever it was: bytes, a mapped file, a thread, a library.

    >>> is_shortage(MemoryError()), is_shortage(RuntimeError("can't start new thread")), is_shortage(ValueError())
    (True, True, False)
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):  # by the linker, for a library that is loaded when it is first used
        return "failed to map segment" in str(error) or "cannot allocate memory" in str(error).lower()
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    return isinstance(error, MemoryError)
