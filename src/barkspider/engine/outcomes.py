"""Outcomes as records of the journal: everything that is needed to apply one again after a crash."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import FetchPage, FetchRobots, PageFetched, Redirect, RobotsFetched, Seeds
from barkspider.core.records import UrlRow

Kept = PageFetched | RobotsFetched | Seeds
Places = dict[str, tuple[str, int]]  # how far each series of WARC files went: name of a file, bytes
_LENGTHS = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class Entry:
    """An outcome and what goes with it. `time` is the frontier's; `notes` are rows of tables as the archive
    encoded them; `tally` is what the engine had counted by then; `places` where the archive's files ended."""

    time: float
    outcome: Kept
    notes: bytes
    places: Places
    tally: dict[str, Any]

    def encode(self) -> bytes:
        """A record; `decode` reads it back."""
        outcome = self.outcome
        if isinstance(outcome, PageFetched):
            links = outcome.links.encode() if outcome.links is not None else b""
            head, data = _page(outcome), links
        elif isinstance(outcome, RobotsFetched):
            head, data = _robots(outcome), outcome.body
        else:
            head, data = {"kind": "seeds"}, outcome.batch.encode()
        head |= {"time": self.time, "places": self.places, "tally": self.tally}
        text = json.dumps(head, separators=(",", ":")).encode()
        return _LENGTHS.pack(len(text), len(data), len(self.notes)) + text + data + self.notes

    @classmethod
    def decode(cls, record: bytes) -> Entry:
        """What `encode` made; the journal has looked at the checksum."""
        try:
            head, data, notes = _parts(record)
            outcome = _OUTCOMES[head["kind"]](head, data)
            return cls(float(head["time"]), outcome, notes, _places(head), head["tally"])
        except (KeyError, TypeError, ValueError, struct.error) as error:
            raise StorageError(f"a record of the journal cannot be read: {error!r}") from error


def places_of(record: bytes) -> Places:
    """Where the archive's files ended when the outcome of a record had been written."""
    return _places(_parts(record)[0])


def _parts(record: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    first, second, third = _LENGTHS.unpack_from(record)
    start = _LENGTHS.size
    if len(record) != start + first + second + third:
        raise ValueError("its length is not what it says")
    head = json.loads(record[start : start + first])
    return head, record[start + first : start + first + second], record[start + first + second :]


def _places(head: dict[str, Any]) -> Places:
    return {series: (str(name), int(size)) for series, (name, size) in head["places"].items()}


def _page(outcome: PageFetched) -> dict[str, Any]:
    asked, redirect = outcome.asked, outcome.redirect
    return {
        "kind": "page",
        "row": _plain(asked.row),
        "address": asked.address,
        "trail": asked.trail,
        "status": outcome.status,
        "failure": outcome.failure,
        "temporary": outcome.temporary,
        "retry_after": outcome.retry_after,
        "redirect": [_plain(redirect.row), redirect.exact.decode("latin-1")] if redirect else None,
        "digest": outcome.digest,
        "seconds": outcome.seconds,
        "cookies": outcome.cookies,
        "links": outcome.links is not None,
    }


def _read_page(head: dict[str, Any], data: bytes) -> PageFetched:
    redirect = head["redirect"]
    return PageFetched(
        FetchPage(_row(head["row"]), head["address"], tuple(head["trail"])),
        head["status"],
        head["failure"],
        head["temporary"],
        head["retry_after"],
        UrlBatch.decode(data) if head["links"] else None,
        Redirect(_row(redirect[0]), redirect[1].encode("latin-1")) if redirect else None,
        head["digest"],
        seconds=head["seconds"],
        cookies=tuple(head["cookies"]),
    )


def _robots(outcome: RobotsFetched) -> dict[str, Any]:
    asked = outcome.asked
    return {
        "kind": "robots",
        "asked": [asked.origin, asked.url, asked.address, asked.host_key, asked.hops],
        "status": outcome.status,
        "redirect": outcome.redirect,
        "retry_after": outcome.retry_after,
        "max_age": outcome.max_age,
        "seconds": outcome.seconds,
        "cookies": outcome.cookies,
    }


def _read_robots(head: dict[str, Any], data: bytes) -> RobotsFetched:
    return RobotsFetched(
        FetchRobots(*head["asked"]),
        head["status"],
        data,
        head["redirect"],
        head["retry_after"],
        max_age=head["max_age"],
        seconds=head["seconds"],
        cookies=tuple(head["cookies"]),
    )


def _read_seeds(head: dict[str, Any], data: bytes) -> Seeds:  # noqa: ARG001
    return Seeds(UrlBatch.decode(data))


_OUTCOMES: dict[str, Callable[[dict[str, Any], bytes], Kept]] = {
    "page": _read_page,
    "robots": _read_robots,
    "seeds": _read_seeds,
}


def _plain(row: UrlRow) -> list[Any]:
    return [*row._replace(url=row.url.decode("latin-1"))]  # type: ignore[arg-type]


def _row(values: list[Any]) -> UrlRow:
    row = UrlRow(*values)
    return row._replace(url=values[UrlRow._fields.index("url")].encode("latin-1"))
