import barkspider


def test_every_public_name_is_there() -> None:
    assert sorted(barkspider.__all__) == barkspider.__all__
    assert all(getattr(barkspider, name).__name__ == name for name in barkspider.__all__)
    assert not hasattr(barkspider, "engines")
