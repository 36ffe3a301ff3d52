"""What is in a page: what kind of thing it is, which characters, which links, what it says, whether to keep it.

Bytes come in with the headers that describe them. `sniff` tells the media type; `PageReader` makes a `Page` of HTML, by
one compiled pass over the bytes (`scan`); `fingerprint.simhash` gives the fingerprint of its text, by which
`NearDuplicates` finds pages that are nearly the same, for those who ask for it; `Classifier` judges whether the page is
kept and its links are followed. Nothing here knows of the crawl. Every step is linear in the size of the page and keeps
no more than the page itself and its links.

`read` is the whole, for HTML: `charset` first, then `scan` with the letters of markup (`lexing`) and the `names` of
tags, then `collect` with `references`, `requisites` (`css` reads style sheets) and `directives`, then `hrefs`, the
links; `listings` reads sitemaps and feeds; `text` is what people read, `fingerprint` what tells pages apart, `classify`
what is kept.
"""

from barkspider.page.charset import find_charset
from barkspider.page.classify import Candidate, Classifier, Verdict
from barkspider.page.collect import Bounds
from barkspider.page.hrefs import Hrefs
from barkspider.page.read import Page, PageReader
from barkspider.page.sniff import is_html, sniff

__all__ = [
    "Bounds",
    "Candidate",
    "Classifier",
    "Hrefs",
    "Page",
    "PageReader",
    "Verdict",
    "find_charset",
    "is_html",
    "sniff",
]
