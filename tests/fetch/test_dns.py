"""Resolving against a real name server on loopback, on a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.settings import Dns, Network
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.dns import Resolution, Resolver
from tests.fetch.nameserver import AAAA, NO_SUCH_NAME, REFUSED, SERVER_FAILURE, A, Answer, NameServer, Script

RULES = AddressRules(Network(), contact="a@b.example")
PUBLIC = Answer(["8.8.8.8"])


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A resolver, its name server and its clock."""

    def __init__(self, resolver: Resolver, server: NameServer, clock: Clock) -> None:
        self.resolve, self.validate, self.close = resolver.resolve, resolver.validate, resolver.close
        self.server = server
        self.clock = clock


def bench(script: Script, test: Callable[[Bench], Awaitable[None]], **settings: Any) -> None:
    """Run a test against a script. One name in the cache makes c-ares forget at once what it was told."""

    async def run() -> None:
        async with NameServer(script) as server:
            clock = Clock()
            chosen: dict[str, Any] = {"timeout": 5.0, "tries": 2, "cache_size": 1} | settings
            resolver = Resolver(Dns(servers=(server.address,), **chosen), RULES, clock)
            try:
                await test(Bench(resolver, server, clock))
                resolver.validate()
            finally:
                await resolver.close()

    asyncio.run(run())


def only(kind: int, answer: Answer, other: Answer | None = Answer()) -> Script:  # noqa: B008
    """One answer to one kind of question, another to the other."""
    return lambda _, asked: answer if asked == kind else other


def resolve(script: Script, name: str = "a.example", **settings: Any) -> tuple[Resolution, list[int]]:
    """One resolution, and the kinds of record that were asked for."""
    found: list[Resolution] = []
    asked: list[int] = []

    async def test(bench: Bench) -> None:
        found.append(await bench.resolve(name))
        asked.extend(kind for _, kind in bench.server.asked)

    bench(script, test, **settings)
    return found[0], asked


def test_an_answer_is_remembered_for_as_long_as_it_says() -> None:
    async def test(bench: Bench) -> None:
        assert await bench.resolve("a.example") == Resolution(("8.8.8.8",), "", 300.0)
        bench.clock.now += 299
        assert await bench.resolve("a.example.") == Resolution(("8.8.8.8",), "", 1.0)
        assert bench.server.asked == [("a.example", A)]
        bench.clock.now += 1
        assert await bench.resolve("a.example") == Resolution(("8.8.8.8",), "", 300.0)
        assert len(bench.server.asked) == 2

    bench(lambda *_: PUBLIC, test)


@pytest.mark.parametrize(("said", "kept"), [(0, 60.0), (59, 60.0), (3600, 3600.0), (2**32 - 1, 86400.0)])
def test_no_answer_is_trusted_for_too_short_or_too_long(said: int, kept: float) -> None:
    assert resolve(lambda *_: Answer(["8.8.8.8"], ttl=said))[0].ttl == kept


@pytest.mark.parametrize(
    ("answer", "error", "ttl"),
    [
        (Answer(code=NO_SUCH_NAME), "dns_no_name", 600.0),
        (Answer(), "dns_no_name", 600.0),
        (Answer(["a.example"]), "dns_no_name", 600.0),  # an alias of itself
        (Answer(["b.example", "a.example"]), "dns_no_name", 600.0),
        (Answer(code=SERVER_FAILURE), "dns_failure", 30.0),
        (Answer(code=REFUSED), "dns_failure", 30.0),
        (None, "dns_failure", 30.0),
        (Answer(raw=b""), "dns_failure", 30.0),
        (Answer(raw=b"\x84"), "dns_failure", 30.0),
        (Answer(raw=b"\x84\x80" + b"garbage" * 9), "dns_failure", 30.0),
        (Answer(raw=b"\x84\x80\0\1\0\1\0\0\0\0\xc0\x0c\0\1\0\1"), "dns_failure", 30.0),  # points at itself
        (
            Answer(raw=b"\x84\x80\0\1\0\1\0\0\0\0\1a\7example\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\1\0\0\x09abc"),
            "dns_failure",
            30.0,
        ),
    ],
)
def test_what_is_no_answer_has_a_name_and_is_remembered_for_a_while(
    answer: Answer | None, error: str, ttl: float
) -> None:
    async def test(bench: Bench) -> None:
        assert await bench.resolve("a.example") == Resolution((), error, ttl)
        asked = len(bench.server.asked)
        assert asked > 0
        bench.clock.now += ttl - 1
        assert await bench.resolve("a.example") == Resolution((), error, 1.0)
        assert len(bench.server.asked) == asked
        bench.clock.now += 1
        bench.server.script = lambda *_: PUBLIC
        assert (await bench.resolve("a.example")).addresses == ("8.8.8.8",)

    bench(lambda *_: answer, test, timeout=5.0 if answer else 0.05)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a..",
        "a..b",
        ".a",
        "x" * 64 + ".example",
        ".".join(["a" * 60] * 5),
        "x" * 100_000,
        "a b",
        "a\\.b",
        "a\0b",
        "a\nb",
        "a!b",
        "ü.example",
        "\udc80",
    ],
)
def test_what_is_no_name_is_not_asked_for(name: str) -> None:
    found, asked = resolve(lambda *_: PUBLIC, name)
    assert (found.addresses, found.error, asked) == ((), "dns_no_name", [])


def test_a_name_is_asked_as_it_is_whatever_the_system_would_add(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aliases = tmp_path / "aliases"
    aliases.write_text("foo alias.example\n")
    monkeypatch.setenv("HOSTALIASES", str(aliases))
    monkeypatch.setenv("LOCALDOMAIN", "search.example")
    monkeypatch.setenv("RES_OPTIONS", "ndots:5")

    async def test(bench: Bench) -> None:
        for name in ("foo", "bar.example"):
            assert (await bench.resolve(name)).error == "dns_no_name"
        assert {name for name, _ in bench.server.asked} == {"foo", "bar.example"}

    bench(lambda *_: Answer(), test)


def test_names_of_this_machine_are_asked_of_the_name_server() -> None:
    lines = Path("/etc/hosts").read_text().splitlines()
    names = {name for line in lines for name in line.partition("#")[0].split()[1:]} - {"localhost"}
    if not names:
        pytest.skip("/etc/hosts names nothing but localhost")

    async def test(bench: Bench) -> None:
        for name in names:
            assert (await bench.resolve(name)).addresses == ("8.8.8.8",)

    bench(lambda *_: PUBLIC, test)


@pytest.mark.parametrize(
    ("host", "error"),
    [
        ("localhost", "refused_address"),
        ("a.localhost.", "refused_address"),
        ("10.0.0.1", "refused_address"),
        ("[::1]", "refused_address"),
        ("a.123", "refused_address"),
        ("8.8.8.8", ""),
        ("[2606:4700::1111]", ""),
    ],
)
def test_addresses_are_judged_without_asking(host: str, error: str) -> None:
    found, asked = resolve(lambda *_: PUBLIC, host)
    assert (found.error, asked) == (error, [])


FOUR, SIX = Answer(["8.8.8.8"]), Answer(["2606:4700::1111"])
GONE, BROKEN = Answer(code=NO_SUCH_NAME), Answer(code=SERVER_FAILURE)


@pytest.mark.parametrize(
    ("family", "four", "six", "expected", "asked"),
    [
        ("prefer4", FOUR, SIX, "8.8.8.8", [A]),
        ("prefer4", Answer(), SIX, "2606:4700::1111", [A, AAAA]),
        ("prefer4", GONE, SIX, "dns_no_name", [A]),
        ("prefer4", BROKEN, SIX, "dns_failure", [A, A]),
        ("prefer4", Answer(), BROKEN, "dns_failure", [A, AAAA, AAAA]),
        ("prefer6", FOUR, SIX, "2606:4700::1111", [AAAA]),
        ("prefer6", FOUR, Answer(), "8.8.8.8", [AAAA, A]),
        ("prefer6", FOUR, GONE, "8.8.8.8", [AAAA, A]),
        ("prefer6", FOUR, BROKEN, "8.8.8.8", [AAAA, AAAA, A]),
        ("4", Answer(), SIX, "dns_no_name", [A]),
        ("6", FOUR, Answer(), "dns_no_name", [AAAA]),
        ("6", FOUR, SIX, "2606:4700::1111", [AAAA]),
    ],
)
def test_families_are_asked_in_order(
    family: str, four: Answer, six: Answer, expected: str, asked: list[int]
) -> None:
    found, kinds = resolve(only(A, four, six), family=family)
    assert ([*found.addresses, found.error][0], kinds) == (expected, asked)


def test_of_public_and_private_addresses_the_public_ones_are_kept() -> None:
    mixed = Answer(["10.0.0.1", "8.8.8.8", "127.0.0.1", "1.1.1.1", "8.8.8.8"])
    assert resolve(lambda *_: mixed)[0].addresses == ("8.8.8.8", "1.1.1.1")


def test_private_addresses_alone_are_refused() -> None:
    found, asked = resolve(lambda *_: Answer(["10.0.0.1", "169.254.169.254"]))
    assert (found.addresses, found.error, asked) == ((), "refused_address", [A])


def test_a_name_that_turns_private_is_refused_from_then_on() -> None:
    async def test(bench: Bench) -> None:
        assert (await bench.resolve("a.example")).addresses == ("8.8.8.8",)
        bench.server.script = lambda *_: Answer(["127.0.0.1"], ttl=0)
        assert (await bench.resolve("a.example")).addresses == ("8.8.8.8",)
        bench.clock.now += 60  # what the answer said was too short to be taken at its word
        assert await bench.resolve("a.example") == Resolution((), "refused_address", 60.0)

    bench(lambda *_: Answer(["8.8.8.8"], ttl=0), test)


def test_aliases_are_passed_over() -> None:
    assert resolve(lambda *_: Answer(["b.example", "8.8.8.8"]))[0].addresses == ("8.8.8.8",)


def test_a_long_answer_comes_over_tcp_and_is_cut_to_what_is_of_use() -> None:
    async def test(bench: Bench) -> None:
        found = await bench.resolve("a.example")
        assert (len(found.addresses), found.addresses[0], bench.server.streams) == (8, "8.8.0.0", 1)

    many = Answer([f"8.8.{number // 256}.{number % 256}" for number in range(3000)], truncated=True)
    bench(lambda *_: many, test)


@pytest.mark.parametrize(
    ("private", "expected"), [(20, ("8.8.8.8",)), (31, ("8.8.8.8",)), (32, ()), (4_049, ())]
)
def test_few_addresses_of_a_long_answer_are_judged(
    private: int, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    refusal = RULES.refusal
    monkeypatch.setattr(RULES, "refusal", lambda address: judged.append(address) or refusal(address))
    many = [f"10.0.{number // 250}.{number % 250}" for number in range(private)]
    found, _ = resolve(only(A, Answer([*many, "8.8.8.8"], truncated=True)))
    assert found.addresses == expected
    assert found.error == ("" if expected else "refused_address")
    assert len(set(judged)) == min(private + 1, 32)


def test_the_addresses_of_a_name_take_turns() -> None:
    async def test(bench: Bench) -> None:
        first = [(await bench.resolve("a.example")).addresses[0] for _ in range(4)]
        assert first == ["8.8.8.8", "9.9.9.9", "1.1.1.1", "8.8.8.8"]
        assert len(bench.server.asked) == 1

    bench(only(A, Answer(["8.8.8.8", "9.9.9.9", "1.1.1.1"])), test)


def test_those_who_ask_for_one_name_at_a_time_share_one_query() -> None:
    async def test(bench: Bench) -> None:
        bench.server.open.clear()
        askers = [asyncio.create_task(bench.resolve("a.example")) for _ in range(10)]
        await bench.server.received(1)
        askers[0].cancel()  # the first one gives up; the others still get their answer
        bench.server.open.set()
        found = await asyncio.gather(*askers, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert found[1:] == [Resolution(("8.8.8.8",), "", 300.0)] * 9
        assert len(bench.server.asked) == 1

    bench(lambda *_: PUBLIC, test)


def test_a_thousand_names_at_once_wait_in_order_for_a_place() -> None:
    async def test(bench: Bench) -> None:
        bench.server.open.clear()
        names = [f"h{number}.example" for number in range(1000)]
        askers = [asyncio.create_task(bench.resolve(name)) for name in names]
        await bench.server.received(50)
        for _ in range(100):
            await asyncio.sleep(0)
        assert sorted(bench.server.asked) == sorted((name, A) for name in names[:50])
        bench.server.open.set()
        found = await asyncio.gather(*askers)
        assert {resolution.addresses for resolution in found} == {("8.8.8.8",)}
        places = [names.index(name) for name in dict(bench.server.asked)]
        assert all(abs(place - at) <= 50 for at, place in enumerate(places))

    bench(lambda *_: PUBLIC, test, in_flight=50, cache_size=300)


def test_the_names_used_last_are_remembered() -> None:
    async def test(bench: Bench) -> None:
        for name in ("a.example", "b.example", "c.example", "a.example", "d.example"):
            await bench.resolve(name)
            bench.validate()
        asked = len(bench.server.asked)
        assert asked == 4
        for name in ("a.example", "c.example", "d.example"):
            await bench.resolve(name)
        assert len(bench.server.asked) == asked
        await bench.resolve("b.example")
        assert len(bench.server.asked) == asked + 1

    bench(lambda *_: Answer(["8.8.8.8"], ttl=0), test, cache_size=3)


def test_a_name_that_was_asked_again_counts_as_used() -> None:
    async def test(bench: Bench) -> None:
        for name in ("a.example", "b.example"):
            await bench.resolve(name)
        bench.clock.now += 60
        for name in ("a.example", "c.example", "a.example"):
            await bench.resolve(name)
        assert [name for name, _ in bench.server.asked] == [
            "a.example",
            "b.example",
            "a.example",
            "c.example",
        ]

    bench(lambda *_: Answer(["8.8.8.8"], ttl=0), test, cache_size=2)


def test_a_channel_is_replaced_after_a_minute_and_forgets_what_it_was_told() -> None:
    async def test(bench: Bench) -> None:
        for name, later in (
            ("a.example", 0),
            ("b.example", 59),
            ("a.example", 0),
            ("b.example", 1),
            ("a.example", 0),
        ):
            bench.clock.now += later
            await bench.resolve(name)
        # c-ares remembers for an hour: the resolver has forgotten the first when it is asked for again.
        assert [name for name, _ in bench.server.asked] == [
            "a.example",
            "b.example",
            "b.example",
            "a.example",
        ]

    bench(lambda *_: Answer(["8.8.8.8"], ttl=3600), test, cache_size=100, min_ttl=0.0, max_ttl=0.0)


def test_closing_tells_everyone_who_waits() -> None:
    async def test(bench: Bench) -> None:
        bench.server.open.clear()
        askers = [asyncio.create_task(bench.resolve(f"h{number}.example")) for number in range(5)]
        await bench.server.received(2)
        await bench.close()
        assert [found.error for found in await asyncio.gather(*askers)] == ["dns_failure"] * 5

    bench(lambda *_: PUBLIC, test, in_flight=2)
