"""A web of good sites beside a farm of cheap domains on a few addresses, or beside one domain with a wildcard in DNS."""

from __future__ import annotations

from collections.abc import Sequence

from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchPage, PageFetched
from tests.frontier.virtual import VirtualWeb, batch

GOOD, FARM, WILD = "good", "farm", "wild"
_LINKS = 8


class FarmedWeb(VirtualWeb):
    """Good sites of so many pages, each on a server of its own; without end, farm domains of ten pages on four addresses of one
    network, or names below one domain at one address. One good page in ten links there."""

    def __init__(self, kind: str, good: int, pages: int) -> None:
        super().__init__({}, wildcards={"wild.example": ["127.66.0.1"]} if kind == WILD else {})
        self.kind, self.good, self.size = kind, good, pages

    def seeds(self) -> UrlBatch:
        return batch(f"http://{GOOD}0.example/0")

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        name, _, path = url.removeprefix("http://").partition("/")
        site, page = name.split(".")[0], int(path)
        links = self._good(int(site[4:]), page) if site.startswith(GOOD) else self._bad(int(site[4:]))
        return PageFetched(asked, 200, links=batch(*links, depth=asked.row.depth + 1))

    def address(self, host: str) -> str:
        """Where a host is."""
        number = int(host.split(".")[0][4:])
        if host.startswith(GOOD):
            return f"127.1.{number // 250}.{number % 250 + 1}"
        return f"127.66.0.{number % 4 + 1 if host.startswith(FARM) else 1}"

    def answer(self, now: float, instruction: object) -> object:  # type: ignore[override]
        host = getattr(instruction, "host", "")
        if host and host.startswith((GOOD, FARM, WILD)):
            self.servers = {host: self.address(host)}
        return super().answer(now, instruction)  # type: ignore[arg-type]

    def _good(self, site: int, page: int) -> Sequence[str]:
        near = [(site, (3 * page + step) % self.size) for step in range(1, 4)]
        far = [((5 * site + step + page) % self.good, 0) for step in range(1, 3)]
        links = [f"http://{GOOD}{each}.example/{number}" for each, number in (*near, *far)]
        bad = [] if page % 10 else self._bad(1000 * site + page)
        return [*links, *bad]

    def _bad(self, number: int) -> Sequence[str]:
        names = [(_LINKS * number + step) % 10_000_019 for step in range(1, _LINKS + 1)]
        if self.kind == FARM:
            return [f"http://{FARM}{name}.example/{name % 10}" for name in names]
        return [f"http://{WILD}{name}.wild.example/0" for name in names]

    def fetches(self, kind: str) -> int:
        """Pages of a kind of host that were fetched."""
        return sum(url.startswith(f"http://{kind}") for url in self.fetched())
