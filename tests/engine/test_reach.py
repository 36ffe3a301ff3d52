"""Which answers people are told of as problems."""

from __future__ import annotations

import pytest

from barkspider.archive.notes import Note, schema_of
from barkspider.core.events import FetchRobots, RobotsFetched
from barkspider.engine.harvest import Reaped
from barkspider.engine.reach import Reach


@pytest.mark.parametrize(
    ("status", "problems"),
    [(200, []), (404, []), (429, ["http_429"]), (500, ["http_500"]), (503, ["http_503"])],
)
def test_a_robots_txt_that_is_refused_for_now_is_a_problem(status: int, problems: list[str]) -> None:
    """As it is to the frontier, which fetches nothing of that site then."""
    columns = {"url_host_name": "a.example", "fetch_status": status, "outcome": f"http_{status}"}
    note = Note("robots", tuple(columns.get(name) for name in schema_of("robots").names))
    asked = FetchRobots("http://a.example", "http://a.example/robots.txt", "192.0.2.1", 7, 0)
    reach = Reach([7])
    reach.take([Reaped(RobotsFetched(asked, status), None, [note])])
    assert [problem.why for problem in reach.problems()] == problems
    assert reach.all_tried()
