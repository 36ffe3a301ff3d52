import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import SettingsError
from barkspider.core.units import (
    format_duration,
    format_size,
    parse_count,
    parse_duration,
    parse_size,
    parse_speed,
)


@given(st.integers(0, 10**9).map(lambda milliseconds: milliseconds / 1000))
def test_a_duration_survives_being_written_and_read(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-9)


@given(st.integers(0, 2**50))
def test_a_size_survives_being_written_and_read(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("text", ["", "40", "40 s", "-1s", "1x", "s", "1h 30m", "1e3s", "٣s"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "2", "2 mb", "-2MB", "MB", "2XB", "2MBB"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("8e9", 8e9), ("8E+9", 8e9), ("8B", 8e9), ("1.5M", 1.5e6), ("0.11", 0.11), ("2 T", 2e12)],
)
def test_a_count_is_read(text: str, count: float) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "many", "-1", "8G", "e9", "1e", "nan", "inf", "1e999", "1,000"])
def test_what_is_not_a_count_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is not a number"):
        parse_count(text)


@pytest.mark.parametrize("text", ["", "500", "500MB", "500/s", "500mb/s", "-1MB/s", "1GB/h", "Gb/s"])
def test_what_is_not_a_speed_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is not a speed"):
        parse_speed(text)
