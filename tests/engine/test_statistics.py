"""What a job has counted goes on from run to run."""

from __future__ import annotations

import pytest

from barkspider.core.events import Counters
from barkspider.engine.statistics import Tally


def test_the_cpu_time_of_earlier_runs_counts_for_a_job_as_its_pages_do() -> None:
    first, second = Tally(), Tally()
    first.pages = 7
    second.load(first.save() | {"cpu_seconds": 100.0})
    gauges = {"seen": 0, "largest": 0}
    assert second.statistics(1.0, Counters(), gauges, "").cpu_seconds == pytest.approx(100, abs=5)
    assert (second.pages, second.save()["cpu_seconds"]) == (7, pytest.approx(100, abs=5))
