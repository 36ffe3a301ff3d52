"""A name server for the web: A records over UDP, and nothing that a packet can break."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from barkspider.lab.synthweb.answer import AnyWeb

_A, _ANY, _IN = 1, 255, 1
_NO_ERROR, _FORMAT_ERROR, _NO_SUCH_NAME, _NOT_IMPLEMENTED = 0, 1, 3, 4
# Five minutes: as short as busy sites choose, and longer than any test.
_TTL = (300).to_bytes(4, "big")


def respond(web: AnyWeb, query: bytes) -> bytes | None:
    """The response to a DNS query; None where none is due.

    >>> from barkspider.lab.synthweb.web import Web
    >>> respond(Web(), b"nonsense") is None
    True
    """
    if len(query) < 12 or query[2] & 0x80:  # too short to be answered, or itself a response
        return None
    if query[2] & 0x78:
        return _header(query, _NOT_IMPLEMENTED, 0, 0)
    parsed = _question(query)
    if parsed is None:
        return _header(query, _FORMAT_ERROR, 0, 0)
    name, kind, group, end = parsed
    question = query[12:end]
    address = web.server(name) if group == _IN else None
    if address is None:
        return _header(query, _NO_SUCH_NAME, 1, 0) + question
    if address == "":
        return None
    if kind not in (_A, _ANY):
        return _header(query, _NO_ERROR, 1, 0) + question
    record = b"\xc0\x0c\x00\x01\x00\x01" + _TTL + b"\x00\x04" + socket.inet_aton(address)
    return _header(query, _NO_ERROR, 1, 1) + question + record


def _header(query: bytes, code: int, questions: int, answers: int) -> bytes:
    # A response with authority; recursion is copied from the query and said to be available, since a
    # client may insist on it.
    flags = bytes((0x84 | (query[2] & 0x01), 0x80 | code))
    return query[:2] + flags + bytes((0, questions, 0, answers, 0, 0, 0, 0))


def _question(query: bytes) -> tuple[str, int, int, int] | None:
    if query[4:6] != b"\x00\x01":
        return None
    at = 12
    labels: list[str] = []
    while at < len(query) and query[at]:
        length = query[at]
        if length > 63 or at + 1 + length > len(query) or at > 12 + 255:
            return None
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    if at + 5 > len(query):
        return None
    kind = int.from_bytes(query[at + 1 : at + 3], "big")
    group = int.from_bytes(query[at + 3 : at + 5], "big")
    return ".".join(labels).lower(), kind, group, at + 5


class NameServer(asyncio.DatagramProtocol):
    """Answers each datagram by itself; keeps nothing."""

    def __init__(self, web: AnyWeb) -> None:
        self._web = web

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        response = respond(self._web, data)
        if response is not None:
            self._transport.sendto(response, addr)
