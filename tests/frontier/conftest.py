"""Frontiers to be run on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.frontier import Sydney
from barkspider.storage.env import Env


@pytest.fixture
def sydney(tmp_path: Path) -> Iterator[Callable[..., Sydney]]:
    """Makes frontiers with changed settings, such as `politeness__retries=2`."""
    made = []

    def make(**changes: Any) -> Sydney:
        names = {"seed": 1, **{name.replace("__", "."): value for name, value in changes.items()}}
        made.append(Sydney(load_settings(overrides=names), Env(), tmp_path / str(len(made))))
        return made[-1]

    yield make
    for frontier in made:
        frontier.close()
