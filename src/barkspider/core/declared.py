"""How a setting is declared: a field with a default, a unit, the line that explains it, and what it may be.

`barkspider.core.load` reads and checks values by what is said here; docs/settings.md is checked against it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from barkspider.core.units import parse_duration, parse_size


def setting(default: Any, help: str, **constraints: Any) -> Any:  # noqa: A002
    """A field; no text about the settings shows one that is `secret`. If `harmless` values are given, others make the
    crawl load code or files, or speak to networks: the settings of a job do not decide on these alone."""
    shown, metadata = not constraints.get("secret"), {"help": help, **constraints}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, repr=shown, metadata=metadata)
    return field(default=default, repr=shown, metadata=metadata)


def duration(text: str, help: str, low: float = 0.0) -> Any:  # noqa: A002
    """A time in seconds, written as people write it."""
    return setting(parse_duration(text), help, unit="duration", low=low)


def size(text: str, help: str, low: int = 1000, high: int | None = None) -> Any:  # noqa: A002
    """Bytes, written as people write them."""
    return setting(parse_size(text), help, unit="size", low=low, high=high)
