"""The main text of a page, without menus, boilerplate and comments, and what its markup says of its use."""

from __future__ import annotations

from typing import NamedTuple

from barkspider.core.extras import needing

# Directives of X-Robots-Tag and of meta robots that are about the training of models.
_NO_AI = ("noai", "noimageai")
_ROBOTS = "robots"
_RESERVATION, _POLICY = "tdm-reservation", "tdm-policy"


class MainText(NamedTuple):
    """`link_share` is the part of the letters of `text` that are in links; `metas` are contents of meta elements by name, in
    lower case."""

    text: str
    link_share: float
    metas: dict[str, str]


def main_text(markup: str) -> MainText:
    """What resiliparse takes for the content of a page (extra `text`); docs/corpora.md has the figures it was chosen by.

    >>> found = main_text("<body><nav><a href=/>Home</a></nav><main><p>A text <a href=x>with</a> words.</p></main>")
    >>> found.text, round(found.link_share, 2)
    ('A text with words.', 0.22)
    """
    with needing("resiliparse", "text"):
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    tree = HTMLTree.parse(markup)
    text: str = extract_plain_text(tree, main_content=True, alt_texts=False, links=False, comments=False)
    metas: dict[str, str] = {}
    linked = 0
    if tree.head is not None:
        for meta in tree.head.get_elements_by_tag_name("meta"):
            name, content = meta.getattr("name") or "", meta.getattr("content") or ""
            metas.setdefault(name.strip().lower(), content.strip())
    if tree.body is not None:
        known = text
        for link in tree.body.get_elements_by_tag_name("a"):
            words = " ".join((link.text or "").split())
            if words and words in known:  # those of menus are not
                linked += len(words)
    return MainText(text, min(linked / len(text), 1.0) if text else 0.0, metas)


class OptOut(NamedTuple):
    """What a page says of its use for text and data mining: `robots` are noai and noimageai, `reserved` whether rights are
    reserved (TDM Reservation Protocol), None where nothing is said, `policy` where their terms are."""

    robots: str
    reserved: bool | None
    policy: str

    @property
    def any(self) -> bool:
        """Whether it asks to be left out in any way."""
        return bool(self.robots) or bool(self.reserved)


def opt_out(headers: list[tuple[str, str]], metas: dict[str, str]) -> OptOut:
    """From the header of an answer and the meta elements of its page; what the header says counts more.

    >>> opt_out([("X-Robots-Tag", "noindex, noai"), ("TDM-Reservation", "1")], {"tdm-policy": "https://a.example/terms"})
    OptOut(robots='noai', reserved=True, policy='https://a.example/terms')
    """
    said: dict[str, str] = {}
    directives = [metas.get(_ROBOTS, "")]
    for name, value in headers:
        if name.lower() == "x-robots-tag":
            directives.append(value.rpartition(":")[2])
        elif name.lower() in (_RESERVATION, _POLICY):
            said.setdefault(name.lower(), value.strip())
    words = {word.strip().lower() for text in directives for word in text.split(",")}
    reserved = said.get(_RESERVATION, metas.get(_RESERVATION, ""))
    return OptOut(
        ", ".join(word for word in _NO_AI if word in words),
        {"1": True, "0": False}.get(reserved),
        said.get(_POLICY, metas.get(_POLICY, "")),
    )
