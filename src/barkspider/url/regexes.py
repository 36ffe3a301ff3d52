"""Regular expressions on URLs: RE2's, by way of Arrow. Their time is linear in the length of a URL, whatever they are, and many
URLs cost little more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barkspider.core.errors import SettingsError

_LONGEST = 2_000  # letters


def checked(pattern: str) -> str:
    """A pattern that can be used; `SettingsError` for another."""
    if not pattern or len(pattern) > _LONGEST:
        raise SettingsError(
            f"a regular expression has 1 to {_LONGEST:,} letters, and {pattern[:40]!r} … {len(pattern):,}"
        )
    find([""], pattern)
    return pattern


def find(texts: Sequence[str], pattern: str) -> list[bool]:
    """In which texts a regular expression is found; `SettingsError` for one that is none.

    >>> find(["http://a.example/x1", "http://a.example/x"], r"/x\\d$")
    [True, False]
    """
    import pyarrow as pa  # here: most crawls have no use for it in this place
    import pyarrow.compute as pc

    try:
        found: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), pattern).to_pylist()
    except pa.ArrowInvalid as error:
        raise SettingsError(
            f"{pattern[:200]!r} is no regular expression that can be used: {error}"
        ) from error
    return found


class Patterns:
    """Any number of regular expressions at once.

    >>> Patterns(["/a+$", "/b"]).which(["http://x.example/aa", "http://x.example/c"])
    ['/a+$', '']
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [checked(pattern) for pattern in patterns]
        self._all = "|".join(f"(?:{pattern})" for pattern in self._patterns)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def which(self, urls: Sequence[str]) -> list[str]:
        """For each URL the first pattern found in it, "" if none is."""
        found = [""] * len(urls)
        if not self._patterns or not urls:
            return found
        hits = [place for place, hit in enumerate(find(urls, self._all)) if hit]
        for pattern in self._patterns if hits else ():
            left = [place for place in hits if not found[place]]
            for place, hit in zip(left, find([urls[place] for place in left], pattern), strict=True):
                if hit:
                    found[place] = pattern
        return found
