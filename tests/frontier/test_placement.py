"""Placing URLs in queues: the kernel against a slow twin, and the limit of its table."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.frontier.budget.placement import FAILED, Placement


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.booleans()), max_size=60),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(0, 8),
    st.integers(1, 5),
)
def test_placing_is_like_counting_by_hand(
    rows: list[tuple[int, int, bool]], first: int, more: int, width: int, size: int
) -> None:
    placement, held = Placement(1 << 16), dict[int, tuple[int, int]]()
    behind = list[int]()  # by how many turns deferred rows came too late
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        split, last = first + more, first + width
        expected = []
        for domain, budget, deferred in part:
            turn, left = held.get(domain, (0, 0))
            earliest = split if deferred else first
            if turn < earliest:
                turn, left = earliest, budget
            elif not left:
                turn, left = turn + 1, budget
            expected.append(turn if turn <= last and left else FAILED)
            if left and (turn <= last or deferred):
                held[domain] = turn, left - 1
            if left and turn > last and deferred:
                behind.append(turn - last)
        domains, budgets, marks = zip(*part, strict=True)
        found = placement.place(
            np.array(domains, np.uint64),
            np.array(budgets, np.uint32),
            np.array(marks, np.bool_),
            first,
            split,
            last,
        )
        assert found.tolist() == expected
        for level in range(9):
            assert placement.levels[: level + 1].sum() == sum(turns <= 2**level for turns in behind)
        if len(part) % 2:
            placement.close(last)
            held = {domain: pair if pair[0] <= last else (last, 0) for domain, pair in held.items()}
        first += 1


def test_domains_beyond_the_limit_of_the_table_fail_until_there_is_room() -> None:
    placement = Placement(1024)  # 64 slots, 40 of them for use
    domains = np.arange(1, 101, dtype=np.uint64)
    budgets, ordinary = np.full(100, 3, np.uint32), np.zeros(100, np.bool_)
    turns = placement.place(domains, budgets, ordinary, 1, 1, 4)
    assert (turns[:40] == 1).all()
    assert (turns[40:] == FAILED).all()
    again = placement.place(domains, budgets, ordinary, 1, 1, 4)
    assert (again == turns).all()
    later = placement.place(domains[::-1].copy(), budgets, ordinary, 2, 2, 4)
    assert (later != FAILED).sum() == 40  # those of turn 1 made room
