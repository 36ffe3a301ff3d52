"""What a page asks of robots: meta tags and the X-Robots-Tag header, and where it sends a browser."""

from __future__ import annotations

from collections.abc import Iterator

# Directives of the form `name: value`; any other name before a colon is that of a robot.
_WITH_VALUE = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))
_SPACE = " \t\n\x0c\r"


def header_directives(value: str, agent: str) -> Iterator[str]:
    """The directives of X-Robots-Tag that speak to everyone or to `agent`, in lower case.

    A name holds until the next name or line; several headers come joined by line feeds.

    >>> list(header_directives("otherbot: noindex, nofollow\\nNoFollow, barkspider: noindex", "barkspider"))
    ['nofollow', 'noindex']
    """
    for line in value.lower().split("\n"):
        ours = True
        for part in line.split(","):
            name, colon, rest = (text.strip() for text in part.partition(":"))
            if colon and name not in _WITH_VALUE:
                ours = name in (agent.lower(), "*")
                name = rest
            if ours and name:
                yield name


def meta_directives(content: str) -> Iterator[str]:
    """The directives of a robots meta tag, in lower case.

    >>> list(meta_directives("NOINDEX, follow"))
    ['noindex', 'follow']
    """
    return (part for part in content.lower().replace(",", " ").split())


def refresh_target(content: str) -> str | None:
    """Where a meta refresh leads, or None when it only reloads the page.

    >>> refresh_target("5; URL='next.html'"), refresh_target("0;next.html"), refresh_target("30")
    ('next.html', 'next.html', None)
    """
    rest = content.lstrip(_SPACE)
    after = rest.lstrip("0123456789.")
    if len(after) == len(rest) or not after or after[0] not in ";," + _SPACE:
        return None
    target = after.lstrip(_SPACE)
    if target[:1] in (";", ","):
        target = target[1:].lstrip(_SPACE)
    if target[:3].lower() == "url":
        assigned = target[3:].lstrip(_SPACE)
        if assigned.startswith("="):
            target = assigned[1:].lstrip(_SPACE)
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0]
    return target.strip(_SPACE) or None
