"""The names of tags and what each means to the scanner."""

from __future__ import annotations

import numpy as np

from barkspider.page.lexing import table_of

# Tags by what they mean to the scanner; a tag's code is its place in TAGS, 0 is any other.
_RAW = "title textarea style xmp iframe noembed noframes script"
_ROWS = "base link meta html frame iframe form"
_REQUISITES = "img image use video audio source track embed object input body"
_OTHERS = "a area svg math template plaintext frameset foreignobject desc mi mo mn ms mtext"
# What leaves a drawing (the standard's list, section 13.2.6.5), and further names that only HTML has.
_BREAKOUT = (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu"
    " meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_HTML = (
    "abbr address article aside button caption cite del details dfn dialog fieldset figcaption figure font footer"
    " form header html ins kbd label legend main mark nav option q section select summary tbody td tfoot th thead"
    " time tr"
)
_BLOCK = (
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hr legend li listing main menu nav ol option p pre section"
    " select summary table tbody td tfoot th thead title tr ul"
)
# With these, or any text, a page has a body, and a later `<frameset>` is ignored.
_NO_FRAMES = (
    "area br button dd dt embed hr iframe img input li listing object pre select table textarea xmp body"
)
TAGS = ["", *dict.fromkeys(" ".join((_RAW, _ROWS, _REQUISITES, _OTHERS, _BREAKOUT, _HTML, _BLOCK)).split())]
CODE = {name: code for code, name in enumerate(TAGS)}

(
    IS_RAW,
    IS_ROW,
    IS_REQUISITE,
    IS_BREAKOUT,
    IS_HTML,
    IS_BLOCK,
    IS_BODY,
    IS_SVG_POINT,
    IS_MATH_POINT,
) = (1 << n for n in range(9))
KIND = np.zeros(len(TAGS), np.int64)
for _names, _bit in (
    (_RAW, IS_RAW),
    (_ROWS, IS_ROW),
    (_REQUISITES + " script iframe style", IS_REQUISITE),
    (_BREAKOUT, IS_BREAKOUT),
    (_BREAKOUT + " a " + _HTML, IS_HTML),
    (_BLOCK, IS_BLOCK),
    (_NO_FRAMES, IS_BODY),
    ("foreignobject desc title", IS_SVG_POINT),
    ("mi mo mn ms mtext", IS_MATH_POINT),
):
    for _name in _names.split():
        KIND[CODE[_name]] |= _bit


TAG_HASHES, TAG_NUMBERS = table_of(TAGS, 1024)
