"""What all pages have around them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from barkspider.report.markup import Markup, join, text
from barkspider.report.page import style

PAGES = (
    ("/", "Overview"),
    ("/domains", "Domains"),
    ("/hosts", "Hosts"),
    ("/why", "Why"),
    ("/errors", "Errors"),
    ("/events", "Events"),
    ("/settings", "Settings"),
    ("/query", "Queries"),
    ("/controls", "Controls"),
)


def _own(name: str) -> str:
    return files("barkspider.dashboard").joinpath(name).read_text("utf-8")


# What every page needs, and its type.
FILES = {
    "style.css": (style(), "text/css"),
    "dashboard.css": (_own("dashboard.css"), "text/css"),
    "app.js": (_own("app.js"), "text/javascript"),
}


def address(name: str) -> str:
    """Where one of these is: another place when it has changed, so that a browser may keep it for ever. The page that says
    that a crawl stops is whole without another request, whenever its dashboard goes."""
    return f"/static/{name}?{sha256(FILES[name][0].encode()).hexdigest()[:12]}"


def page(job: str, path: str, inside: Markup, *, title: str = "", live: bool = False) -> str:
    """A whole page; one that is `live` is kept up to date by the script."""
    name = title or next((name for place, name in PAGES if place == path), "")
    links = join(
        Markup(f'<a href="{place}"{" aria-current=page" if place == path else ""}>{text(label)}</a>')
        for place, label in PAGES
    )
    kept = ' data-live="/live"' if live else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(name)} – {text(job)} – barkspider</title>"
        f'<link rel="stylesheet" href="{address("style.css")}"><link rel="stylesheet" href="{address("dashboard.css")}">'
        f'<script src="{address("app.js")}" defer></script></head>'
        f'<body><a class="skip" href="#main">to the content</a><header class="top"><span class="job">{text(job)}</span>'
        f'<nav aria-label="Pages">{links}</nav><button type="button" id="theme">Light or dark</button></header>'
        f'<main id="main"{kept}>{inside}</main></body></html>'
    )


def intro(title: str, about: str) -> Markup:
    """What a page is, and what it shows."""
    return Markup(f'<h1>{text(title)}</h1><p class="about">{text(about)}</p>')


def form(action: str, token: str, fields: Markup, button: str, *, ask: str = "", kind: str = "") -> Markup:
    """A form that changes something: with our token, and a question before it is sent."""
    question = f' data-ask="{text(ask)}"' if ask else ""
    style = f' class="{kind}"' if kind else ""
    return Markup(
        f'<form method="post" action="{text(action)}"{question}{style}><input type="hidden" name="token" value="{text(token)}">'
        f"{fields}<button>{text(button)}</button></form>"
    )


def field(name: str, label: str, value: str = "", *, kind: str = "text", size: int = 24) -> Markup:
    """One line to fill in."""
    return Markup(
        f'<label><span>{text(label)}</span> <input name="{text(name)}" type="{text(kind)}" value="{text(value)}" size="{size}"></label>'
    )


def notice(words: str, kind: str = "") -> Markup:
    """A line that says what became of something."""
    return Markup(f'<p class="{text(f"notice {kind}".strip())}" role="status">{text(words)}</p>')


def facts(rows: Sequence[tuple[str, Any]]) -> Markup:
    """What is known of one thing, by name."""
    shown = join(Markup(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>") for name, value in rows)
    return Markup(f'<dl class="facts">{shown}</dl>')


def choices(path: str, heads: Sequence[tuple[str, str]], sort: str, down: bool, search: str) -> list[Markup]:
    """Heads of a table by which it can be sorted: (column, label)."""
    from urllib.parse import urlencode

    made = []
    for column, label in heads:
        turned = "no" if column == sort and down else "yes"
        link = f"{path}?{urlencode({'sort': column, 'down': turned, 'search': search})}"
        mark = (" ↓" if down else " ↑") if column == sort else ""
        made.append(Markup(f'<a href="{text(link)}">{text(label)}{mark}</a>'))
    return made
