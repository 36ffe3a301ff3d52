"""What a report says equals what the tables say, counted here without SQL, and what the web's own log says."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import igraph
import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.engine import Statistics
from barkspider.lab.synthweb import WebSpec, read_log, running_web
from barkspider.report.facts import Facts, collect
from barkspider.report.figures import DISTRIBUTIONS
from barkspider.report.top import standing as stand
from barkspider.report.top import supporters

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Statistics, int]:
    """A job, how it ended, and how many pages its web was asked for."""
    folder = tmp_path_factory.mktemp("report")
    spec = WebSpec(seed=5, pages=400, domains=40, page_bytes=3_000)
    with running_web(spec, log_path=folder / "requests.log") as served:
        chosen = served.settings() | {
            "politeness.host_delay": "5ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "memory": "64MB",
            "limits.pages": "200",
            "limits.site_urls": "5",
            "url.max_length": "60",
            "fetch.max_size": "4KB",
        }
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        statistics = crawl(served.web.seeds(5), folder / "job", settings)
    asked = sum(1 for each in read_log(folder / "requests.log") if each.path != "/robots.txt")
    return folder / "job", statistics, asked


@pytest.fixture(scope="module")
def facts(crawled: tuple[Path, Statistics, int]) -> Facts:
    return collect(crawled[0])


@pytest.fixture(scope="module")
def pages(crawled: tuple[Path, Statistics, int]) -> Rows:
    return open_job(crawled[0]).table("pages").to_pylist()


def good(pages: Rows) -> Rows:
    return [page for page in pages if 200 <= page["fetch_status"] < 300]


def size_name(length: int) -> str:
    if length == 0:
        return "0 B"
    power = math.floor(math.log2(length))
    return (
        "below 1 KiB" if power < 10 else f"{1 << power - 10} KiB" if power < 20 else f"{1 << power - 20} MiB"
    )


def time_name(seconds: float) -> str:
    names = ((0.01, "below 10 ms"), (0.1, "10–100 ms"), (1, "0.1–1 s"), (10, "1–10 s"))
    return next((name for most, name in names if seconds < most), "10 s and more")


def common(names: list[str]) -> dict[str, int]:
    ordered = sorted(Counter(names).items(), key=lambda each: (-each[1], each[0]))
    rest = sum(count for _, count in ordered[12:])
    return dict(ordered[:12]) | ({"others": rest} if rest else {})


COUNTED = {
    "status": lambda pages: common([str(page["fetch_status"]) for page in pages]),
    "types": lambda pages: common([page["content_mime_detected"] or "not said" for page in good(pages)]),
    "charsets": lambda pages: common([page["content_charset"] or "not said" for page in good(pages)]),
    "languages": lambda pages: common([page["content_languages"] or "not said" for page in good(pages)]),
    "tlds": lambda pages: common([page["url_host_tld"] or "not said" for page in good(pages)]),
    "sizes": lambda pages: Counter(size_name(page["content_length"]) for page in good(pages)),
    "url_lengths": lambda pages: Counter(
        f"{len(page['url']) // 20 * 20}–{len(page['url']) // 20 * 20 + 19}"
        if len(page["url"]) < 200
        else "200 and more"
        for page in pages
    ),
    "depths": lambda pages: Counter(
        str(page["depth"]) if page["depth"] < 15 else "15 and more" for page in pages
    ),
    "seconds": lambda pages: Counter(time_name(page["fetch_seconds"]) for page in pages),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_equals_the_table(name: str, facts: Facts, pages: Rows) -> None:
    assert facts.distributions[name] == COUNTED[name](pages)
    assert sum(facts.distributions[name].values()) > 100


def test_totals_equal_the_table_and_the_log_of_the_web(
    crawled: tuple[Path, Statistics, int], facts: Facts, pages: Rows
) -> None:
    _, statistics, asked = crawled
    totals = facts.totals
    assert totals["downloads"] == len(pages) == asked
    assert totals["urls"] == len({page["key"] for page in pages})
    assert totals["downloads_a_url"] == len(pages) / totals["urls"]
    assert totals["bytes"] == sum(page["content_length"] for page in pages)
    assert totals["median_size"] == median(page["content_length"] for page in pages)
    assert totals["hosts"] == len({page["url_host_name"] for page in pages})
    assert totals["truncated"] == sum(page["content_truncated"] is not None for page in pages)
    assert totals["pages"] == len(good(pages))
    assert totals["domains"] == len({page["url_host_registered_domain"] for page in pages})
    assert totals["mean_size"] == pytest.approx(totals["bytes"] / len(pages))
    assert totals["mean_url_length"] == pytest.approx(sum(len(page["url"]) for page in pages) / len(pages))
    same = {row["key"] for row in open_job(crawled[0]).table("duplicates").to_pylist()}
    assert totals["duplicates"] == sum(page["key"] in same for page in pages)
    for name, column in (("revisits", "revisit"), ("links_cut", "links_cut"), ("body_cut", "body_cut")):
        assert totals[name] == sum(bool(page[column]) for page in pages)
    taken = sorted(page["fetch_seconds"] for page in pages)
    assert totals["median_seconds"] == pytest.approx(median(taken))
    assert taken[-4] <= totals["slow_seconds"] <= taken[-1]
    times = [page["fetch_time"] for page in pages]
    assert (totals["first"], totals["last"]) == (min(times), max(times))
    assert facts.counted["pages"] == statistics.pages == 200
    assert facts.counted["bytes"] == statistics.bytes
    assert facts.reasons["refused"] == statistics.refused
    assert facts.reasons["out_of_scope"] == statistics.out_of_scope


def test_limits_equal_the_tables(facts: Facts, pages: Rows, crawled: tuple[Path, Statistics, int]) -> None:
    limits = {each.setting: each for each in facts.limits}
    hosts = Counter(page["url_host_name"] for page in pages)
    assert limits["limits.site_urls"].reached == sum(count >= 5 for count in hosts.values()) > 0
    assert limits["limits.site_urls"].of == len(hosts)
    assert "raise it" in limits["limits.site_urls"].suggestion
    cut = sum(page["content_truncated"] == "length" for page in pages)
    assert limits["fetch.max_size"].reached == cut > 0
    assert limits["url.max_length"].reached == crawled[1].out_of_scope.get("too_long", 0)
    assert limits["scope.depth"].suggestion == "no limit is set"
    assert limits["limits.site_duplicates"].limit == "10"


def test_the_top_domains_equal_the_links(crawled: tuple[Path, Statistics, int], facts: Facts) -> None:
    links = open_job(crawled[0]).table("links").to_pylist()
    into: dict[str, set[str]] = defaultdict(set)
    for link in links:
        if link["source_domain"] != link["target_domain"]:
            into[link["target_domain"]].add(link["source_domain"])
    top = facts.top
    assert len(top) == 20
    assert [each.in_degree for each in top] == sorted((len(each) for each in into.values()), reverse=True)[
        :20
    ]
    fetched = Counter(
        page["url_host_registered_domain"] for page in good(open_job(crawled[0]).table("pages").to_pylist())
    )
    for each in top:
        assert each.in_degree == len(into[each.domain])
        assert each.pages == fetched[each.domain]
        # Supporters at distance 2, and nearer ones are none of them (paper 003, equation (1)).
        near = into[each.domain]
        far = {two for one in near for two in into[one]} - near - {each.domain}
        assert each.supporters == len(far)
    edges = [(source, target) for target, sources in into.items() for source in sources]
    graph = igraph.Graph.TupleList(edges, directed=True)
    scores = dict(zip(graph.vs["name"], graph.pagerank(damping=0.85), strict=True))
    for each in top:
        assert each.pagerank == pytest.approx(scores[each.domain] * len(scores), rel=1e-3)


def test_standings_and_supporters_equal_the_domains(
    crawled: tuple[Path, Statistics, int], facts: Facts
) -> None:
    job, standing = open_job(crawled[0]), facts.standing
    domains = job.table("domains").to_pylist()
    degrees = Counter(row["domains_in"] for row in domains)
    assert dict(zip(standing.known.degrees.tolist(), standing.known.counts.tolist(), strict=True)) == degrees
    fetched = Counter[int]()
    for row in domains:
        fetched[row["domains_in"]] += row["pages"]
    assert [fetched[degree] for degree in sorted(degrees)] == standing.pages.tolist()
    assert {standing.budget(degree) for degree in degrees} == {10}  # as in all small webs
    assert standing.budget(max(degrees) + 1) is None
    left = stand(job, job.settings.budget, table="listed_domains")
    assert left.pages.tolist() == standing.pages.tolist()
    assert supporters(job, [each.domain for each in facts.top]) == {
        each.domain: each.supporters for each in facts.top
    }


def test_the_largest_hosts_equal_the_table(facts: Facts, pages: Rows) -> None:
    count = Counter(page["url_host_name"] for page in pages)
    first = sorted(count.items(), key=lambda each: (-each[1], each[0]))[:10]
    assert [(row["host"], row["pages"]) for row in facts.hosts] == first
    for row in facts.hosts:
        own = [page for page in pages if page["url_host_name"] == row["host"]]
        assert row["bytes"] == sum(page["content_length"] for page in own)
        assert row["depth"] == max(page["depth"] for page in own)


def test_disk_is_that_of_all_files(crawled: tuple[Path, Statistics, int], facts: Facts) -> None:
    files = [file for file in crawled[0].rglob("*") if file.is_file()]
    assert sum(facts.disk.values()) == sum(file.stat().st_size for file in files)
    assert facts.disk["WARC files"] == sum(file.stat().st_size for file in files if ".warc" in file.name)


def test_server_software_is_that_of_the_answers(crawled: tuple[Path, Statistics, int], facts: Facts) -> None:
    found, looked = facts.servers
    products: Counter[str] = Counter()
    for page in open_job(crawled[0]).pages():
        products[page.header("server").partition("/")[0].partition(" ")[0] or "not said"] += 1
    assert (found, looked) == (dict(products), products.total())


def test_errors_and_cuts_equal_the_tables(
    crawled: tuple[Path, Statistics, int], facts: Facts, pages: Rows
) -> None:
    errors = Counter(
        (row["what"], row["outcome"]) for row in open_job(crawled[0]).table("errors").to_pylist()
    )
    assert {(row["what"], row["outcome"]): row["times"] for row in facts.errors} == dict(errors)
    cuts = Counter(page["content_truncated"] for page in pages if page["content_truncated"])
    assert {row["reason"]: row["pages"] for row in facts.cuts} == dict(cuts)
