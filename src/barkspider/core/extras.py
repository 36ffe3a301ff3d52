"""Packages that only some commands need, and what a user is told who has not installed them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barkspider.core.errors import UsageError


@contextmanager
def needing(package: str, extra: str) -> Iterator[None]:
    """Around imports: a missing package is an error of one line that names the extra it comes with.

    >>> with needing("no_such_package", "lab"):
    ...     import no_such_package
    Traceback (most recent call last):
    barkspider.core.errors.UsageError: this needs the package no_such_package: pip install 'barkspider[lab]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise UsageError(f"this needs the package {package}: pip install 'barkspider[{extra}]'") from None
