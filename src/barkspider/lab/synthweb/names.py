"""The vocabulary of the web, and host names that can be turned back into numbers.

A domain number is spread over a space of 100^n, and each of its n digits to base 100 becomes a syllable of
consonants and a vowel: `talobri.co.uk`. Reading back is splitting after each vowel. Kernels write names
(`text.write_host`); here they are read.
"""

from __future__ import annotations

import re
from itertools import accumulate

import numpy as np
import numpy.typing as npt

ONSETS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "v",
    "z",
)
SYLLABLES = tuple(onset + vowel for onset in ONSETS for vowel in "aeiou")

# Spreads consecutive domain numbers over the name space; coprime to 10, hence to every 100^n.
SPREAD = 61_803_399

# Suffixes under which three syllables of this kind are never a public suffix themselves (.it and .pl have
# cities there). Repeated ones are more frequent, as on the web.
SUFFIXES = (
    *("com",) * 10, *("org",) * 3, *("net",) * 3, *("de",) * 2, *("co.uk",) * 2,
    "org.uk", "fr", "nl", "es", "pt", "ch", "at", "be", "se", "eu", "info", "com.br", "com.au", "co.nz", "co.za", "ca",
)  # fmt: skip

LABELS = (
    "news", "shop", "blog", "mail", "forum", "support", "docs", "wiki", "media", "images", "en", "de", "fr",
    "mobile", "archive", "jobs", "events", "press", "research", "library", "staff", "beta", "data", "old",
)  # fmt: skip

SECTIONS = (
    "news", "sports", "articles", "products", "about", "help", "people", "travel", "music", "reviews", "private",
    "science", "events", "archive", "forum", "gallery", "recipes", "admin", "stories", "market", "health", "games",
    "drafts", "books",
)  # fmt: skip
SECTIONS_PER_SITE = 8

WORDS = (
    "amber", "anchor", "apple", "arrow", "autumn", "badge", "bamboo", "barn", "basket", "beacon", "bell",
    "berry", "birch", "bird", "blanket", "boat", "bone", "bottle", "branch", "brass", "bread", "brick",
    "bridge", "bronze", "brook", "brush", "bucket", "butter", "button", "cabin", "cable", "camel",
    "candle", "canvas", "canyon", "carpet", "castle", "cedar", "chair", "chalk", "cherry", "circle",
    "city", "clay", "cliff", "clock", "cloud", "clover", "coast", "coffee", "comet", "copper", "coral",
    "corner", "cotton", "cradle", "crane", "creek", "crown", "crystal", "curtain", "dawn", "desert",
    "diamond", "door", "dragon", "drum", "dust", "eagle", "earth", "echo", "ember", "engine", "falcon",
    "feather", "fence", "fern", "field", "fire", "flame", "flint", "flower", "fog", "forest", "fossil",
    "fountain", "fox", "frost", "garden", "garnet", "gate", "ginger", "glacier", "glass", "globe", "gold",
    "grain", "granite", "grape", "grass", "gravel", "green", "grove", "guitar", "hammer", "harbor",
    "harvest", "hazel", "hill", "honey", "horizon", "horse", "house", "ice", "indigo", "iron", "island",
    "ivory", "ivy", "jade", "jasmine", "jewel", "juniper", "kettle", "kite", "ladder", "lake", "lamp",
    "lantern", "laurel", "lavender", "lemon", "lily", "linen", "lion", "maple", "marble", "meadow",
    "melon", "mint", "mirror", "mist", "moon", "moss", "mountain", "needle", "nest", "night", "north",
    "nutmeg", "oak", "ocean", "olive", "onyx", "opal", "orange", "orchard", "otter", "owl", "palm",
    "paper", "pearl", "pebble", "pepper", "piano", "pine", "planet", "plum", "pond", "poppy", "prairie",
    "quartz", "quill", "rain", "raven", "reef", "ribbon", "ridge", "river", "robin", "rock", "root",
    "rope", "rose", "ruby", "saffron", "sage", "sail", "salt", "sand", "sapphire", "sea", "shadow",
    "shell", "silk", "silver", "sky", "smoke", "snow", "south", "spark", "sparrow", "spice", "spring",
    "spruce", "star", "steam", "stone", "storm", "stream", "summer", "sun", "swan", "table", "thistle",
    "thunder", "tide", "tiger", "timber", "torch", "tower", "trail", "tree", "tulip", "tunnel", "valley",
    "velvet", "violet", "wagon", "walnut", "water", "wave", "weaver", "wheat", "willow", "wind", "window",
    "winter", "wolf", "wood", "yarn", "zinc",
)  # fmt: skip

_PARTS = re.compile(r"[^aeiou]+[aeiou]")
_DIGIT = {syllable: digit for digit, syllable in enumerate(SYLLABLES)}
_LABEL = {label: number for number, label in enumerate(LABELS)}
_NUMBERED_LABEL = re.compile(r"([a-z]+)([1-9]\d{0,5})?")


def name_digits(domains: int) -> int:
    """Syllables in a domain name: three, or four when three leave less than half of the names unused.

    >>> name_digits(464), name_digits(700_000)
    (3, 4)
    """
    return 3 if domains * 2 <= 100**3 else 4


def domain_number(word: str, digits: int, offset: int) -> int:
    """The number of the domain called `word`, or -1 if it is not such a name.

    >>> domain_number("bababa", 3, 0), domain_number("google", 3, 0)
    (0, -1)
    """
    parts = _PARTS.findall(word)
    if len(parts) != digits or "".join(parts) != word:
        return -1
    spread = 0
    for part in parts:
        digit = _DIGIT.get(part, -1)
        if digit < 0:
            return -1
        spread = spread * 100 + digit
    space: int = 100**digits
    return (spread - offset) * pow(SPREAD, -1, space) % space


def split_host(host: str) -> tuple[str, str, str]:
    """A host name as labels before the domain, the domain's word, and the suffix; empty if not ours.

    >>> split_host("shop.talobri.co.uk"), split_host("localhost")
    (('shop', 'talobri', 'co.uk'), ('', '', ''))
    """
    for dots in (2, 1):
        parts = host.rsplit(".", dots)
        suffix = ".".join(parts[1:])
        if len(parts) == dots + 1 and suffix in _SUFFIX_SET:
            before, _, word = parts[0].rpartition(".")
            return before, word, suffix
    return "", "", ""


def label_number(label: str) -> int:
    """Which subdomain a label stands for, counted from 1, or -1.

    >>> label_number("news"), label_number("news2"), label_number("x")
    (1, 49, -1)
    """
    match = _NUMBERED_LABEL.fullmatch(label)
    if match is None or match[1] not in _LABEL:
        return -1
    return 1 + _LABEL[match[1]] + len(LABELS) * int(match[2] or 0)


_SUFFIX_SET = frozenset(SUFFIXES)

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]


class Strings:
    """Byte strings packed for kernels: string n is `chars[at[n]:at[n + 1]]`.

    >>> strings = Strings([b"ab", b"c"])
    >>> bytes(strings.chars), strings.at.tolist()
    (b'abc', [0, 2, 3])
    """

    def __init__(self, texts: list[bytes]) -> None:
        self.chars: Bytes = np.frombuffer(b"".join(texts), np.uint8).copy()
        self.at: Offsets = np.array(list(accumulate(map(len, texts), initial=0)), np.int32)
