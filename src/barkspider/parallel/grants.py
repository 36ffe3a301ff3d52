"""How the limit of pages of a crawl is kept exactly by several processes.

Each part has a grant: how many pages it may fetch in all. The grants never add up to more than the limit, so a part can be
given more only after another has confirmed that it will do with less; what a part has fetched and has under way cannot
be taken from it. A part keeps its grant in its journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GRANTS = "grants"  # why a part gives out nothing when it is started: the limit may have been lowered since


def are_within(limit: int, parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all parts have told what they are granted, and together it is no more than the limit."""
    told = [part["others"]["granted"] for part in parts if part]
    return len(told) == len(parts) and (
        not limit or (None not in told and sum(granted or 0 for granted in told) <= limit)
    )


def grants(limit: int, parts: Sequence[Mapping[str, Any]]) -> list[tuple[int, int | None]]:
    """The grants that should be others, by the number of the part, from what the parts told last; {} for one that is silent.
    Without a limit (0) they are None.

    Three parts with 4 pages each. The first has fetched its own and knows more URLs, the last has nothing to do:

    >>> def part(granted, pages, waits):
    ...     return {"pages": pages, "in_flight": 0, "others": {"granted": granted, "waits": waits}}
    >>> grants(12, [part(4, 4, True), part(4, 3, True), part(4, 1, False)])
    [(2, 1)]
    >>> grants(12, [part(4, 4, True), part(4, 3, True), part(1, 1, False)])
    [(0, 7)]
    """
    if not all(parts):
        return []
    told: list[int | None] = [part["others"]["granted"] for part in parts]
    if not limit:
        return [(number, None) for number, granted in enumerate(told) if granted is not None]
    now = [granted for granted in told if granted is not None]
    if len(now) < len(parts):  # there was no limit before
        wanted = [
            limit * (number + 1) // len(parts) - limit * number // len(parts) for number in range(len(parts))
        ]
        return [(number, pages) for number, pages in enumerate(wanted) if pages != told[number]]
    used = [part["pages"] + part["in_flight"] for part in parts]
    waiting = [part["others"]["waits"] for part in parts]
    hungry = [number for number in range(len(parts)) if waiting[number] and used[number] >= now[number]]
    spare = limit - sum(now)
    if spare < 0:  # the limit was lowered between two runs
        lower = []
        for number in sorted(range(len(parts)), key=lambda number: used[number] - now[number]):
            cut = min(max(now[number] - used[number], 0), -spare)
            spare += cut
            lower += [(number, now[number] - cut)] if cut else []
        return [*lower]
    if not hungry:
        return []
    if spare > 0:
        each, more = divmod(spare, len(hungry))
        return [
            (number, now[number] + each + (place < more))
            for place, number in enumerate(hungry)
            if each + (place < more)
        ]
    rich = max(range(len(parts)), key=lambda number: (not waiting[number], now[number] - used[number]))
    left = now[rich] - used[rich]
    if left <= 0:
        return []
    # Whoever has nothing to do gives all; who has, one half, so that it need not ask for it back at once.
    return [(rich, now[rich] - (left if not waiting[rich] else -(-left // 2)))]
