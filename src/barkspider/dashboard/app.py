"""The pages, and what is done for each. Whatever takes time, or the disk, is done in a thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from barkspider.core.errors import BarkspiderError
from barkspider.core.units import format_duration, format_size
from barkspider.dashboard import lists, overview
from barkspider.dashboard.guard import Guard
from barkspider.dashboard.hosts import about_host, why_page
from barkspider.dashboard.lists import Wish
from barkspider.dashboard.metrics import CONTENT_TYPE, exposition
from barkspider.dashboard.shell import FILES, notice, page
from barkspider.dashboard.watcher import Watcher
from barkspider.engine.control import ask
from barkspider.report.markup import Markup, join

_SECOND = 1.0  # between two pictures of a live page
_LARGEST = 100_000  # bytes of a form
_KEPT = "private, max-age=31536000, immutable"  # of files, which have their content in their address
_SIMPLE = ("pause", "go_on", "stop", "checkpoint")


class Dashboard:
    """The application of one job. `hosts` are the values of Host to which it answers."""

    def __init__(self, path: Path, hosts: list[str], token: str = "") -> None:
        self._watcher, self._name = Watcher(path), path.absolute().name
        self.ends = False  # whether the server is about to
        routes = [
            Route("/", self._overview),
            Route("/live", self._live),
            Route("/domains", self._domains),
            Route("/hosts", self._hosts),
            Route("/host", self._host),
            Route("/why", self._why),
            Route("/errors", self._listed(lists.errors, "/errors")),
            Route("/events", self._listed(lists.events, "/events")),
            Route("/settings", self._listed(lists.settings, "/settings")),
            Route("/query", self._query, methods=["GET", "POST"]),
            Route("/controls", self._controls),
            Route("/control/{command}", self._control, methods=["POST"]),
            Route("/metrics", self._metrics),
            Route("/static/{name}", self._file),
        ]
        self.guard = Guard(Starlette(routes=routes), hosts, token)

    # ── pages ──────────────────────────────────────────────────────────────────────────────────

    async def _overview(self, request: Request) -> Response:  # noqa: ARG002
        return self._page("/", await self._fragment(), live=True)

    async def _fragment(self) -> Markup:
        view = await self._watcher.view()
        return await asyncio.to_thread(lambda: overview.render(view, self._watcher.settings))

    async def _live(self, request: Request) -> Response:
        """Server-sent events: what is inside the first page, whenever it has changed."""

        async def pictures() -> AsyncIterator[str]:
            before, counting = "", asyncio.create_task(asyncio.to_thread(self._watcher.count_ranks))
            try:
                while not self.ends and not await request.is_disconnected():
                    fragment = await self._fragment()
                    if fragment != before:
                        before = fragment
                        yield f"data: {json.dumps(fragment)}\n\n"
                    if counting.done():
                        counting = asyncio.create_task(asyncio.to_thread(self._watcher.count_ranks))
                    await asyncio.sleep(_SECOND)
                if self.ends:  # with the last picture, which is that of a crawl that has ended
                    self._watcher.forget()
                    yield f"event: end\ndata: {json.dumps(await self._fragment())}\n\n"
            finally:
                counting.cancel()

        return StreamingResponse(pictures(), media_type="text/event-stream")

    async def _domains(self, request: Request) -> Response:
        wish = Wish.of(request.query_params)
        return await self._answer("/domains", lambda: lists.domains(self._watcher, wish))

    async def _hosts(self, request: Request) -> Response:
        wish = Wish.of(request.query_params)
        return await self._answer("/hosts", lambda: lists.hosts(self._watcher, wish))

    async def _host(self, request: Request) -> Response:
        name = request.query_params.get("name", "")[:255]
        return await self._answer("/hosts", lambda: about_host(self._watcher, name))

    async def _why(self, request: Request) -> Response:
        url = request.query_params.get("url", "")[:4000]
        return await self._answer("/why", lambda: why_page(self._watcher, url))

    def _listed(self, make: Callable[[Watcher], Markup], path: str) -> Callable[[Request], object]:
        async def answer(request: Request) -> Response:  # noqa: ARG001
            return await self._answer(path, lambda: make(self._watcher))

        return answer

    async def _query(self, request: Request) -> Response:
        token = self.guard.form_token
        if request.method == "GET":
            return await self._answer("/query", lambda: lists.query(token, ""))
        form = await _form(request)
        if not self.guard.is_ours(form):
            return PlainTextResponse("this form was not made here", 403)
        sql = form.get("sql", "")
        try:
            inside = await asyncio.to_thread(lists.query, token, sql, self._watcher)
        except BarkspiderError as error:
            inside = join([notice(str(error), "bad"), lists.query(token, sql)])
        return self._page("/query", inside)

    async def _controls(self, request: Request) -> Response:  # noqa: ARG002
        return self._page("/controls", await self._shown_controls())

    async def _shown_controls(self) -> Markup:
        view, limits = await self._watcher.view(), self._watcher.settings.limits
        shown = {
            "limits.pages": str(limits.pages),
            "limits.time": format_duration(limits.time),
            "limits.bytes": format_size(limits.bytes),
        }
        return lists.controls(self.guard.form_token, view, shown)

    async def _control(self, request: Request) -> Response:
        """Tell the crawl; it writes into its log what it was told."""
        form = await _form(request)
        if not self.guard.is_ours(form):
            return PlainTextResponse("this form was not made here", 403)
        command = request.path_params["command"]
        details: dict[str, Any] = {}
        if command == "change":
            details = {"settings": [f"{form.get('name', '')}={form.get('value', '')}"]}
        elif command == "add":
            details = {"urls": [form.get("url", "")]}
        elif command == "block":
            details = {"domain": form.get("domain", "")}
        elif command not in _SIMPLE:
            return PlainTextResponse("there is no such control", 404)
        try:
            told = await asyncio.to_thread(lambda: ask(self._watcher.path, command, **details))
            done = (
                notice("no crawl runs in this job", "bad")
                if told is None
                else notice(_done(command, details), "good")
            )
        except BarkspiderError as error:
            done = notice(str(error), "bad")
        self._watcher.forget()
        return self._page("/controls", join([done, await self._shown_controls()]))

    async def _metrics(self, request: Request) -> Response:  # noqa: ARG002
        view = await self._watcher.view()
        return Response(exposition(view), media_type=CONTENT_TYPE)

    async def _file(self, request: Request) -> Response:
        found = FILES.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("there is no such file", 404)
        return Response(found[0], media_type=found[1], headers={"cache-control": _KEPT})

    async def _answer(self, path: str, make: Callable[[], Markup]) -> Response:
        """A page that is made in a thread; what is wrong is said on it."""
        try:
            return self._page(path, await asyncio.to_thread(make))
        except BarkspiderError as error:
            return self._page(path, notice(str(error), "bad"))

    def _page(self, path: str, inside: Markup, live: bool = False) -> Response:
        return HTMLResponse(page(self._name, path, inside, live=live))


async def _form(request: Request) -> dict[str, str]:
    """What a form of ours sends: names and values, as text."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST:
            return {}  # and so without the token
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10)
    return {name: values[0] for name, values in found.items()}


def _done(command: str, details: dict[str, Any]) -> str:
    if command == "change":
        return f"changed: {details['settings'][0]}"
    if command == "add":
        return f"added: {details['urls'][0]}"
    if command == "block":
        return f"blocked: {details['domain']}"
    return {
        "pause": "the crawl pauses",
        "go_on": "the crawl goes on",
        "stop": "the crawl stops",
        "checkpoint": "a checkpoint is made",
    }[command]
