"""What holds for every test."""

from __future__ import annotations

import gc
import os
import tempfile

from hypothesis import settings

# Before numpy is imported, here and in the processes that tests start: in huge pages, tables of which a small
# crawl uses a few rows would be resident as a whole, for as long as the garbage of a crawl is not collected.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
# Jobs are sealed with a key of the user's: those of tests with one of their own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="barkspider-tests-")

# No test depends on how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What is imported and collected stays to the end: to look through it for garbage again and again takes a tenth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # as while a crawl runs
    gc.enable()
