"""The list of duplicate hosts that a crawl goes by: `duphosts -o` writes one, or somebody does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barkspider.core.errors import UrlError, UsageError
from barkspider.core.settings import Settings
from barkspider.url import Domains, Normaliser, split
from barkspider.url.replicas import originals


def read_replicas(settings: Settings, domains: Domains) -> dict[str, str]:
    """To each replica of `scope.duplicate_hosts` its original, names as the rules for URLs have them; `UsageError` names a line.

    A line is a replica and its original; empty ones count as nothing, and so do those that begin with a #.
    """
    path = settings.scope.duplicate_hosts
    return originals(_pairs(path, Normaliser(settings.url, domains))) if path else {}


def _pairs(path: str, normalise: Normaliser) -> Iterator[tuple[str, str, str]]:
    try:
        lines = Path(path).read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"scope.duplicate_hosts: cannot read {path}: {why}") from error
    for number, line in enumerate(lines, 1):
        names = line.split()
        if not names or line.startswith("#"):
            continue
        hosts = [_host(name, normalise) for name in names]
        if len(hosts) != 2 or not all(hosts):
            raise UsageError(
                f"{path}:{number}: {line[:100]!r} is not a replica and its original; write it like `www.a.example a.example`"
            )
        if hosts[0] != hosts[1]:  # they may be one by the rule about www.
            yield hosts[0], hosts[1], f"{path}:{number}"


def _host(name: str, normalise: Normaliser) -> str:
    """A name as it stands in canonical URLs; "" for what is none."""
    if set("/?#@:\\") & set(name.strip("[]")) and not name.startswith("["):
        return ""
    try:
        return split(normalise(f"http://{name}/")).host
    except UrlError:
        return ""
