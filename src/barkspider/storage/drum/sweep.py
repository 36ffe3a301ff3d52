"""Files that a DRUM does not need any more: each goes when no manifest names it, beside the owner if it is large."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env

_LARGE = 1 << 24  # bytes: the disk takes longer to give up more than it takes to begin a thread


class Sweep:
    """See the module. The owner of the DRUM calls all of this; no name is used a second time before `join`.

    Invariant: what a manifest on disk names, or may name, is not removed; of that, `garbage` is not needed any more.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     env, folder = Env(), Path(name)
    ...     env.write_whole(folder / "old", b"12"); sweep = Sweep(env, folder, background=True)
    ...     sweep.prepare({"old": 2}); sweep.committed(); sweep.drop({"old": 2}); print(env.list(folder))
    ...     sweep.prepare({}); sweep.committed(); sweep.join(); env.list(folder)
    ['old']
    []
    """

    def __init__(self, env: Env, folder: Path, background: bool) -> None:
        """Without `background` a file is gone when the call returns that removes it."""
        self._env, self._folder, self._background = env, folder, background
        self._named: set[str] = set()
        self._prepared: set[str] = set()
        self.garbage: dict[str, int] = {}
        self._threads: list[threading.Thread] = []

    def prepare(self, files: Iterable[str]) -> None:
        """A manifest may come to name these files."""
        self._prepared = set(files)
        self._named |= self._prepared

    def committed(self) -> None:
        """It does, and is the only one."""
        self._named = set(self._prepared)
        garbage, self.garbage = self.garbage, {}
        self.drop(garbage)

    def drop(self, files: Mapping[str, int]) -> None:
        """These files, given with their sizes, are not needed any more."""
        self.garbage |= {name: size for name, size in files.items() if name in self._named}
        going = {self._folder / name: size for name, size in files.items() if name not in self._named}
        if not self._background or sum(going.values()) < _LARGE:
            for path in going:
                self._env.remove(path)
            return
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(
            threading.Thread(target=self._run, args=(list(going),), name="sweep", daemon=True)
        )
        self._threads[-1].start()

    def join(self) -> None:
        """Wait until all is gone that goes."""
        for thread in self._threads:
            thread.join()

    def _run(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with suppress(StorageError):  # what stays is removed when the store is opened again
                self._env.remove(path)
