"""The report as one file: HTML with its style and its pictures inside, which opens without a network and prints well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

from barkspider.report.curves import Curves, by_in_degree, by_rank
from barkspider.report.facts import Facts
from barkspider.report.figures import DISTRIBUTIONS
from barkspider.report.markup import Cell, Markup, figure, join, table, text
from barkspider.report.servers import SAMPLE
from barkspider.report.svg import bars
from barkspider.report.words import bandwidth, count, share, size, span

Section = Callable[[Facts], Markup]


def style() -> str:
    """The style sheet of reports and of the dashboard."""
    return files("barkspider.report").joinpath("style.css").read_text("utf-8")


def render(facts: Sequence[Facts]) -> str:
    """The report of one crawl, or of two side by side."""
    title = " against ".join(each.name for each in facts)
    sections = join(_section(name, about, make, facts) for name, about, make in _SECTIONS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(title)} – a crawl by barkspider</title><style>{style()}</style></head>"
        f'<body class="report"><main><header><h1>{text(title)}</h1>{join(map(_summary, facts))}</header>'
        f"{_compared(facts) if len(facts) > 1 else ''}{sections}</main></body></html>"
    )


def _section(name: str, about: str, make: Section, facts: Sequence[Facts]) -> Markup:
    if len(facts) == 1:
        inside = make(facts[0])
    else:
        sides = join(Markup(f"<div><h3>{text(each.name)}</h3>{make(each)}</div>") for each in facts)
        inside = Markup(f'<div class="pair">{sides}</div>')
    return Markup(f'<section><h2>{text(name)}</h2><p class="about">{text(about)}</p>{inside}</section>')


def _summary(facts: Facts) -> Markup:
    pages, seconds = facts.counted["pages"], facts.counted["seconds"]
    rate = count(round(pages / seconds, 1)) if seconds else "0"
    first = facts.totals["first"]
    when = f", begun {first:%Y-%m-%d %H:%M} UTC" if first else ""
    return Markup(
        f'<p class="lead"><strong>{text(int(pages))}</strong> pages in {text(span(seconds))}, '
        f"{text(rate)} a second{text(when)}.</p>"
    )


def headline(facts: Facts) -> dict[str, str]:
    """The figures at the top, as people read them."""
    counted, found = facts.counted, facts.totals
    pages = counted["pages"]
    return {
        "pages": f"{int(pages):,}",
        "received": size(counted["bytes"]),
        "mean rate": f"{count(round(pages / counted['seconds'], 1) if counted['seconds'] else 0)} pages/s",
        "mean bandwidth": bandwidth(counted["bytes"] / counted["seconds"] if counted["seconds"] else 0),
        "URLs found": f"{int(counted['discovered']):,}",
        "links": f"{int(counted['links']):,}",
        "hosts": f"{found['hosts']:,}",
        "domains": f"{found['domains']:,}",
        "downloads a URL": f"{found['downloads_a_url']:.3f}",
        "duplicates": share(found["duplicates"], found["downloads"]),
        "median page": size(found["median_size"]),
        "median fetch": span(round(found["median_seconds"], 3)),
    }


def _cards(facts: Facts) -> Markup:
    cards = join(
        Markup(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>")
        for name, value in headline(facts).items()
    )
    return Markup(f'<dl class="cards">{cards}</dl>')


def _compared(facts: Sequence[Facts]) -> Markup:
    own = [headline(each) for each in facts]
    rows = [[name, *(each[name] for each in own)] for name in own[0]]
    inside = table(["", *(each.name for each in facts)], rows, numbers=range(1, len(facts) + 1))
    return Markup(f"<section><h2>Side by side</h2>{inside}</section>")


def _over_time(facts: Facts) -> Markup:
    curves = Curves(facts.samples)
    pictures = [
        (curves.rate(), "Pages a second", "IRLbot, figure 5"),
        (curves.bandwidth(), "Bandwidth", "IRLbot, figure 5"),
        (curves.uniqueness(), "Share of links that are new", "IRLbot, figure 6a"),
        (curves.links(), "Links a page", ""),
        (curves.outcomes(), "Outcomes a second", ""),
        (curves.waiting(), "URLs that wait", ""),
        (curves.queues(), "Queues", "the longest"),
        (curves.overhead(), "Disk overhead α", "bytes moved for a byte of URLs"),
        (curves.memory(), "Memory", "of all processes"),
        (curves.disk(), "Disk space left", ""),
        (curves.pauses(), "Pause for a checkpoint", "ms"),
    ]
    exchanged = curves.exchange()
    if exchanged:
        pictures.append((exchanged, "Batches by pair of parts", ""))
    return Markup(f'<div class="grid">{join(figure(*each) for each in pictures)}</div>')


def _path(facts: Facts) -> Markup:
    curves = Curves(facts.samples)
    drawn = [
        figure(
            curves.path(),
            "At the last checkpoint",
            "what waits; below it RAM in use",
        ),
        figure(curves.shares(), "RAM by stage", "of its share"),
    ]
    return Markup(f'<div class="grid">{join(drawn)}</div>')


def _fetched(facts: Facts) -> Markup:
    drawn = [
        figure(bars(about.title, facts.distributions[name]), about.title, about.note)
        for name, about in DISTRIBUTIONS.items()
    ]
    found, looked = facts.servers
    drawn.append(
        figure(
            bars("Server software", found),
            "Server software",
            f"of {looked:,} pages" + (", a sample" if looked == SAMPLE else ""),
        )
    )
    return Markup(f'<div class="grid">{join(drawn)}</div>')


def _domains(facts: Facts) -> Markup:
    rows = [
        (
            each.rank,
            each.domain,
            each.in_degree,
            each.budget,
            each.supporters,
            "" if each.pagerank is None else f"{each.pagerank:.2f}",
            each.pages,
        )
        for each in facts.top
    ]
    heads = ["rank", "domain", "in-degree", "budget", "supporters", "PageRank", "pages"]
    drawn = [
        figure(by_rank(facts.standing), "Pages and budgets by rank of in-degree", "IRLbot, figure 6b"),
        figure(by_in_degree(facts.standing), "Domains by in-degree", "how many have so many or more"),
    ]
    return join(
        [Markup(f'<div class="grid">{join(drawn)}</div>'), table(heads, rows, numbers=(0, 2, 3, 4, 5, 6))]
    )


def _limits(facts: Facts) -> Markup:
    rows = [
        (
            each.name,
            Cell(Markup(f"<code>{text(each.setting)}</code>")),
            each.limit,
            each.reached,
            share(each.reached, each.of),
            each.what,
            each.suggestion,
        )
        for each in facts.limits
    ]
    return table(
        ["limit", "setting", "value", "reached by", "share", "of", "what to do"], rows, numbers=(2, 3, 4)
    )


def _refused(facts: Facts) -> Markup:
    about = {
        "refused": "URLs that were found and are not to be fetched",
        "failed": "URLs that could not be fetched",
        "out_of_scope": "Links that never became URLs of this crawl",
        "robots_failed": "robots.txt that was not answered, or answered with an error",
        "rejected": "Pages that were fetched and not kept",
    }
    drawn = [
        figure(bars(name, facts.reasons[group]), name)
        for group, name in about.items()
        if facts.reasons[group]
    ]
    errors = [
        (row["what"], row["outcome"], row["times"], row["hosts"], row["example"]) for row in facts.errors
    ]
    cuts = [(row["reason"], row["pages"], row["example"]) for row in facts.cuts]
    parts = [Markup(f'<div class="grid">{join(drawn)}</div>')]
    if errors:
        parts.append(
            table(["what", "error", "times", "hosts", "for example"], errors, numbers=(2, 3), name="Errors")
        )
    if cuts:
        parts.append(
            table(["cut by", "pages", "for example"], cuts, numbers=(1,), name="Pages that were cut")
        )
    return join(parts)


def _hosts(facts: Facts) -> Markup:
    rows = [
        (row["host"], row["pages"], size(row["bytes"]), row["duplicates"], row["depth"])
        for row in facts.hosts
    ]
    return table(["host", "pages", "received", "duplicates", "depth"], rows, numbers=(1, 2, 3, 4))


def _cost(facts: Facts) -> Markup:
    samples, pages = facts.samples, facts.counted["pages"] or 1.0
    given = samples.last("drums.seen.aux_bytes")
    rows = [
        (
            "CPU",
            f"{facts.counted['cpu_seconds']:,.1f} s",
            f"{1e6 * facts.counted['cpu_seconds'] / pages:,.0f} µs a page",
        ),
        ("memory at most", size(float(samples.column("rss").max(initial=0))), "of all processes"),
        *((name, size(used), f"{size(used / pages)} a page") for name, used in facts.disk.items()),
        (
            "α of URLseen",
            f"{samples.last('drums.seen.moved') / given:.2f}" if given else "–",
            f"{samples.last('drums.seen.predicted') / given:.2f} by equation (5)" if given else "",
        ),
        (
            "merges of URLseen",
            text(int(samples.last("drums.seen.merges"))),
            span(round(samples.last("drums.seen.merge_microseconds") / 1e6, 3)) + " in all",
        ),
        (
            "checkpoints",
            text(int(samples.last("checkpoints"))),
            f"longest pause of the loop {samples.last('loop_held'):,.0f} ms",
        ),
    ]
    phases = {name: float(spent[-1]) for name, spent in samples.group("phases").items() if len(spent)}
    drawn = figure(
        bars("CPU by phase", phases, y_format=lambda spent: f"{spent:.2f} s"), "CPU of the last run by phase"
    )
    return join(
        [Markup(f'<div class="grid"><div>{table(["", "in all", ""], rows, numbers=(1,))}</div>{drawn}</div>')]
    )


def _settings(facts: Facts) -> Markup:
    rows = [
        (Cell(Markup(f"<code>{text(name)}</code>")), value, meaning) for name, value, meaning in facts.changed
    ]
    return table(["setting", "value", "meaning"], rows)


_SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("In short", "", _cards),
    ("Over time", "From the crawl's own history.", _over_time),
    (
        "The path of URLs",
        "seen → star → beast → permits → ready → fetch, and what waits at each stage.",
        _path,
    ),
    ("What was fetched", "Every answer in the table of pages.", _fetched),
    (
        "Domains",
        "The first by in-degree, as IRLbot's Table 4. PageRank is in multiples of the mean.",
        _domains,
    ),
    ("Hosts", "Those with the most pages.", _hosts),
    ("Limits", "Who reached them, as Table VI of the Viúva Negra paper.", _limits),
    ("Cut, refused, failed", "By reason, with an example of each.", _refused),
    ("Cost", "", _cost),
    ("Settings", "Those that are not the defaults. What is secret is not shown.", _settings),
)
