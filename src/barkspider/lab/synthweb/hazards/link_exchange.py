"""A link exchange: nothing endless about it, but a lie about who is known."""

from __future__ import annotations

import re

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Request
from barkspider.lab.synthweb.hazards.base import Hazard


class LinkExchange(Hazard):
    """Hundreds of paid domains that link to each other in a nearly complete graph, as worldnews.com does.

    Each also has three links that it bought, from domains that anybody may have some of: the less popular half.
    Those are the only ways in. One entry that all of the web links to would stand two links before every
    member, and all of the web with it: no member would lack supporters.
    """

    name = "link_exchange"
    domains = 300
    pages = 3
    """Each lists a hundred members: exchanges do not show all of their links on one page."""
    machines = 10
    sellers = 225
    """Regular domains whose homes carry links to members, where there are as many."""
    sold = 4
    """By each: three for every member."""

    def entries(self) -> list[str]:
        return []

    def links_from(self, domain: int) -> list[str]:
        return [self._home(member) for member in self.buyers(domain)]

    def buyers(self, domain: int) -> list[int]:
        """The members that a regular domain has sold links to."""
        first = self.ground.spec.domains // 2
        step = max(1, (self.ground.spec.domains - first) // self.sellers)
        seller, rest = divmod(domain - first, step)
        if rest or not 0 <= seller < self.sellers:
            return []
        return [(seller + k * self.domains // self.sold) % self.domains for k in range(self.sold)]

    def partners(self, member: int, page: int) -> list[int]:
        """The members that a page of a member links to: 95% of a hundred, and never itself."""
        each = self.domains // self.pages
        return [
            other
            for other in range(page * each, (page + 1) * each)
            if other != member and self.ground.draw(80, member * self.domains + other) % 100 < 95
        ]

    def address(self, number: int, before: str) -> str | None:
        return super().address(number % self.machines, before)

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:friends-([1-9])\.html)?", request.target)
        if match is None or int(match[1] or 0) >= self.pages:
            return NOT_FOUND
        page = int(match[1] or 0)
        links = ["/", *(f"/friends-{k}.html" for k in range(1, self.pages))]
        links += [self._home(other) for other in self.partners(request.number, page)]
        return self.page(f"Friends of {self.names[request.number]} {page}", links, 2_000)

    def _home(self, member: int) -> str:
        return f"http://www.{self.names[member]}/"
