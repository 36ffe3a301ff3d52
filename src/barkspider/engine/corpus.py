"""The pages of a job as a corpus: their main text, what it is like, and whether they ask to be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from barkspider.engine.stored import StoredJob, StoredPage
from barkspider.page.fingerprint import NearDuplicates, simhash
from barkspider.page.main_text import OptOut, main_text, opt_out
from barkspider.page.text import detect_language, primary_language

_REMEMBERED = 1_000_000  # texts that a text is compared with, the newest: 48 MB


class Text(NamedTuple):
    """A page of a corpus. `language` is that of the text, or what the page declares where it cannot be told;
    `near_duplicate` says that one before it has nearly the same text."""

    page: StoredPage
    text: str
    language: str
    words: int
    link_share: float
    simhash: int
    near_duplicate: bool
    opt_out: OptOut

    def row(self) -> dict[str, Any]:
        """As columns of a table."""
        return {
            "url": self.page.url,
            "fetch_time": self.page.time,
            "title": self.page.title,
            "text": self.text,
            "language": self.language,
            "words": self.words,
            "characters": len(self.text),
            "link_share": round(self.link_share, 4),
            "simhash": self.simhash,
            "near_duplicate": self.near_duplicate,
            "robots_ai": self.opt_out.robots,
            "tdm_reserved": self.opt_out.reserved,
            "tdm_policy": self.opt_out.policy,
        }


@dataclass(frozen=True)
class Choice:
    """Which texts are wanted; all that have any, if nothing is said."""

    languages: Collection[str] = ()
    least_words: int = 1
    most_link_share: float = 1.0
    near_duplicates: bool = True
    opted_out: bool = True

    def leaves_out(self, text: Text) -> str:
        """Why a text is not wanted, or ""."""
        if not self.opted_out and text.opt_out.any:
            return "opted_out"
        if text.words < self.least_words:
            return "short"
        if self.languages and text.language not in self.languages:
            return "language"
        if text.link_share > self.most_link_share:
            return "links"
        return "near_duplicate" if text.near_duplicate and not self.near_duplicates else ""


class Corpus:
    """The texts of a job that are wanted; `left_out` counts the others by reason. One thread."""

    def __init__(self, job: StoredJob, choice: Choice, older: Collection[tuple[str, int]] = ()) -> None:
        """`older` are captures of which there are newer ones: URLs and times in microseconds."""
        self._job, self._choice, self._older = job, choice, older
        self._known = NearDuplicates(_REMEMBERED)
        self.left_out = Counter[str]()

    def __iter__(self) -> Iterator[Text]:
        """In the order of the archive."""
        for page in self._job.pages():
            if self._older and (page.url, round(page.time.timestamp() * 1e6)) in self._older:
                continue
            if 200 <= page.status < 300 and page.is_html:
                text = self._text(page)
                if reason := self._choice.leaves_out(text):
                    self.left_out[reason] += 1
                else:
                    yield text

    def _text(self, page: StoredPage) -> Text:
        found = main_text(page.markup)
        mark = simhash(found.text)
        return Text(
            page,
            found.text,
            detect_language(found.text) or primary_language(page.read.language),
            len(found.text.split()),
            found.link_share,
            mark,
            bool(found.text) and self._is_known(mark),
            opt_out(page.headers, found.metas),
        )

    def _is_known(self, mark: int) -> bool:
        marks = np.array([mark], np.uint64)
        known = int(self._known.find(marks)[1][0]) >= 0
        if not known:
            self._known.add(marks, marks)
        return known
