"""Batches of URLs: packed rows, in memory and on disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.batch import NO_URLS, WIDTH, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import HEAD, UrlRow
from barkspider.core.texts import Texts

_key = st.integers(0, 2**64 - 1)
_byte = st.integers(0, 255)
rows = st.lists(
    st.builds(
        UrlRow,
        *(_key, _key, _key),
        st.integers(0, 65535),
        *(_byte, _byte, _byte),
        st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=40).map(
            lambda path: b"http://a.example/" + path.encode()
        ),
        _key,
        st.integers(0, 2**32 - 1),
    )
)


def test_every_column_but_the_url_is_in_the_head() -> None:
    assert set(HEAD.names or ()) | {"url"} == set(UrlRow._fields)
    assert WIDTH == 41  # as docs/formats/rows.md has it


@settings(deadline=None)
@given(rows)
def test_a_batch_survives_being_written_and_read(original: list[UrlRow]) -> None:
    batch = UrlBatch.from_rows(original)
    assert batch.rows() == original
    assert UrlBatch.decode(batch.encode()).rows() == original
    assert batch.url.tolist() == [row.url for row in original]
    for name in ("key", "host_key", "pld_key", "parent", "depth", "flags"):
        assert getattr(batch, name).tolist() == [getattr(row, name) for row in original]


@settings(deadline=None)
@given(rows, st.data())
def test_parts_of_a_batch_are_batches(original: list[UrlRow], data: st.DataObject) -> None:
    batch = UrlBatch.from_rows(original)
    chosen = data.draw(st.lists(st.integers(0, len(original) - 1))) if original else []
    taken = batch.take(np.array(chosen, np.int64))
    start = data.draw(st.integers(0, len(original)))
    stop = data.draw(st.integers(start, len(original)))
    part = batch.slice(start, stop)
    for found, expected in (
        (taken, [original[i] for i in chosen]),
        (part, original[start:stop]),
        (UrlBatch.join([part, taken, NO_URLS]), original[start:stop] + [original[i] for i in chosen]),
        (UrlBatch.join([]), []),
        (UrlBatch.of(part.url), [UrlRow(0, 0, 0, 0, 0, 0, 0, row.url) for row in original[start:stop]]),
        (
            part.with_flags(np.full(len(part), 7, np.uint8)),
            [row._replace(flags=7) for row in original[start:stop]],
        ),
    ):
        assert found.rows() == expected
        assert UrlBatch.decode(found.encode()).rows() == expected
        assert UrlBatch.checked(found.packed).rows() == expected
    assert batch.rows() == original


@settings(deadline=None)
@given(rows, st.data())
def test_a_damaged_length_is_noticed(original: list[UrlRow], data: st.DataObject) -> None:
    block = UrlBatch.from_rows(original).encode()
    cut = data.draw(st.integers(0, len(block) - 1))
    with pytest.raises(StorageError, match="damaged"):
        UrlBatch.decode(block[:cut])


def test_lengths_that_do_not_add_up_are_noticed() -> None:
    block = bytearray(UrlBatch.of([b"http://a.example/"] * 2).encode())
    block[8] += 1  # the length of the first row
    with pytest.raises(StorageError, match="add up"):
        UrlBatch.decode(bytes(block))


@settings(deadline=None)
@given(st.lists(st.integers(-200, 2000), min_size=1, max_size=8), st.integers(0, 1000))
def test_offsets_of_any_kind_do_no_harm(offsets: list[int], size: int) -> None:
    damaged = Texts(np.array(offsets, np.int64), np.zeros(size, np.uint8))
    lengths = np.diff(damaged.offsets)
    sound = bool((lengths >= WIDTH).all()) and offsets[0] >= 0 and offsets[-1] <= size
    if len(offsets) == 1:  # no row, whatever the one offset is
        assert len(UrlBatch.checked(damaged)) == 0
    else:
        with pytest.raises(StorageError, match="has no URL" if sound else "lies nowhere"):
            UrlBatch.checked(damaged).rows()


@pytest.mark.parametrize(
    "url",
    [
        b"http://a.example/",
        b"https://a.example:65535/x?y=http://b:c/",
        b"http://[::1]/",
        b"http://[2001:db8::1]:8080/",
        b"http://user:password@a.example:80/",
        b"http://user:1@a.example/",
        b"http://127.0.0.1/",
    ],
)
def test_a_canonical_url_is_sound(url: bytes) -> None:
    assert [row.url for row in UrlBatch.of([url]).rows()] == [url]


@pytest.mark.parametrize(
    "url",
    [
        *(b"", b"http", b"http://", b"http:///", b"http://a", b"https//a/", b"ftp://a/", b"http://a b/"),
        *(
            b"http://a/\r\nHost: b",
            b"http://a/\0",
            b"http://a/\xff",
            b"http://a:x/",
            b"http://a:/",
            b"http://a:1x/",
        ),
        *(b"http://a:65536/", b"http://a:99999999999999999999/"),
    ],
)
def test_what_is_no_canonical_url_is_noticed(url: bytes) -> None:
    """A file that was forged could else put a header of its own into a request."""
    with pytest.raises(StorageError, match="row 1 has no URL"):
        UrlBatch.of([b"http://a.example/", url]).rows()
