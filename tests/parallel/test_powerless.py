"""Samples of what `python -m benchmarks chaos` does in full: power that fails, a disk that is full, a process that stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from barkspider.core.errors import StorageError
from barkspider.frontier.exchange import Exchange
from tests.frontier.virtual import batch, row
from tests.parallel.powerless import Found, Machine, Part, after, crawl, is_whole, power_losses, without_turns
from tests.storage.faulty import FaultyEnv


@pytest.fixture(autouse=True)
def no_turns() -> Iterator[None]:
    with without_turns():
        yield


def test_nothing_is_lost_or_applied_twice_whenever_the_power_fails() -> None:
    calm = crawl(FaultyEnv(), 1)
    assert is_whole(calm, calm)
    assert calm.sent > 20
    losses = list(power_losses(every=150))
    assert len(losses) > 8
    assert [loss for loss, survived in losses if not survived] == []


def test_a_name_that_is_not_safe_in_the_inbox_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exchange, "sync_inbox", lambda _: None)
    env, random = FaultyEnv(), Random(1)
    crawl(env, 1)
    linked = [number for number, operation in enumerate(env.operations) if operation.kind == "link"]
    for done, disk in env.crashes():
        # Between the arrival of a batch and the checkpoint that has it; the journal is safe by then.
        if done > linked[0] and env.operations[done - 1].path.name == "manifest.json.new":
            with_loss = FaultyEnv(after(disk, "drop", random, None))
            try:
                crawl(with_loss, 2)
            except StorageError:
                return
    pytest.fail("the test would not notice")


def test_a_process_whose_outbox_is_full_fetches_nothing_and_goes_on_receiving() -> None:
    """So that both are full does not hold up either for ever."""
    calm, options = crawl(FaultyEnv(), 1), ["parallel.outbox=1KB"]
    assert is_whole(crawl(FaultyEnv(), 1, options), calm)

    async def fill() -> None:
        machine = Machine(FaultyEnv())
        one, other = Part(machine.env, machine.web, 0, machine.now, options), machine.parts[1]
        while not one.exchange.is_full:  # nobody makes a checkpoint, so nothing is acknowledged
            await one.turn(machine.now), await other.turn(machine.now)
            machine.wait()
        asked, received = len(machine.web.requests), one.exchange.received
        for _ in range(20):
            await other.turn(machine.now), await one.turn(machine.now)
            machine.wait()
        mine = {
            each.host_key
            for each in map(row, machine.web.pages)
            if one.exchange.sorting.own(batch(each.url.decode())).rows()
        }
        assert not [url for *_, url in machine.web.requests[asked:] if row(url).host_key in mine]
        assert one.exchange.received > received

    asyncio.run(fill())


@pytest.mark.parametrize("trouble", ["stopped", "full"])
def test_a_process_goes_on_while_another_is_stopped_or_has_no_disk_space(trouble: str) -> None:
    """And nothing is lost: what is for the other waits until that one can take it."""
    assert asyncio.run(_while_the_other_is(trouble))


async def _while_the_other_is(trouble: str) -> bool:
    calm = await ended(Machine(FaultyEnv()))
    env = FaultyEnv()
    machine = Machine(env)
    one, other = machine.parts
    while (
        other.frontier.counters.pages < 3
        or one.frontier.counters.pages + 3 > one.frontier.counters.discovered
    ):
        await one.turn(machine.now), await other.turn(machine.now)
        machine.wait()
    other.commit()
    died, before = False, (one.frontier.counters.pages, sum(one.exchange.sealed))
    for _ in range(200):  # minutes
        await one.turn(machine.now)
        if trouble == "full" and not died:
            env.kinds.update(write="ENOSPC", create="ENOSPC")
            try:
                await other.turn(machine.now)
            except StorageError:
                died = True
            env.kinds.clear()
        machine.wait()
    assert one.frontier.counters.pages > before[0]
    assert sum(one.exchange.sealed) > before[1]
    assert one.frontier.is_idle()  # it has done all that it can do
    assert died == (trouble == "full")
    assert not machine.is_over()
    if died:
        other.frontier.close()
        machine.parts[1] = machine.start(1)
    found = await ended(machine)
    return is_whole(found._replace(again=0), calm)


async def ended(machine: Machine) -> Found:
    await machine.run()
    return machine.end()
