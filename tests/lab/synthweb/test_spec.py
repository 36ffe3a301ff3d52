"""What a web may be asked to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import barkspider.lab.synthweb as synthweb
from barkspider.core.errors import SettingsError
from barkspider.lab.synthweb import WebSpec, kernels


@pytest.mark.parametrize(
    "values",
    [
        {"pages": 0},
        {"pages": 5_000_000_000},
        {"seed": -1},
        {"domains": -1},
        {"pages": 10, "domains": 11},
        {"servers": 2_001},
        {"links_per_page": 1},
        {"page_bytes": 10},
        {"https_share": 1.5},
        {"slow_delay": -1.0},
        {"hazards": frozenset({"nothing_like_it"})},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        WebSpec(**values)
    assert "\n" not in str(caught.value)


def test_a_description_travels_as_text() -> None:
    spec = WebSpec(seed=7, pages=12_345, hazards=frozenset({"slow", "calendar"}), https_share=0.25)
    assert WebSpec.from_json(spec.to_json()) == spec
    assert len({spec, WebSpec.from_json(spec.to_json())}) == 1


def test_public_names() -> None:
    assert set(synthweb.__all__) <= set(dir(synthweb))


def test_the_cache_of_kernels_watches_every_file_that_has_some() -> None:
    folder = Path(synthweb.__file__).parent
    having = {path.stem for path in folder.glob("*.py") if "\n@kernel(" in path.read_text()}
    assert having <= set(kernels._FILES)
