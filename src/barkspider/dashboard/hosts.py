"""One host: what was asked of it, why it waits, and which robots.txt counts for it; and one URL: what became of it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.dashboard.shell import facts, intro, notice
from barkspider.dashboard.watcher import Watcher
from barkspider.report.markup import Markup, join, table, text
from barkspider.report.words import span

_SECONDS = 5.0
_PATIENCE = 60.0  # seconds for an answer about one URL: a gigabyte of queues takes some
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
    head = intro(
        "Why", "What became of a URL, and why: from the queues, the tables and the archive themselves."
    )
    if not url:
        return join([head, box])
    found = _why(watcher.path, url)
    rows = [
        ("normalised", found.normalised),
        ("scope", f"refused: {found.refused}" if found.refused else "in scope"),
        ("seen", "yes" if found.seen else "not as of the last checkpoint"),
        ("found on", found.found_on or ("a seed" if found.is_seed else "")),
        ("outcomes", ", ".join(f"{each['outcome']} at {each['time'][:19]}" for each in found.outcomes)),
        ("waits in", ", ".join(f"{each['queue']} behind {each['ahead']:,}" for each in found.places)),
        (
            "decided",
            ", ".join(
                f"{each['decision']} by {each['rule']} at {each['time'][:19]}" for each in found.decisions
            ),
        ),
        (
            "its domain",
            ", ".join(f"{name.replace('_', '-')} {value:,}" for name, value in found.domain.items()),
        ),
        ("its host", f"waits for {waits(found.host)}" if found.host.get("queued") else ""),
        ("robots.txt", _said(found.robots)),
        ("could not be seen", ", ".join(found.unseen)),
    ]
    words = f"{found.verdict[0].upper()}{found.verdict[1:]}."
    return join([head, box, notice(words, "verdict"), facts([row for row in rows if row[1]])])


def _why(job: Path, url: str) -> SimpleNamespace:
    """What `barkspider why` says, by a process of its own: it takes compiled kernels, and 130 MB, which go with it."""
    command = [sys.executable, "-m", "barkspider.cli", "why", "--json", "--", str(job), url.replace("\0", "")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        return SimpleNamespace(**json.loads(done.stdout))
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"no answer within {_PATIENCE:.0f} s; ask `barkspider why` on a terminal") from error
    except (subprocess.CalledProcessError, ValueError) as error:
        told = str(getattr(error, "stderr", "") or error).strip().splitlines()
        raise UsageError(told[-1].removeprefix("barkspider: ")) from error


def _said(robots: dict[str, Any]) -> str:
    """What a robots.txt says of a URL."""
    if not robots:
        return ""
    allows = {True: ", which allows it", False: ", which forbids it", None: ""}[robots.get("allows")]
    rule = f": {robots['rule']}" if "rule" in robots else ""
    return f"{robots['answer']} at {robots['time'][:19]}{allows}{rule}"


def waits(told: dict[str, Any]) -> str:
    """Why a host is left alone, and for how long, in some words; `told` is what the crawl says of it.

    >>> waits({"state": "waiting", "queued": 3, "wait": 2.04, "server_wait": 0.0, "origins": []})
    'its pause: 2 s'
    >>> waits({"state": "due", "queued": 1, "wait": 0.0, "server_wait": 0.5, "origins": []})
    'its server: 0.5 s'
    """
    if told["state"] == "busy":
        return "is being asked"
    if not told["queued"]:
        return "nothing is queued"
    if told["state"] == "blocked" or any(each["asking"] for each in told["origins"]):
        return "its robots.txt is asked for"
    if told["state"] == "unnamed":
        return "its address is asked for"
    name, seconds = max(
        (("its pause", told["wait"]), ("its server", told["server_wait"])), key=lambda each: each[1]
    )
    return f"{name}: {span(round(seconds, 1))}" if seconds > 0 else "a slot"


def _live(watcher: Watcher, name: str) -> Markup:
    """What the crawl knows of the host at this moment, if one runs and has it in RAM."""
    told = watcher.hosts([name]).get(name, {})
    if not told.get("known"):
        return Markup('<p class="note">No crawl that runs has anything queued for this host.</p>')
    rows = [
        ("waits for", waits(told)),
        ("URLs queued", told["queued"]),
        ("may be asked", "now" if told["wait"] <= 0 else f"in {span(round(told['wait'], 1))}"),
        ("address", told["address"] or "not known yet"),
        (
            "its server may be asked",
            "now" if told["server_wait"] <= 0 else f"in {span(round(told['server_wait'], 1))}",
        ),
        ("Crawl-delay", span(told["crawl_delay"]) if told["crawl_delay"] else "none"),
        ("troubles in a row", told["trouble"]),
        *([("why it has no address", told["error"])] if told["error"] else []),
    ]
    origins = [
        (each["name"], "being asked for" if each["asking"] else each["verdict"], _moment(each["until"]))
        for each in told["origins"]
    ]
    return join(
        [Markup("<h2>Now</h2>"), facts(rows), table(["origin", "robots.txt", "in force until"], origins)]
    )


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
