"""The links of a page by way of lexbor's tree, the reference twin of the scanner."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from barkspider.page.directives import refresh_target

_WATCHED = "a, area, frame, iframe, link, meta, base, form"
_POINTS = {"svg": {"foreignobject", "desc", "title"}, "math": {"mi", "mo", "mn", "ms", "mtext"}}
_FOLLOWED = {"canonical", "alternate", "next", "prev"}
_NEEDED = {"stylesheet", "icon", "apple-touch-icon", "preload", "modulepreload", "manifest", "mask-icon"}
_C0_OR_SPACE = "".join(map(chr, range(33)))


def clean(link: str) -> str:
    """Without what no URL keeps."""
    for sign in "\t\n\r":
        link = link.replace(sign, "")
    return link.strip(_C0_OR_SPACE)


def links_of(markup: str, forms: bool = False) -> tuple[set[str], str | None]:
    """The links of a page and the first `<base href>`, as written."""
    found: set[str] = set()
    base = None
    for node in LexborHTMLParser(markup).css(_WATCHED):
        attributes = {name: value or "" for name, value in node.attributes.items()}
        drawn = _in_drawing(node)
        if node.tag != "a" and drawn:
            continue  # an element of SVG that happens to have the name of one of HTML
        words = set(attributes.get("rel", "").lower().split())
        target = None
        if node.tag in ("a", "area"):
            target = attributes.get("href", attributes.get("xlink:href") if drawn else None)
        elif node.tag in ("frame", "iframe"):
            target = attributes.get("src")
        elif node.tag == "link" and words & _FOLLOWED and not words & _NEEDED:
            target = attributes.get("href")
        elif node.tag == "form" and forms and attributes.get("method", "").strip().lower() != "post":
            target = attributes.get("action")
        elif node.tag == "base" and base is None:
            base = attributes.get("href")
        elif node.tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            target = refresh_target(attributes.get("content", ""))
        if target is not None and not (node.tag in ("a", "area", "link") and "nofollow" in words):
            found.add(clean(target))
    return found, base


def _in_drawing(node: LexborNode) -> bool:
    path: list[str] = []
    above = node.parent
    while above is not None:
        path.append((above.tag or "").lower())
        above = above.parent
    drawing = ""
    for tag in reversed(path):
        if not drawing:
            drawing = tag if tag in _POINTS else ""
        elif tag in _POINTS[drawing]:
            drawing = ""
    return bool(drawing)
