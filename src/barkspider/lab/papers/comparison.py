"""A paper's printed figures beside ours: what every room gives to `barkspider papers`.

A room that recomputes tables or figures has a module `papers` with `TABLES`, functions that each return one
`Table`; the command collects them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PRINTED = re.compile(r"(?P<number>[\d,]+(?:\.(?P<decimals>\d+))?)(?P<unit>\D*)")
# How the papers count: 8B pages are billions, 8 GB are bytes.
_FACTORS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "%": 0.01} | {
    f" {prefix}{unit}": factor
    for prefix, factor in (("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
    for unit in ("B", "B/s", "b/s")
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: `printed` as the paper has it, `ours` in the plain unit.

    >>> cell = Cell("4.9T", 4.93e12)
    >>> cell.shown, cell.agrees, f"{cell.difference:+.1%}"
    ('4.93T', True, '+0.6%')
    """

    printed: str
    ours: float

    @property
    def value(self) -> float:
        """The printed figure as a number."""
        number, _, factor = self._parts()
        return number * factor

    @property
    def difference(self) -> float:
        """Ours against the printed one, relative."""
        return self.ours / self.value - 1

    @property
    def shown(self) -> str:
        """Ours in the unit of the printed one, with one digit more unless both are whole."""
        number, decimals, factor = self._parts()
        digits = 0 if number == self.ours / factor and not decimals else decimals + 1
        return f"{self.ours / factor:,.{digits}f}{self._match()['unit']}"

    @property
    def agrees(self) -> bool:
        """Whether ours is the printed one to its last digit, rounded or cut off: the papers do both."""
        number, decimals, factor = self._parts()
        return abs(self.ours / factor - number) < 10.0**-decimals

    def _match(self) -> re.Match[str]:
        match = _PRINTED.fullmatch(self.printed)
        if match is None:
            raise ValueError(f"{self.printed!r} is not a printed figure")
        return match

    def _parts(self) -> tuple[float, int, float]:
        match = self._match()
        return (
            float(match["number"].replace(",", "")),
            len(match["decimals"] or ""),
            _FACTORS.get(match["unit"], 1.0),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a picture: a line, or points that mark what is printed or planned."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    points: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines over logarithmic axes; `points` says in the legend what those mark."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    points: str = "printed"


@dataclass(frozen=True, slots=True)
class Table:
    """One table or figure of a paper: rows of a label and a cell for each column, None where there is none."""

    paper: str
    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    note: str = ""
    picture: Picture | None = None

    @property
    def key(self) -> str:
        """A name for files, such as `irlbot-table-2`.

        >>> Table("IRLbot", "Table 2", "", (), ()).key
        'irlbot-table-2'
        """
        return re.sub(r"[^a-z0-9]+", "-", f"{self.paper} {self.name}".lower())

    def cells(self) -> list[tuple[str, str, Cell]]:
        """Every figure with its row and column."""
        return [
            (label, column, cell)
            for label, cells in self.rows
            for column, cell in zip(self.columns, cells, strict=True)
            if cell is not None
        ]
