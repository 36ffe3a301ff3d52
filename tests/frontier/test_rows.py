"""Rows of URLs as byte strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import StorageError
from barkspider.core.records import UrlBatch, UrlRow
from barkspider.frontier.rows import HEAD, pack, unpack
from barkspider.storage.columns import Texts
from tests.core.test_records import rows


@settings(deadline=None)
@given(rows, st.data())
def test_a_batch_survives_being_packed(original: list[UrlRow], data: st.DataObject) -> None:
    packed = pack(UrlBatch.from_rows(original))
    assert unpack(packed).rows() == original
    assert packed.lengths().tolist() == [HEAD.itemsize + len(row.url) for row in original]
    start = data.draw(st.integers(0, len(original)))
    stop = data.draw(st.integers(start, len(original)))
    assert unpack(packed.slice(start, stop)).rows() == original[start:stop]
    part = UrlBatch.from_rows(original).url.slice(start, stop - start)
    assert Texts.from_arrow(part).tolist() == [row.url for row in original[start:stop]]


@settings(deadline=None)
@given(rows)
def test_a_part_of_an_arrow_column_is_packed_as_that_part(original: list[UrlRow]) -> None:
    half = len(original) // 2
    whole, columns = UrlBatch.from_rows(original), UrlBatch.from_rows(original[half:])
    sliced = UrlBatch(
        *(getattr(columns, name) for name in UrlRow._fields[:7]),
        whole.url.slice(half),
        columns.parent,
        columns.found,
    )
    assert unpack(pack(sliced)).rows() == original[half:]


def test_offsets_that_go_up_and_down_do_no_harm() -> None:
    # The lengths add up, to no bytes of URLs at all, but the first row alone has 959.
    damaged = Texts(np.array([0, 1000, 2 * HEAD.itemsize], np.int64), np.zeros(1000, np.uint8))
    with pytest.raises(StorageError, match="row 0 of 2"):
        unpack(damaged)


@settings(deadline=None)
@given(st.lists(st.integers(-200, 2000), min_size=1, max_size=8), st.integers(0, 1000))
def test_offsets_of_any_kind_do_no_harm(offsets: list[int], size: int) -> None:
    damaged = Texts(np.array(offsets, np.int64), np.zeros(size, np.uint8))
    lengths = np.diff(damaged.offsets)
    sound = bool((lengths >= HEAD.itemsize).all()) and offsets[0] >= 0 and offsets[-1] <= size
    if len(offsets) == 1:  # no row, whatever the one offset is
        assert len(unpack(damaged)) == 0
    elif sound:
        assert [len(row.url) for row in unpack(damaged).rows()] == (lengths - HEAD.itemsize).tolist()
    else:
        with pytest.raises(StorageError, match="damaged"):
            unpack(damaged)
