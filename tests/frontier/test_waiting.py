"""Waiting hosts come up in the order of their times, each once, never too early."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from barkspider.frontier.politeness.hosts import Host
from barkspider.frontier.politeness.waiting import Waiting

_TIME = st.floats(0, 3) | st.sampled_from([-math.inf, 0.0, 0.125, 1.0, 86_400.0])


@given(st.lists(st.tuples(_TIME, st.floats(0, 0.5), st.booleans(), st.floats(0, 2)), max_size=60))
def test_hosts_come_up_as_in_a_sorted_list(moves: list[tuple[float, float, bool, float]]) -> None:
    waiting, there, now = Waiting(), [], 0.0
    for number, (time, passes, grows, longer) in enumerate(moves):
        host = Host(number)
        host.next_time = max(time, now) if time > -math.inf else time
        waiting.push(host)
        there.append(host)
        if grows:
            there[number // 2 % len(there)].next_time += longer
        assert sorted(id(each) for each in waiting) == sorted(map(id, there))
        now += passes
        ended = []
        while (first := waiting.pop(now)) is not None:
            ended.append(first)
            there.remove(first)
        assert all(each.next_time <= now for each in ended)
        assert all(each.next_time > now for each in there)
        # It may say too early a time, when a pause was made longer or a slice is not open, never one too late.
        assert waiting.next_time() <= min((each.next_time for each in there), default=math.inf)


def test_equal_times_keep_their_order_and_others_are_sorted() -> None:
    waiting, hosts = Waiting(), [Host(number) for number in range(6)]
    for host, time in zip(hosts, [5.0, 1.0, 5.0, -math.inf, 1.0, -math.inf], strict=True):
        host.next_time = time
        waiting.push(host)
    popped = []
    while (first := waiting.pop(5.0)) is not None:
        popped.append(first.key)
    assert popped == [3, 5, 1, 4, 0, 2]
    assert waiting.next_time() == math.inf
