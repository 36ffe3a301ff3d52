"""One host: what was asked of it, why it waits, and which robots.txt counts for it; and one URL: what became of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.dashboard.shell import notice
from barkspider.dashboard.watcher import Watcher
from barkspider.engine.control import ask
from barkspider.engine.folder import part_folders
from barkspider.report.markup import Markup, join, table, text
from barkspider.report.words import span

_SECONDS = 5.0
_MOST = 20_000  # letters of a robots.txt that are shown
_ANSWERS = "SELECT outcome, count(*) AS times, max(fetch_time) AS last FROM pages WHERE url_host_name = ? GROUP BY outcome ORDER BY times DESC"
_ERRORS = "SELECT what, outcome, count(*) AS times, max(time) AS last FROM errors WHERE url_host_name = ? GROUP BY what, outcome ORDER BY times DESC"
_ROBOTS = "SELECT origin, url, outcome, fetch_time FROM robots WHERE url_host_name = ? ORDER BY fetch_time DESC LIMIT 20"


def about_host(watcher: Watcher, name: str) -> Markup:
    """All that is known of a host."""
    if not name:
        raise UsageError("name a host")
    job = watcher.tables
    parts = [Markup(f"<h1>{text(name)}</h1>"), _live(watcher, name)]
    answers = job.query(_ANSWERS, [name], seconds=_SECONDS).to_pylist()
    parts.append(
        table(
            ["answer", "times", "last"],
            [(row["outcome"], row["times"], row["last"]) for row in answers],
            numbers=(1,),
            name="Pages",
        )
    )
    errors = job.query(_ERRORS, [name], seconds=_SECONDS).to_pylist()
    if errors:
        rows = [(row["what"], row["outcome"], row["times"], row["last"]) for row in errors]
        parts.append(table(["what", "error", "times", "last"], rows, numbers=(2,), name="Errors"))
    robots = job.query(_ROBOTS, [name], seconds=_SECONDS).to_pylist()
    asked = [(row["origin"], row["outcome"], row["fetch_time"]) for row in robots]
    parts.append(table(["origin", "answer", "time"], asked, name="Requests for robots.txt"))
    for row in [each for each in robots if each["outcome"] == "ok"][:1]:
        try:
            words = job.page(row["url"]).markup[:_MOST]
        except BarkspiderError as error:
            words = str(error)
        parts.append(Markup(f'<h2>robots.txt, last answer</h2><pre tabindex="0">{text(words)}</pre>'))
    return join(parts)


def why_page(watcher: Watcher, url: str) -> Markup:
    """A box for a URL, and what became of it."""
    box = Markup(
        f'<form method="get" action="/why" class="search"><label>URL <input type="text" name="url" size="60" value="{text(url)}"></label>'
        "<button>Why?</button></form>"
    )
    if not url:
        return box
    from barkspider.engine.why import (
        why,  # here: it takes compiled kernels, and 130 MB, which other pages do without
    )

    found = why(watcher.path, url)
    waits = ", ".join(f"{each['queue']} behind {each['ahead']:,}" for each in found.places)
    rows = [
        ("normalised", found.normalised),
        ("scope", f"refused: {found.refused}" if found.refused else "in scope"),
        ("seen", found.seen),
        ("found on", found.found_on or ("a seed" if found.is_seed else "")),
        ("outcomes", ", ".join(f"{each['time']}: {each['outcome']}" for each in found.outcomes)),
        ("waits in", waits),
        (
            "decided",
            ", ".join(f"{each['time']}: {each['decision']} by {each['rule']}" for each in found.decisions),
        ),
        ("robots.txt", ", ".join(f"{name} {value}" for name, value in found.robots.items())),
        ("could not be seen", ", ".join(found.unseen)),
    ]
    return join([box, notice(found.verdict), table(["", ""], rows)])


def _live(watcher: Watcher, name: str) -> Markup:
    """What the crawl knows of the host at this moment, if one runs and has it in RAM."""
    told: dict[str, Any] = {}
    for folder in part_folders(watcher.path):
        try:
            told = ask(folder, "host", host=name, timeout=3.0) or {}
        except BarkspiderError:
            continue
        if told.get("known"):
            break
    if not told.get("known"):
        return Markup('<p class="note">No crawl that runs has anything queued for this host.</p>')
    rows = [
        ("state", told["state"]),
        ("URLs queued", told["queued"]),
        ("may be asked", "now" if told["wait"] <= 0 else f"in {span(round(told['wait'], 1))}"),
        ("address", told["address"] or "not known yet"),
        (
            "its server may be asked",
            "now" if told["server_wait"] <= 0 else f"in {span(round(told['server_wait'], 1))}",
        ),
        ("Crawl-delay", span(told["crawl_delay"]) if told["crawl_delay"] else "none"),
        ("troubles in a row", told["trouble"]),
        ("why it has no address", told["error"]),
    ]
    origins = [
        (each["name"], "being asked for" if each["asking"] else each["verdict"], _moment(each["until"]))
        for each in told["origins"]
    ]
    return join(
        [table(["", ""], rows, name="Now"), table(["origin", "robots.txt", "in force until"], origins)]
    )


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
