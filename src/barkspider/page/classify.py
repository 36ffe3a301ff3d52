"""Whether a page is kept, and whether its links are followed: Viúva Negra's selection criteria and one's own.

A national web, as Viúva Negra crawled it (section 5), is what lies under its top-level domain, and what is
written in its language elsewhere and linked from there; of certain media types; and a page that does not
match yields no links. `page.keep_*` say which, `page.follow_rejected` the last. A function of one's own may
judge what these let pass. Which language a page is in is what it declares, unless `page.detect_language` is on; that a
page under the domains links to it is a flag of its URL (`core.records.Flag.LINKED`), of the first link that was found, or of
a later one (`frontier.later`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from barkspider.core.errors import SettingsError
from barkspider.core.plugins import load_function
from barkspider.core.settings import Page as PageSettings
from barkspider.page.text import primary_language
from barkspider.url import split

_GROUP = "barkspider.classifiers"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page to judge. `domain` is its pay-level domain, `links` how many it has, `text()` what it says."""

    url: str
    domain: str
    media_type: str
    charset: str = "utf-8"
    title: str = ""
    language: str = ""
    links: int = 0
    text: Callable[[], str] = str


class Verdict(NamedTuple):
    """`reason` says which criterion rejected the page, or `classifier_error`; `error` what went wrong then."""

    keep: bool
    follow: bool
    reason: str = ""
    error: str = ""


class Judge(Protocol):
    """A classifier of one's own: `page.classifier` names it."""

    def __call__(self, page: Candidate, linked: bool, /) -> tuple[bool, bool]:
        """Whether a page is kept, and whether its links are followed; a `Verdict` gives a reason, too."""
        ...


class Classifier:
    """Judges pages by the settings. Pure but for the function that the user gives.

    That function takes a `Candidate` and whether it is a seed or was found on a page under `page.keep_tlds`, and gives a
    `Verdict` or a pair (keep, follow). When it fails the page is
    kept and its links are followed, as if there were no such function, and the verdict says why.

    >>> classifier = Classifier(PageSettings(keep_tlds=("pt",), keep_languages=("pt",), follow_rejected=False))
    >>> classifier.judge(Candidate("http://www.sapo.pt/", "sapo.pt", "text/html"))
    Verdict(keep=True, follow=True, reason='', error='')
    >>> elsewhere = Candidate("http://example.com/", "example.com", "text/html", language="pt")
    >>> classifier.judge(elsewhere, linked=True).keep, classifier.judge(elsewhere)
    (True, Verdict(keep=False, follow=False, reason='language', error=''))
    """

    def __init__(self, settings: PageSettings) -> None:
        self._follow_rejected = settings.follow_rejected
        self._tlds = top_level(settings.keep_tlds)
        self._languages = frozenset(map(primary_language, settings.keep_languages))
        if "" in self._languages:
            raise SettingsError("page.keep_languages: write languages like pt, en or de")
        kinds = [kind.lower() for kind in settings.keep_types]
        self._types = frozenset(kinds)
        self._families = tuple(kind[:-1] for kind in kinds if kind.endswith("/*"))
        words = "|".join(re.escape(word.casefold()) for word in settings.keep_words)
        self._words = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        self._detects = settings.detect_language
        self._own: Judge | None = (
            load_function("page.classifier", settings.classifier, _GROUP) if settings.classifier else None
        )
        self._criteria = [
            (name, criterion)
            for name, criterion, used in (
                ("media_type", self._media_type, bool(self._types)),
                (
                    "language" if self._languages else "tld",
                    self._is_from_wanted,
                    bool(self._tlds or self._languages),
                ),
                ("words", self._has_words, self._words is not None),
            )
            if used
        ]
        self.keeps_all = not self._criteria and self._own is None  # whatever a page is

    def judge(self, page: Candidate, linked: bool = False) -> Verdict:
        """The verdict on a page; `linked` says that it is a seed, or that a page under the domains links to it."""
        for name, criterion in self._criteria:
            if not criterion(page, linked):
                undeclared = name == "language" and not page.language and not self._detects
                return Verdict(False, self._follow_rejected, "language_undeclared" if undeclared else name)
        return Verdict(True, True) if self._own is None else self._ask(self._own, page, linked)

    def _ask(self, own: Judge, page: Candidate, linked: bool) -> Verdict:
        try:
            answer = own(page, linked)
        except Exception as error:  # whatever a stranger's function raises concerns this page alone
            return _failed(f"{type(error).__name__}: {error}")
        if isinstance(answer, tuple) and [type(part) for part in answer[:2]] == [bool, bool]:
            keep, follow = answer[:2]
            reason = answer.reason if isinstance(answer, Verdict) else ""
            if not isinstance(reason, str):
                return _failed(f"gave {reason!r:.100} as the reason, not a text")
            return Verdict(keep, follow, reason or ("" if keep else "classifier"))
        return _failed(f"gave {answer!r:.100}, not a pair of true or false")

    def _media_type(self, page: Candidate, linked: bool) -> bool:  # noqa: ARG002
        return page.media_type in self._types or page.media_type.startswith(self._families)

    def _is_from_wanted(self, page: Candidate, linked: bool) -> bool:
        """Under the domains, or in the languages and, where there are domains, linked from under them."""
        if self._tlds and split(page.url).host.endswith(self._tlds):
            return True
        return (linked or not self._tlds) and page.language in self._languages

    def _has_words(self, page: Candidate, linked: bool) -> bool:  # noqa: ARG002
        return self._words is not None and self._words.search(page.text().casefold()) is not None


def top_level(names: Sequence[str]) -> tuple[str, ...]:
    """How hosts under top-level domains end, as settings have these.

    >>> "www.sapo.pt".endswith(top_level(["PT", ".br"]))
    True
    """
    return tuple("." + name.lower().strip(".") for name in names)


def _failed(error: str) -> Verdict:
    return Verdict(True, True, "classifier_error", error[:200])
