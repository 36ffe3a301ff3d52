"""What fuzzers have in common: inputs from a seed, rounds, and what counts as a failure.

A round is a number: from it follow all its random choices, so that whoever has the name of a fuzzer and the number has the
input again (`python -m tests.fuzz NAME NUMBER`). It fails with an exception that is not one of the project's own, or by
taking more CPU time than its input may.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barkspider.core.errors import BarkspiderError

_INTERESTING = (
    b"\0",
    b"\xff",
    b"\x80",
    b"\r\n",
    b"\n",
    b"<",
    b">",
    b'"',
    b"'",
    b"&#x",
    b"%",
    b"-1",
    b"\xc3\x28",
)
_NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    32767,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
)
_TRIES = 3  # of a round that took long: the least counts, since a machine may be busy


@dataclass(frozen=True)
class Fuzzer:
    """`make` has an input of some bytes for a round, `run` tries it; it may take `constant` seconds and `per_byte` more."""

    name: str
    make: Callable[[Random], tuple[Any, int]]
    run: Callable[[Any], object]
    constant: float
    per_byte: float
    keep: Callable[[Any, int], str] = lambda _, number: str(number)  # where an input can be had again


@dataclass
class Found:
    """What some rounds of a fuzzer came to."""

    rounds: int = 0
    size: int = 0
    errors: int = 0  # of the project's own: they are as they should be
    exceptions: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    seconds_above: float = 0.0


def play(fuzzer: Fuzzer, number: int, found: Found) -> None:
    """One round."""
    given, size = fuzzer.make(Random(f"{fuzzer.name} {number}"))
    found.rounds += 1
    found.size += size
    bound = fuzzer.constant + fuzzer.per_byte * size
    try:
        taken = _time(fuzzer, given)
        tries = 1
        while taken > bound and tries < _TRIES:
            taken = min(taken, _time(fuzzer, fuzzer.make(Random(f"{fuzzer.name} {number}"))[0]))
            tries += 1
    except BarkspiderError:
        found.errors += 1
    except Exception as error:
        found.exceptions.append(f"{_again(fuzzer, given, number)}: {error!r:.200}")
    else:
        if taken > bound:
            found.seconds_above += taken - bound
            found.slow.append(f"{_again(fuzzer, given, number)}: {taken:.3f} s for {size:,} bytes")


def _again(fuzzer: Fuzzer, given: Any, number: int) -> str:
    return f"python -m tests.fuzz {fuzzer.name} {fuzzer.keep(given, number)}"


def _time(fuzzer: Fuzzer, given: Any) -> float:
    before = time.thread_time()
    fuzzer.run(given)
    return time.thread_time() - before


def mutate(data: bytes, random: Random, pieces: tuple[bytes, ...] = ()) -> bytes:
    """The bytes with one to eight changes: bits, numbers, pieces put in, repeated, moved, taken out; or cut."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 8)):
        place = random.randrange(len(changed) + 1)
        end = min(len(changed), place + random.choice((1, 4, 16, 256, 4096)))
        match random.randrange(8):
            case 0 if place < len(changed):
                changed[place] ^= 1 << random.randrange(8)
            case 1:
                changed[place:end] = random.randbytes(end - place)
            case 2:
                changed[place:place] = random.choice(_INTERESTING + pieces)
            case 3:
                changed[place:place] = changed[place:end] * random.choice((1, 2, 100))
            case 4:
                del changed[place:end]
            case 5:
                width = random.choice((1, 2, 4, 8))
                number = random.choice(_NUMBERS) & (256**width - 1)
                changed[place : place + width] = number.to_bytes(width, random.choice(("little", "big")))
            case 6:
                other = random.randrange(len(changed) + 1)
                changed[other:other] = changed[place:end]
            case _ if random.random() < 0.2:
                del changed[place:]
    return bytes(changed)


def numbers(begin: int = 0) -> Iterator[int]:
    """Rounds without end."""
    number = begin
    while True:
        yield number
        number += 1
