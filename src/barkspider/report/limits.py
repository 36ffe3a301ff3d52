"""Limits and who reached them, as Table VI of the Viúva Negra paper, with what to do about it (section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.core.settings import Settings
from barkspider.core.units import format_duration, format_size
from barkspider.engine import StoredJob

_MANY = 0.05  # of sites or URLs: more than a few hazards, so the limit itself is to be looked at
_PAPERS_SITE_URLS, _PAPERS_DUPLICATES = 5000, 10


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: how many of all sites or URLs reached it. Without a `limit` of its own, the paper's is compared."""

    name: str
    setting: str
    limit: str
    reached: int
    of: int
    what: str
    suggestion: str


_HOSTS = """
    SELECT count(*) AS hosts, count(*) FILTER (pages >= {urls}) AS urls, count(*) FILTER (duplicates >= {duplicates}) AS duplicates,
        count(*) FILTER (depth >= {depth}) AS depth
    FROM (SELECT count(*) AS pages, count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates, max(depth) AS depth
          FROM pages GROUP BY url_host_name)
"""
_URLS = """
    SELECT count(*) AS pages, count(*) FILTER (content_truncated = 'length') AS size, count(*) FILTER (content_truncated = 'time') AS time,
        count(*) FILTER (links_cut) AS links FROM pages
"""
_TIMEOUTS = "SELECT count(*) AS urls, count(*) FILTER (outcome LIKE 'timeout%') AS late FROM errors WHERE what = 'page'"


def limits(job: StoredJob, out_of_scope: dict[str, int], links: int) -> list[Limit]:
    """Every limit of Table VI, and of links a page; `out_of_scope` counts links by reason, of `links` in all."""
    settings = job.settings
    urls = settings.limits.site_urls or _PAPERS_SITE_URLS
    duplicates = settings.limits.site_duplicates or _PAPERS_DUPLICATES
    depth = settings.scope.depth
    hosts = job.query(_HOSTS.format(urls=urls, duplicates=duplicates, depth=depth or 1 << 16)).to_pylist()[0]
    pages = job.query(_URLS).to_pylist()[0]
    errors = job.query(_TIMEOUTS).to_pylist()[0]
    tried = pages["pages"] + errors["urls"]
    rows = [
        (
            "duplicates of a site",
            "limits.site_duplicates",
            f"{duplicates:,}",
            hosts["duplicates"],
            hosts["hosts"],
            "sites",
        ),
        ("URLs of a site", "limits.site_urls", f"{urls:,}", hosts["urls"], hosts["hosts"], "sites"),
        ("depth", "scope.depth", f"{depth:,}", hosts["depth"], hosts["hosts"], "sites"),
        (
            "time of a fetch",
            "fetch.timeout",
            format_duration(settings.fetch.timeout),
            pages["time"] + errors["late"],
            tried,
            "URLs",
        ),
        (
            "size",
            "fetch.max_size",
            format_size(settings.fetch.max_size),
            pages["size"],
            pages["pages"],
            "URLs",
        ),
        (
            "length of a URL",
            "url.max_length",
            f"{settings.url.max_length:,}",
            out_of_scope.get("too_long", 0),
            links,
            "links",
        ),
        (
            "links of a page",
            "limits.page_links",
            f"{settings.limits.page_links:,}",
            pages["links"],
            pages["pages"],
            "URLs",
        ),
    ]
    return [
        Limit(name, setting, limit, reached, of, what, _suggestion(settings, setting, reached, of))
        for name, setting, limit, reached, of, what in rows
    ]


# Of what stops sites, how the sites are spread; of what stops URLs, the URLs.
_SPREADS = """
    WITH sites AS (SELECT count(*) AS urls, count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates, max(depth) AS depth
                   FROM pages GROUP BY url_host_name)
    SELECT 'limits.site_urls' AS setting, quantile_disc(urls, {at}) AS found FROM sites UNION ALL
    SELECT 'limits.site_duplicates', quantile_disc(duplicates, {at}) FROM sites UNION ALL
    SELECT 'scope.depth', quantile_disc(depth, {at}) FROM sites UNION ALL
    SELECT 'fetch.timeout', quantile_disc(fetch_seconds, {at}) FROM pages UNION ALL
    SELECT 'fetch.max_size', quantile_disc(content_length, {at}) FROM pages UNION ALL
    SELECT 'url.max_length', quantile_disc(length(url), {at}) FROM pages UNION ALL
    SELECT 'limits.page_links', quantile_disc(links, {at}) FROM pages
"""
SHARES = (0.5, 0.9, 0.99, 1.0)  # the last but one is what a limit would be that stops one in a hundred
_DEEP = """
    SELECT count(*) AS links, count(*) FILTER (page.url_path <> '/' OR page.url_query IS NOT NULL) AS deep
    FROM pages AS page JOIN pages AS source ON page.parent = source.key WHERE page.url_host_name <> source.url_host_name
"""


def spreads(job: StoredJob) -> dict[str, list[float]]:
    """Behind each limit, by its setting: what `SHARES` of the sites, or URLs, do not exceed."""
    rows = job.query(_SPREADS.format(at=list(SHARES))).to_pylist()
    return {row["setting"]: [float(each) for each in row["found"] or ()] for row in rows}


def deep_links(job: StoredJob) -> tuple[int, int]:
    """Of the pages that were found by a link from another site, all, and those that are not its home page."""
    (row,) = job.query(_DEEP).to_pylist()
    return row["links"], row["deep"]


def _suggestion(settings: Settings, setting: str, reached: int, of: int) -> str:
    """What the figures ask for; a person decides, as the paper says: traps are no reason to raise a limit."""
    is_set = {
        "limits.site_duplicates": bool(settings.limits.site_duplicates),
        "limits.site_urls": bool(settings.limits.site_urls),
        "scope.depth": bool(settings.scope.depth),
    }.get(setting, True)
    many = of > 0 and reached / of > _MANY
    if not is_set:
        if setting == "scope.depth":
            return "no limit is set"
        return (
            "no limit is set; the paper's would end the crawl of these: look at some for traps"
            if reached
            else "no limit is set, and the paper's would not have been reached"
        )
    if not reached:
        return "never reached: leave it"
    if setting == "fetch.timeout":
        return (
            "reached by many: a shorter one gives their slots to others"
            if many
            else "reached by few: leave it"
        )
    return (
        "reached by many: look at some of them, and raise it if they are no traps"
        if many
        else "reached by few: leave it"
    )
