from __future__ import annotations

from collections.abc import Iterator

import pytest

from barkspider.lab.synthweb import HAZARDS, RunningWeb, Web, WebSpec, running_web

SMALL = WebSpec(pages=20_000)
# Hazards that wait do so for as short as can still be seen.
HAZARDOUS = WebSpec(
    pages=5_000,
    servers=16,
    hazards=frozenset(HAZARDS),
    slow_delay=0.05,
    hang=0.2,
    retry_after=1,
    https_share=0.2,
)


@pytest.fixture(scope="session")
def small() -> Web:
    return Web(SMALL)


@pytest.fixture(scope="session")
def large() -> Web:
    return Web(WebSpec(pages=10_000_000))


@pytest.fixture(scope="session")
def hazardous() -> Web:
    return Web(HAZARDOUS)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    log = tmp_path_factory.mktemp("synthweb") / "requests.tsv"
    with running_web(HAZARDOUS, https=True, log_path=log) as web:
        yield web
