"""Functions of a user's own, which settings name: by import path, or as an entry point of some installed package."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from barkspider.core.errors import SettingsError


def load_function(setting: str, name: str, group: str = "") -> Any:
    """The function that `package.module:function`, or an entry point of a group, stands for; `SettingsError` where there is none.

    >>> load_function("scope.filter", "json:dumps")(1)
    '1'
    >>> load_function("scope.filter", "json:nothing")
    Traceback (most recent call last):
    barkspider.core.errors.SettingsError: scope.filter: cannot load 'json:nothing': module 'json' has no attribute 'nothing'
    """
    try:
        if ":" in name or not group:
            module, _, attribute = name.partition(":")
            found = getattr(import_module(module), attribute)
        else:
            found = next(point.load() for point in entry_points(group=group, name=name))
    except StopIteration:
        raise SettingsError(
            f"{setting}: no entry point {name!r} in {group}; write package.module:name otherwise"
        ) from None
    except Exception as error:  # whatever a stranger's module raises
        raise SettingsError(f"{setting}: cannot load {name!r}: {error}") from error
    if not callable(found):
        raise SettingsError(f"{setting}: {name!r} is no function")
    return found
