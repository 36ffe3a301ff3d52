"""Pages of rows: searched, sorted and cut on the server, by SQL with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from barkspider.core.load import describe_settings
from barkspider.dashboard.shell import choices, field, form
from barkspider.dashboard.watcher import View, Watcher
from barkspider.engine import StoredJob
from barkspider.report.figures import ERRORS
from barkspider.report.markup import Cell, Markup, join, table, text
from barkspider.report.words import size

ROWS = 50
_SECONDS, _MEMORY = 5.0, 150_000_000  # of one answer
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


def domains(watcher: Watcher, view: View, wish: Wish) -> Markup:
    """All domains; of a crawl that has ended from the table that it left, of another as the tables are now."""
    job = watcher.tables
    listed = not view.running and len(job.archives) == 1
    if listed:
        listed = job.query("SELECT count(*) AS n FROM listed_domains", memory=_MEMORY)["n"][0].as_py() > 0
    source = "listed_domains" if listed else "domains"
    columns = ", ".join(column for column, _ in _DOMAINS)
    rows = _rows(job, f"SELECT {columns} FROM {source}", "domain", _DOMAINS, wish, "pages")
    budgets = watcher.budgets()
    cells = [
        [
            row["domain"],
            row["domains_in"],
            budgets(row["domains_in"]),
            row["pages"],
            size(row["bytes"]),
            row["hosts"],
            row["links_in"],
            row["links_out"],
        ]
        for row in rows
    ]
    heads = [*_DOMAINS[:2], ("", "budget"), *_DOMAINS[2:]]
    return _list("/domains", heads, cells, wish, "pages", numbers=range(1, 8))


def hosts(watcher: Watcher, wish: Wish) -> Markup:
    """All hosts that were asked for a page."""
    rows = _rows(watcher.tables, _OF_HOSTS, "host", _HOSTS, wish, "pages")
    cells = [
        [
            Cell(
                Markup(
                    f'<a href="/host?{text(urlencode({"name": row["host"] or ""}))}">{text(row["host"])}</a>'
                )
            ),
            row["pages"],
            row["errors"],
            size(row["bytes"]),
            row["duplicates"],
            row["depth"],
            "" if row["last"] is None else f"{row['last']:%Y-%m-%d %H:%M:%S}",
        ]
        for row in rows
    ]
    return _list("/hosts", list(_HOSTS), cells, wish, "pages", numbers=range(1, 6))


def _rows(
    job: StoredJob, sql: str, name: str, columns: tuple[tuple[str, str], ...], wish: Wish, usual: str
) -> list[dict[str, Any]]:
    """The wanted rows of a SELECT; one more than are shown, if there are more."""
    sort = wish.sort if wish.sort in dict(columns) else usual
    where = f" WHERE contains(lower({name}), lower(?))" if wish.search else ""
    order = f"{sort} {'DESC' if wish.down else 'ASC'} NULLS LAST, {name}"
    asked = f"SELECT * FROM ({sql}){where} ORDER BY {order} LIMIT {ROWS + 1} OFFSET {wish.begin}"
    parameters = [wish.search] if wish.search else []
    found: list[dict[str, Any]] = job.query(asked, parameters, seconds=_SECONDS, memory=_MEMORY).to_pylist()
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
    rows = watcher.tables.query(ERRORS, seconds=_SECONDS, memory=_MEMORY).to_pylist()
    cells = [
        (row["what"], row["outcome"], row["times"], row["hosts"], _short(row["example"])) for row in rows
    ]
    return table(["what", "error", "times", "hosts", "for example"], cells, numbers=(2, 3))


def events(watcher: Watcher) -> Markup:
    """What the log says, the newest first."""
    cells = []
    for event in watcher.last_events():
        others = {name: value for name, value in event.items() if name not in ("time", "event", "part")}
        when = datetime.fromtimestamp(float(event["time"]), UTC).strftime("%Y-%m-%d %H:%M:%S")
        details = ", ".join(
            f"{name} {value}" for name, value in others.items() if not isinstance(value, dict | list)
        )
        cells.append((when, event.get("part", ""), event.get("event"), _short(details)))
    return table(["time (UTC)", "part", "event", ""], cells)


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
    if watcher is None or not sql.strip():
        return box
    answer = watcher.tables.query(sql, seconds=_SECONDS, rows=_MOST_ROWS, memory=_MEMORY)
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
        return Markup(
            '<p class="notice">No crawl runs in this job: <code>barkspider resume</code> goes on with it. '
            "What can be done to a crawl that runs is shown here while one does.</p>"
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
                field("what", "domain, URL, network or re:pattern", size=32),
                "Block",
                ask="Leave this alone from now on? `barkspider unblock` takes it back.",
            ),
        ]
    )
    return Markup(
        f'<section class="controls"><h2>The crawl</h2><div class="row">{buttons}</div>'
        f'<h2>Limits</h2><p class="about">0 means no limit.</p>{changes}<h2>URLs</h2>{others}</section>'
    )


def _short(value: Any) -> str:
    words = str(value if value is not None else "")
    return words if len(words) <= _MOST_TEXT else f"{words[:_MOST_TEXT]}…"
