"""Quantities as people write them: `40s`, `1h30m`, `2MB`, `500MB/s`, `8B` pages, and back.

Sizes are decimal (1 KB = 1,000 bytes) with binary forms beside them (1 KiB = 1,024 bytes).
"""

from __future__ import annotations

import re

from barkspider.core.errors import SettingsError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: dict[str, int] = {"B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", start=1)
    for suffix, base in (("B", 1000), ("iB", 1024))
}
_COUNTS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_MOST_SECONDS = 100 * 366 * 86400.0
_MOST_BYTES = 1e18
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?i?B)", re.ASCII)
_BITS = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)b/s", re.ASCII)
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2})?) ?([KMBT]?)", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds in a text such as `40s`, `1h30m` or `250ms`; nothing is nothing in any unit.

    >>> parse_duration("1h30m"), parse_duration("0")
    (5400.0, 0.0)
    """
    if text == "0":
        return 0.0
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SettingsError(f"{text!r} is not a duration; write it like 40s, 250ms, 1h30m or 7d")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _MOST_SECONDS:
        raise SettingsError(f"{text[:20]} is longer than 100 years")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest exact text that `parse_duration` reads back.

    >>> format_duration(5400.0), format_duration(0.25), format_duration(0.0)
    ('1h30m', '250ms', '0s')
    """
    whole, milliseconds = divmod(round(seconds * 1000, 6), 1000)
    text = ""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, length)
        if count:
            text += f"{count:.0f}{unit}"
    if milliseconds:
        text += f"{round(milliseconds, 6):g}ms"
    return text or "0s"


def parse_size(text: str) -> int:
    """Bytes in a text such as `2MB`, `500KiB` or `1.5 GB`; nothing is nothing in any unit.

    >>> parse_size("2MB"), parse_size("500KiB"), parse_size("0")
    (2000000, 512000, 0)
    """
    if text == "0":
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text!r} is not a size; write it like 2MB, 500KiB or 1.5GB")
    size = float(match[1]) * _BYTES[match[2]]
    if size > _MOST_BYTES:
        raise SettingsError(f"{text[:20]} is more than any disk holds")
    return round(size)


def format_size(size: int) -> str:
    """The shortest exact text that `parse_size` reads back.

    >>> format_size(2_000_000), format_size(512_000), format_size(1_048_576), format_size(7)
    ('2MB', '500KiB', '1MiB', '7B')
    """
    for unit, length in sorted(_BYTES.items(), key=lambda item: -item[1]):
        if size and size % length == 0:
            return f"{size // length}{unit}"
    return f"{size}B"


def parse_speed(text: str) -> float:
    """Bytes a second in a text such as `500MB/s`, or `1Gb/s`, which counts bits.

    >>> parse_speed("500MB/s"), parse_speed("1Gb/s")
    (500000000.0, 125000000.0)
    """
    size, _, per = text.rpartition("/")
    if per == "s" and _SIZE.fullmatch(size):
        return float(parse_size(size))
    match = _BITS.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text!r} is not a speed; write it like 500MB/s, or 1Gb/s for bits")
    return float(match[1]) * _BYTES[match[2] + "B"] / 8


def parse_count(text: str) -> float:
    """A number of things in a text such as `8e9`, `8B` (billion), `1.5M` or `20000`.

    >>> parse_count("8e9"), parse_count("1.5M")
    (8000000000.0, 1500000.0)
    """
    match = _COUNT.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text!r} is not a number; write it like 20000, 1.5M, 8B or 8e9")
    return float(match[1]) * _COUNTS[match[2]]
