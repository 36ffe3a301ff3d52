"""IRLbot's formulas against what the paper prints, against counting step by step, and against a real DRUM."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.model import irlbot
from barkspider.model.irlbot import UrlStream
from barkspider.model.planner import Parameters, plan
from tests.model.real_drum import counted

SIZES = [8e8, 8e9, 8e10, 8e11, 8e12]
MERCATOR = {
    1e9: [11.6, 93, 917, 9156, 91541],
    4e9: [4.48, 25, 231, 2290, 22887],
    8e9: [3.29, 13.5, 116, 1146, 11444],
}


def stream(pages: float) -> UrlStream:
    return UrlStream(59 * pages, 1 / 9)


def last_digit(printed: float) -> float:
    return 1.0 if printed == int(printed) else 10.0 ** -len(f"{printed}".partition(".")[2])


@pytest.mark.parametrize("ram", MERCATOR)
def test_mercator_is_as_printed_in_tables_2_and_3(ram: float) -> None:
    for pages, printed in zip(SIZES, MERCATOR[ram], strict=True):
        assert abs(irlbot.mercator(stream(pages), ram) - printed) < last_digit(printed)


def test_polybot_is_as_printed_in_table_2() -> None:
    for pages, printed in zip(SIZES, [69, 663, 6610, 66082, 660802], strict=True):
        assert abs(irlbot.polybot(stream(pages), 1e9) - printed) < 1


@pytest.mark.parametrize("buffer", [2**18, 256_000])
def test_drum_is_within_2_percent_of_tables_2_and_3(buffer: int) -> None:
    for pages, printed in zip(SIZES, [2.26, 2.35, 3.3, 12.5, 104], strict=True):
        assert irlbot.drum(stream(pages), 1e9, 4.39e12, buffer) == pytest.approx(printed, rel=0.02)
    for ram, column in ((4e9, [2.30, 2.7, 3.3, 3.3, 8.1]), (8e9, [2.30, 2.7, 3.3, 3.3, 3.7])):
        for pages, printed in zip(SIZES, column, strict=True):
            disk = max(stream(pages).unique_urls * 8, 1e12)
            assert irlbot.drum(stream(pages), ram, disk, buffer) == pytest.approx(printed, rel=0.02)


def test_the_disk_rate_is_within_1_percent_of_the_printed_one() -> None:
    alpha = irlbot.drum(stream(8e12), 8e9, stream(8e12).unique_urls * 8)
    assert irlbot.disk_rate(101.25e6, alpha, 110, 59) == pytest.approx(4192, rel=0.01)


@pytest.mark.parametrize(("pages", "printed"), [(1e8, 3.8), (8e9, 83), (8e10, 826)])
def test_the_naive_disk_speed_is_as_printed(pages: float, printed: float) -> None:
    speed = irlbot.naive_speed(3100, 110, 6.5, irlbot.over_budget(pages, 11, 33e6))
    assert abs(speed / 1e6 - printed) < last_digit(printed)


@given(st.floats(1, 1e15))
def test_beast_never_needs_more_than_its_limit_and_j_doubles(pages: float) -> None:
    excess = irlbot.over_budget(pages, 11, 33e6)
    assert irlbot.beast_speed(3100, 110, 6.5, excess) <= irlbot.beast_speed(3100, 110, 6.5, math.inf) < 8.2e6
    queues = irlbot.beast_queues(excess)
    assert queues & (queues - 1) == 0
    assert queues < excess + 1 <= 2 * queues


@pytest.mark.parametrize(("domains", "queues", "factor"), [(33e6, 16, 1.0), (1000, 128, 29.5 / 24)])
def test_a_plan_for_few_domains_counts_what_beast_moves_with_128_queues(
    domains: float, queues: int, factor: float
) -> None:
    needs = plan(Parameters(pages=8e9, rate=3100, domains=domains, unique_per_page=6.5))
    paper = irlbot.beast_speed(3100, 110, 6.5, irlbot.over_budget(8e9, 11, domains))
    assert needs.beast_bytes_per_second == pytest.approx(factor * paper, rel=1e-3)
    assert needs.beast_queues == queues


def test_both_cases_of_equation_5_meet_at_the_best_disk() -> None:
    links = stream(8e12)
    best = irlbot.drum_best_disk(links, 1e9)
    below, above = (irlbot.drum(links, 1e9, best * factor) for factor in (1 - 1e-9, 1 + 1e-9))
    assert below == pytest.approx(above, rel=1e-6)
    assert irlbot.drum(links, 1e9, 100 * best) == above
    filled = irlbot.drum_best_buckets(1e9) * irlbot.drum_best_bucket(links, 1e9) * (8 + 110) / 8
    assert filled == pytest.approx(best)


@pytest.mark.parametrize("known", [0, 3_000])
def test_mercator_moves_what_counting_merge_by_merge_gives(known: int) -> None:
    links, ram = UrlStream(links=900_000, unique=0.1, known=known), 12_000
    # The paper's factor of two is what comes out when half of R collects while the other half is merged.
    batch, size, moved = ram // 2 // 12, float(known), 0.0
    for _ in range(900_000 // batch):
        moved += 2 * batch * 110 + 0.1 * batch * 110  # to disk, back, unique ones to the queue
        moved += 8 * size + 8 * (size + 0.1 * batch)  # URLseen is read, and written with what is new
        size += 0.1 * batch
    assert moved == pytest.approx(irlbot.mercator(links, ram) * 110 * 900_000, rel=1e-3)


@pytest.mark.parametrize(("front", "known"), [(0, 0), (0, 20_000), (200_000, 0)])
def test_the_bytes_of_a_real_drum_are_predicted_from_its_counters(front: int, known: int) -> None:
    counters = counted(front, known)
    assert counters.merges >= 3
    assert bool(counters.sifted) == bool(front)
    url = counters.aux_bytes / counters.rows
    predicted = irlbot.drum_bytes(
        written=counters.rows - counters.sifted,
        merged=counters.rows - counters.sifted,
        passed=counters.keys_read + counters.keys_written,
        given=counters.unique,
        row=8 + url,
        answer=8 + url,
    )
    assert predicted == pytest.approx(counters.moved(), rel=0.1)


@pytest.mark.parametrize(("known", "disk"), [(0, 1e15), (10**6, 1e15), (10**6, 4e7), (10**8, 1e15)])
def test_alpha_and_merges_with_disk_that_follows_the_cache_are_those_of_a_simulated_drum(
    known: int, disk: float
) -> None:
    links, ram = max(10**8, 10 * known), 3e6
    stream = UrlStream(links, unique=0.1, known=known)
    most = min(disk, irlbot.drum_best_disk(stream, ram, 1000))
    size, left, moved, merges = float(known), float(links), 0.0, 0
    while left > 0:
        rows = min(irlbot.bucket_disk(8 * size, ram, most) / 118, left)
        after = size + 0.1 * rows
        moved += 2 * rows * 118 + 0.1 * rows * 110 + 8 * (size + after)
        size, left, merges = after, left - rows, merges + 1
    assert merges > 20
    assert irlbot.drum_sized(stream, ram, disk, 1000) * 110 * links == pytest.approx(moved, rel=0.02)
    assert irlbot.drum_merges(stream, ram, disk, 1000) == pytest.approx(merges, rel=0.05)
