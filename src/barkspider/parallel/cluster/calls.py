"""Calls of actors. Whoever is called may be gone, be started again elsewhere, or be out of reach for a while.

Ray tells of that by many exceptions, at many places. Here they are one: `SilentError`, "not there now". What an actor itself
raises while it answers is a `RayTaskError`, whatever its cause was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from barkspider.core.errors import BarkspiderError

# A client that is not on the cluster (ray://) has the last of these in place of some of the first.
UNREACHABLE = (RayError, TimeoutError, ConnectionError)
_AGAIN = 0.5  # seconds between two tries


class SilentError(BarkspiderError):
    """An actor does not answer now; it may be there, and may answer later. Raised by this module only."""


class GoneError(SilentError):
    """An actor has ended, as Ray says; it says so, too, of one that it is about to start elsewhere."""


async def answer_of(make: Callable[[], Any], seconds: float) -> Any:
    """What an actor answers to the call that `make` makes; `SilentError` when there is no answer within so many seconds."""
    try:
        return await asyncio.wait_for(asyncio.wrap_future(make().future()), seconds)
    except UNREACHABLE as error:
        raise _meaning(error) from error


def wait_for(make: Callable[[], Any], seconds: float) -> Any:
    """The same for who has no loop. An actor that is silent is asked again until the time is over: only for calls that may
    reach it twice."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ray.get(make(), timeout=max(end - time.monotonic(), _AGAIN))
        except UNREACHABLE as error:
            meaning = _meaning(error)
            if isinstance(meaning, GoneError) or time.monotonic() > end:
                raise meaning from error
        time.sleep(_AGAIN)


def _meaning(error: Exception) -> SilentError:
    if isinstance(error, RayTaskError):
        raise error
    if isinstance(error, ActorDiedError):
        return GoneError(line(error))
    return SilentError(line(error) or "no answer in time")


def line(error: Exception) -> str:
    """An error of Ray in one line: the end of it, where the cause is."""
    cause = error.cause if isinstance(error, RayTaskError) and error.cause else error
    return " ".join(str(cause).split())[-300:]
