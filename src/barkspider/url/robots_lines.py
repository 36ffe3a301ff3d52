"""Which line of a robots.txt decides about a URL: for people who ask why, not for crawls, which ask `RobotsRules`."""

from __future__ import annotations

from typing import NamedTuple

from barkspider.url.robots import GroupCollector, RobotsRules, content


class Line(NamedTuple):
    """A line as written, and its number from 1."""

    number: int
    words: str


def deciding_line(body: bytes, agent: str, origin: str, target: str) -> Line | None:
    """The line that allows or forbids a target: of those that match and say what is decided, the longest rule, the first of
    equals. None where no rule matches, or so many that the file as a whole is taken for a refusal.

    >>> body = b"User-agent: *\\r\\nDisallow: /a\\r\\nAllow: /a/b\\r\\n"
    >>> deciding_line(body, "barkspider", "", "/a/c"), deciding_line(body, "barkspider", "", "/a/b/c")
    (Line(number=2, words='Disallow: /a'), Line(number=3, words='Allow: /a/b'))
    >>> deciding_line(body, "barkspider", "", "/b") is None
    True
    """
    verdict = RobotsRules.parse(body, agent, origin).allows(target)
    groups = GroupCollector(agent, origin)
    lines = content(body).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    places: dict[int, list[int]] = {}
    for number, line in enumerate(lines, 1):
        groups.read(line)
        for fit, rules in groups.found.items():
            known = places.setdefault(fit, [])
            known += [number] * (len(rules) - len(known))
    if not places:
        return None
    matching = [
        (-len(pattern), number)
        for (allow, pattern), number in zip(groups.rules(), places[max(places)], strict=True)
        if allow == verdict and not RobotsRules([(False, pattern)]).allows(target)
    ]
    if not matching:
        return None
    number = min(matching)[1]
    return Line(number, lines[number - 1].strip().decode("utf-8", "replace"))
