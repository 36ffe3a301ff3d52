"""What is asked of the web and what it answers, apart from how the bytes travel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as far as answers depend on it."""

    host: str
    target: str
    """Path and query as sent."""
    scheme: str = "http"
    cookie: str = ""
    number: int = 0
    """On a hazard's domain: which of its domains."""
    before: str = ""
    """On a hazard's domain: the labels before the domain's name."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the first question mark of the target."""
        return self.target.partition("?")[2]


class Manner(Enum):
    """How an answer travels."""

    PLAIN = "at once, complete"
    TRICKLED_HEADERS = "header bytes one by one over `seconds`, then the body"
    TRICKLED_BODY = "headers at once, the body in small pieces over `seconds`"
    CUT = "half of the body, then the connection is closed"
    CLOSED = "the connection is closed without a word"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, and how it is to be sent.

    >>> Answer(200, b"hello").content_type
    'text/html; charset=utf-8'
    """

    status: int
    body: bytes = b""
    content_type: str | None = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    links: tuple[str, ...] = ()
    """Addresses in the body, in document order, as written."""
    manner: Manner = Manner.PLAIN
    delay: float = 0.0
    """Seconds before the first byte."""
    seconds: float = 0.0


def redirect(location: str, status: int = 302, *headers: tuple[str, str]) -> Answer:
    """A redirect to `location`, which stands in the header as it is.

    >>> redirect("/x").headers
    (('Location', '/x'),)
    """
    body = b"<!DOCTYPE html>\n<title>Moved</title>\n<p>This page has moved.</p>\n"
    return Answer(status, body, headers=(("Location", location), *headers))


NOT_FOUND = Answer(404, b"<!DOCTYPE html>\n<title>Not found</title>\n<p>There is nothing here.</p>\n")


class AnyWeb(Protocol):
    """What servers ask of a web: a computed one (`web`), or a stored graph (`stored`)."""

    has_https: bool
    """Whether it needs HTTPS; a server that has it sets this."""

    @property
    def seed(self) -> int:
        """What the tags of pages begin with."""
        ...

    @property
    def servers(self) -> int:
        """How many addresses its hosts share."""
        ...

    def server(self, host: str) -> str | None:
        """The address of a host; None if the name does not exist, "" if DNS is silent about it."""
        ...

    def regular_host(self, name: str, scheme: str) -> tuple[int, str]:
        """The number of a host whose pages `regular_page` makes, and their Content-Type; -1 for others."""
        ...

    def regular_page(self, host: int, target: bytes) -> tuple[bytes, int] | None:
        """The bytes of a page, and a number that only they have; None if there is no such page."""
        ...

    def answer(self, request: Request) -> Answer:
        """The answer to a request that `regular_page` has none for."""
        ...

    def seeds(self, count: int = 1) -> list[str]:
        """Some URLs to begin with."""
        ...

    def describe(self) -> str:
        """What is served, for people."""
        ...
