"""The first page: the state of a crawl in one sentence, and the pictures that a person watches."""

from __future__ import annotations

from typing import Any

from barkspider.core.settings import Settings
from barkspider.dashboard.watcher import View
from barkspider.engine.outlook import Outlook, outlook
from barkspider.engine.samples import Samples
from barkspider.report.curves import Curves, by_rank
from barkspider.report.markup import Markup, figure, join, table, text
from barkspider.report.svg import bars
from barkspider.report.words import bandwidth, count, share, size, span

_RECENT = 10.0  # seconds over which the present rate is taken
_MANY = 0.2  # of the URLs that were asked for: so many failures need a person
_SOON = 86_400.0  # seconds until the disk is full that are worth a warning
_LONG_ENOUGH = 60.0  # seconds of history that tell for how long the disk lasts
_HELD = 1_000  # milliseconds without a look at the network


def now(samples: Samples, name: str) -> float:
    """By how much a counter grew, a second, lately.

    >>> now(Samples.of(["time", "pages"], [[0, 0], [5, 100], [10, 300]]), "pages")
    30.0
    """
    if len(samples) < 2:
        return 0.0
    times, counted = samples.column("time"), samples.column(name)
    place = min(int(times.searchsorted(times[-1] - _RECENT)), len(times) - 2)
    seconds = float(times[-1] - times[place])
    return max(float(counted[-1] - counted[place]) / seconds, 0.0) if seconds > 0 else 0.0


def ahead(view: View, settings: Settings) -> Outlook:
    """How far it is, and when it ends."""
    samples = view.samples
    runs, times = samples.column("run"), samples.column("time")
    this_run = float(times[-1] - times[runs == runs[-1]][0]) if len(times) else 0.0
    return outlook(
        settings.limits,
        pages=float(view.status.get("pages", 0)),
        size=float(view.status.get("bytes", 0)),
        seconds=this_run,
        rate=now(samples, "pages"),
        bandwidth=now(samples, "bytes"),
    )


def disk_full(samples: Samples, settings: Settings) -> float | None:
    """Seconds until the crawl pauses for lack of disk space, at the pace of all its history; None if it does not."""
    free, times = samples.column("disk_free"), samples.column("time")
    if len(free) < 2 or free[-1] >= free[0] or times[-1] - times[0] < _LONG_ENOUGH:
        return None
    pace = float(free[0] - free[-1]) / max(float(times[-1] - times[0]), 1.0)
    return max(float(free[-1]) - settings.limits.free_space, 0.0) / pace


def needs(view: View, settings: Settings) -> list[str]:
    """What a person should look at."""
    status, found = view.status, list(view.problems)
    if "disk" in view.state:
        found.append("the disk is full: the crawl pauses until there is room")
    elif view.running and "paused" in view.state:
        found.append("the crawl is paused")
    left = disk_full(view.samples, settings) if view.running else None
    if left is not None and left < _SOON:
        found.append(f"the disk is full in {span(left)}")
    if view.state == "killed":
        found.append("the crawl was killed: `barkspider resume` goes on")
    failed = sum(_counts(status, "failed").values())
    asked = failed + int(status.get("pages", 0)) + int(status.get("redirects", 0))
    if asked > 100 and failed / asked > _MANY:
        found.append(f"{share(failed, asked)} of what was asked for failed")
    held = int(status.get("gauges", {}).get("loop_held", 0)) if isinstance(status.get("gauges"), dict) else 0
    if view.running and held > _HELD:
        found.append(f"the network was not looked at for {held:,} ms")
    return found


def sentence(view: View, settings: Settings) -> str:
    """The state in one sentence."""
    if not view.running:
        if view.state == "not started":
            return "not started yet"
        why = f", stopped by {view.status['stopped_by']}" if view.status.get("stopped_by") else ""
        pages = int(view.status.get("pages", 0) or view.samples.last("pages"))
        return f"{view.state}, {pages:,} pages{why}"
    parts = [view.state, f"{count(round(now(view.samples, 'pages'), 1))} pages/s"]
    hope = ahead(view, settings)
    if hope.share is not None:
        parts.append(f"{100 * hope.share:.0f}% of the limit of {hope.limit}")
    if hope.seconds is not None:
        parts.append(f"{span(round(hope.seconds))} left")
    return ", ".join(parts)


def render(view: View, settings: Settings) -> Markup:
    """What is inside the page, and replaced while it is open."""
    status, curves = view.status, Curves(view.samples)
    wanted = needs(view, settings)
    many = (
        f"; {len(wanted)} thing{'s' if len(wanted) > 1 else ''} need{'' if len(wanted) > 1 else 's'} you"
        if wanted
        else ""
    )
    kind = "running" if view.running and "paused" not in view.state else "still"
    listed = join(Markup(f"<li>{text(each)}</li>") for each in wanted)
    head = Markup(
        f'<p class="state {kind}" id="state" role="status"><span class="dot"></span>{text(sentence(view, settings))}{text(many)}</p>'
        + (f'<ul class="needs">{listed}</ul>' if wanted else "")
    )
    left = disk_full(view.samples, settings)
    cards = {
        "pages": f"{int(status.get('pages', 0) or view.samples.last('pages')):,}",
        "pages/s": count(round(now(view.samples, "pages"), 1)) if view.running else "0",
        "bandwidth": bandwidth(now(view.samples, "bytes") if view.running else 0),
        "received": size(float(status.get("bytes", 0) or view.samples.last("bytes"))),
        "URLs waiting": f"{int(view.samples.last('queued') + view.samples.last('deferred')):,}",
        "in flight": f"{int(view.samples.last('in_flight')):,}",
        "hosts": f"{int(view.samples.last('hosts')):,}",
        "disk left": size(view.samples.last("disk_free")),
        "disk full in": "–" if left is None or not view.running else span(left),
    }
    shown = join(
        Markup(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>") for name, value in cards.items()
    )
    pictures = [
        figure(curves.rate(), "Pages a second"),
        figure(curves.bandwidth(), "Bandwidth"),
        figure(curves.uniqueness(), "Share of links that are new", "p"),
        figure(curves.path(), "The path of URLs", "what waits; below it RAM in use"),
        figure(by_rank(view.ranks), "Pages by rank of in-degree", "once a minute"),
        figure(curves.outcomes(), "Outcomes a second"),
        figure(curves.waiting(), "URLs that wait"),
        figure(curves.queues(), "Queues", "the longest"),
        figure(curves.shares(), "RAM by stage", "of its share"),
        figure(curves.memory(), "Memory", "of all processes"),
        figure(curves.disk(), "Disk space left"),
        figure(curves.overhead(), "Disk overhead α"),
        figure(curves.pauses(), "Pause for a checkpoint", "ms"),
    ]
    exchanged = curves.exchange()
    if exchanged:
        pictures.append(figure(exchanged, "Batches by pair of parts"))
    for group in ("refused", "failed"):
        counts = _counts(status, group)
        if counts:
            pictures.append(
                figure(
                    bars(group, dict(sorted(counts.items(), key=lambda each: -each[1])[:12])),
                    group.capitalize(),
                )
            )
    return join(
        [
            head,
            Markup(f'<dl class="cards">{shown}</dl><div class="grid">{join(pictures)}</div>'),
            _processes(view),
        ]
    )


def _counts(status: dict[str, Any], group: str) -> dict[str, float]:
    found = status.get(group, {})
    return {str(name): float(number) for name, number in found.items()} if isinstance(found, dict) else {}


def _processes(view: View) -> Markup:
    """Each process of the crawl: what it has done, and how it stands with the others where there are any."""
    told = view.status.get("parts")
    about = {each.get("folder"): each for each in told} if isinstance(told, list) else {}
    rows = []
    for part in view.parts:
        samples, own = part.samples, about.get(part.name, {})
        rows.append(
            (
                part.name if about else "the crawl",
                int(samples.last("pages")),
                count(round(now(samples, "pages"), 1)) if view.running else "0",
                int(samples.last("in_flight")),
                int(samples.last("queued")),
                int(samples.last("deferred")),
                span(round(samples.last("cpu_seconds"), 1)),
                size(samples.last("rss")),
                *((own.get("granted"), own.get("is_idle"), own.get("unsent")) if about else ()),
            )
        )
    heads = ["process", "pages", "pages/s", "in flight", "queued", "on disk", "CPU", "memory"]
    others = ["granted pages", "idle", "has batches to send"] if about else []
    return table([*heads, *others], rows, numbers=range(1, 9), name="Processes")
