"""The papers' tables that come from formulas, recomputed.

All of a paper's units are decimal. IRLbot's M is 256,000 bytes here: with it Table 3 and S_disk come out to the
printed digits (with 2^18 they are 2% and 1% off), and D_opt does in binary terabytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from barkspider.lab.papers.comparison import Cell, Line, Picture, Table
from barkspider.model import exchange, irlbot, ranking
from barkspider.model.irlbot import UrlStream
from barkspider.model.ranking import Disk, DomainGraph, Work

_IRLBOT, _PARALLEL, _SPAM = "IRLbot", "Parallel Crawlers", "Spam Avoidance"
_BUFFER = 256_000
_SIZES = {"800M": 8e8, "8B": 8e9, "80B": 8e10, "800B": 8e11, "8T": 8e12}
_MONTH, _WEEK = 30 * 86400, 7 * 86400
_TIB = 2**40


def _stream(pages: float) -> UrlStream:
    return UrlStream(59 * pages, 1 / 9)


def _grown_disk(pages: float) -> float:
    """D(n) of Table 3."""
    return max(_stream(pages).unique_urls * 8, 1e12)


def irlbot_table_2() -> Table:
    """α for a fixed disk."""
    methods: dict[str, Callable[[float], float]] = {
        "Mercator-B": lambda pages: irlbot.mercator(_stream(pages), 1e9),
        "Polybot": lambda pages: irlbot.polybot(_stream(pages), 1e9),
        "DRUM": lambda pages: irlbot.drum(_stream(pages), 1e9, 4.39e12, _BUFFER),
    }
    printed = {
        "Mercator-B": ("11.6", "93", "917", "9,156", "91,541"),
        "Polybot": ("69", "663", "6,610", "66,082", "660,802"),
        "DRUM": ("2.26", "2.35", "3.3", "12.5", "104"),
    }
    title = "Overhead α of URL checks, R = 1 GB, D = 4.39 TB"
    return _overheads("Table 2", title, methods, printed)


def irlbot_table_3() -> Table:
    """α for a disk that grows with the crawl."""
    methods: dict[str, Callable[[float], float]] = {
        "Mercator-B, 4 GB": lambda pages: irlbot.mercator(_stream(pages), 4e9),
        "DRUM, 4 GB": lambda pages: irlbot.drum(_stream(pages), 4e9, _grown_disk(pages), _BUFFER),
        "Mercator-B, 8 GB": lambda pages: irlbot.mercator(_stream(pages), 8e9),
        "DRUM, 8 GB": lambda pages: irlbot.drum(_stream(pages), 8e9, _grown_disk(pages), _BUFFER),
    }
    printed = {
        "Mercator-B, 4 GB": ("4.48", "25", "231", "2,290", "22,887"),
        "DRUM, 4 GB": ("2.30", "2.7", "3.3", "3.3", "8.1"),
        "Mercator-B, 8 GB": ("3.29", "13.5", "116", "1,146", "11,444"),
        "DRUM, 8 GB": ("2.30", "2.7", "3.3", "3.3", "3.7"),
    }
    return _overheads("Table 3", "Overhead α of URL checks, D = D(n)", methods, printed)


def _overheads(
    name: str,
    title: str,
    methods: Mapping[str, Callable[[float], float]],
    printed: Mapping[str, Sequence[str]],
) -> Table:
    rows = tuple(
        (label, tuple(Cell(printed[method][at], methods[method](pages)) for method in methods))
        for at, (label, pages) in enumerate(_SIZES.items())
    )
    sizes = tuple(8e8 * 10 ** (step / 10) for step in range(41))
    lines = [Line(method, sizes, tuple(map(methods[method], sizes))) for method in methods]
    for at, method in enumerate(methods):
        values = tuple(cells[at].value for _, cells in rows)
        lines.append(Line(method, tuple(_SIZES.values()), values, points=True))
    picture = Picture(f"IRLbot, {name}: {title}", "pages", "α", tuple(lines))
    return Table(_IRLBOT, name, title, tuple(methods), rows, picture=picture)


def irlbot_examples() -> Table:
    """The figures in the text of section 4."""
    stream = _stream(8e12)
    disk = _grown_disk(8e12)
    speed = 0.15 * (1e9 + 350e6) / 2
    drum = irlbot.disk_rate(speed, irlbot.drum(stream, 8e9, disk, _BUFFER), 110, 59)
    mercator = irlbot.disk_rate(speed, irlbot.mercator(stream, 8e9), 110, 59)
    polybot = irlbot.disk_rate(speed, irlbot.polybot(stream, 8e9), 110, 59)
    limit = irlbot.polybot_limit(stream, 1e9) / irlbot.mercator_limit(stream, 1e9)
    return Table(
        _IRLBOT,
        "Section 4",
        "The examples in the text",
        ("value",),
        (
            ("Mercator-B over Polybot, n → ∞ (3) (4)", (Cell("7.2", limit),)),
            ("α''min", (Cell("2.256", irlbot.drum_floor(stream)),)),
            (
                "D_opt (6), R = 1 GB",
                (Cell("4.39 TB", irlbot.drum_best_disk(stream, 1e9, _BUFFER) / _TIB * 1e12),),
            ),
            (
                "D_opt (6), R = 2 GB",
                (Cell("17 TB", irlbot.drum_best_disk(stream, 2e9, _BUFFER) / _TIB * 1e12),),
            ),
            ("r_opt/R", (Cell("0.33", irlbot.drum_best_bucket(stream, 1)),)),
            ("k_opt = R/4M, R = 1 GB", (Cell("1,000", irlbot.drum_best_buckets(1e9, _BUFFER)),)),
            ("k_opt = R/4M, R = 8 GB", (Cell("8,000", irlbot.drum_best_buckets(8e9, _BUFFER)),)),
            ("W, 15% of the disks' speed", (Cell("101.25 MB/s", speed),)),
            ("S_disk (7) of DRUM, N = 8T, R = 8 GB", (Cell("4,192 pages/s", drum),)),
            ("the same in bits, 21.2 KB a page", (Cell("711 Mb/s", drum * 21.2e3 * 8),)),
            ("DRUM over Mercator-B", (Cell("3,075", drum / mercator),)),
            ("S_disk of Mercator-B", (Cell("1.4 pages/s", mercator),)),
            ("S_disk of Polybot", (Cell("0.2 pages/s", polybot),)),
        ),
        "The printed D_opt is in binary terabytes; 4.39 and 17 do not fit each other (D_opt grows with R²). "
        "k_opt is printed as a round number.",
    )


def irlbot_crawl() -> Table:
    """The figures of section 7.1 that follow from its counts."""
    pages, seconds = 6_380_051_942, 41.27 * 86400
    found = 41_502_195_631
    return Table(
        _IRLBOT,
        "Section 7",
        "The crawl of 6.3 billion pages",
        ("value",),
        (
            ("pages a second", (Cell("1,789 pages/s", pages / seconds),)),
            ("bits a second", (Cell("319 Mb/s", 143e12 * 8 / seconds),)),
            ("HTML a page", (Cell("25.2 KB", 161e12 / pages),)),
            ("l = K/N, links a page", (Cell("59", 374_707_295_503 / pages),)),
            ("L, unique URLs a page", (Cell("6.5", found / pages),)),
            ("URLseen", (Cell("332 GB", found * 8),)),
        ),
        "The volume is printed as 143 TB, so its rate is known to 1% only.",
    )


def irlbot_budgets() -> Table:
    """λ and j of section 6."""

    def excess(pages: float) -> float:
        return irlbot.over_budget(pages, 11, 33e6)

    def naive(pages: float) -> float:
        return irlbot.naive_speed(3100, 110, 6.5, excess(pages))

    def beast(pages: float) -> float:
        return irlbot.beast_speed(3100, 110, 6.5, excess(pages))

    most = Cell("8.2 MB/s", irlbot.beast_speed(3100, 110, 6.5, math.inf))
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...] = (
        ("100M", (Cell("3.8 MB/s", naive(1e8)), None, None)),
        ("8B", (Cell("83 MB/s", naive(8e9)), None, Cell("16", irlbot.beast_queues(excess(8e9))))),
        ("80B", (Cell("826 MB/s", naive(8e10)), None, Cell("128", irlbot.beast_queues(excess(8e10))))),
        ("∞", (None, most, None)),
    )
    sizes = tuple(1e8 * 10 ** (step / 10) for step in range(41))
    return Table(
        _IRLBOT,
        "Section 6",
        "Disk speed λ that budgets need at 3,100 pages/s, and queues",
        ("naive (8)", "BEAST (10)", "j (11)"),
        rows,
        picture=Picture(
            "IRLbot, section 6: disk speed for budgets at 3,100 pages/s",
            "pages",
            "λ, bytes/s",
            (
                Line("naive (8)", sizes, tuple(map(naive, sizes))),
                Line("BEAST (10)", sizes, tuple(map(beast, sizes))),
                Line("naive (8)", (1e8, 8e9, 8e10), (3.8e6, 83e6, 826e6), points=True),
            ),
        ),
    )


def parallel_examples() -> Table:
    """Examples 1 to 3 and the figures of section 8."""
    month = exchange.download_speed(1e9, exchange.PAGE, _MONTH)
    week = exchange.download_speed(1e9, exchange.PAGE, _WEEK)
    part = exchange.download_speed(200e6, exchange.PAGE, _MONTH)
    pairs = 0.17 * 200e6
    return Table(
        _PARALLEL,
        "Examples 1 to 3",
        "Bandwidth, machines, and URLs exchanged",
        ("value",),
        (
            ("example 1: 1 billion pages a month", (Cell("34 Mb/s", month * 8),)),
            ("machines with 10 Mb/s", (Cell("4", exchange.machines_for(month, 10e6 / 8)),)),
            ("example 2: the same a week", (Cell("140 Mb/s", week * 8),)),
            ("machines with 10 Mb/s, a week", (Cell("14", exchange.machines_for(week, 10e6 / 8)),)),
            ("example 3: 200 million pages a month", (Cell("6.2 Mb/s", part * 8),)),
            ("machines with 1.5 Mb/s", (Cell("5", exchange.machines_for(part, 1.5e6 / 8)),)),
            ("pairs exchanged, 0.17 a page", (Cell("34M", pairs),)),
            ("their share of the bandwidth", (Cell("0.06%", exchange.exchange_share(pairs / 200e6)),)),
            ("URLs a page, site hash, 2 processes", (Cell("0.5", exchange.exchanged_per_page(1, 2)),)),
            ("URLs a page, URL hash, 2 processes", (Cell("5", exchange.exchanged_per_page(10, 2)),)),
            ("one URL a page, share of the bandwidth", (Cell("0.4%", exchange.exchange_share(1)),)),
        ),
        "Example 3 counts a month of 30 days and 10,000 bytes a page, as we do; example 1 comes out only with 10 KiB "
        "and 2^30 pages (33.9), example 2 is called approximate.",
    )


def spam_table_2() -> Table:
    """Hits and operations of the methods in RAM."""
    graph = DomainGraph()

    def row(label: str, hits: str, operations: str, work: Work) -> tuple[str, tuple[Cell | None, ...]]:
        return label, (Cell(hits, work.hits), Cell(operations, work.operations), None)

    exact = ranking.supp2(graph)
    hours = Cell("82 hours", exact.hits * ranking.MEMORY_LATENCY / 3600)
    label, (hits, operations, _) = row("SUPP2", "4.9T", "1.9T", exact)
    return Table(
        _SPAM,
        "Table II",
        "Memory hits and operations in RAM",
        ("hits", "operations", "hours at 60 ns a hit"),
        (
            (label, (hits, operations, hours)),
            row("TSE, p = 0.01", "49B", "19B", ranking.tse(graph, 1e-2)),
            row("Bit Vector, r = 2", "7.1B", "11B", ranking.bit_vector(graph, 2)),
            row("TSE, p = 0.001", "4.9B", "1.9B", ranking.tse(graph, 1e-3)),
            row("Quick Visit", "1.8B", "1.8B", ranking.quick_visit(graph)),
            row("TSE, p = 0.0001", "490M", "190M", ranking.tse(graph, 1e-4)),
        ),
        "The graph with the paper's rounded averages: 89 million nodes, in-degree 20, 21,000 supporters, "
        "34,400 visits. The printed 490M and 190M have two digits.",
    )


def spam_table_3() -> Table:
    """Disk I/O and RAM of the methods in external memory."""
    graph = DomainGraph()
    rows = tuple(_external(graph))
    rams = tuple(1e8 * 10 ** (step / 100) for step in range(201))
    shares = (1e-4, 1e-3, 1e-2)
    ours = (
        Line("SUPP2-A", rams, tuple(ranking.supp2_a_disk(graph, ram).read for ram in rams)),
        Line("SUPP2-B", rams, tuple(2 * ranking.supp2_b_disk(graph, ram).read for ram in rams)),
        Line(
            "TSE",
            tuple(ranking.tse_disk(graph, share).ram for share in shares),
            tuple(ranking.tse_disk(graph, share).read for share in shares),
        ),
    )
    points = (
        Line("SUPP2-A", (8e9, 2e9, 1e8), (32e12, 130e12, 2.6e15), points=True),
        Line("SUPP2-B", (8e9, 2e9, 1e8), (98e12, 196e12, 294e12), points=True),
        Line("Bit Vector", (1.9e9,), (63e9,), points=True),
        Line("Quick Visit", (2.1e9,), (31.4e9,), points=True),
        Line("TSE", (157e6, 16e6, 1.6e6), (31.4e9,) * 3, points=True),
    )
    return Table(
        _SPAM,
        "Table III",
        "Disk I/O and RAM in external memory",
        ("read", "written", "RAM", "phases"),
        rows,
        "F = 15.7 GB; the text says 15.8. The RAM of Bit Vector by the text's own formula, (2b + m)n, is 1.8 GB.",
        Picture(
            "Spam Avoidance, Table III: I/O over RAM", "RAM, bytes", "read and written, bytes", ours + points
        ),
    )


def _external(graph: DomainGraph) -> Iterator[tuple[str, tuple[Cell | None, ...]]]:
    def row(
        label: str, disk: Disk, read: str, written: str = "", ram: str = ""
    ) -> tuple[str, tuple[Cell | None, ...]]:
        return label, (
            Cell(read, disk.read),
            Cell(written, disk.written) if written else None,
            Cell(ram, disk.ram) if ram else None,
            None,
        )

    for ram, size, read in ((8e9, "8 GB", "32 TB"), (2e9, "2 GB", "130 TB"), (1e8, "100 MB", "2.6 PB")):
        yield row(f"SUPP2-A, {size}", ranking.supp2_a_disk(graph, ram), read)
    merges = ((8e9, "8 GB", "49 TB", "1"), (2e9, "2 GB", "98 TB", "2"), (1e8, "100 MB", "147 TB", "3"))
    for ram, size, moved, phases in merges:
        disk = ranking.supp2_b_disk(graph, ram)
        label, cells = row(f"SUPP2-B, {size}", disk, moved, moved)
        yield label, (*cells[:3], Cell(phases, disk.phases))
    yield row("Bit Vector, r = 2", ranking.bit_vector_disk(graph, 2), "63 GB", ram="1.9 GB")
    yield row("Quick Visit", ranking.quick_visit_disk(graph), "31.4 GB", ram="2.1 GB")
    for share, ram_text in ((1e-2, "157 MB"), (1e-3, "16 MB"), (1e-4, "1.6 MB")):
        yield row(f"TSE, p = {share:g}", ranking.tse_disk(graph, share), "31.4 GB", ram=ram_text)


def spam_figure_3() -> Table:
    """Errors of the estimates, by what bits and samples can tell."""
    google = 15.5e6  # supporters of google.com, the most that any node has: the others' errors are larger

    def sampled(share: float) -> float:
        return ranking.sampling_error(share, google)

    return Table(
        _SPAM,
        "Figure 3(b)",
        "Mean relative error over the top 1,000: the least that is possible",
        ("error",),
        (
            ("Bit Vector, 64 bits", (Cell("6.5%", ranking.bit_vector_error(64)),)),
            ("TSE, p = 0.01, 15.5 million supporters", (Cell("0.1%", sampled(1e-2)),)),
            ("TSE, p = 0.0001, 15.5 million supporters", (Cell("1%", sampled(1e-4)),)),
        ),
        "Why the paper has half of what sampling gives is not known. The errors of popular nodes go together, "
        "because they share their supporters, so that a single run may be half as far off as the average of many, "
        "or twice as far.",
    )


TABLES: tuple[Callable[[], Table], ...] = (
    irlbot_table_2,
    irlbot_table_3,
    irlbot_examples,
    irlbot_budgets,
    irlbot_crawl,
    parallel_examples,
    spam_table_2,
    spam_table_3,
    spam_figure_3,
)
