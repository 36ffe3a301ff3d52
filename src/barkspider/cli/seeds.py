"""Seeds as a user gives them: on the command line, in a file, or on standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.seed_files import file_name, read_seeds
from barkspider.cli.terminal import say
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.core.settings import Settings

_NAMED = 5  # bad lines that are shown; the others are counted

SeedsFile = Annotated[
    Path | None,
    typer.Option(
        help="A file of seeds, one URL or domain a line, # begins a comment; - is standard input. Or a zone file (.zone), "
        "an index (.cdxj), an archive (.warc.gz), a table (.parquet), or the folder of an earlier job, for its home pages."
    ),
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
            f"no line of {file_name(file)} is a URL to crawl; the first of them: {bad[0]}"
        ) from error
    for line in bad[:_NAMED]:
        say(f"barkspider: left out: {line}", error=True)
    if len(bad) > _NAMED:
        say(f"barkspider: left out: {len(bad) - _NAMED:,} more such lines of {file_name(file)}", error=True)
    return found
