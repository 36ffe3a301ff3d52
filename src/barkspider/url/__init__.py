"""What a URL is to the crawler: pure functions, no I/O, on the hot path of every link.

The text of a link becomes a canonical URL in `Normaliser` (`parse` first, then the rules in force), and
from then on it is a plain `str` that nothing parses again: `split` takes it apart, `Domains` finds the
pay-level domain of its host, `KeyMaker` makes the 64-bit keys that stand for it on disk, `ScopeRules` says
whether it belongs to the crawl, and `RobotsRules` whether its site lets us in. The last two share
`PathPattern`, the patterns of robots.txt.

They are in `parse`, `normalise` (with `replicas`), `domains` (with `suffixes`), `keys`, `scope`, `robots` and `patterns`; `partition`
says which process owns a URL, `robots_lines` which line of a robots.txt decides about one. The links of a page go
through compiled functions: `resolve` makes URLs of those that are simple, `origins` knows what depends on the origin
alone, `rows` packs those in scope, with keys by `xxh3`.
"""

from barkspider.url.domains import Domains, is_address
from barkspider.url.keys import KeyMaker
from barkspider.url.normalise import Normaliser
from barkspider.url.parse import UrlParts, origin, parse, split
from barkspider.url.patterns import PathPattern
from barkspider.url.robots import ALLOW_ALL, DISALLOW_ALL, RobotsRules
from barkspider.url.scope import OTHER_PROTOCOLS, ScopeRules, landing

__all__ = [
    "ALLOW_ALL",
    "DISALLOW_ALL",
    "OTHER_PROTOCOLS",
    "Domains",
    "KeyMaker",
    "Normaliser",
    "PathPattern",
    "RobotsRules",
    "ScopeRules",
    "UrlParts",
    "is_address",
    "landing",
    "origin",
    "parse",
    "split",
]
