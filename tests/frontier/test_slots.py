"""Slots by themselves: the least that every rank may count on."""

from __future__ import annotations

import pytest

from barkspider.frontier.politeness.slots import RANKS, Slots


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 50, 500])
@pytest.mark.parametrize("busy", range(RANKS))
def test_when_no_slot_is_held_whoever_waits_gets_one_whoever_had_them_lately(most: int, busy: int) -> None:
    slots = Slots(most)
    for second in range(60):
        slots.look(float(second), busy)
        hosts = [host for host in range(most) if slots.admits(busy, host)]
        for host in hosts:
            slots.begin(host, busy, float(second), host)
        slots.given_out()
        for host in hosts:
            slots.end(host, second + 0.9)
    for rank in range(RANKS):
        slots.look(60.0, rank)
        assert slots.admits(rank, domain=99)
