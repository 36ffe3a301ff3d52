"""A name server that says what it is told: records by name, another answer at each question, or silence."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

_A, _CNAME, _AAAA = 1, 5, 28
_NO_SUCH_NAME, _SERVER_FAILURE = 3, 2
T = TypeVar("T")
_POINTER_TO_QUESTION = b"\xc0\x0c"

# What a name answers: addresses, and names for aliases; each question takes the next one, the last stays.
Script = Sequence[Sequence[str]]
SILENT: Script = ()
BROKEN: Script = ((),)


class Names(asyncio.DatagramProtocol):
    """Answers for the names it knows. `*.name` stands for every name below; `otherwise` answers the rest.

    >>> Names({"a.example": [["192.0.2.1"]]}).script("a.example")
    [['192.0.2.1']]
    """

    def __init__(
        self,
        records: Mapping[str, Script],
        otherwise: Callable[[bytes], bytes | None] | None = None,
        lifetime: int = 300,
    ) -> None:
        self.records = records
        self._otherwise = otherwise
        self._lifetime = lifetime.to_bytes(4, "big")
        self.asked: Counter[str] = Counter()

    def script(self, name: str) -> Script | None:
        """What was prepared for a name, or for all names below one of its parents."""
        return below(self.records, name)

    def respond(self, query: bytes) -> bytes | None:
        """The answer to a question; None for silence."""
        name, end = _name(query, 12)
        kind = int.from_bytes(query[end : end + 2], "big")
        script = self.script(name)
        if script is None:
            return self._otherwise(query) if self._otherwise else _header(query, end, 0, _NO_SUCH_NAME)
        if script is SILENT:
            return None
        if script is BROKEN:
            return _header(query, end, 0, _SERVER_FAILURE)
        turn = self.asked[f"{name} {kind}"]
        self.asked[f"{name} {kind}"] += 1
        records = [self._record(text, kind) for text in script[min(turn, len(script) - 1)]]
        kept = [record for record in records if record]
        return _header(query, end, len(kept)) + b"".join(kept)

    def _record(self, text: str, kind: int) -> bytes:
        owner = _POINTER_TO_QUESTION
        if "=" in text:  # owner=address, for what stands behind an alias
            name, _, text = text.partition("=")
            owner = _wire(name)
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return self._packed(owner, _CNAME, _wire(text))
        found = _A if address.version == 4 else _AAAA
        return self._packed(owner, found, address.packed) if found == kind else b""

    def _packed(self, owner: bytes, kind: int, data: bytes) -> bytes:
        fixed = kind.to_bytes(2, "big") + b"\x00\x01" + self._lifetime + len(data).to_bytes(2, "big")
        return owner + fixed + data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        answer = self.respond(data)
        if answer is not None:
            self._transport.sendto(answer, addr)


def below(prepared: Mapping[str, T], name: str) -> T | None:
    """What was prepared for a name, or for all names below one of its parents.

    >>> below({"*.example": 1, "a.example": 2}, "b.example"), below({"*.example": 1}, "example.org")
    (1, None)
    """
    found = prepared.get(name)
    while found is None and name:
        name = name.partition(".")[2]
        found = prepared.get(f"*.{name}")
    return found


def _name(message: bytes, at: int) -> tuple[str, int]:
    labels = []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1").lower())
        at += 1 + message[at]
    return ".".join(labels), at + 1


def _wire(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\x00"


def _header(query: bytes, end: int, answers: int, code: int = 0) -> bytes:
    counts = b"\x00\x01" + answers.to_bytes(2, "big") + bytes(4)
    return query[:2] + bytes((0x85, 0x80 | code)) + counts + query[12 : end + 4]
