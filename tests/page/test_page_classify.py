"""Which pages are kept and followed: built-in criteria, functions of one's own, and those that fail."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import Any

import pytest

from barkspider.core import plugins
from barkspider.core.errors import SettingsError
from barkspider.core.load import load_settings
from barkspider.core.settings import Page as PageSettings
from barkspider.page import Candidate, Classifier, Verdict

PAGE = Candidate(
    "http://www.example.pt/a", "example.pt", "text/html", language="pt", text=lambda: "Vinho verde. Água!"
)
ELSEWHERE = replace(PAGE, url="http://example.com/", domain="example.com")


@pytest.mark.parametrize(
    ("settings", "page", "linked", "reason"),
    [
        ({}, PAGE, False, ""),
        ({"keep_types": ("text/html",)}, PAGE, False, ""),
        ({"keep_types": ("TEXT/*", "application/pdf")}, PAGE, False, ""),
        ({"keep_types": ("text/plain", "image/*")}, PAGE, False, "media_type"),
        ({"keep_tlds": ("pt", "br")}, PAGE, False, ""),
        ({"keep_tlds": (".PT",)}, PAGE, False, ""),
        ({"keep_tlds": ("t",)}, PAGE, False, "tld"),
        ({"keep_tlds": ("pt",)}, ELSEWHERE, True, "tld"),
        ({"keep_languages": ("pt-BR",)}, ELSEWHERE, False, ""),
        ({"keep_languages": ("en", "fr")}, PAGE, False, "language"),
        ({"keep_languages": ("en",)}, replace(PAGE, language=""), False, "language_undeclared"),
        ({"keep_languages": ("en",), "detect_language": True}, replace(PAGE, language=""), False, "language"),
        # Viúva Negra: under .pt, or in Portuguese and linked from .pt.
        ({"keep_tlds": ("pt",), "keep_languages": ("pt",)}, replace(PAGE, language="en"), False, ""),
        ({"keep_tlds": ("pt",), "keep_languages": ("pt",)}, ELSEWHERE, True, ""),
        ({"keep_tlds": ("pt",), "keep_languages": ("pt",)}, ELSEWHERE, False, "language"),
        ({"keep_tlds": ("pt",), "keep_languages": ("en",)}, ELSEWHERE, True, "language"),
        ({"keep_words": ("ÁGUA", "x")}, PAGE, False, ""),
        ({"keep_words": ("verd", "x+")}, PAGE, False, "words"),
        ({"keep_words": ("vinho verde",)}, PAGE, False, ""),
    ],
)
def test_criteria_keep_and_reject(
    settings: dict[str, Any], page: Candidate, linked: bool, reason: str
) -> None:
    verdict = Classifier(PageSettings(**settings)).judge(page, linked)
    assert (verdict.keep, verdict.follow, verdict.reason) == (not reason, True, reason)


def test_a_page_that_is_not_kept_yields_no_links_to_viuva_negra() -> None:
    settings = load_settings("viuva-negra", options=["page.keep_tlds=pt"]).page
    assert Classifier(settings).judge(ELSEWHERE) == Verdict(False, False, "tld")
    assert Classifier(settings).judge(replace(PAGE, media_type="audio/mpeg")).keep is False
    assert Classifier(settings).judge(PAGE) == Verdict(True, True)


def test_text_is_asked_for_only_when_a_criterion_needs_it() -> None:
    def fail() -> str:
        raise AssertionError("nobody needs the text")

    page = replace(PAGE, text=fail)
    assert Classifier(PageSettings(keep_tlds=("pt",))).judge(page).keep
    with pytest.raises(AssertionError):
        Classifier(PageSettings(keep_words=("x",))).judge(page)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("their_classifiers")
    monkeypatch.setitem(sys.modules, "their_classifiers", module)
    return module


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ((True, True), Verdict(True, True)),
        ((False, True), Verdict(False, True, "classifier")),
        ((True, False), Verdict(True, False)),
        (Verdict(False, False, "dull"), Verdict(False, False, "dull")),
    ],
)
def test_a_function_of_ones_own_keeps_and_follows_separately(
    own: ModuleType, answer: object, verdict: Verdict
) -> None:
    seen = []

    def judge(page: Candidate, linked: bool) -> object:
        seen.append((page.url, page.text(), linked))
        return answer

    own.judge = judge  # type: ignore[attr-defined]
    classifier = Classifier(PageSettings(classifier="their_classifiers:judge", keep_tlds=("pt",)))
    assert classifier.judge(PAGE, True) == verdict
    assert seen == [("http://www.example.pt/a", "Vinho verde. Água!", True)]
    assert classifier.judge(ELSEWHERE).reason == "tld"
    assert len(seen) == 1


@pytest.mark.parametrize("answer", [None, True, (1, 0), (True,), "yes", [True, True], Verdict(None, True)])  # type: ignore[arg-type]
def test_nonsense_is_an_error_of_that_page(own: ModuleType, answer: object) -> None:
    own.judge = lambda page, linked: answer  # type: ignore[attr-defined]
    verdict = Classifier(PageSettings(classifier="their_classifiers:judge")).judge(PAGE)
    assert (verdict.keep, verdict.follow, verdict.reason) == (True, True, "classifier_error")
    assert "not a pair" in verdict.error


def test_what_it_raises_is_an_error_of_that_page(own: ModuleType) -> None:
    def judge(page: Candidate, linked: bool) -> object:
        raise KeyError("x" * 1000)

    own.judge = judge  # type: ignore[attr-defined]
    verdict = Classifier(PageSettings(classifier="their_classifiers:judge")).judge(PAGE)
    assert verdict[:3] == (True, True, "classifier_error")
    assert verdict.error.startswith("KeyError: 'xxx")
    assert len(verdict.error) == 200


def test_an_entry_point_is_found_by_its_name(own: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    own.judge = lambda page, linked: (False, False)  # type: ignore[attr-defined]
    point = EntryPoint("strict", "their_classifiers:judge", "barkspider.classifiers")
    monkeypatch.setattr(plugins, "entry_points", lambda **asked: EntryPoints([point]).select(**asked))
    assert Classifier(PageSettings(classifier="strict")).judge(PAGE).keep is False
    with pytest.raises(SettingsError, match="no entry point 'other'"):
        Classifier(PageSettings(classifier="other"))


@pytest.mark.parametrize("name", ["no_such_module:x", "sys:no_such_name", "sys:path", ":", "sys:"])
def test_a_classifier_that_cannot_be_loaded_is_a_wrong_setting(name: str) -> None:
    with pytest.raises(SettingsError, match=r"page\.classifier"):
        Classifier(PageSettings(classifier=name))


def test_a_language_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError, match="keep_languages"):
        Classifier(PageSettings(keep_languages=("Portuguese",)))
