"""Harvest: what one look at the sockets brings in, and the one record of the journal that it becomes.

    answers ─► `reading`: Reaped, one each ─► Harvest ─► WARC bytes flushed ─► journal ─► tables, frontier

Most of what a page costs is fixed costs of arrays, tables and files; a harvest, some dozens of pages in a fast crawl,
pays them once.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from barkspider.archive import Note, batches_of, decode_batch, encode_batch
from barkspider.archive.notes import LINKING, located, schema_of
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Outcome, PageFetched, RobotsFetched
from barkspider.engine.links import LinkMaker, Links
from barkspider.engine.outcomes import SCHEMA, as_rows, from_rows, is_kept

WarcEnds = Mapping[str, tuple[str, int]]  # how far each series of WARC files went: name of a file, bytes

_MAGIC, _VERSION = b"HARV", 2
_HEAD = struct.Struct("<4sII")  # magic, version, length of the JSON that follows
_OUTCOMES, _LINKS, _TABLE = "outcomes", "links", "table "


class Reaped(NamedTuple):
    """What one answer brought: an outcome, the links of its page, what is to be said of it in tables.

    `links` is None when there is no page, or its links do not count; a robots.txt may name sitemaps. `keep` archives
    the exchange, if that is still to be done, and gives further notes: all answers of a harvest are read first and then
    archived, because the processor does the same thing many times in a row in two thirds of the time.
    """

    outcome: Outcome
    links: Sequence[Links] | None = None
    notes: Sequence[Note] = ()
    keep: Callable[[], Sequence[Note]] | None = None

    def kept(self) -> Reaped:
        """The same, archived."""
        return self if self.keep is None else self._replace(notes=(*self.notes, *self.keep()), keep=None)


@dataclass(frozen=True, slots=True)
class Harvest:
    """Outcomes in the order of their arrival, whose links are slices of `links`, and what goes with them.

    `time` is the frontier's; `batches` are rows of tables (`archive.notes`); `warc_ends` is where the archive's files ended
    and `tally` what the engine had counted when all of it had come in.
    """

    time: float
    outcomes: Sequence[Outcome]
    links: UrlBatch = NO_URLS
    batches: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
    warc_ends: WarcEnds = field(default_factory=dict)
    tally: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        time: float,
        reaped: Sequence[Reaped],
        links: LinkMaker,
        warc_ends: WarcEnds,
        tally: Mapping[str, Any],
    ) -> Harvest:
        """Bind together what came in."""
        batch = links.batch([part for each in reaped for part in each.links or ()])
        outcomes: list[Outcome] = []
        notes: list[Note] = []
        place = 0
        for outcome, parts, said, _ in reaped:
            count = 0
            if parts is not None:
                assert isinstance(outcome, PageFetched | RobotsFetched)
                for part in parts:
                    count += len(part.urls)
                outcome = outcome.with_links(batch.slice(place, place + count))
            outcomes.append(outcome)
            notes += (located(note, place, count) if note.table == LINKING else note for note in said)
            place += count
        return cls(time, outcomes, batch, batches_of(notes), warc_ends, tally)

    @property
    def is_news(self) -> bool:
        """Whether there is anything to be kept."""
        return bool(self.batches) or any(map(is_kept, self.outcomes))

    def encode(self) -> bytes:
        """A record; `decode` reads it back, without the outcomes that need not be kept."""
        parts = {_OUTCOMES: encode_batch(as_rows(self.outcomes)), _LINKS: self.links.encode()}
        parts |= {_TABLE + name: encode_batch(batch) for name, batch in self.batches.items()}
        head = {"time": self.time, "places": self.warc_ends, "tally": self.tally}
        sizes = {name: len(part) for name, part in parts.items()}
        text = json.dumps(head | {"parts": sizes}, separators=(",", ":")).encode()
        return b"".join((_HEAD.pack(_MAGIC, _VERSION, len(text)), text, *parts.values()))

    @classmethod
    def decode(cls, record: bytes) -> Harvest:
        """What `encode` made; the journal has looked at the checksum."""
        head, place = _read_head(record)
        try:
            parts = {}
            for name, size in head["parts"].items():
                parts[name] = record[place : place + size]
                place += size
            if place != len(record):
                raise ValueError("its length is not what it says")
            links = UrlBatch.decode(parts.pop(_LINKS))
            outcomes = from_rows(decode_batch(parts.pop(_OUTCOMES), SCHEMA), links)
            tables = {name.removeprefix(_TABLE): part for name, part in parts.items()}
            batches = {name: decode_batch(part, schema_of(name)) for name, part in tables.items()}
            return cls(float(head["time"]), outcomes, links, batches, _warc_ends(head), head["tally"])
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise StorageError(f"a record of the journal cannot be read: {error!r}") from error


def is_harvest(record: bytes) -> bool:
    """Whether a record of a journal is a harvest; older versions wrote others."""
    return record.startswith(_MAGIC)


def warc_ends_of(record: bytes) -> WarcEnds:
    """Where the archive's files ended when a harvest had come in."""
    return _warc_ends(_read_head(record)[0])


def _read_head(record: bytes) -> tuple[dict[str, Any], int]:
    """The JSON of a record, and where it ends."""
    if len(record) < _HEAD.size or not is_harvest(record):
        raise StorageError("a record of the journal cannot be read: it is no harvest")
    _, version, length = _HEAD.unpack_from(record)
    if version > _VERSION:
        raise StorageError(
            f"the journal has version {version}, newer than {_VERSION}: use a newer barkspider"
        )
    try:
        head: dict[str, Any] = json.loads(record[_HEAD.size : _HEAD.size + length])
    except ValueError as error:
        raise StorageError(f"a record of the journal cannot be read: {error}") from error
    return head, _HEAD.size + length


def _warc_ends(head: dict[str, Any]) -> WarcEnds:
    return {series: (str(name), int(size)) for series, (name, size) in head["places"].items()}
