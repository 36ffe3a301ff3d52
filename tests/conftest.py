"""What holds for every test."""

from __future__ import annotations

import os

# Before numpy is imported, here and in the processes that tests start: in huge pages, tables of which a small
# crawl uses a few rows would be resident as a whole, for as long as the garbage of a crawl is not collected.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
