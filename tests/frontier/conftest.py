"""Frontiers to be run on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.frontier import Driver, open_frontier
from barkspider.storage.env import Env


def make_frontier(folder: Path, **changes: Any) -> Driver:
    """A Sydney frontier with changed settings, such as `politeness__retries=2`."""
    names = {
        "seed": 1,
        "frontier": "sydney",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    return open_frontier(load_settings(overrides=names), Env(), folder, background=False)


@pytest.fixture
def sydney(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Makes frontiers with changed settings, such as `politeness__retries=2`."""
    made = []

    def make(**changes: Any) -> Driver:
        made.append(make_frontier(tmp_path / str(len(made)), **changes))
        return made[-1]

    yield make
    for frontier in made:
        frontier.close()
