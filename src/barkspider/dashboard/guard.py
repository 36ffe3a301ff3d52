"""Who is answered: only who has the token, asks this host by its name, and comes from our own pages.

| what comes | answer |
| --- | --- |
| a Host that is not ours (a name that was rebound to this address) | 403 |
| `..` in a path, however it is written | 400 |
| no token, neither as a cookie nor once in the address, nor, for Prometheus, as `Authorization: Bearer` | 401 |
| a POST from another origin, or without the token of our forms | 403 |

The token in the address is for the first visit: it becomes a cookie that no script can read, and leaves the address.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256
from time import monotonic
from urllib.parse import parse_qs, unquote, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "barkspider"
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with none, a browser does not say where a form of ours comes from either
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Stands before all pages. `hosts` are the values of Host that are ours, such as 127.0.0.1:8080.

    >>> guard = Guard(None, ["127.0.0.1:1"], token="secret")
    >>> guard.form_token == Guard(None, [], token="secret").form_token, guard.form_token != "secret"
    (True, True)
    """

    def __init__(self, app: ASGIApp | None, hosts: Iterable[str], token: str = "") -> None:
        self._app, self._hosts = app, frozenset(hosts)
        self._open, self._last = 0, -float("inf")
        self.token = token or secrets.token_urlsafe(24)
        # That of forms is another: a page that leaks lets nobody in.
        self.form_token = hmac.new(self.token.encode(), b"form", sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the module."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.encode() not in said
                    ),
                ]
            await send(message)

        refusal, self._open = self._refusal(request), self._open + 1
        try:
            if refusal is not None:
                await refusal(scope, receive, guarded)
            elif self._app is not None:
                await self._app(scope, receive, guarded)
        finally:
            self._open, self._last = self._open - 1, monotonic()

    def is_quiet(self, seconds: float) -> bool:
        """Whether nobody is being answered, nor was for so long.

        >>> Guard(None, []).is_quiet(1.0)
        True
        """
        return not self._open and monotonic() - self._last > seconds

    def _refusal(self, request: Request) -> Response | None:
        """Why a request goes no further, as an answer; None when it does."""
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse("this dashboard is not called by that name", 403)
        path = unquote(unquote(request.scope.get("raw_path", b"").decode("latin-1")))
        if ".." in path or "\\" in path or "\0" in path:
            return PlainTextResponse("there is no such path", 400)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("this is not done here", 405)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._is_known(request.cookies.get(COOKIE, "")) and not (
            request.method == "GET" and self._is_known(bearer)
        ):
            return self._admission(request)
        if request.method == "POST":
            origin = request.headers.get("origin", "")
            if origin.partition("://")[2] not in self._hosts or not origin.startswith(
                ("http://", "https://")
            ):
                return PlainTextResponse("this was sent by another site", 403)
        return None

    def _admission(self, request: Request) -> Response:
        given = parse_qs(request.url.query).get("token", [""])
        if request.method != "GET" or not self._is_known(given[0]):
            return PlainTextResponse("open the address that barkspider printed, with its token", 401)
        others = {name: values for name, values in parse_qs(request.url.query).items() if name != "token"}
        query = urlencode(others, doseq=True)
        answer = RedirectResponse(request.url.path + (f"?{query}" if query else ""), 303)
        answer.set_cookie(COOKIE, self.token, httponly=True, samesite="strict", path="/")
        return answer

    def _is_known(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def is_ours(self, form: Mapping[str, str]) -> bool:
        """Whether a form has the token that our pages put into it."""
        return hmac.compare_digest(form.get("token", "").encode("utf-8", "replace"), self.form_token.encode())
