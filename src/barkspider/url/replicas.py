"""Replicas: hosts that serve what others serve, and whose URLs are taken for URLs of these (Viúva Negra, section 4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barkspider.core.errors import UsageError
from barkspider.url.parse import host_span


def originals(pairs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """To each replica its original: that of an original, if this is a replica as well.

    A pair is a replica, its original, and where that was said; `UsageError` for one that leads back to itself, or has two.

    >>> originals([("c.example", "b.example", "list:1"), ("b.example", "a.example", "list:2")])
    {'c.example': 'a.example', 'b.example': 'a.example'}
    >>> originals([("a.example", "b.example", "list:1"), ("b.example", "a.example", "list:2")])
    Traceback (most recent call last):
    barkspider.core.errors.UsageError: list:2: b.example is an original already, of what is its own replica
    """
    found: dict[str, str] = {}
    for replica, original, where in pairs:
        if found.setdefault(replica, original) != original:
            raise UsageError(f"{where}: {replica} has another original already, {found[replica]}")
        if replica == _last(found, original, replica):
            raise UsageError(f"{where}: {replica} is an original already, of what is its own replica")
    return {replica: _last(found, original, replica) for replica, original in found.items()}


def rewrite(url: str, replicas: Mapping[str, str]) -> str:
    """A serialised URL with the original instead of a replica; scheme, port and all else stay.

    >>> rewrite("http://www.a.example:8080/x", {"www.a.example": "a.example"})
    'http://a.example:8080/x'
    """
    start, end = host_span(url)
    original = replicas.get(url[start:end])
    return url if original is None else f"{url[:start]}{original}{url[end:]}"


def _last(found: Mapping[str, str], name: str, end: str) -> str:
    """Where a chain of replicas leads: to an original, or back to `end`."""
    while name != end and name in found:
        name = found[name]
    return name
