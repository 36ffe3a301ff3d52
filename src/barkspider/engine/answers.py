"""What a running crawl answers to whoever speaks to it through its socket (`control`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from barkspider.core.events import Granted
from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.harvest import Reaped
from barkspider.engine.recovery import Components
from barkspider.engine.steering import block_domain, change_limits

if TYPE_CHECKING:
    from barkspider.engine.loop import Crawl


_LOGGED = ("pause", "go_on", "stop", "add", "checkpoint")  # what people ask for and nothing else tells of


class Answers:
    """Answers for one crawl, on its loop, at once."""

    def __init__(self, crawl: Crawl, components: Components, checkpointer: Checkpointer) -> None:
        self._crawl, self._components, self._checkpointer = crawl, components, checkpointer

    def __call__(self, command: str, details: dict[str, Any]) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """The answer to one of `control.COMMANDS`; what a command that changes something has changed is logged."""
        crawl, components = self._crawl, self._components
        if command in _LOGGED and "why" not in details:
            components.job.log(components.clock.wall(), "asked", command=command)
        if command == "pause" or command == "go_on":
            crawl.pause(command == "pause", details.get("why", "request"))
        elif command == "stop":
            crawl.stop()
        elif command == "add":
            return crawl.add(details["urls"], details.get("again", ()))
        elif command == "write_tables":
            return _when_done(components.archive.writing_rows())
        elif command == "history":
            return components.history.since(int(details.get("since", -1)))
        elif command == "hosts":
            now = components.steady.now()
            return {name: components.frontier.about_host(name, now) for name in map(str, details["hosts"])}
        elif command == "checkpoint":
            self._checkpointer.hasten()
        elif command == "change":
            options = [str(option) for option in details["settings"]]
            crawl.follow_limits(change_limits(components.job, options).limits)
            components.job.log(components.clock.wall(), "changed", settings=options)
        elif command == "block":
            domain = block_domain(components.job, str(details["domain"]))
            components.links.exclude(components.job.settings.scope)
            components.frontier.block(domain)
            components.job.log(components.clock.wall(), "blocked", domain=domain)
            return {"blocked": domain}
        elif command == "grant":
            pages = details["pages"]  # what is fetched and under way cannot be taken back
            granted = None if pages is None else max(int(pages), components.frontier.least_grant)
            crawl.take_in(Reaped(Granted(granted)))
        elif command == "end":
            crawl.end()
        return self._status(bool(details.get("whole")))

    def _status(self, whole: bool) -> dict[str, Any]:
        crawl = self._crawl
        traffic = self._components.frontier.traffic() if whole or crawl.others is None else {}
        told = crawl.statistics().as_dict()
        return {"state": crawl.state(), **crawl.about_others(whole), **told, **traffic}


async def _when_done(wait: Callable[[], None]) -> dict[str, Any]:
    """Nothing, when something is done that takes time, but none of the loop's."""
    await asyncio.to_thread(wait)
    return {}
