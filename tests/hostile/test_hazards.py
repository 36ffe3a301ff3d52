"""Each hazard, one by one: what must come out, and what it may cost at most; and the cases of llhttp's own tests.

All are in one file because they look at one meeting with them (`met`), and a process of tests has whole files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.conftest import Met
from tests.hostile.hazard import Hazard
from tests.hostile.llhttp import RIGHT, WRONG
from tests.hostile.replies import REPLIES
from tests.hostile.table import CRAWLS, FETCHES

_MOST_MEMORY = 64 << 20
# A multiple of what any hazard costs, and a fraction of what one costs whose work grows with its square.
_MOST_CPU = 2.0
# By the number of its line, what each case of llhttp comes to that is no error to it; all others are a page.
_OUTCOMES = {
    **dict.fromkeys((163, 165, 175, 176, 215, 221), "protocol_error"),  # bytes after the end of the message
    **dict.fromkeys((217, 218), "protocol_error"),  # RTSP and ICE
    **dict.fromkeys((236, 237, 238), "ok or cut_disconnect or protocol_error"),  # chunked, but not at last
    **dict.fromkeys((178, 181, 182, 242), "cut_disconnect"),
    **dict.fromkeys((223, 228), "redirect"),
    **dict.fromkeys((177, 222), "http_404"),
    231: "http_500",
}

# What each case comes to that is an error to llhttp, and no more than bad manners to browsers.
_READ_ALL_THE_SAME = {**dict.fromkeys((199, 201, 225, 230, 235, 241), "ok"), 243: "cut_disconnect"}

_llhttp = pytest.mark.skipif(not WRONG, reason="the cases are in ../shared/data, which is not there")


def _titles(hazards: list[Hazard]) -> list[str]:
    return [hazard.title for hazard in hazards]


def _names(hazards: list[Hazard]) -> list[str]:
    return [hazard.name for hazard in hazards]


def test_the_table_has_every_hazard_of_servers_names_and_robots() -> None:
    covered = {hazard.number for hazard in (*FETCHES, *CRAWLS)}
    alone = {13, 37}  # the silent hosts and the variables of the environment have tests of their own
    assert covered | alone == {*range(1, 43), *range(51, 56)}


@pytest.mark.parametrize("hazard", FETCHES, ids=_titles(FETCHES))
def test_a_fetch_ends_as_it_must(met: Met, hazard: Hazard) -> None:
    result = met.of(hazard)
    assert {name: result.get(name) for name in hazard.expect} == hazard.expect, result


@pytest.mark.parametrize("hazard", CRAWLS, ids=_titles(CRAWLS))
def test_a_crawl_ends_as_it_must(met: Met, hazard: Hazard) -> None:
    assert hazard.check is not None
    found = met.found(hazard)
    one = found.statistics
    assert one["stopped_by"] in ("done", "pages")
    assert met.of(hazard)["internal_errors"] == []
    ends = sum(one[name] for name in ("pages", "redirects", "queued", "deferred", "in_flight", "dropped"))
    assert one["discovered"] == ends + sum(one["refused"].values()) + sum(one["failed"].values())
    hazard.check(found)


@pytest.mark.parametrize("hazard", [*FETCHES, *CRAWLS], ids=_titles([*FETCHES, *CRAWLS]))
def test_it_costs_little_memory(met: Met, hazard: Hazard) -> None:
    assert met.of(hazard)["memory"] <= _MOST_MEMORY


@pytest.mark.parametrize("hazard", [*FETCHES, *CRAWLS], ids=_titles([*FETCHES, *CRAWLS]))
def test_it_costs_little_work(met: Met, hazard: Hazard) -> None:
    assert met.of(hazard)["cpu"] <= _MOST_CPU


def test_proxy_variables_of_the_environment_are_ignored(met: Met) -> None:
    assert len(met.results) > len(FETCHES)
    met.proxy.setblocking(False)
    with pytest.raises(BlockingIOError):
        met.proxy.accept()


def test_no_request_ever_carried_a_password(met: Met) -> None:
    assert len(met.server.requests) > len(CRAWLS)
    for request in met.server.requests:
        assert not request.header("authorization"), request
        assert not request.header("proxy-authorization"), request


@_llhttp
def test_no_case_of_llhttp_is_missing() -> None:
    assert (len(WRONG), len(RIGHT)) == (26, 49)


@_llhttp
@pytest.mark.parametrize("case", WRONG, ids=_names(WRONG))
def test_an_error_to_llhttp_is_a_protocol_error_unless_browsers_read_it(met: Met, case: Hazard) -> None:
    number = int(case.name.split()[1])
    assert met.of(case)["outcome"] == _READ_ALL_THE_SAME.get(number, "protocol_error")


def test_the_page_about_replies_shows_each_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    for reply in REPLIES:
        ours = f"read: {reply.repaired}" if reply.repaired else "refused"
        assert f"| {reply.name} | {reply.curl} | {reply.browsers} | {ours} |" in page


@_llhttp
@pytest.mark.parametrize("case", RIGHT, ids=_names(RIGHT))
def test_what_is_no_error_to_llhttp_ends_as_it_should(met: Met, case: Hazard) -> None:
    number = int(case.name.split()[1])
    assert met.of(case)["outcome"] in _OUTCOMES.get(number, "ok").split(" or ")
