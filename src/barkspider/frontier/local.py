"""A Local Frontier (The Viúva Negra crawler, section 4.1): one site in RAM, crawled breadth-first."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import CheckIn, SiteLeased
from barkspider.core.records import UrlRow
from barkspider.frontier.robots.rules import UNREACHABLE
from barkspider.storage.keyset import KeySet

_KEY = 2 * 8  # bytes of a key in a `KeySet`, at most
_AT_ONCE = 256  # URLs that become rows at once, which take ten times as much
# How failures begin that are answers: a site that gives one is there.
_ANSWERS = ("http_", "redirect_", "too_many_redirects")


class LocalFrontier:
    """See the module. Part of `SiteBySite`, in its thread.

    A URL waits in the queue, or is *open*: it was handed on, and its last answer has not come. All but the open ones is a
    function of the journal. When an earlier run's answers are applied again, they may be of URLs that wait in the queue as the
    checkpoint has it: these have `answered`, and are never open.

    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")
    >>> site = LocalFrontier(SiteLeased(2, 5, b"", UrlBatch.from_rows([row])))
    >>> site.add(site.new(UrlBatch.from_rows([row, row]))); len(site), site.next().url, site.is_done
    (1, b'http://a.example/', False)
    >>> site.ended(row, "", False); site.is_done, site.check_in().pages
    (True, 1)
    """

    def __init__(self, leased: SiteLeased) -> None:
        """As it was checked out; its URLs are not taken yet."""
        self.key, self.fence = leased.key, leased.fence
        self._seen, self._found_keys = KeySet(), KeySet()
        self._seen.add(np.frombuffer(leased.seen, np.uint64))
        self._queue = deque[UrlBatch]()
        self._first = deque[UrlRow]()  # those that come before the queue
        self._found = list[UrlBatch]()
        self.open, self.answered = set[int](), set[int]()
        self._pages = self._failed = self._refused = self._answers = 0
        self._failed_by = ""
        self.asked = False  # whether its check-in is under way
        self.size = _KEY * len(self._seen)  # bytes

    def __len__(self) -> int:
        """URLs in the queue."""
        return len(self._first) + sum(map(len, self._queue))

    @property
    def seen(self) -> int:
        """URLs that were ever found on it, in all visits."""
        return len(self._seen)

    @property
    def is_done(self) -> bool:
        """Whether all of its URLs have their last answers."""
        return not (self.open or self._first or self._queue)

    def new(self, links: UrlBatch) -> UrlBatch:
        """Those of its URLs that come up for the first time."""
        new = links.where(self._seen.add(links.key)) if len(links) else links
        self.size += _KEY * len(new)
        return new

    def add(self, batch: UrlBatch) -> None:
        """Queue URLs behind all others."""
        for start in range(0, len(batch), _AT_ONCE):
            self._queue.append(batch.slice(start, min(start + _AT_ONCE, len(batch))))
            self.size += self._queue[-1].packed.size()

    def next(self) -> UrlRow | None:
        """Take the first URL; it is open, unless it was answered in an earlier run."""
        if not self._first:
            if not self._queue:
                return None
            batch = self._queue.popleft()
            self.size -= batch.packed.size()
            self._first.extend(batch.rows())
        row = self._first.popleft()
        if row.key not in self.answered:
            self.open.add(row.key)
        return row

    def find(self, links: UrlBatch) -> None:
        """Keep URLs of other sites for the check-in."""
        if len(links):
            links = links.where(self._found_keys.add(links.key))
            self._found.append(links)
            self.size += _KEY * len(links) + links.packed.size()

    def refuse(self, count: int) -> None:
        """So many of its URLs are not to be fetched, and never were in the queue."""
        self._refused += count

    def ended(self, row: UrlRow, rule: str, refused: bool) -> None:
        """The last answer for a URL has come, or none will: it was refused or failed by a rule of `decisions`; "" for a page or a
        redirect."""
        if row.key not in self.open:
            self.answered.add(row.key)
        self.open.discard(row.key)
        self._pages += not rule
        self._refused += refused
        self._failed += bool(rule) and not refused
        if rule == UNREACHABLE or not (refused or not rule or rule.startswith(_ANSWERS)):
            self._failed_by = self._failed_by or rule
        else:
            self._answers += 1

    def reopen(self, row: UrlRow) -> None:
        """A URL that was handed on comes up once more: if a rule held it, it counted as refused until now."""
        if row.key not in self.open and row.key not in self.answered:
            self.open.add(row.key)
            self._refused -= 1
            self._answers -= 1

    def check_in(self) -> CheckIn:
        """What its visit has brought."""
        failed_by = "" if self._answers else self._failed_by
        return CheckIn(
            self.key,
            self.fence,
            UrlBatch.join(self._found) if self._found else NO_URLS,
            self._seen.keys().tobytes(),
            self._pages,
            self._failed,
            self._refused,
            failed_by,
        )

    def left(self) -> list[UrlRow]:
        """All URLs in the queue."""
        return [*self._first, *(row for batch in self._queue for row in batch.rows())]

    # ── checkpoints ────────────────────────────────────────────────────────────────────────────

    def save(self) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """What it is at this moment: for JSON, and in bytes."""
        found = self._found_keys.keys()
        counts = [self._pages, self._failed, self._refused, self._answers, self._failed_by]
        parts = (
            self._seen.keys().tobytes(),
            found.tobytes(),
            UrlBatch.from_rows(list(self._first)).encode(),
            UrlBatch.join(list(self._queue)).encode(),
            UrlBatch.join(self._found).encode(),
            np.array(sorted(self.open), np.uint64).tobytes(),
            np.array(sorted(self.answered), np.uint64).tobytes(),
        )
        return {"key": self.key, "fence": self.fence, "counts": counts}, parts

    @classmethod
    def load(cls, head: Mapping[str, Any], parts: tuple[bytes, ...]) -> LocalFrontier:
        """The same again."""
        seen, found_keys, first, queue, found, opened, answered = parts
        site = cls(SiteLeased(int(head["key"]), int(head["fence"]), seen, NO_URLS))
        site._found_keys.add(np.frombuffer(found_keys, np.uint64))
        site._first.extend(UrlBatch.decode(first).rows())
        site.add(UrlBatch.decode(queue))
        if len(batch := UrlBatch.decode(found)):
            site._found.append(batch)
            site.size += batch.packed.size()
        site.size += _KEY * len(site._found_keys)
        site.open.update(np.frombuffer(opened, np.uint64).tolist())
        site.answered.update(np.frombuffer(answered, np.uint64).tolist())
        site._pages, site._failed, site._refused, site._answers, site._failed_by = head["counts"]
        return site
