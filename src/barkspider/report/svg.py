"""Drawings as SVG: lines over time, bars, and the path of URLs through a crawl.

A drawing has no colour of its own and no script: classes (`s1` to `s6` for series, `axis`, `grid`) are for the style sheet,
so that the same drawing is right in light, in dark and on paper, inside a report or a live page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from barkspider.report.words import count, span

_WIDTH, _HEIGHT = 440, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 10, 26, 24  # what axes and the legend take
_LETTER = 6.4  # width of a letter of 11 px, about

Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its name, and a number for each place on the axis; `tone` where its colour has a meaning (`bad`, `warn`)."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    tone: str = ""


def lines(
    title: str,
    series: Sequence[Line],
    *,
    x_format: Format = span,
    y_format: Format = count,
    log: bool = False,
    least: float = 0.0,
) -> str:
    """Curves over a common axis, from 0 up; with `log` both axes are logarithmic, and what is not positive is left out.
    `least` is how high the axis goes at least.

    >>> lines("rate", [Line("pages", [0, 1], [0, 10])]).count("<polyline")
    1
    """
    shown = [_drawable(line, log) for line in series]
    points = [(x, y) for line in shown for x, y in zip(line.x, line.y, strict=True)]
    if not points:
        return _nothing(title)
    x_scale = _Scale.over([x for x, _ in points], _LEFT, _WIDTH - _RIGHT, log, least=0.0, is_time=True)
    y_scale = _Scale.over([y for _, y in points], _HEIGHT - _BOTTOM, _TOP, log, least=least)
    drawn = [_grid(x_scale, y_scale, x_format, y_format)]
    for number, line in enumerate(shown, 1):
        places = " ".join(f"{x_scale(x):.1f},{y_scale(y):.1f}" for x, y in zip(line.x, line.y, strict=True))
        if len(shown) == 1 and not log and len(line.x):
            floor = _HEIGHT - _BOTTOM
            corners = f"{x_scale(line.x[0]):.1f},{floor} {places} {x_scale(line.x[-1]):.1f},{floor}"
            drawn.append(f'<polygon class="area s{number}" points="{corners}"/>')
        tone = line.tone or f"s{number}"
        drawn.append(f'<polyline class="line {tone}" points="{places}"/>')
        if len(line.x) == 1:  # which a line does not show
            x, y = x_scale(line.x[0]), y_scale(line.y[0])
            drawn.append(f'<circle class="key {tone}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    if len(series) > 1:
        drawn.append(_legend(series))
    return _frame(title, "".join(drawn))


def bars(title: str, values: Mapping[str, float], *, y_format: Format = count, whole: float = 0.0) -> str:
    """A bar for each name, in their order, with its number at its end; of a `whole`, which is drawn behind it, if there is one.

    >>> bars("types", {"text/html": 3, "<b>": 1}).count("<rect")
    2
    """
    if not values:
        return _nothing(title)
    row, largest = 20, max(*values.values(), whole, 1e-9)
    room = min(max(len(name) for name in values), 24) * _LETTER + 12
    wide = _WIDTH - room - 74
    drawn = []
    for number, (name, value) in enumerate(values.items()):
        top, length = number * row + 4, max(wide * value / largest, 0.5)
        short = name if len(name) <= 24 else f"{name[:23]}…"
        if whole:
            drawn.append(
                f'<rect class="room" x="{room:.0f}" y="{top}" width="{wide:.1f}" height="{row - 6}" rx="2"/>'
            )
        beside = wide if whole else length
        drawn.append(
            f'<text class="label" x="{room - 6:.0f}" y="{top + 12}" text-anchor="end">{escape(short)}</text>'
            f'<rect class="bar" x="{room:.0f}" y="{top}" width="{length:.1f}" height="{row - 6}" rx="2"/>'
            f'<text class="value" x="{room + beside + 5:.1f}" y="{top + 12}">{escape(y_format(value))}</text>'
        )
    return _frame(title, "".join(drawn), len(values) * row + 8)


def path(title: str, stages: Sequence[tuple[str, str, float, float]]) -> str:
    """The stages that URLs pass, one behind the other: (name, what it is, how many wait, share of its room from 0 to 1).

    >>> path("path", [("seen", "new or not", 5, 0.5), ("ready", "whose turn is near", 7, 0.1)]).count("<rect")
    6
    """
    width, gap, height, across = 136, 22, 74, 3
    drawn = []
    for number, (name, about, waiting, filled) in enumerate(stages):
        column, line = number % across, number // across
        x, y = 4 + column * (width + gap), 4 + line * (height + gap)
        share = min(max(filled, 0.0), 1.0)
        drawn.append(
            f'<rect class="stage" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
            f'<rect class="room" x="{x + 8}" y="{y + height - 10}" width="{width - 16}" height="4" rx="2"/>'
            f'<rect class="filled" x="{x + 8}" y="{y + height - 10}" width="{(width - 16) * share:.1f}" height="4" rx="2"/>'
            f'<text class="name" x="{x + 8}" y="{y + 18}">{escape(name)}</text>'
            f'<text class="number" x="{x + 8}" y="{y + 40}">{escape(count(waiting))}</text>'
            f'<text class="about" x="{x + 8}" y="{y + 57}">{escape(about)}</text>'
        )
        if number + 1 < len(stages):
            if column + 1 < across:
                start, middle = x + width + 4, y + height / 2
                drawn.append(f'<path class="arrow" d="M{start} {middle}h{gap - 12}m-4 -4l4 4l-4 4"/>')
            else:
                below, half = y + height + 3, 4 + width / 2
                drawn.append(
                    f'<path class="arrow" d="M{x + width / 2} {below}v{gap / 2 - 3}H{half}v{gap / 2 - 5}m-4 -4l4 4l4 -4"/>'
                )
    rows = -(-len(stages) // across)
    return _frame(title, "".join(drawn), 8 + rows * (height + gap) - gap, 8 + across * (width + gap) - gap)


def _nothing(title: str) -> str:
    return _frame(title, f'<text class="none" x="{_WIDTH / 2}" y="34">nothing yet</text>', 60)


def _frame(title: str, inside: str, height: float = _HEIGHT, width: float = _WIDTH) -> str:
    name = escape(title)
    return f'<svg class="chart" role="img" aria-label="{name}" viewBox="0 0 {width:.0f} {height:.0f}">{inside}</svg>'


def _drawable(line: Line, log: bool) -> Line:
    """What can be drawn of a series: numbers, and on logarithmic axes positive ones."""
    kept = [
        (float(x), float(y))
        for x, y in zip(line.x, line.y, strict=True)
        if math.isfinite(x) and math.isfinite(y) and (not log or (x > 0 and y > 0))
    ]
    return Line(line.name, [x for x, _ in kept], [y for _, y in kept], line.tone)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers to places: `low` to `high` lie between `start` and `end`; `marks` are labelled."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    marks: tuple[float, ...]

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        start: float,
        end: float,
        log: bool,
        least: float = 0.0,
        is_time: bool = False,
    ) -> _Scale:
        high = max(max(values), least)
        if log:
            low_power = math.floor(math.log10(min(values)))
            high_power = max(math.ceil(math.log10(high)), low_power + 1)
            powers = range(low_power, high_power + 1, 1 + (high_power - low_power) // 6)
            return cls(
                10.0**low_power, 10.0**high_power, start, end, True, tuple(10.0**power for power in powers)
            )
        step = _step(high or 1.0, is_time)
        marks = [step * number for number in range(int((high or 1.0) / step + 1e-9) + 1)]
        if not is_time and marks[-1] < high:
            marks.append(marks[-1] + step)
        return cls(0.0, max(high, marks[-1]) if is_time else marks[-1], start, end, False, tuple(marks))

    def __call__(self, value: float) -> float:
        if self.log:
            part = math.log10(value / self.low) / math.log10(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low or 1.0)
        return self.start + part * (self.end - self.start)


def _step(high: float, is_time: bool) -> float:
    """A round distance between some four marks; of times, one that people count in.

    >>> _step(870, False), _step(900, True), _step(0.3, False)
    (200.0, 300, 0.1)
    """
    wanted = high / 4
    if is_time:
        for step in (
            1,
            2,
            5,
            10,
            15,
            30,
            60,
            120,
            300,
            600,
            900,
            1800,
            3600,
            7200,
            14400,
            21600,
            43200,
            86400,
        ):
            if step >= wanted:
                return step
        return 86400 * math.ceil(wanted / 86400)
    power = 10.0 ** math.floor(math.log10(wanted))
    factor = next(each for each in (1, 2, 5, 10) if each * power >= wanted * 0.8)
    return round(factor * power, 12)


def _grid(x_scale: _Scale, y_scale: _Scale, x_format: Format, y_format: Format) -> str:
    drawn = []
    for mark in y_scale.marks:
        y = y_scale(mark)
        drawn.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(y_format(mark))}</text>'
        )
    for mark in x_scale.marks:
        x = min(x_scale(mark), _WIDTH - _RIGHT - 12)
        drawn.append(
            f'<text class="axis" x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_format(mark))}</text>'
        )
    return "".join(drawn)


def _legend(series: Sequence[Line]) -> str:
    drawn, x = [], float(_LEFT)
    for number, line in enumerate(series, 1):
        drawn.append(
            f'<rect class="key {line.tone or f"s{number}"}" x="{x:.0f}" y="7" width="10" height="3" rx="1"/>'
            f'<text class="legend" x="{x + 14:.0f}" y="12">{escape(line.name)}</text>'
        )
        x += 26 + _LETTER * len(line.name)
    return "".join(drawn)
