import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import StorageError
from barkspider.core.records import UrlBatch, UrlRow

_key = st.integers(0, 2**64 - 1)
_byte = st.integers(0, 255)
rows = st.lists(
    st.builds(
        UrlRow,
        *(_key, _key, _key),
        st.integers(0, 65535),
        *(_byte, _byte, _byte),
        st.binary(max_size=40),
        _key,
        st.integers(0, 2**32 - 1),
    )
)


@given(rows)
def test_a_batch_survives_being_written_and_read(original: list[UrlRow]) -> None:
    batch = UrlBatch.from_rows(original)
    assert batch.rows() == original
    assert UrlBatch.decode(batch.encode()).rows() == original


@given(rows, st.data())
def test_take_gives_the_rows_asked_for(original: list[UrlRow], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(original) - 1))) if original else []
    part = UrlBatch.from_rows(original).take(np.array(chosen, np.int64))
    assert part.rows() == [original[i] for i in chosen]
    assert UrlBatch.decode(part.encode()).rows() == part.rows()


@given(rows, st.data())
def test_a_damaged_length_is_noticed(original: list[UrlRow], data: st.DataObject) -> None:
    block = UrlBatch.from_rows(original).encode()
    cut = data.draw(st.integers(0, len(block) - 1))
    with pytest.raises(StorageError, match="damaged"):
        UrlBatch.decode(block[:cut])
