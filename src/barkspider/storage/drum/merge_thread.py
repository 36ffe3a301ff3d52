"""The merge of a DRUM that runs beside its owner, and how it ended."""

from __future__ import annotations

import mmap
import threading
import time

from barkspider.storage.drum.merge import Merge, Merged

_LONGEST = 10.0  # seconds in which a thread begins, however busy the machine is
# Bytes of address space: the stack of a thread, and what its first lines take. To lack them here is an error like any other; a
# thread that lacks them ends without one.
_NEEDED = 12 << 20


class _Beginning(threading.Event):
    """Where memory has run out a thread may end before its first line, and `Thread.start` would wait for that for ever."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_LONGEST if timeout is None else timeout):
            raise MemoryError("a thread could not begin")
        return True


def _check_memory() -> None:
    try:
        mmap.mmap(-1, _NEEDED).close()
    except OSError as error:
        raise MemoryError("there is no room for a thread") from error


class MergeThread:
    """At most one merge at a time. The owner of the DRUM calls all of this; only `_run` is in the other thread.

    The outcome of a merge stays here until the owner collects it, or is told of the error.
    """

    def __init__(self, name: str, background: bool) -> None:
        """Without `background` a merge is done when `start` returns."""
        self._name, self._background = name, background
        self._thread: threading.Thread | None = None
        self._outcome: Merged | BaseException | None = None

    @property
    def running(self) -> bool:
        """Whether a merge runs at this moment."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether a merge runs, or has ended beside the owner and was not collected."""
        return self._thread is not None

    @property
    def failed(self) -> bool:
        """Whether the last one failed, and the owner was not told yet."""
        return isinstance(self._outcome, BaseException)

    def start(self, merge: Merge) -> None:
        """Run a merge; the last one was collected or complained of."""
        assert self._outcome is None
        if self._background:
            _check_memory()
            thread = threading.Thread(target=self._run, args=(merge,), name=self._name, daemon=True)
            thread._started = _Beginning()  # type: ignore[attr-defined]
            thread.start()
            self._thread = thread
        else:
            self._run(merge)

    def join(self) -> None:
        """Wait for the end of the one that runs, if any."""
        if self._thread is not None:
            self._thread.join()

    def collect(self) -> Merged | None:
        """What the merge that ended made, once; None when there is none, or it failed."""
        if self.running:
            return None
        self._thread = None
        if not isinstance(self._outcome, Merged):
            return None
        merged, self._outcome = self._outcome, None
        return merged

    def complain(self) -> None:
        """Raise what the last merge failed with, once."""
        if not self.running and isinstance(self._outcome, BaseException):
            error, self._outcome = self._outcome, None
            raise error

    def _run(self, merge: Merge) -> None:
        start = time.perf_counter()
        try:
            merged = merge.run()
            merged.counters.merge_microseconds += round(1e6 * (time.perf_counter() - start))
            self._outcome = merged
        except BaseException as error:
            self._outcome = error
