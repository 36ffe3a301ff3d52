"""Servers that are slow, dead, busy, or say something else than they mean."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from email.utils import formatdate

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Manner, Request
from barkspider.lab.synthweb.hazards.base import Ground, Hazard


class _SmallSite(Hazard):
    # Hosts of twenty pages that link to each other; what is wrong with them is in how they answer.
    pages = 20

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:doc-(\d{1,2})\.html)?", request.target)
        if match is None or int(match[1] or 0) >= self.pages:
            return NOT_FOUND
        doc = int(match[1] or 0)
        links = ["/"] + [f"/doc-{(doc * 3 + k) % self.pages}.html" for k in range(1, 5)]
        return self.page(f"{self.names[request.number]} {doc}", links)


class Soft404(_SmallSite):
    """A site that answers 200 for pages which do not exist."""

    name = "soft_404"

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        if answer.status == 404:
            return self.page("Page not found", ["/"], 500)
        if request.target == "/":
            return self.page("Home", [*answer.links, *(f"/gone-{k}.html" for k in range(10))])
        return answer


class WrongTypes(_SmallSite):
    """HTML sent as text/plain, as octets or without a type, and binary data sent as HTML."""

    name = "wrong_types"
    types = ("text/plain", "application/octet-stream", None, "text/html")

    def answer(self, request: Request) -> Answer:
        if request.target == "/":
            return self.page(
                "Home", [f"/odd-{k}" for k in range(len(self.types))] + ["/image.html", "/doc-1.html"]
            )
        if request.target == "/image.html":
            noise = b"".join(self.ground.draw(5, k).to_bytes(8, "big") for k in range(500))
            return Answer(
                200, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise + b'<a href="/ghost.html">', "text/html"
            )
        match = re.fullmatch(r"/odd-([0-3])", request.target)
        if match:
            page = self.page(f"Odd {match[1]}", [f"/doc-{int(match[1]) + 10}.html"])
            return replace(page, content_type=self.types[int(match[1])])
        return super().answer(request)


class Slow(_SmallSite):
    """Servers that wait before they answer (domain 0), or send headers (1) or body (2) drop by drop."""

    name = "slow"
    domains = 3

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        delay = self.ground.spec.slow_delay
        if request.number == 0:
            return replace(answer, delay=delay)
        manner = Manner.TRICKLED_HEADERS if request.number == 1 else Manner.TRICKLED_BODY
        return replace(answer, manner=manner, seconds=10 * delay)


class Dead(_SmallSite):
    """Connections refused (0), no such name (1), no answer from DNS (2), closed unanswered (3) or half-way (4)."""

    name = "dead"
    domains = 5

    def address(self, number: int, before: str) -> str | None:
        if before not in ("", "www") or number == 1:
            return None
        if number == 2:
            return ""
        return self.dead_address(number) if number == 0 else self.usual_address(number)

    def robots(self, request: Request) -> Answer:
        return replace(NOT_FOUND, manner=Manner.CLOSED) if request.number == 3 else NOT_FOUND

    def is_allowed(self, number: int) -> bool:
        return number == 4

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        return replace(answer, manner=Manner.CLOSED if request.number == 3 else Manner.CUT)


class Throttled(_SmallSite):
    """429 and 503 with Retry-After: each page is given to who waits as long as asked.

    Domain 0 says 429 and seconds, 1 says 503 and a date, 2 asks for ten years, 3 for minus five seconds.
    """

    name = "throttled"
    domains = 4

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._ready: dict[tuple[int, str], float] = {}

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        wait = self.ground.spec.retry_after
        now = time.time()
        if answer.status != 200 or now >= self._ready.setdefault(
            (request.number, request.target), now + wait
        ):
            return answer
        # Dates have whole seconds: the next one after the time when the page is ready.
        date = formatdate(int(self._ready[request.number, request.target]) + 1, usegmt=True)
        after = (str(wait), date, str(10 * 365 * 86_400), "-5")[request.number]
        body = b"<!DOCTYPE html>\n<title>Busy</title>\n<p>Please come back later.</p>\n"
        return Answer(503 if request.number == 1 else 429, body, headers=(("Retry-After", after),))


class BrokenRobots(_SmallSite):
    """robots.txt that answers 500 (0) or 503 (1), never comes (2), or closes the connection (3)."""

    name = "broken_robots"
    domains = 4

    def robots(self, request: Request) -> Answer:
        return (
            Answer(500, b"error", "text/plain"),
            Answer(503, b"busy", "text/plain"),
            Answer(200, manner=Manner.CLOSED, delay=self.ground.spec.hang),
            Answer(200, manner=Manner.CLOSED),
        )[request.number]

    def is_allowed(self, number: int) -> bool:  # noqa: ARG002
        return False
