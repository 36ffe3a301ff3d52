"""Shares: how many URLs of a site, and of a domain, may come up in a crawl, over all its runs.

A URL is counted when it comes up for the first time. A checkpoint knows the counts of that moment. After a crash there
are URLs with outcomes (*done*, see `gate`) that may be counted, because they had come up by the checkpoint, or not:
nobody can tell before they come up again. Meanwhile whoever would be within the share only if they are counted has to
wait; so a share is never exceeded, and nobody is refused who would have been admitted without the crash.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from barkspider.core.records import UrlRow
from barkspider.core.settings import Limits

WAIT = "wait"


@dataclass(slots=True)
class _Share:
    """A limit; `counts` and `ahead` are by the key in `column`, the latter of what is done and has not come up."""

    column: str
    reason: str
    most: int
    processes: int = 1  # that divide it
    counts: Counter[int] = field(default_factory=Counter)
    ahead: Counter[int] = field(default_factory=Counter)

    def most_of(self, key: int, part: int) -> int:
        """What a process may have of it: all together as much as there is, whatever is left over goes round by the key."""
        each, more = divmod(self.most, self.processes)
        return each + ((part + key) % self.processes < more)


class Shares:
    """See the module. Part of `Gate`, in its thread.

    >>> shares = Shares(Limits(site_urls=2))
    >>> rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/%d" % key) for key in range(4)]
    >>> shares.add_done(rows[3]); shares.verdict(rows[0]), shares.verdict(rows[1])
    ('', 'wait')
    >>> shares.came_up(rows[3]); shares.verdict(rows[1]), shares.verdict(rows[2])
    ('', 'site_limit')
    """

    def __init__(self, limits: Limits, part: int = 0, of_site: int = 1, of_domain: int = 1) -> None:
        """Where so many processes have URLs of one site, or of one domain, each has its part of the limit."""
        self._part = part
        self._all = (
            _Share("host_key", "site_limit", limits.site_urls, of_site),
            _Share("pld_key", "domain_limit", limits.domain_urls, of_domain),
        )
        self._set = [share for share in self._all if share.most]

    def __bool__(self) -> bool:
        """Whether anything is limited."""
        return bool(self._set)

    def verdict(self, row: UrlRow) -> str:
        """ "" for a URL that is within all shares, and is counted; `WAIT`; or the reason for which it is refused."""
        waits = False
        for share in self._set:
            key = getattr(row, share.column)
            most = share.most_of(key, self._part)
            if share.counts[key] >= most:
                return share.reason
            waits = waits or share.counts[key] + share.ahead[key] >= most
        if waits:
            return WAIT
        self.count(row)
        return ""

    def count(self, row: UrlRow) -> None:
        """A URL has come up for the first time, and is admitted."""
        for share in self._set:
            share.counts[getattr(row, share.column)] += 1

    def add_done(self, row: UrlRow) -> None:
        """A URL has an outcome of an earlier run."""
        for share in self._set:
            share.ahead[getattr(row, share.column)] += 1

    def came_up(self, row: UrlRow) -> None:
        """A URL that is done has come up again."""
        for share in self._set:
            key = getattr(row, share.column)
            share.ahead[key] -= 1
            if share.ahead[key] <= 0:
                del share.ahead[key]

    def counters(self) -> dict[str, Counter[int]]:
        """All counts by name, for a checkpoint."""
        named = {"hosts": self._all[0], "domains": self._all[1]}
        return {name: share.counts for name, share in named.items()} | {
            f"{name} ahead": share.ahead for name, share in named.items()
        }
