"""A web server on loopback whose pages a test may change."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# For `load_settings(options=…)`: a crawl of one that does not wait, in little memory.
QUICK = [
    "network.allow=127.0.0.0/8",
    "memory=64MB",
    "archive.recent_digests=1000",
    "politeness.host_delay=0s",
    "politeness.server_delay=0s",
    "politeness.slow_factor=0",
]


@dataclass(frozen=True)
class Answer:
    """What a path gives; with an ETag among the headers, 304 to whoever has that version. Not before `due` is set."""

    body: str | bytes = ""
    media_type: str = "text/html"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    due: threading.Event | None = None

    @property
    def bytes(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


class Site:
    """Paths and their answers, 404 for all others; `asked` has every path in the order of requests."""

    def __init__(self, address: str, port: int = 0) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.server = ThreadingHTTPServer((address, port), self._handler())
        self.origin = f"http://{address}:{self.server.server_port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(self.path)
                answer = site.pages.get(self.path, Answer(status=404))
                if answer.due is not None:
                    answer.due.wait(60)
                known = self.headers.get("If-None-Match")
                fresh = known is not None and known == answer.headers.get("ETag")
                self.send_response(304 if fresh else answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if fresh:
                    self.end_headers()
                    return
                self.send_header("Content-Type", answer.media_type)
                self.send_header("Content-Length", str(len(answer.bytes)))
                self.end_headers()
                self.wfile.write(answer.bytes)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def serving_site(
    pages: Mapping[str, Answer | str] | None = None, address: str = "127.0.0.1", port: int = 0
) -> Iterator[Site]:
    """Serve pages until the end, at a port that is free, or at this one; a text is HTML."""
    site = Site(address, port)
    for path, page in (pages or {}).items():
        site.pages[path] = Answer(page) if isinstance(page, str) else page
    thread = threading.Thread(target=site.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join()
        site.server.server_close()
