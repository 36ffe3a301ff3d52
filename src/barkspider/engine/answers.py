"""What a running crawl answers to whoever speaks to it through its socket (`control`)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from barkspider.core.events import Granted
from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.harvest import Reaped
from barkspider.engine.recovery import Parts
from barkspider.engine.steering import change_limits

if TYPE_CHECKING:
    from barkspider.engine.loop import Crawl


_LOGGED = ("pause", "go_on", "stop", "add", "checkpoint")  # what people ask for and nothing else tells of


class Answers:
    """Answers for one crawl, on its loop, at once."""

    def __init__(self, crawl: Crawl, parts: Parts, checkpointer: Checkpointer) -> None:
        self._crawl, self._parts, self._checkpointer = crawl, parts, checkpointer

    def __call__(self, command: str, details: dict[str, Any]) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """The answer to one of `control.COMMANDS`; what a command that changes something has changed is logged."""
        crawl, parts = self._crawl, self._parts
        if command in _LOGGED and "why" not in details:
            parts.job.log(parts.clock.wall(), "asked", command=command)
        if command == "pause" or command == "go_on":
            crawl.pause(command == "pause", details.get("why", "request"))
        elif command == "stop":
            crawl.stop()
        elif command == "add":
            return crawl.add(details["urls"], details.get("again", ()))
        elif command == "write_tables":
            parts.archive.write_rows()
            return {}
        elif command == "history":
            return parts.history.since(int(details.get("since", -1)))
        elif command == "host":
            return parts.frontier.about_host(str(details["host"]), parts.steady.now())
        elif command == "checkpoint":
            self._checkpointer.hasten()
        elif command == "change":
            options = [str(option) for option in details["settings"]]
            crawl.follow_limits(change_limits(parts.job, options).limits)
            parts.job.log(parts.clock.wall(), "changed", settings=options)
        elif command == "rule":
            return crawl.rule(details["changes"], str(details.get("why", "")))
        elif command == "rules":
            return {**parts.frontier.about_rules(), "traps": parts.frontier.about_traps()}
        elif command == "grant":
            pages = details["pages"]  # what is fetched and under way cannot be taken back
            granted = None if pages is None else max(int(pages), parts.frontier.least_grant)
            crawl.take_in(Reaped(Granted(granted)))
        elif command == "end":
            crawl.end()
        return self._status(bool(details.get("whole")))

    def _status(self, whole: bool) -> dict[str, Any]:
        crawl = self._crawl
        traffic = self._parts.frontier.traffic() if whole or crawl.others is None else {}
        told = crawl.statistics().as_dict()
        return {"state": crawl.state(), **crawl.about_others(whole), **told, **traffic}
