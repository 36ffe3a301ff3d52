"""Pages of rows: searched, sorted and cut on the server, by SQL with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from barkspider.core.load import describe_settings
from barkspider.dashboard.hosts import waits
from barkspider.dashboard.shell import choices, field, form, intro
from barkspider.dashboard.watcher import MEMORY, View, Watcher
from barkspider.engine import StoredJob
from barkspider.report.figures import ERRORS
from barkspider.report.markup import Cell, Markup, join, table, text
from barkspider.report.top import supporters
from barkspider.report.words import size

ROWS = 50
_SECONDS = 5.0  # of one answer
_MOST_ROWS = 1_000  # of a query of the user's own
_MOST_TEXT = 300  # letters of a cell


@dataclass(frozen=True, slots=True)
class Wish:
    """What of a list is wanted."""

    search: str = ""
    sort: str = ""
    down: bool = True
    begin: int = 0

    @classmethod
    def of(cls, query: Any) -> Wish:
        """From the address; what is no number is none."""
        begin = str(query.get("begin", "0"))
        return cls(
            str(query.get("search", ""))[:200],
            str(query.get("sort", "")),
            query.get("down", "yes") != "no",
            min(int(begin), 10**7) if begin.isdecimal() and len(begin) < 9 else 0,
        )


_DOMAINS = (
    ("domain", "domain"),
    ("domains_in", "in-degree"),
    ("pages", "pages"),
    ("bytes", "received"),
    ("hosts", "hosts"),
    ("links_in", "links to it"),
    ("links_out", "links from it"),
)
_HOSTS = (
    ("host", "host"),
    ("pages", "pages"),
    ("errors", "errors"),
    ("bytes", "received"),
    ("duplicates", "duplicates"),
    ("depth", "depth"),
    ("last", "last answer"),
)
_OF_HOSTS = """
    SELECT host, coalesce(pages, 0) AS pages, coalesce(errors, 0) AS errors, coalesce(bytes, 0) AS bytes, coalesce(duplicates, 0) AS duplicates,
        depth, last
    FROM (SELECT url_host_name AS host, count(*) AS pages, sum(content_length)::BIGINT AS bytes, count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates,
              max(depth) AS depth, max(fetch_time) AS last FROM pages GROUP BY host)
    FULL JOIN (SELECT url_host_name AS host, count(*) AS errors FROM errors GROUP BY host) USING (host)
"""
_ERRORS_OF = """
    SELECT domain, sum(errors) AS errors FROM (SELECT url_host_name AS host, count(*) AS errors FROM errors GROUP BY host)
    JOIN (SELECT unnest([{marks}]) AS domain) ON host = domain OR ends_with(host, '.' || domain) GROUP BY domain
"""


def domains(watcher: Watcher, wish: Wish) -> Markup:
    """All domains: with what their in-degree lets them spend, who supports them, and what went wrong, of those that are shown."""
    job, ranks = watcher.tables, watcher.ranks()
    columns = ", ".join(column for column, _ in _DOMAINS)
    asked = f"SELECT {columns} FROM {watcher.domains_table()}"
    rows = _rows(job, asked, "domain", _DOMAINS, wish, "pages")
    names = [row["domain"] for row in rows]
    supported = supporters(job, names, seconds=_SECONDS, memory=MEMORY)
    failed = _errors_of(job, names)
    cells = [
        [
            _to("/hosts", {"search": row["domain"]}, row["domain"]),
            row["domains_in"],
            None if ranks is None else ranks.budget(row["domains_in"]),
            None if supported is None else supported[row["domain"]],
            row["pages"],
            failed.get(row["domain"], 0),
            size(row["bytes"]),
            row["hosts"],
            row["links_in"],
            row["links_out"],
        ]
        for row in rows
    ]
    heads = [*_DOMAINS[:2], ("", "budget"), ("", "supporters"), _DOMAINS[2], ("", "errors"), *_DOMAINS[3:]]
    about = "Budgets are what their in-degree gives."
    if supported is None:
        about += " Supporters of so many links are counted by `barkspider rank`."
    return join(
        [intro("Domains", about), _list("/domains", heads, cells, wish, "pages", numbers=range(1, 10))]
    )


def _errors_of(job: StoredJob, domains: list[str]) -> dict[str, int]:
    """How many errors the hosts of some domains had."""
    if not domains:
        return {}
    asked = _ERRORS_OF.format(marks=", ".join("?" * len(domains)))
    rows = job.query(asked, domains, seconds=_SECONDS, memory=MEMORY).to_pylist()
    return {row["domain"]: int(row["errors"]) for row in rows}


def hosts(watcher: Watcher, wish: Wish) -> Markup:
    """All hosts that were asked for a page; of a crawl that runs with what each waits for."""
    rows = _rows(watcher.tables, _OF_HOSTS, "host", _HOSTS, wish, "pages")
    told = watcher.hosts([row["host"] for row in rows[:ROWS] if row["host"]])
    cells = [
        [
            _to("/host", {"name": row["host"] or ""}, row["host"]),
            row["pages"],
            row["errors"],
            size(row["bytes"]),
            row["duplicates"],
            row["depth"],
            row["last"],
            *([_waits(told.get(row["host"], {}))] if told else []),
        ]
        for row in rows
    ]
    heads = [*_HOSTS, *([("", "waits for")] if told else [])]
    about = "Those that were asked for a page, or did not answer. A host's page tells more, and shows its robots.txt."
    return join([intro("Hosts", about), _list("/hosts", heads, cells, wish, "pages", numbers=range(1, 6))])


def _waits(told: dict[str, Any]) -> str:
    return f"{waits(told)} ({told['queued']:,} queued)" if told.get("queued") else ""


def _to(path: str, query: dict[str, str], label: str | None) -> Cell:
    """A cell that leads somewhere."""
    return Cell(Markup(f'<a href="{text(f"{path}?{urlencode(query)}")}">{text(label)}</a>'))


def _rows(
    job: StoredJob, sql: str, name: str, columns: tuple[tuple[str, str], ...], wish: Wish, usual: str
) -> list[dict[str, Any]]:
    """The wanted rows of a SELECT; one more than are shown, if there are more."""
    sort = wish.sort if wish.sort in dict(columns) else usual
    where = f" WHERE contains(lower({name}), lower(?))" if wish.search else ""
    order = f"{sort} {'DESC' if wish.down else 'ASC'} NULLS LAST, {name}"
    asked = f"SELECT * FROM ({sql}){where} ORDER BY {order} LIMIT {ROWS + 1} OFFSET {wish.begin}"
    parameters = [wish.search] if wish.search else []
    found: list[dict[str, Any]] = job.query(asked, parameters, seconds=_SECONDS, memory=MEMORY).to_pylist()
    return found


def _list(
    path: str, heads: list[tuple[str, str]], cells: list[list[Any]], wish: Wish, usual: str, numbers: range
) -> Markup:
    sort = wish.sort if wish.sort and wish.sort in dict(heads) else usual
    sortable = iter(choices(path, [head for head in heads if head[0]], sort, wish.down, wish.search))
    shown = [next(sortable) if column else text(label) for column, label in heads]
    search = Markup(
        f'<form method="get" action="{path}" class="search"><label>Search <input type="search" name="search" value="{text(wish.search)}"></label>'
        "<button>Search</button></form>"
    )
    body = table([""] * len(heads), cells[:ROWS], numbers=numbers)
    right = frozenset(numbers)
    named = "".join(
        f'<th scope="col"{" class=n" if place in right else ""}>{label}</th>'
        for place, label in enumerate(shown)
    )
    start, end = body.index("<tr>") + 4, body.index("</tr>")
    again = {"sort": sort, "down": "yes" if wish.down else "no", "search": wish.search}
    moves = []
    if wish.begin:
        moves.append(_link(path, again | {"begin": str(max(wish.begin - ROWS, 0))}, "← before"))
    if len(cells) > ROWS:
        moves.append(_link(path, again | {"begin": str(wish.begin + ROWS)}, "more →"))
    return join(
        [
            search,
            Markup(body[:start] + named + body[end:]),
            Markup(f'<p class="moves">{join(moves, " ")}</p>'),
        ]
    )


def _link(path: str, query: dict[str, str], label: str) -> Markup:
    return Markup(f'<a href="{text(f"{path}?{urlencode(query)}")}">{text(label)}</a>')


def errors(watcher: Watcher) -> Markup:
    """What went wrong, by kind, with an example of each."""
    rows = watcher.tables.query(ERRORS, seconds=_SECONDS, memory=MEMORY).to_pylist()
    cells = [
        (row["what"], row["outcome"], row["times"], row["hosts"], _short(row["example"])) for row in rows
    ]
    about = "What went wrong, by kind, with an example of each."
    found = table(["what", "error", "times", "hosts", "for example"], cells, numbers=(2, 3))
    return join([intro("Errors", about), found])


def events(watcher: Watcher) -> Markup:
    """What the log says, the newest first."""
    cells = []
    for event in watcher.last_events():
        others = {name: value for name, value in event.items() if name not in ("time", "event", "part")}
        when = datetime.fromtimestamp(float(event["time"]), UTC)
        details = ", ".join(
            f"{name} {value}" for name, value in others.items() if not isinstance(value, dict | list)
        )
        name = Cell(Markup(f"<code>{text(event.get('part', 'all'))}</code>"))
        part = [name] if watcher.is_divided else []
        cells.append([when, *part, event.get("event"), _short(details)])
    found = table(["time (UTC)", *(["part"] if watcher.is_divided else []), "event", "details"], cells)
    return join([intro("Events", "The last of the log, the newest first."), found])


def settings(watcher: Watcher) -> Markup:
    """All settings in force; those that are not the defaults come first."""
    own, usual = describe_settings(watcher.settings), describe_settings()
    rows = [
        (each != default, Cell(Markup(f"<code>{text(each[0])}</code>")), each[1], each[2])
        for each, default in zip(own, usual, strict=True)
        if each[0] != "seed"  # with it a page could aim at collisions of keys
    ]
    rows.sort(key=lambda row: not row[0])
    changed = [row[1:] for row in rows if row[0]]
    return join(
        [
            intro("Settings", "Those in force. What is secret is not shown."),
            table(["setting", "value", "meaning"], changed, name="Changed"),
            table(["setting", "value", "meaning"], [row[1:] for row in rows if not row[0]], name="Defaults"),
        ]
    )


def query(token: str, sql: str, watcher: Watcher | None = None) -> Markup:
    """A box for SQL, and its answer if there is a question."""
    box = form(
        "/query",
        token,
        Markup(
            f'<label>One SELECT over pages, links, domains, robots, errors, duplicates, history<textarea name="sql" rows="5" spellcheck="false">{text(sql)}</textarea></label>'
        ),
        "Ask",
        kind="query",
    )
    box = join(
        [
            intro("Queries", f"SQL that only reads: {_SECONDS:.0f} seconds and {_MOST_ROWS:,} rows at most."),
            box,
        ]
    )
    if watcher is None or not sql.strip():
        return box
    answer = watcher.tables.query(sql, seconds=_SECONDS, rows=_MOST_ROWS, memory=MEMORY)
    numbers = [
        place
        for place, kind in enumerate(answer.schema.types)
        if str(kind).startswith(("int", "uint", "double", "float", "decimal"))
    ]
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    cells = [[_short(value) if isinstance(value, str) else value for value in row] for row in rows]
    cut = f"the first {_MOST_ROWS:,} rows" if len(answer) == _MOST_ROWS else f"{len(answer):,} rows"
    return join(
        [box, Markup(f'<p class="note">{text(cut)}</p>'), table(answer.column_names, cells, numbers=numbers)]
    )


def controls(token: str, view: View, limits: dict[str, str]) -> Markup:
    """What can be done to a crawl that runs; each asks first."""
    if not view.running:
        return join(
            [
                intro("Controls", "What can be done to a crawl that runs is shown here while one does."),
                Markup(
                    '<p class="notice">No crawl runs in this job: <code>barkspider resume</code> goes on with it.</p>'
                ),
            ]
        )
    paused = "paused" in view.state
    simple = [
        ("go_on", "Go on", "Let the crawl go on?")
        if paused
        else ("pause", "Pause", "Let the crawl start no new requests until it is told to go on?"),
        ("checkpoint", "Checkpoint now", "Make a checkpoint now?"),
        ("stop", "Stop", "Stop the crawl as Ctrl-C does? `barkspider resume` goes on with it."),
    ]
    buttons = join(
        form(f"/control/{name}", token, Markup(""), label, ask=question) for name, label, question in simple
    )
    changes = join(
        form(
            "/control/change",
            token,
            join(
                [
                    Markup(f'<input type="hidden" name="name" value="{text(name)}">'),
                    field("value", name, value, size=12),
                ]
            ),
            "Change",
            ask=f"Change {name}? It is written into the settings of the job.",
        )
        for name, value in limits.items()
    )
    others = join(
        [
            form(
                "/control/add",
                token,
                field("url", "URL", kind="url", size=48),
                "Add",
                ask="Give this URL to the crawl as a seed?",
            ),
            form(
                "/control/block",
                token,
                field("domain", "domain"),
                "Block",
                ask="Leave this domain alone from now on? It is written into the settings of the job.",
            ),
        ]
    )
    return Markup(
        f"{intro('Controls', 'Each asks first; the log says what was asked.')}"
        f'<section class="controls"><h2>The crawl</h2><div class="row">{buttons}</div>'
        f'<h2>Limits</h2><p class="about">0 means no limit.</p>{changes}<h2>URLs</h2>{others}</section>'
    )


def _short(value: Any) -> str:
    words = str(value if value is not None else "")
    return words if len(words) <= _MOST_TEXT else f"{words[:_MOST_TEXT]}…"
