"""What is read next: turns go round by domain, by the time that each takes."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.batch import NO_URLS
from barkspider.core.events import FetchPage, FetchRobots, ResolveHost, Seeds
from barkspider.core.records import UrlRow
from barkspider.engine import arrivals
from barkspider.engine.arrivals import Arrivals
from barkspider.engine.harvest import Reaped
from barkspider.engine.work import Arrival


def page(domain: int, number: int = 0) -> Arrival:
    return Arrival(FetchPage(UrlRow(number, 1, domain, 0, 0, 0, 0, b"http://a.example/"), "192.0.2.1"), None)


def test_who_takes_little_is_not_kept_waiting_by_many_who_take_long() -> None:
    """A hundred domains always have a page that takes 4 ms; who takes 0.2 ms is read next, once that is known."""
    waiting, between = Arrivals(), Counter[int]()
    for domain in range(1, 101):
        waiting.append(page(domain))
    for turn in range(5_000):
        if turn % 50 == 25:
            waiting.append(page(1_000))
            arrived = turn
        asked = waiting.popleft()
        assert isinstance(asked, Arrival)
        assert isinstance(asked.instruction, FetchPage)
        domain = asked.instruction.row.pld_key
        waiting.charge(0.0002 if domain == 1_000 else 0.004)
        if domain == 1_000:
            between[turn - arrived] += 1
        else:
            waiting.append(page(domain))
    assert between.total() == 100
    assert between[0] >= 98


def test_a_domain_has_one_share_however_many_pages_it_has() -> None:
    waiting, seen = Arrivals(), Counter[int]()
    for number in range(300):
        waiting.append(page(1, number))
    for number in range(100):
        waiting.append(page(2, number))
    for _ in range(100):
        asked = waiting.popleft()
        assert isinstance(asked, Arrival)
        assert isinstance(asked.instruction, FetchPage)
        seen[asked.instruction.row.pld_key] += 1
        waiting.charge(0.001)
    assert seen == {1: 50, 2: 50}


def test_nobody_saves_up_what_he_did_not_use() -> None:
    waiting = Arrivals()
    for number in (*range(1, 10), 2):  # while one is there alone it has all
        waiting.append(page(1 if number != 2 else 2))
        waiting.popleft()
        waiting.charge(1.0)
    for domain in (1, 2):
        for number in range(4):
            waiting.append(page(domain, number))
    order = []
    while waiting:
        asked = waiting.popleft()
        assert isinstance(asked, Arrival)
        assert isinstance(asked.instruction, FetchPage)
        order.append(asked.instruction.row.pld_key)
        waiting.charge(1.0)
    assert {tuple(sorted(order[at : at + 2])) for at in range(0, 8, 2)} == {(1, 2)}


def test_names_robots_txt_and_what_is_ours_have_turns_too() -> None:
    waiting = Arrivals()
    every: list[Arrival | Reaped] = [
        Reaped(Seeds(NO_URLS)),
        page(1),
        Arrival(ResolveHost("b.example", 2), None),
        Arrival(FetchRobots("http://c.example", "http://c.example/robots.txt", "192.0.2.1", 3, 0), None),
    ]
    for each in every:
        waiting.append(each)
    assert len(waiting) == 4
    assert [waiting.popleft() for _ in every] == every  # without a charge, too


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 1)) | st.none(), max_size=80))
def test_all_that_arrives_is_read_once_and_each_domains_in_its_order(
    events: list[tuple[int, float] | None],
) -> None:
    """None reads what is next."""
    waiting, model = Arrivals(), dict[int, deque[int]]()
    for number, event in enumerate((*events, *[None] * len(events))):
        if event is not None:
            waiting.append(page(event[0], number))
            model.setdefault(event[0], deque()).append(number)
        elif waiting:
            asked = waiting.popleft()
            assert isinstance(asked, Arrival)
            assert isinstance(asked.instruction, FetchPage)
            row = asked.instruction.row
            assert model[row.pld_key].popleft() == row.key
            waiting.charge(0.1 * row.pld_key)
        assert len(waiting) == sum(map(len, model.values()))
    assert not waiting


def test_domains_are_forgotten_when_others_have_caught_up() -> None:
    waiting = Arrivals()
    for domain in range(1, 3 * arrivals._MANY):
        waiting.append(page(domain))
        waiting.popleft()
        waiting.charge(1.0)
    assert len(waiting._had) <= arrivals._MANY + 1
