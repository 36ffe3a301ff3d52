"""What cookies are worth, live: the experiment of Viúva Negra (section 4.5) and its columns of Table VII, on the synthetic web."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from barkspider.core.load import load_settings
from barkspider.engine.blocking import crawl
from barkspider.engine.stored import open_job
from barkspider.lab.papers.comparison import Cell, Table
from barkspider.lab.synthweb import WebSpec, running_web

_PAPER = "Viúva Negra"
_SPEC = WebSpec(seed=1, pages=400, page_bytes=2_000, crawl_delay=0.02, hazards=frozenset({"session_ids"}))
# The site with sessions has no end without cookies; so many URLs of it make the share that the paper found.
_SITE = 140
_SETTINGS = (
    *("seed=1", "scope.level=web", "memory=64MB", "url.drop_session_ids=false", f"limits.site_urls={_SITE}"),
    *("politeness.host_delay=1ms", "politeness.server_delay=0s", "politeness.slow_factor=0"),
)
_COUNTED = """
    SELECT avg((regexp_matches(url, '[?&;](phpsessid|sid|sessionid)=', 'i'))::INT) AS sessions, avg(length(url)) AS length,
        avg((duplicate_of IS NOT NULL)::INT) AS duplicates, count(*) AS pages FROM pages WHERE fetch_status = 200
"""


def cookie_tables() -> list[Table]:
    """The share of URLs with session ids, and their length, without cookies and with them; and what Table VII counts."""
    with running_web(_SPEC) as web, tempfile.TemporaryDirectory(prefix="barkspider-live-") as folder:
        served = [f"{name}={value}" for name, value in web.settings().items()]
        seeds = web.web.seeds(1)
        without, with_ = (
            _count(seeds, Path(folder) / enabled, [*_SETTINGS, *served, f"cookies.enabled={enabled}"])
            for enabled in ("false", "true")
        )
    cookies = Table(
        _PAPER,
        "4.5, live",
        "Session ids in URLs, without cookies and with them",
        ("without", "with"),
        (
            ("URLs with session ids", (Cell("27%", without["sessions"]), Cell("3.5%", with_["sessions"]))),
            ("characters of a URL", (Cell("74", without["length"]), Cell("62", with_["length"]))),
        ),
        f"The synthetic web with a site that puts session ids into URLs unless it gets its cookie back, {_SITE} URLs a site. "
        "Without a bound that site would have no end; what is left with cookies are the links of the first page.",
    )
    costs = Table(
        _PAPER,
        "Table VII, live",
        "Duplicates, and downloads by URLs",
        ("duplicates", "downloads/URLs"),
        (("VN", (Cell("7%", with_["duplicates"]), Cell("80%", with_["downloads"]))),),
        "The same crawl with cookies.",
    )
    return [cookies, costs]


def _count(seeds: list[str], folder: Path, options: list[str]) -> dict[str, Any]:
    done = crawl(seeds, folder, load_settings(options=options))
    (row,) = open_job(folder).query(_COUNTED).to_pylist()
    tried = done.pages + done.redirects + sum(done.failed.values())
    return {**row, "downloads": done.pages / tried}
