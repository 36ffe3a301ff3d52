"""Archives of parts that there were before a crawl was divided anew: what of them is whose now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.url import KeyMaker
from barkspider.url.partition import by_hash


class Inherited(NamedTuple):
    """The folders of such archives, the oldest first, and which of so many processes asks, with the job's seed.

    >>> Inherited((), seed=7).owns(["example.org"]).tolist()
    [True]
    """

    archives: Sequence[Path] = ()
    seed: int = 0
    processes: int = 1
    part: int = 0

    def owns(self, domains: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which of these pay-level domains belong to it."""
        keys = KeyMaker(self.seed).column(domain.encode() for domain in domains)
        return np.asarray(by_hash(keys, self.processes) == self.part)
