"""What a frontier hands on when its crawl is divided anew: lots, each of one kind, of things that belong to domains,
hosts or URLs: to whatever the partition keeps together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.url.partition import KeyColumn

WAITING = "Q_W"  # URLs that come back at times, which are the values
LEFT = "S"  # links of a page that were left, which are no discoveries yet


class Lot(NamedTuple):
    """Some things of one kind. `keys`, one each, tell whose they are by their slots; where there is a URL for each of them,
    that one does.

    What the kinds are called, and what `values` and `place` mean, is between a source and those of its own class.
    `shared` things are about domains, and are for all who have URLs of these.

    >>> lot = Lot("seen", np.array([4096, 4097], np.uint64))
    >>> lot.where(np.array([False, True])).keys.tolist()
    [4097]
    """

    kind: str
    keys: KeyColumn
    urls: UrlBatch = NO_URLS
    values: Any = None
    place: int = 0
    shared: bool = False

    @classmethod
    def of(cls, kind: str, urls: UrlBatch, values: Any = None, place: int = 0) -> Lot:
        """URLs; their keys are those of their domains."""
        return cls(kind, urls.pld_key, urls, values, place)

    def where(self, mask: npt.NDArray[np.bool_]) -> Lot:
        """The things that the mask marks."""
        if mask.all():
            return self
        urls = self.urls.where(mask) if len(self.urls) else NO_URLS
        values = None if self.values is None else self.values[mask]
        return self._replace(keys=self.keys[mask], urls=urls, values=values)
