"""Duplicate hosts: sites with other names that serve the same contents (Viúva Negra, section 2.3).

    pages ─► the distinct contents of each site ─► pairs of sites that share some ─► equal contents of each pair, counted
                                                                                  ─► a list for each of five heuristics

A content is its digest without encodings. Two sites are a pair if they share a content that few have, or two that many have and
are near each other by size among these: mirrors are of about one size, and so a page that is everywhere (a default page, an
error) makes a few pairs for each site instead of one with every other. What does not fit in memory goes to disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from barkspider.engine.stored import StoredJob

SAME_HOME, SAME_HOME_AND_1_DOC = "SameHome", "SameHomeAnd1Doc"
SHARES = {"Dups60": 0.6, "Dups80": 0.8, "Dups100": 1.0}
HEURISTICS = (SAME_HOME, SAME_HOME_AND_1_DOC, *SHARES)
_FEW = 8  # sites with a content, all of which are compared
_NEAR = 3  # sites on either side, by size, with which one is compared for each of its contents that more have

# The original of a pair is the site with more contents, then the one with the shorter name: the lower rank.
_SITES = """
    WITH kept AS MATERIALIZED (
        SELECT url_host_name AS host, hash(coalesce(content_decoded_digest, content_digest)) AS content,
            max(fetch_time) FILTER (url_path = '/' AND coalesce(url_query, '') = '') AS home_time
        FROM stored_pages
        WHERE fetch_status BETWEEN 200 AND 299 AND coalesce(content_decoded_digest, content_digest) IS NOT NULL
        GROUP BY ALL),
    sites AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY contents DESC, length(host), host)::UINTEGER AS rank, host, contents, home
        FROM (SELECT host, count(*) AS contents, arg_max(content, home_time) AS home FROM kept GROUP BY host))
"""
_COUNT = (
    "SELECT count(DISTINCT url_host_name) AS sites FROM stored_pages WHERE fetch_status BETWEEN 200 AND 299"
)
_SAME_HOME = (
    _SITES
    + """
    SELECT host AS replica, first_value(host) OVER (PARTITION BY home ORDER BY rank) AS original
    FROM sites WHERE home IS NOT NULL QUALIFY replica <> original ORDER BY replica
"""
)
_NEIGHBOURS = " UNION ALL ".join(
    f"""SELECT rank AS original, lead(rank, {step}) OVER (PARTITION BY {by} ORDER BY rank) AS replica, content
    FROM held WHERE holders > {_FEW}"""
    for step in range(1, _NEAR + 1)
    for by in ("content", "content, home")
)
# A site of which a part was fetched shares all it has with the larger one; both have to present the share.
_PAIRS = (
    _SITES
    + f"""
    , held AS MATERIALIZED (
        SELECT rank, content, home, holders FROM kept JOIN sites USING (host)
        JOIN (SELECT content, count(*) AS holders FROM kept GROUP BY content HAVING holders > 1) USING (content)),
    near AS MATERIALIZED (
        SELECT one.rank AS original, other.rank AS replica FROM held AS one
        JOIN held AS other ON one.content = other.content AND one.rank < other.rank WHERE one.holders <= {_FEW}
        UNION
        SELECT original, replica FROM ({_NEIGHBOURS}) WHERE replica IS NOT NULL
        GROUP BY ALL HAVING count(DISTINCT content) > 1),
    listed AS MATERIALIZED (  -- as a step of its own: equal contents of all sites, joined first, would be without end
        SELECT original, replica, content FROM near JOIN held ON rank = replica),
    common AS (
        SELECT original, replica, count(*) AS equal FROM listed
        JOIN held ON held.rank = original AND held.content = listed.content GROUP BY ALL HAVING equal > 1)
    SELECT copy.host AS replica, source.host AS original, equal, equal / source.contents AS share,
        coalesce(copy.home = source.home, false) AS same_home
    FROM common JOIN sites AS copy ON copy.rank = replica JOIN sites AS source ON source.rank = original
    WHERE same_home OR share >= {min(SHARES.values())}
    ORDER BY copy.rank, source.rank
"""
)

# Home pages with and without www., of names at which both were asked for, or where one leads to the other. A name that failed is in
# `errors`; what a redirect leads to is its own answer.
_WWW = """
    WITH asked AS (
        SELECT url_host_name AS host, url_host_registered_domain AS domain,
            CASE WHEN fetch_status BETWEEN 200 AND 299 THEN coalesce(content_decoded_digest, content_digest) END AS content,
            CASE WHEN fetch_status BETWEEN 300 AND 399
                THEN regexp_extract(fetch_redirect, '^[a-z]+://([^/:]+)', 1) END AS leads,
            fetch_time AS time
        FROM stored_pages WHERE url_path = '/' AND coalesce(url_query, '') = ''
        UNION ALL
        SELECT url_host_name, NULL, NULL, NULL, time FROM errors
        WHERE what = 'page' AND regexp_matches(url, '^[a-z]+://[^/]+/$')),
    homes AS (
        SELECT regexp_replace(host, '^www\\.', '') AS name, starts_with(host, 'www.') AS www,
            last(content ORDER BY time) AS content, last(leads ORDER BY time) AS leads, any_value(domain) AS domain
        FROM asked GROUP BY host),
    names AS (
        SELECT name, max(domain) AS domain, count(*) AS forms,
            max(content) FILTER (NOT www) AS plain, max(content) FILTER (www) AS prefixed,
            max(leads) FILTER (NOT www) AS from_plain, max(leads) FILTER (www) AS from_prefixed
        FROM homes GROUP BY name)
    SELECT CASE WHEN name = domain THEN 2 ELSE 3 END AS level, count(*) AS names,
        count(*) FILTER (plain = prefixed OR from_plain = 'www.' || name OR from_prefixed = name) AS duphosts,
        count(*) FILTER (plain IS NOT NULL AND prefixed IS NULL AND from_prefixed IS NULL) AS lost
    FROM names
    WHERE forms = 2 AND (plain IS NOT NULL OR prefixed IS NOT NULL)
        AND (name = domain OR length(name) - length(replace(name, '.', '')) = length(domain) - length(replace(domain, '.', '')) + 1)
    GROUP BY level ORDER BY level
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sites: the first is a replica of the second."""

    replica: str
    original: str


@dataclass(frozen=True, slots=True)
class DuplicateHosts:
    """What the heuristics find among so many sites: for each a list of pairs, with every replica once."""

    sites: int
    pairs: dict[str, list[Pair]]

    def rows(self) -> list[dict[str, object]]:
        """Table I of the paper, as far as it follows from a crawl: replicas, their share of the sites, and how many there are
        for one that Dups100 finds.

        >>> found = DuplicateHosts(50, {SAME_HOME: [Pair("b.example", "a.example")]})
        >>> found.rows()[0]
        {'heuristic': 'SameHome', 'replicas': 1, 'share': 0.02, 'coverage': None}
        """
        base = len(self.pairs.get("Dups100", ()))
        return [
            {
                "heuristic": name,
                "replicas": len(pairs),
                "share": len(pairs) / self.sites if self.sites else 0.0,
                "coverage": len(pairs) / base if base else None,
            }
            for name, pairs in self.pairs.items()
        ]


def duplicate_hosts(job: StoredJob, memory: int = 1_000_000_000) -> DuplicateHosts:
    """The duplicate hosts of a crawl, by each of the heuristics, in about `memory` bytes and the disk beyond."""
    with tempfile.TemporaryDirectory(prefix="barkspider-duphosts-") as scratch:
        sites = job.query(_COUNT, memory=memory, scratch=scratch)["sites"][0].as_py()
        homes = job.query(_SAME_HOME, memory=memory, scratch=scratch).to_pylist()
        shared = job.query(_PAIRS, memory=memory, scratch=scratch).to_pylist()
    found = {
        SAME_HOME: _firsts(homes),
        SAME_HOME_AND_1_DOC: _firsts(row for row in shared if row["same_home"]),
    }
    for name, share in SHARES.items():
        found[name] = _firsts(row for row in shared if row["share"] >= share)
    return DuplicateHosts(sites, found)


@dataclass(frozen=True, slots=True)
class WwwRule:
    """What putting www. before names of a level would do (Table II): of so many `names` with an answer, how many are served under
    both forms, and how many only without it."""

    level: int
    names: int
    duphosts: int
    lost: int


def www_rule(job: StoredJob) -> list[WwwRule]:
    """Table II, of a crawl that asked for names in both forms: of the second level (domain.pt) and the third (name.domain.pt)."""
    return [WwwRule(**row) for row in job.query(_WWW).to_pylist()]


def _firsts(rows: Iterable[dict[str, str]]) -> list[Pair]:
    """A replica may be one of several sites; its original is the first of them."""
    pairs: dict[str, Pair] = {}
    for row in rows:
        pairs.setdefault(row["replica"], Pair(row["replica"], row["original"]))
    return list(pairs.values())
