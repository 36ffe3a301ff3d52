"""Running text that pages are filled with: sentences of made-up prose in three charsets."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np

from barkspider.lab.synthweb.model import FOR_PROSE, Bytes, Int64s, draw
from barkspider.lab.synthweb.names import WORDS

CHARSETS = ("utf-8", "iso-8859-1", "windows-1252")
# Sentences per charset: 230 KB of text in each, small enough to stay in a processor's cache.
SENTENCES = 3_000
_SMALL = ("the", "a", "of", "and", "to", "in", "is", "with", "for", "over", "under", "by", "from", "at", "on")
_ACCENTED = (
    "café",
    "naïve",
    "façade",
    "über",
    "señor",
    "Århus",
    "crème",
    "São",
    "Zürich",
    "déjà",
    "jalapeño",
)


@lru_cache(2)
def build(seed: int) -> tuple[Bytes, Int64s]:
    """The text and where its sentences begin, charset after charset, with the end of each.

    >>> text, sentences = build(1)
    >>> sentences.size == 3 * (SENTENCES + 1)
    True
    """
    sentences = [_sentence(seed, number) for number in range(SENTENCES)]
    parts: list[bytes] = []
    begins: list[int] = []
    for charset in CHARSETS:
        # Curved quotes are not in ISO 8859-1: they show whether windows-1252 was taken at its word.
        quotes = ("“", "”") if charset == "windows-1252" else ('"', '"')
        encoded = [sentence.format(*quotes).encode(charset) for sentence in sentences]
        begins += accumulate(map(len, encoded), initial=sum(map(len, parts)))
        parts += encoded
    return np.frombuffer(b"".join(parts), np.uint8).copy(), np.array(begins, np.int64)


def _sentence(seed: int, number: int) -> str:
    random = draw(seed, FOR_PROSE, number)
    words = [_word(draw(seed, FOR_PROSE + 1 + place, number)) for place in range(6 + random % 14)]
    text = " ".join(words).capitalize()
    if random % 17 == 0:
        text += " &amp; more"
    if random % 5 == 0:
        text = "{0}" + text + "{1}"
    return text + (".</p>\n<p>" if random % 6 == 0 else ". ")


def _word(random: int) -> str:
    # Of a hundred words 45 are small ones, and five have letters beyond ASCII.
    kind = random % 100
    chosen = _SMALL if kind < 45 else _ACCENTED if kind < 50 else WORDS
    return chosen[(random >> 20) % len(chosen)]
