"""The URLs of one origin as one byte string."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlRow
from barkspider.core.texts import Texts
from barkspider.frontier.robots.groups import first, group, ungroup
from barkspider.url import origin
from tests.frontier.test_permits import KEYS, site, urls


def test_a_batch_gives_one_group_for_each_origin() -> None:
    batch = urls([number % 20 for number in range(1000)])
    keys, groups = group(batch, np.arange(1000, dtype=np.uint16).astype(np.uint8), KEYS)
    assert keys.tolist() == [KEYS.of(site(number)) for number in range(20)]
    assert [first(item) for item in groups.tolist()] == [(site(number), number) for number in range(20)]
    again, counts, trips = ungroup(groups)
    assert counts.tolist() == [50] * 20
    expected = sorted(batch.rows(), key=lambda row: (row.host_key, row.key))
    assert again.rows() == expected
    assert trips.tolist() == [row.key % 256 for row in expected]


texts = st.sampled_from(
    [
        "http://a.b/x",
        "https://a.b/",
        "http://a.b:80/@",
        "http://u@a.b/",
        "https://u:p@a.b/",
        "http://[::1]:8/",
    ]
)


@settings(deadline=None)
@given(st.lists(texts, max_size=12), st.integers(0, 2), st.integers(0, 3))
def test_groups_go_by_scheme_host_and_port(found: list[str], host_keys: int, skipped: int) -> None:
    rows = [UrlRow(n, n % (host_keys + 1), 1, 0, 0, 0, 0, url.encode()) for n, url in enumerate(found)]
    batch = UrlBatch.from_rows(rows).where(np.arange(len(rows)) >= skipped)
    keys, groups = group(batch, np.zeros(len(batch), np.uint8), KEYS)
    parts = [ungroup(groups.slice(n, n + 1))[0].rows() for n in range(len(groups))]
    assert [row for part in parts for row in sorted(part)] == [
        row for part in parts for row in part
    ]  # in their order
    assert sorted(row for part in parts for row in part) == rows[skipped:]
    for key, part in zip(keys.tolist(), parts, strict=True):
        assert {KEYS.of(origin(row.url.decode())) for row in part} == {key}


def test_groups_that_are_damaged_are_refused() -> None:
    sound = group(urls([1, 1]), np.zeros(2, np.uint8), KEYS)[1].tolist()[0]
    for damaged in (
        sound[:-1],
        sound + b"x",
        sound[:3],
        b"\xff" * 9,
        b"\x01\0\0\0\x05\0\0\0hello",
        sound[4:],
    ):
        with pytest.raises(StorageError, match="damaged"):
            ungroup(Texts.of([damaged]))
