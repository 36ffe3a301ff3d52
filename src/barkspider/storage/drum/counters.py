"""Counts of the bytes that a DRUM moves, by purpose, and of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barkspider.core.texts import Texts
from barkspider.model.irlbot import drum_bytes
from barkspider.storage.columns import Column
from barkspider.storage.drum.sizing import KEY

# What equation (5) counts.
_MOVED = (
    *("pairs_written", "aux_written", "pairs_read", "aux_read"),
    *("known_read", "known_written", "results_written"),
)


@dataclass(slots=True)
class DrumCounters:
    """Bytes to and from files, by what for; each merge counts into its own and adds it at the end. They go on
    when a DRUM is opened again.

    `pairs` are keys with operations and values in buckets, `known` the sorted cache Z, `results` what came
    out of merges. Rows are fed (`rows`), sifted by the front set or written to buckets, merged, and given out; the
    bytes of values and aux are those fed, with a byte each for the length where it is not fixed. `keys_read` and
    `keys_written` are of Z: 2U + pn of equation (5), summed over the merges.
    """

    pairs_written: int = 0
    aux_written: int = 0
    pairs_read: int = 0
    aux_read: int = 0
    known_read: int = 0
    known_written: int = 0
    results_written: int = 0
    results_read: int = 0
    rows: int = 0
    checks: int = 0  # of the rows, those that ask
    value_bytes: int = 0
    aux_bytes: int = 0
    unique: int = 0
    sifted: int = 0
    rows_written: int = 0
    rows_merged: int = 0
    rows_given: int = 0
    keys_read: int = 0
    keys_written: int = 0
    merges: int = 0
    merge_microseconds: int = 0  # from the beginning of each to its end

    def add(self, other: DrumCounters) -> None:
        """Add another's counts to these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def moved(self) -> int:
        """All bytes that equation (5) counts: buckets and aux written and read, Z read and written, and what
        is appended to the next queue; how often that queue is read is its reader's affair.

        >>> DrumCounters(pairs_written=8, pairs_read=8, results_read=5).moved()
        16
        """
        return sum(int(getattr(self, name)) for name in _MOVED)

    def overhead(self) -> float:
        """The measured α: bytes moved for each byte of aux that came in, its stored length included.

        >>> DrumCounters(aux_written=70, aux_read=70, aux_bytes=70).overhead()
        2.0
        """
        return self.moved() / self.aux_bytes if self.aux_bytes else 0.0


def moved_and_predicted(about: Mapping[str, int]) -> tuple[float, float]:
    """The bytes that a DRUM moved, by its `traffic`, and equation (5) with its sizes and, because some come early, its
    merges.

    >>> from dataclasses import asdict
    >>> about = asdict(DrumCounters(pairs_written=9, pairs_read=9, rows=1, checks=1, rows_written=1, rows_merged=1))
    >>> moved_and_predicted(about | {"keys": 0, "known_bytes": 0})
    (18, 16.0)
    """
    rows, asks = max(about["rows"], 1), max(about["checks"], 1)
    entry = about["known_bytes"] / about["keys"] if about["keys"] else KEY
    value = entry - KEY + 1 if about["value_bytes"] else 0  # in an answer, with the verdict
    # A row that does not ask has only the length of none.
    aux = (about["aux_bytes"] - (rows - about["checks"])) / asks
    predicted = drum_bytes(
        written=about["rows_written"],
        merged=about["rows_merged"],
        passed=about["keys_read"] + about["keys_written"],
        given=about["rows_given"],
        row=KEY + (about["value_bytes"] + about["aux_bytes"]) / rows,
        entry=entry,
        answer=KEY + value + aux,
    )
    return sum(about[name] for name in _MOVED), predicted


def stored_bytes(column: Column) -> int:
    """The bytes of a column in a file: the length of a text is stored with it, for most in one byte.

    >>> stored_bytes(Texts.of([b"ab", b""]))
    4
    """
    return column.size() + len(column) if isinstance(column, Texts) else column.nbytes
