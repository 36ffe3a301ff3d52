"""Figures as people read them on a page: short, with a unit."""

from __future__ import annotations

_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float) -> str:
    """A count; large ones are rounded to three digits.

    >>> [count(value) for value in (0, 0.25, 7, 1234, 56789, 1_200_000)]
    ['0', '0.25', '7', '1,234', '56.8k', '1.2M']
    """
    if abs(value) < 10_000:
        return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"
    return _short(value, "")


def size(value: float) -> str:
    """Bytes.

    >>> [size(value) for value in (0, 999, 2_345_678)]
    ['0 B', '999 B', '2.35 MB']
    """
    return f"{value:.0f} B" if abs(value) < 1000 else _short(value, " ").replace("k", "K") + "B"


def bandwidth(value: float) -> str:
    """Bytes a second, as bits: what lines are sold by.

    >>> bandwidth(125_000)
    '1 Mb/s'
    """
    bits = 8 * value
    return f"{bits:.0f} b/s" if abs(bits) < 1000 else _short(bits, " ") + "b/s"


def span(seconds: float) -> str:
    """A time, in the units that it is long in.

    >>> [span(value) for value in (0, 0.5, 45, 90, 3600, 8100, 200_000)]
    ['0 s', '0.5 s', '45 s', '1.5 min', '1 h', '2.2 h', '2.3 d']
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    if seconds < 3600:
        return f"{_tenth(seconds / 60)} min"
    if seconds < 172_800:
        return f"{_tenth(seconds / 3600)} h"
    return f"{_tenth(seconds / 86_400)} d"


def share(part: float, whole: float) -> str:
    """A part of a whole, in percent.

    >>> share(1, 8), share(1, 0), share(1, 30_000)
    ('12.5%', '–', '0.003%')
    """
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.1f}%" if percent >= 1 or not part else f"{percent:.1g}%"


def _short(value: float, between: str) -> str:
    for unit, letter in _THOUSANDS:
        if abs(value) >= unit * 0.9995:
            return f"{value / unit:.3g}{between}{letter}"
    return f"{value:.3g}"


def _tenth(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
