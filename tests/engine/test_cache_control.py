"""What Cache-Control says about robots.txt, in the forms that servers write it."""

from __future__ import annotations

import math

import pytest

from barkspider.engine.reading import max_age


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        (["public"], None),
        (["max-age=3600"], 3600.0),
        (["Public, MAX-AGE=60 , must-revalidate"], 60.0),
        (['max-age="60"'], 60.0),
        (["s-maxage=9, max-age=60"], 60.0),
        (["max-age=60", "max-age=30"], 30.0),
        (["max-age=0"], 0.0),
        (["no-cache"], 0.0),
        (["max-age=600, no-store"], 0.0),
        (['no-cache="set-cookie"'], 0.0),
        (["max-age=" + "9" * 5000], math.inf),
        (["max-age=-1"], None),
        (["max-age=1e3"], None),
        (["max-age=٣"], None),
        (["max-age"], None),
        ([",,=,"], None),
    ],
)
def test_the_age_is_read_from_every_form(headers: list[str], seconds: float | None) -> None:
    assert max_age(headers) == seconds
