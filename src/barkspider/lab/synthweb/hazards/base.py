"""What every hazard stands on: its own domains, an address, and pages to fill them."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Request
from barkspider.lab.synthweb.model import FOR_HAZARD, Tables, draw
from barkspider.lab.synthweb.prose import SENTENCES
from barkspider.lab.synthweb.spec import FIRST_NAMES, HAZARDS, MAX_SERVERS, WebSpec
from barkspider.lab.synthweb.text import write_domain


def server_address(number: int) -> str:
    """The loopback address of a server; 127.0.0.1 is left to the machine's own services.

    >>> server_address(0), server_address(1999)
    ('127.16.0.1', '127.16.7.250')
    """
    return f"127.{16 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"


class Ground:
    """What a hazard may ask of the web that it lies in."""

    def __init__(self, spec: WebSpec, tables: Tables, page_url: Callable[[int], str]) -> None:
        self.spec = spec
        self.tables = tables
        self.page_url = page_url
        self.has_https = False
        """Whether the server also speaks HTTPS; it sets this when it starts."""

    def domain(self, number: int) -> str:
        """The name of a domain that lies after the regular ones."""
        out = np.empty(64, np.uint8)
        length = write_domain(self.tables, self.spec.domains + number, out, 0)
        return bytes(out[:length]).decode()

    def draw(self, purpose: int, number: int) -> int:
        """64 random bits for a purpose and a number."""
        return int(draw(self.spec.seed, FOR_HAZARD + purpose % 1_000, number))

    def prose(self, random: int, size: int) -> bytes:
        """About `size` bytes of text in UTF-8."""
        begin = int(self.tables.sentences[random % (SENTENCES // 2)])
        end = int(np.searchsorted(self.tables.sentences[:SENTENCES], begin + size))
        return bytes(self.tables.prose[begin : self.tables.sentences[end]])


class Hazard(ABC):
    """One way of making a crawler's life hard. Lives on domains of its own, numbered from 0.

    `number` says which, and `before` is what stands before the domain in a host name: "", "www" or any labels.
    """

    name: ClassVar[str]
    domains: ClassVar[int] = 1

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._first = FIRST_NAMES[HAZARDS.index(self.name)]
        self.names = [ground.domain(self._first + number) for number in range(self.domains)]

    def entries(self) -> list[str]:
        """URLs that regular pages link to."""
        return [f"http://www.{name}/" for name in self.names]

    def links_from(self, domain: int) -> list[str]:  # noqa: ARG002
        """URLs that the home of a regular domain links to besides entries."""
        return []

    def address(self, number: int, before: str) -> str | None:
        """The address of a host, None if the name does not exist, "" if nobody answers for it."""
        return self.usual_address(number) if before in ("", "www") else None

    def usual_address(self, number: int) -> str:
        """One of the servers that regular hosts are on."""
        return server_address(self.ground.draw(0, self._first + number) % self.ground.spec.servers)

    def dead_address(self, number: int) -> str:
        """An address at which nothing listens."""
        return server_address(MAX_SERVERS + number)

    def robots(self, request: Request) -> Answer:  # noqa: ARG002
        """What the host answers for /robots.txt."""
        return NOT_FOUND

    def is_allowed(self, number: int) -> bool:  # noqa: ARG002
        """Whether robots.txt lets pages of the domain be fetched."""
        return True

    @abstractmethod
    def answer(self, request: Request) -> Answer:
        """What a host answers for anything else."""

    def page(self, title: str, links: Sequence[str], size: int = 4_000) -> Answer:
        """A page with `links` in its text."""
        random = self.ground.draw(1, len(title) * 1_000_003 + sum(map(ord, title)))
        items = "".join(
            f'<li><a href="{html.escape(link)}">{html.escape(link[-30:])}</a></li>\n' for link in links
        )
        head = f"<!DOCTYPE html>\n<html><head><meta charset=utf-8><title>{html.escape(title)}</title></head>\n<body>\n"
        text = self.ground.prose(random, size)
        body = (
            f"{head}<h1>{html.escape(title)}</h1>\n<ul>\n{items}</ul>\n<p>".encode()
            + text
            + b"</p>\n</body></html>\n"
        )
        return Answer(200, body, links=tuple(links))
