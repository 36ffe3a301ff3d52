"""The statistics of a crawl as SQL over its tables, each under the name by which the report shows it.

They are those that Viúva Negra's report gives of a crawl (paper 004, sections 5 and 6): sizes, types, charsets, languages, lengths
and depths of URLs, duplicates, answers, downloads a URL as in Table VII.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barkspider.engine import StoredJob

_COMMON = 12  # names of a distribution that are shown; the others are one


@dataclass(frozen=True, slots=True)
class Figure:
    """One question to a crawl. `sql` gives rows of (name, number), the rest of the distribution as `others`."""

    title: str
    sql: str
    note: str = ""


def _by(column: str, where: str = "fetch_status BETWEEN 200 AND 299") -> str:
    """The commonest values of a column, and how many pages have others."""
    return f"""
        WITH counted AS (
            SELECT coalesce(nullif({column}, ''), 'not said') AS name, count(*) AS pages FROM pages WHERE {where} GROUP BY 1),
        ranked AS (SELECT name, pages, row_number() OVER (ORDER BY pages DESC, name) AS place FROM counted)
        SELECT name, pages FROM ranked WHERE place <= {_COMMON} UNION ALL
        SELECT 'others', sum(pages) FROM ranked WHERE place > {_COMMON} HAVING count(*) > 0
        ORDER BY pages DESC, name
    """


DISTRIBUTIONS: dict[str, Figure] = {
    "status": Figure("Answers by status", _by("fetch_status::VARCHAR", "true")),
    "types": Figure("Types, as detected", _by("content_mime_detected")),
    "charsets": Figure("Charsets", _by("content_charset")),
    "languages": Figure(
        "Languages", _by("content_languages"), "as pages say, or as found with page.language"
    ),
    "tlds": Figure("Top-level domains", _by("url_host_tld")),
    "sizes": Figure(
        "Sizes of pages, as received",
        """
        SELECT CASE WHEN content_length = 0 THEN '0 B' WHEN power < 10 THEN 'below 1 KiB' WHEN power < 20
            THEN (1 << (power - 10))::VARCHAR || ' KiB' ELSE (1 << (power - 20))::VARCHAR || ' MiB' END AS name, count(*) AS pages
        FROM (SELECT content_length, floor(log2(greatest(content_length, 1)))::INTEGER AS power FROM pages
              WHERE fetch_status BETWEEN 200 AND 299)
        GROUP BY name ORDER BY min(content_length)
        """,
        "each bar up to twice its name",
    ),
    "url_lengths": Figure(
        "Lengths of URLs",
        """
        SELECT CASE WHEN place = 10 THEN '200 and more' ELSE (20 * place)::VARCHAR || '–' || (20 * place + 19)::VARCHAR END AS name,
            count(*) AS pages
        FROM (SELECT least(length(url) // 20, 10) AS place FROM pages) GROUP BY place ORDER BY place
        """,
        "in characters",
    ),
    "depths": Figure(
        "Depth",
        """
        SELECT CASE WHEN place = 15 THEN '15 and more' ELSE place::VARCHAR END AS name, count(*) AS pages
        FROM (SELECT least(depth, 15) AS place FROM pages) GROUP BY place ORDER BY place
        """,
        "links from a seed",
    ),
    "seconds": Figure(
        "Time of a fetch",
        """
        SELECT name, count(*) AS pages FROM (
            SELECT fetch_seconds AS s, CASE WHEN s < 0.01 THEN 'below 10 ms' WHEN s < 0.1 THEN '10–100 ms' WHEN s < 1 THEN '0.1–1 s'
                WHEN s < 10 THEN '1–10 s' ELSE '10 s and more' END AS name FROM pages)
        GROUP BY name ORDER BY min(s)
        """,
    ),
}

TOTALS = """
    SELECT count(*) AS downloads, count(DISTINCT key) AS urls, count(*) FILTER (fetch_status BETWEEN 200 AND 299) AS pages,
        count(DISTINCT url_host_name) AS hosts, count(DISTINCT url_host_registered_domain) AS domains,
        coalesce(sum(content_length), 0)::BIGINT AS bytes, coalesce(avg(content_length), 0) AS mean_size,
        coalesce(median(content_length), 0) AS median_size, coalesce(avg(length(url)), 0) AS mean_url_length,
        count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates, count(*) FILTER (revisit) AS revisits,
        count(*) FILTER (links_cut) AS links_cut, count(*) FILTER (body_cut) AS body_cut,
        count(*) FILTER (content_truncated IS NOT NULL) AS truncated, min(fetch_time) AS first, max(fetch_time) AS last,
        coalesce(quantile_cont(fetch_seconds, 0.5), 0) AS median_seconds, coalesce(quantile_cont(fetch_seconds, 0.99), 0) AS slow_seconds
    FROM pages
"""

ERRORS = """
    SELECT what, outcome, count(*) AS times, count(DISTINCT url_host_name) AS hosts, coalesce(min(url), min(url_host_name)) AS example
    FROM errors GROUP BY what, outcome ORDER BY times DESC, what, outcome LIMIT 20
"""

CUTS = """
    SELECT content_truncated AS reason, count(*) AS pages, min(url) AS example FROM pages
    WHERE content_truncated IS NOT NULL GROUP BY reason ORDER BY pages DESC, reason
"""

LARGEST_HOSTS = """
    SELECT url_host_name AS host, count(*) AS pages, sum(content_length)::BIGINT AS bytes, count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates,
        max(depth) AS depth FROM pages GROUP BY host ORDER BY pages DESC, host LIMIT 10
"""


def distributions(job: StoredJob) -> dict[str, dict[str, int]]:
    """Every distribution, as numbers by name."""
    return {
        name: {row["name"]: int(row["pages"]) for row in job.query(figure.sql).to_pylist()}
        for name, figure in DISTRIBUTIONS.items()
    }


def totals(job: StoredJob) -> dict[str, Any]:
    """What is said of all pages together."""
    found: dict[str, Any] = job.query(TOTALS).to_pylist()[0]
    return found | {"downloads_a_url": found["downloads"] / found["urls"] if found["urls"] else 0.0}
