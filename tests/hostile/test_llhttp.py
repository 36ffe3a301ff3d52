"""What llhttp's own tests call an error is never a page, over a real socket."""

from __future__ import annotations

import pytest

from tests.hostile.conftest import Met
from tests.hostile.hazard import Hazard
from tests.hostile.llhttp import RIGHT, WRONG

pytestmark = pytest.mark.skipif(not WRONG, reason="the cases are in ../shared/data, which is not there")


# By the number of its line, what each case comes to that is no error to llhttp; all others are a page.
_OUTCOMES = {
    **dict.fromkeys((163, 165, 175, 176, 215, 221), "protocol_error"),  # bytes after the end of the message
    **dict.fromkeys((217, 218), "protocol_error"),  # RTSP and ICE
    **dict.fromkeys((236, 237, 238), "ok or cut_disconnect or protocol_error"),  # chunked, but not at last
    **dict.fromkeys((178, 181, 182, 242), "cut_disconnect"),
    **dict.fromkeys((223, 228), "redirect"),
    **dict.fromkeys((177, 222), "http_404"),
    231: "http_500",
}


def _titles(hazards: list[Hazard]) -> list[str]:
    return [hazard.name for hazard in hazards]


def test_no_case_is_missing() -> None:
    assert (len(WRONG), len(RIGHT)) == (26, 49)


@pytest.mark.parametrize("case", WRONG, ids=_titles(WRONG))
def test_an_error_is_a_protocol_error(met: Met, case: Hazard) -> None:
    assert met.of(case)["outcome"] == "protocol_error"


@pytest.mark.parametrize("case", RIGHT, ids=_titles(RIGHT))
def test_what_is_no_error_ends_as_it_should(met: Met, case: Hazard) -> None:
    number = int(case.name.split()[1])
    assert met.of(case)["outcome"] in _OUTCOMES.get(number, "ok").split(" or ")
