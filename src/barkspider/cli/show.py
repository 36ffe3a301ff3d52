"""`barkspider show`: what a crawl holds of a URL."""

from __future__ import annotations

from typing import Annotated

import typer

from barkspider.cli.terminal import printable, put, say, say_json
from barkspider.core.errors import UsageError


def show(
    job: Annotated[str, typer.Argument(help="The folder of a crawl, which may be running, or its store.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="The page to show.")],
    body: Annotated[
        bool, typer.Option("--body", help="Print the page itself, without its encodings.")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the exact bytes that the server sent.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what is known as one JSON object.")] = False,
) -> int:
    """Show what a crawl has stored of a URL: the newest capture, and how many there are.

    Example: barkspider show jobs/mine https://example.org/ --body
    """
    if body + raw + json_ > 1:
        raise UsageError("--body, --raw and --json exclude each other; choose one")
    from barkspider.engine import open_job
    from barkspider.engine.borrowing import at_hand

    with at_hand(job) as folder:
        opened = open_job(folder)
        page = opened.page(url)
        captures = opened.captures(url)
    if raw:
        put(page.raw)
    elif body:
        put(page.body, page.markup)
    else:
        newest = captures[-1]
        known = {
            "url": page.url,
            "time": page.time.isoformat(),
            "status": page.status,
            "type": page.header("content-type"),
            "charset": page.charset if page.is_html else "",
            "title": page.title if page.is_html else "",
            "bytes": len(page.body),
            "digest": newest.get("digest", ""),
            "revisit": page.revisit,
            "record": f"{newest['filename']} at {newest['offset']}, {newest['length']} bytes",
            "captures": len(captures),
        }
        if json_:
            say_json({**known, "headers": page.headers, "index": captures})
        else:
            for name, value in known.items():
                say(f"{name:10} {printable(value)}")
    return 0
