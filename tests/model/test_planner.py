"""The planner: its arithmetic, its warnings, and what it refuses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.model.planner import Parameters, plan

TABLE_2 = {"ram": 1e9, "disk": 4.39e12, "unique": 1 / 9, "unique_per_page": 6.5, "rate": 3100}


def test_irlbots_own_crawl_is_planned_as_the_paper_has_it() -> None:
    needs = plan(Parameters(pages=8e9, **TABLE_2))
    assert math.floor(needs.alpha_mercator) == 93
    assert math.floor(needs.alpha_polybot) == 663
    assert needs.alpha_drum_whole_disk == pytest.approx(2.35, rel=0.02)
    assert needs.alpha_drum == pytest.approx(
        3.33, rel=0.01
    )  # with D of 16 bytes a URL: 0.7 TB instead of 4.4
    assert round(needs.naive_bytes_per_second / 1e6) == 83
    assert needs.beast_bytes_per_second < 8.2e6
    assert needs.beast_queues == 16
    assert needs.buckets == 954
    assert needs.bucket_bytes == pytest.approx(1e9 / 3)
    assert needs.disk_optimal_bytes == pytest.approx(4.69e12, rel=0.001)
    assert needs.days == pytest.approx(8e9 / 3100 / 86400)
    assert needs.warnings == ()
    seen = plan(Parameters(pages=6_380_051_942, links_per_page=58.73, unique=0.1108, known=0)).urlseen_bytes
    assert seen == pytest.approx(332e9, rel=0.01)


def test_what_a_crawl_needs_adds_up() -> None:
    needs = plan(Parameters(pages=1e9))
    parts = 2 * needs.urlseen_bytes + 2 * needs.bucket_disk_bytes + needs.queue_bytes + needs.archive_bytes
    assert needs.disk_bytes == pytest.approx(parts)
    io = needs.url_check_bytes_per_second + needs.beast_bytes_per_second + needs.archive_bytes_per_second
    assert needs.disk_bytes_per_second == pytest.approx(io)
    assert needs.bandwidth_bytes_per_second == 25e6
    assert needs.archive_bytes == 5e12


def test_machines_share_a_crawl_and_exchange_urls() -> None:
    one, four = plan(Parameters(pages=8e9)), plan(Parameters(pages=8e9, machines=4))
    assert four.archive_bytes == one.archive_bytes / 4
    assert four.urlseen_bytes == pytest.approx(one.urlseen_bytes / 4)
    assert four.alpha_mercator < one.alpha_mercator
    assert (four.beast_queues, four.days) == (one.beast_queues, pytest.approx(one.days))
    assert one.exchange_urls_per_page == 0
    assert four.exchange_urls_per_page == pytest.approx(59 * 0.1 * 3 / 4)
    assert four.exchange_bytes_per_second == pytest.approx(250 * 59 * 0.1 * 3 / 4 * 110)


@pytest.mark.parametrize(
    ("given", "bottleneck", "improve"),
    [
        ({}, "rate", "ask for more; the next limit, URL checks, is at --rate 3513"),
        ({"rate": 1e5, "bandwidth": 1e12, "disk_share": 0.1}, "url_checks", "double --disk-share"),
        (
            {"pages": 8e12, "rate": 1e5, "disk_share": 1, "bandwidth": 1e12},
            "disk_speed",
            "double --disk: ",
        ),
        (
            {"pages": 8e12, "rate": 1e5, "disk_share": 1, "bandwidth": 1e12, "ram": 5e8},
            "disk_speed",
            "double --ram: ",
        ),
        ({"rate": 1e5, "disk_speed": 1e11}, "bandwidth", "double --bandwidth: 5,000 become 10,000 pages/s"),
        ({"rate": 1e5, "cpu_per_page": 0.01}, "cpu", "double --cores: 400 become 800 pages/s"),
        ({"rate": 1e5, "cpu_per_page": 0.01, "bandwidth": 1e7}, "bandwidth", "double --machines"),
    ],
)
def test_the_bottleneck_is_named_with_the_cheapest_thing_to_improve(
    given: dict[str, float], bottleneck: str, improve: str
) -> None:
    needs = plan(Parameters(**{"pages": 8e9, **given}))
    assert needs.bottleneck == bottleneck
    assert needs.pages_per_second == min(needs.limits.values()) == needs.limits[bottleneck]
    assert needs.improve.startswith(improve)


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"ram": 90e6}, "Theorem 2 needs R of 2Δ(1 + P/H) or more, 96 MB"),
        ({"ram": 1e6}, "R is less than 4M"),
        ({"ram": 1e9, "disk": 20e12}, "RAM fills 4,688,899 MB of the disk space"),
        ({"pages": 1e6}, "equation (5) counts less than one merge"),
        ({"unique": 0.01}, "L = 0.59: a page brings no more than one new URL"),
        ({"unique_per_page": 100}, "L is larger than l"),
        ({"domains": 1000}, "(11) wants 524,288 queues; with 128 BEAST moves up to Sb(5L - 3)"),
        ({"rate": 1e5}, "100,000 pages/s cannot be reached: 3,514 can"),
    ],
)
def test_a_formula_that_leaves_its_range_is_told(given: dict[str, float], warning: str) -> None:
    needs = plan(Parameters(**{"pages": 8e9, **given}))
    assert any(warning in found for found in needs.warnings), needs.warnings
    assert needs.naive_bytes_per_second >= 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pages": 0}, "--pages is 0; give more than 0"),
        ({"rate": -3}, "--rate is -3; give more than 0"),
        ({"disk_speed": math.nan}, "--disk-speed is nan"),
        ({"pages": math.inf}, "--pages is inf"),
        ({"unique": 1.1}, "--unique is 1.1; a share is at most 1"),
        ({"machines": 2.5}, "--machines is 2.5; give a whole number"),
    ],
)
def test_nonsense_is_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Parameters(**{"pages": 8e9, **given})


@given(st.floats(1, 1e15), st.floats(1, 1e13), st.floats(1, 1e15), st.floats(0.001, 1))
def test_every_sane_crawl_has_a_plan(pages: float, ram: float, disk: float, unique: float) -> None:
    needs = plan(Parameters(pages=pages, ram=ram, disk=disk, unique=unique))
    assert needs.alpha_drum >= needs.alpha_least
    assert 0 < needs.days < math.inf
    assert needs.limits[needs.bottleneck] == needs.pages_per_second


def test_links_that_a_set_in_ram_stops_cost_no_disk() -> None:
    every, few = plan(Parameters(pages=1e9)), plan(Parameters(pages=1e9, sifted=0.8))
    assert few.url_check_bytes_per_second < 0.35 * every.url_check_bytes_per_second
    assert few.urlseen_bytes == pytest.approx(every.urlseen_bytes)
    # However many it stops, what is new reaches the disk.
    assert plan(Parameters(pages=1e9, sifted=1.0)).urlseen_bytes == pytest.approx(every.urlseen_bytes)
