"""How far a crawl is, and when it will be over, by its limits and its present speed."""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.core.settings import Limits


@dataclass(frozen=True, slots=True)
class Outlook:
    """The share of the limit that comes first, which that is, and the seconds until then; None without a limit, or at rest."""

    share: float | None = None
    limit: str = ""
    seconds: float | None = None


def outlook(
    limits: Limits, *, pages: float, size: float, seconds: float, rate: float, bandwidth: float
) -> Outlook:
    """What comes first of the limits, at `rate` pages and `bandwidth` bytes a second; `seconds` are those of this run.

    >>> outlook(Limits(pages=100, time=60.0), pages=50, size=0, seconds=12, rate=10, bandwidth=0)
    Outlook(share=0.5, limit='pages', seconds=5.0)
    >>> outlook(Limits(), pages=50, size=0, seconds=12, rate=10, bandwidth=0)
    Outlook(share=None, limit='', seconds=None)
    """
    found: list[tuple[float, float, str]] = []
    for name, limit, done, speed in (
        ("pages", limits.pages, pages, rate),
        ("bytes", limits.bytes, size, bandwidth),
        ("time", limits.time, seconds, 1.0),
    ):
        if limit:
            left = max(limit - done, 0.0)
            found.append((left / speed if speed > 0 else float("inf"), min(done / limit, 1.0), name))
    if not found:
        return Outlook()
    left, share, name = min(found)
    return Outlook(share, name, left if left < float("inf") else None)
