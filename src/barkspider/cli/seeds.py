"""Seeds as a user gives them: on the command line, in a file, or on standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.terminal import say
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.core.settings import Settings

_COMMENT = re.compile(r"(?:^|\s)#.*")  # a # within a URL begins a fragment
_NAMED = 5  # bad lines that are shown; the others are counted

SeedsFile = Annotated[
    Path | None,
    typer.Option(help="A file of seeds, one URL a line, # begins a comment; - is standard input."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a file of seeds for a line that is no URL to crawl.")
]


def given_seeds(settings: Settings, urls: list[str], file: Path | None, strict: bool) -> list[str]:
    """Canonical URLs, each once. Bad lines of a file are named and left out, unless that is all there is."""
    from barkspider.engine import canonical_seeds  # loads the kernels: not for a wrong option

    bad: list[str] = []
    try:
        found = canonical_seeds(settings, read_seeds(urls, file), None if strict else bad.append)
    except UsageError as error:
        if not bad:
            raise
        raise UsageError(
            f"no line of {_name(file)} is a URL to crawl; the first of them: {bad[0]}"
        ) from error
    for line in bad[:_NAMED]:
        say(f"barkspider: left out: {line}", error=True)
    if len(bad) > _NAMED:
        say(f"barkspider: left out: {len(bad) - _NAMED:,} more such lines of {_name(file)}", error=True)
    return found


def read_seeds(urls: list[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """Seeds from the command line and from a file, each with where it stands."""
    yield from ((url, "") for url in urls)
    if file is None:
        return
    try:
        data = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read seeds file {file}: {error.strerror}") from error
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        # What is not UTF-8 is no URL, and concerns this line alone.
        text = _COMMENT.sub("", line.decode("utf-8", "surrogateescape")).strip()
        if text:
            yield text, f"{_name(file)}:{number}: "


def _name(file: Path | None) -> str:
    return "standard input" if file == Path("-") else str(file)
