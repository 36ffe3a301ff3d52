"""Counts of the bytes that a DRUM moves, by purpose, and of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.core.texts import Texts
from barkspider.storage.columns import Column


@dataclass(slots=True)
class Counters:
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

    def add(self, other: Counters) -> None:
        """Add another's counts to these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def moved(self) -> int:
        """All bytes that equation (5) counts: buckets and aux written and read, Z read and written, and what
        is appended to the next queue; how often that queue is read is its reader's affair.

        >>> Counters(pairs_written=8, pairs_read=8, results_read=5).moved()
        16
        """
        return (
            self.pairs_written
            + self.aux_written
            + self.pairs_read
            + self.aux_read
            + self.known_read
            + self.known_written
            + self.results_written
        )

    def overhead(self) -> float:
        """The measured α: bytes moved for each byte of aux that came in, its stored length included.

        >>> Counters(aux_written=70, aux_read=70, aux_bytes=70).overhead()
        2.0
        """
        return self.moved() / self.aux_bytes if self.aux_bytes else 0.0


def stored_bytes(column: Column) -> int:
    """The bytes of a column in a file: the length of a text is stored with it, for most in one byte.

    >>> stored_bytes(Texts.of([b"ab", b""]))
    4
    """
    return column.size() + len(column) if isinstance(column, Texts) else column.nbytes
