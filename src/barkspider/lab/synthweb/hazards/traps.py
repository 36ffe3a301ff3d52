"""Traps: finite effort, endless addresses."""

from __future__ import annotations

import re
from itertools import count

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Request
from barkspider.lab.synthweb.hazards.base import Ground, Hazard

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")
_BIG = 2**40


class SpamFarm(Hazard):
    """A few paid domains with endless subdomains and pages that link to each other and to two targets."""

    name = "spam_farm"
    domains = 8
    targets = 2
    """The first domains are what the farm is for; nearly every page links to them."""

    def entries(self) -> list[str]:
        return [f"http://deals.{self.names[-1]}/", f"http://www.{self.names[0]}/"]

    def address(self, number: int, before: str) -> str | None:
        # A farm has few machines: three addresses for all of its names.
        known = before == "" or _LABEL.fullmatch(before)
        return self.usual_address(number % 3) if known else None

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:offer/(\d{1,13})\.html)?", request.target)
        if match is None:
            return NOT_FOUND
        place = int(match[1] or 0) + sum(ord(c) * 131**k for k, c in enumerate(request.before)) % _BIG * 7
        links = [f"http://www.{self.names[k]}/" for k in range(self.targets)]
        for k in range(24):
            random = self.ground.draw(10 + k, place % _BIG)
            farm = self.names[self.targets + random % (self.domains - self.targets)]
            links.append(f"http://cheap-{random >> 8 & 0xFFFFFF:x}.{farm}/offer/{random >> 40}.html")
        links += [f"/offer/{self.ground.draw(40 + k, place % _BIG) >> 30}.html" for k in range(6)]
        return self.page(f"Best offers {place}", links)


class Calendar(Hazard):
    """A calendar in which every month links to the next, without end."""

    name = "calendar"

    def answer(self, request: Request) -> Answer:
        if request.target == "/":
            return self.page("Our club", ["/calendar.php?year=2007&month=1", "/members.html"])
        if request.target == "/members.html":
            return self.page("Members", ["/"])
        match = re.fullmatch(r"/calendar\.php\?year=(\d{1,9})&month=(1[0-2]|[1-9])", request.target)
        if match is None:
            return NOT_FOUND
        month = int(match[1]) * 12 + int(match[2]) - 1
        links = [
            f"/calendar.php?year={m // 12}&month={m % 12 + 1}" for m in (month - 1, month + 1, month + 12)
        ]
        return self.page(f"Events {match[1]}-{match[2]}", [*links, "/"], 600)


class SessionIds(Hazard):
    """A shop of 200 items whose links carry a fresh PHPSESSID unless the client sends a cookie."""

    name = "session_ids"
    items = 200

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._sessions = count(1)

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:item-(\d{1,3})\.html)?", request.path)
        if match is None or int(match[1] or 0) >= self.items:
            return NOT_FOUND
        item = int(match[1] or 0)
        links = ["/"] + [f"/item-{(item * 3 + k) % self.items}.html" for k in range(1, 8)]
        if "PHPSESSID=" in request.cookie:
            return self.page(f"Item {item}", links)
        session = next(self._sessions)
        key = f"{self.ground.draw(2, session):016x}{self.ground.draw(3, session):016x}"
        answer = self.page(f"Item {item}", [f"{link}?PHPSESSID={key}" for link in links])
        return Answer(
            200, answer.body, headers=(("Set-Cookie", f"PHPSESSID={key}; path=/"),), links=answer.links
        )


class GrowingPaths(Hazard):
    """A wrong relative link: every page links one level deeper into itself."""

    name = "growing_paths"

    def answer(self, request: Request) -> Answer:
        if request.target == "/":
            return self.page("Manual", ["chapter/"])
        if not re.fullmatch(r"/(?:(?:chapter|notes)/)+", request.target) or len(request.target) > 60_000:
            return NOT_FOUND
        return self.page("Chapter", ["chapter/", "notes/", "/"], 1_500)


class Listings(Hazard):
    """Apache directory listings, each with links that re-order it, in the old and the new form."""

    name = "listings"
    orders = ("?N=D", "?M=A", "?S=A", "?D=A", "?C=N;O=D", "?C=M;O=A", "?C=S;O=A", "?C=D;O=A")

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/((?:dir[0-2]/){0,3})(?:(file\d)\.html)?", request.path)
        if match is None:
            return NOT_FOUND
        if match[2]:
            return self.page(f"{match[1]}{match[2]}", ["./"])
        if request.query and not re.fullmatch(r"[NMSD]=[AD]|C=[NMSD];O=[AD]", request.query):
            return NOT_FOUND
        below = [f"dir{k}/" for k in range(3)] if match[1].count("/") < 3 else []
        links = [*self.orders, *(["../"] if match[1] else []), *below, *(f"file{k}.html" for k in range(4))]
        if request.query[-1:] == "D":
            links.reverse()
        return self.page(f"Index of /{match[1]}", links, 300)


class Mirrors(Hazard):
    """Four domains with the same pages, byte for byte."""

    name = "mirrors"
    domains = 4
    pages = 150

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:doc-(\d{1,3})\.html)?", request.target)
        if match is None or int(match[1] or 0) >= self.pages:
            return NOT_FOUND
        doc = int(match[1] or 0)
        return self.page(
            f"Document {doc}", ["/"] + [f"doc-{(doc * 5 + k) % self.pages}.html" for k in range(1, 11)]
        )


class WildcardDns(Hazard):
    """A domain under which every name resolves, to the same page with links to yet other names."""

    name = "wildcard_dns"

    def address(self, number: int, before: str) -> str | None:  # noqa: ARG002
        return self.usual_address(number)

    def answer(self, request: Request) -> Answer:
        if request.target != "/":
            return NOT_FOUND
        place = sum(ord(c) * 131**k for k, c in enumerate(request.before)) % _BIG
        names = [f"{self.ground.draw(60 + k, place) >> 32:x}" for k in range(10)]
        return self.page("Parked", [f"http://{name}.{self.names[0]}/" for name in names], 2_000)
