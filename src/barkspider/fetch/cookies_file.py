"""Cookies that a user has from a browser: a cookies.txt in the form of Netscape, as curl and wget read it."""

from __future__ import annotations

import math
from pathlib import Path

from barkspider.core.errors import SettingsError
from barkspider.fetch.cookies import Cookie

_ONLY_HTTP = "#HttpOnly_"  # begins a line, and no comment


def read_cookies(path: str) -> list[Cookie]:
    """The cookies of a file; "" stands for none. `SettingsError` names a line and does not show it.

    A line is: domain, TRUE if hosts below it get the cookie too, path, TRUE if only https, when it expires in seconds since
    1970 or 0, name, value; separated by tabs.
    """
    if not path:
        return []
    try:
        lines = Path(path).read_text("ascii").splitlines()
    except OSError as error:
        raise SettingsError(f"cookies.file: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"cookies.file: {path} is not ASCII text") from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.removeprefix(_ONLY_HTTP)
        if not text.strip() or (text.startswith("#") and text == line):
            continue
        try:
            domain, below, place, secure, expires, name, value = text.split("\t")
            ends = float(expires) or math.inf
            if (
                not (name and text.replace("\t", "").isprintable() and place.startswith("/"))
                or ";" in name + value
            ):
                raise ValueError
        except ValueError as error:
            raise SettingsError(
                f"{path}:{number}: no line of a cookies.txt: seven columns, parted by tabs"
            ) from error
        host = domain.removeprefix(".").lower()
        found.append(
            Cookie(name, value, host, below.upper() != "TRUE", place, secure.upper() == "TRUE", ends)
        )
    return found
