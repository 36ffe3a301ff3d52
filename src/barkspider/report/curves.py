"""The pictures of a crawl over time, from its history: IRLbot's figures 5 and 6, and what a person watches besides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from barkspider.engine.samples import Samples
from barkspider.report.svg import Line, bars, lines, path
from barkspider.report.top import Standing
from barkspider.report.words import bandwidth, count, size

_POINTS = 120  # of a curve: as many as can be told apart
_SERIES = 6  # colours
Numbers = npt.NDArray[np.float64]

# The stages of the path, and the queues that wait at each.
_PATH = (
    ("seen", "new or known?", ("seen",)),
    ("star", "which budget?", ("star",)),
    (
        "beast",
        "budget left?",
        (*(f"Q_{number}" for number in range(1, 17)), "Q_17…", "Q_F"),
    ),
    ("permits", "robots.txt?", ("permits",)),
    ("ready", "its turn?", ("ready", "Q_W")),
    ("fetch", "under way", ()),
)


def chosen(samples: Samples, points: int = _POINTS) -> Samples:
    """At most so many samples, evenly over time: counters lose nothing by that, and rates become those of longer times."""
    times = samples.column("time")
    if len(samples) > 2 and times[-1] - times[-2] < (times[-2] - times[-3]) / 2:
        # The last one, at the end of a crawl, comes at any time: its rate is that of the time since the one before the last.
        samples = Samples(samples.names, np.delete(samples.rows, -2, axis=0))
        times = samples.column("time")
    if len(samples) <= points:
        return samples
    wanted = np.linspace(times[0], times[-1], points)
    places = np.unique(np.clip(np.searchsorted(times, wanted), 0, len(times) - 1))
    return Samples(samples.names, samples.rows[places])


class Curves:
    """The pictures of one crawl, each as SVG."""

    def __init__(self, samples: Samples) -> None:
        self._all, self._few = samples, chosen(samples)
        times = self._few.column("time")
        self._x: Numbers = times - times[0] if len(times) else times

    def rate(self) -> str:
        """Pages a second (figure 5)."""
        return lines("Pages a second", [self._line("pages a second", self._few.rate("pages"))])

    def bandwidth(self) -> str:
        """What comes in (figure 5)."""
        return lines("Bandwidth", [self._line("received", self._few.rate("bytes"))], y_format=bandwidth)

    def uniqueness(self) -> str:
        """p, the share of links that are new (figure 6a). Which are, is known after a merge: of those that were merged, and of
        the links that the front set stopped beside them."""
        fed, sifted = self._few.column("drums.seen.rows"), self._few.column("drums.seen.sifted")
        passed = np.divide(fed - sifted, fed, out=np.ones(len(fed)), where=fed > 0)
        links, unique = self._few.rate("drums.seen.rows_merged"), self._few.rate("drums.seen.unique")
        if not fed.any():  # a frontier that counts what it has seen in another way
            links, unique = self._few.rate("links"), self._few.rate("unique_urls")
        new = np.divide(unique * passed, links, out=np.full(len(links), np.nan), where=links > 0)
        return lines("Share of links that are new", [self._line("p", new)], least=0.1)

    def links(self) -> str:
        """Links a page."""
        pages, found = self._few.rate("pages"), self._few.rate("links")
        mean = np.divide(found, pages, out=np.full(len(pages), np.nan), where=pages > 0)
        return lines("Links a page", [self._line("links a page", mean)])

    def waiting(self) -> str:
        """URLs that wait, in RAM and on disk."""
        series = [self._line(name, self._few.column(name)) for name in ("deferred", "queued", "in_flight")]
        named = [
            Line({"in_flight": "in flight"}.get(line.name, line.name), line.x, line.y) for line in series
        ]
        return lines("URLs that wait", named)

    def outcomes(self) -> str:
        """What became of requests and URLs, a second."""
        groups = {"pages": self._few.rate("pages"), "redirects": self._few.rate("redirects")}
        for group in ("failed", "refused"):
            members = [self._few.rate(f"{group}.{name}") for name in self._few.group(group)]
            groups[group] = np.sum(members, axis=0) if members else np.zeros(len(self._x))
        tones = {"failed": "bad", "refused": "warn"}
        series = [self._line(name, rates, tones.get(name, "")) for name, rates in groups.items()]
        return lines("Outcomes a second", series)

    def queues(self) -> str:
        """The queues with the most in them now."""
        found = sorted(self._few.group("queues").items(), key=lambda each: -float(each[1].max(initial=0)))
        return lines("Queues", [self._line(name, length) for name, length in found[:5] if length.any()])

    def overhead(self) -> str:
        """α of URLseen: bytes moved for each byte of URLs, as measured and by equation (5)."""
        given = self._few.column("drums.seen.aux_bytes")
        series = []
        for name, what in (("moved", "measured"), ("predicted", "by equation (5)")):
            moved = self._few.column(f"drums.seen.{name}")
            alpha = np.divide(moved, given, out=np.full(len(given), np.nan), where=(given > 0) & (moved > 0))
            series.append(self._line(what, alpha))
        return lines("α of URLseen", series)

    def memory(self) -> str:
        """RAM of the process."""
        return lines(
            "Memory of the process", [self._line("resident", self._few.column("rss"))], y_format=size
        )

    def disk(self) -> str:
        """Disk space that is left."""
        return lines("Disk space left", [self._line("free", self._few.column("disk_free"))], y_format=size)

    def pauses(self) -> str:
        """For how long checkpoints held the loop, in milliseconds, each."""
        made, held = self._few.rate("checkpoints"), self._few.rate("checkpoint_seconds")
        each = np.divide(1000 * held, made, out=np.full(len(made), np.nan), where=made > 0)
        return lines("Pause for a checkpoint, ms", [self._line("ms", each)])

    def shares(self) -> str:
        """RAM by stage, as a part of what each may have."""
        used, most = self._all.group("ram"), self._all.group("ram_share")
        parts = {
            name: 100 * float(used[name][-1]) / float(most[name][-1])
            for name in used
            if len(used[name]) and name in most and most[name][-1]
        }
        return bars("RAM by stage, of its share", parts, y_format=lambda part: f"{part:.1f}%", whole=100)

    def exchange(self) -> str:
        """Batches that parts sent each other, by pair."""
        sent = {
            name.replace(">", " → "): float(counts[-1])
            for name, counts in self._all.group("exchange").items()
            if len(counts) and " " not in name
        }
        return bars("Batches by pair of parts", sent) if sent else ""

    def path(self) -> str:
        """seen → star → beast → permits → ready → fetch, with the number waiting at each stage; P, S, N of Sydney."""
        queues = {
            name: float(lengths[-1]) for name, lengths in self._all.group("queues").items() if len(lengths)
        }
        flight = self._all.last("in_flight")
        if "P" in queues:
            about = (("S", "pages with links left"), ("N", "new or known?"), ("P", "pages to fetch"))
            stages = [(name, what, queues[name], 0.0) for name, what in about if name in queues]
            return path("The path of URLs", [*stages, ("fetch", "under way", flight, 0.0)])
        used, most = self._all.group("ram"), self._all.group("ram_share")
        stages = []
        for name, what, names in _PATH:
            waiting = sum(queues.get(each, 0.0) for each in names) if names else flight
            part = {"star": "indegree", "permits": "robots", "fetch": "received"}.get(name, name)
            share = (
                float(used[part][-1] / most[part][-1])
                if part in used and part in most and most[part][-1]
                else 0.0
            )
            stages.append((name, what, waiting, share))
        return path("The path of URLs", stages)

    def _line(self, name: str, values: Numbers, tone: str = "") -> Line:
        return Line(name, self._x.tolist(), values.tolist(), tone)


def by_rank(standing: Standing | None) -> str:
    """Pages and budgets of domains by the rank of their in-degree, on logarithmic axes (figure 6b): means over ranks that
    are close to each other. Domains of equal in-degree share their pages: which of them comes first means nothing."""
    if standing is None or not len(standing.known):
        return lines("Pages by rank of in-degree", [])
    domains = standing.known.counts[::-1]
    last = np.concatenate([[0], np.cumsum(domains)])
    edges = np.unique(np.round(np.geomspace(1, last[-1] + 1, 40))) - 1
    x = np.sqrt((edges[:-1] + 1) * edges[1:])
    series = []
    for name, all_of_them in (
        ("pages", standing.pages),
        (
            "budget",
            None if standing.budgets is None else standing.known.counts * standing.budgets.astype(np.float64),
        ),
    ):
        if all_of_them is not None:
            so_far = np.interp(edges, last, np.concatenate([[0], np.cumsum(all_of_them[::-1])]))
            series.append(Line(name, x.tolist(), (np.diff(so_far) / np.diff(edges)).tolist()))
    return lines("Pages by rank of in-degree", series, x_format=count, log=True)


def by_in_degree(standing: Standing) -> str:
    """How many domains have an in-degree or a higher one, on logarithmic axes."""
    degrees, at_least = standing.known.degrees, np.cumsum(standing.known.counts[::-1])[::-1]
    if not len(degrees):
        return lines("Domains by in-degree", [])
    few = np.unique(
        np.searchsorted(degrees, np.geomspace(max(degrees[0], 1), degrees[-1], _POINTS)).clip(
            0, len(degrees) - 1
        )
    )
    series = [Line("domains", degrees[few].tolist(), at_least[few].tolist())]
    return lines("Domains by in-degree", series, x_format=count, log=True)
