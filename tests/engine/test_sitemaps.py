"""Sitemaps that robots.txt names, and feeds, lead to pages that nothing links to."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from barkspider import crawl, load_settings
from barkspider.engine import open_job, verify_job
from tests.website import QUICK, Answer, Site, serving_site


def sitemap(*urls: str, index: bool = False) -> Answer:
    outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    entries = "".join(f"<{inner}><loc>{url}</loc><lastmod>2024</lastmod></{inner}>" for url in urls)
    return Answer(f'<?xml version="1.0"?><{outer} xmlns="s">{entries}</{outer}>', "application/xml")


def pages_of(site: Site) -> None:
    at = site.url
    packed = gzip.compress(sitemap(at("/blog/packed")).bytes)
    site.pages |= {
        "/robots.txt": Answer(
            f"Sitemap: {at('/index.xml')}\nSitemap: /plain.txt\nSitemap: http://b.example/", "text/plain"
        ),
        "/": Answer("<a href=/feed>a feed</a>"),
        "/index.xml": sitemap(at("/one.xml"), at("/two.xml.gz"), "http://b.example/other.xml", index=True),
        "/one.xml": sitemap(at("/blog/1"), at("/blog/2"), "http://b.example/elsewhere"),
        "/two.xml.gz": Answer(packed, "application/gzip"),
        "/plain.txt": Answer(f"{at('/blog/line')}\n", "text/plain"),
        "/feed": Answer(
            "<rss><channel><item><link>/blog/item</link></item></channel></rss>", "application/rss+xml"
        ),
        **{f"/blog/{name}": Answer(name) for name in ("1", "2", "packed", "line", "item")},
    }


def run(site: Site, job: Path, *options: str) -> set[str]:
    crawl([site.url("/")], job, load_settings(options=[*QUICK, *options]))
    assert list(verify_job(job)) == []
    assert len(site.asked) == len(set(site.asked))
    return set(site.asked)


@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
@pytest.mark.parametrize("whose", ["seeds", "all"])
def test_every_page_of_sitemaps_and_feeds_is_fetched(tmp_path: Path, frontier: str, whose: str) -> None:
    with serving_site() as site:
        pages_of(site)
        asked = run(site, tmp_path / "job", f"scope.sitemaps={whose}", f"frontier={frontier}")
    assert asked == set(site.pages)
    listed = {row["url"]: row for row in open_job(tmp_path / "job").table("listings").to_pylist()}
    assert listed.keys() == {site.url(f"/blog/{name}") for name in ("1", "2", "packed", "line")} | {
        "/blog/item",
        "http://b.example/elsewhere",
    }
    assert listed[site.url("/blog/1")]["modified"] == "2024"
    pages = open_job(tmp_path / "job").query("select url, depth from pages").to_pylist()
    depths = {row["url"].removeprefix(site.origin): row["depth"] for row in pages}
    assert [depths[path] for path in ("/index.xml", "/two.xml.gz", "/blog/packed", "/blog/line")] == [
        0,
        0,
        1,
        1,
    ]


def test_sitemaps_are_read_when_asked_for_and_for_the_sites_that_were(tmp_path: Path) -> None:
    with serving_site() as site:
        pages_of(site)
        assert run(site, tmp_path / "never") == {"/robots.txt", "/", "/feed", "/blog/item"}
        site.asked.clear()
        assert run(site, tmp_path / "no feeds", "page.feeds=false") == {"/robots.txt", "/", "/feed"}
        with serving_site({"/": f"<a href={site.origin}/>"}, "127.0.0.2") as first:
            site.asked.clear()
            options = load_settings(options=[*QUICK, "scope.level=web", "scope.sitemaps=seeds"])
            crawl([first.url("/")], tmp_path / "seeds", options)
        assert set(site.asked) == {"/robots.txt", "/", "/feed", "/blog/item"}


def test_a_sitemap_out_of_scope_counts_for_pages_that_are_in_it(tmp_path: Path) -> None:
    with serving_site() as site:
        pages_of(site)
        settings = load_settings(options=[*QUICK, "scope.sitemaps=all", "scope.include_paths=/blog/"])
        crawl([site.url("/blog/1")], tmp_path / "job", settings)
        assert set(site.asked) == set(site.pages) - {"/", "/feed", "/blog/item"}


def test_indexes_without_end_end(tmp_path: Path) -> None:
    with serving_site() as site:
        site.pages["/robots.txt"] = Answer("Sitemap: /0.xml", "text/plain")
        site.pages["/"] = Answer("home")
        for number in range(30):
            site.pages[f"/{number}.xml"] = sitemap(site.url(f"/{number + 1}.xml"), index=True)
        asked = run(site, tmp_path / "job", "scope.sitemaps=all")
        assert asked == {"/robots.txt", "/", *(f"/{number}.xml" for number in range(6))}


def test_a_large_sitemap_gives_all_its_pages_and_a_broken_one_is_named(tmp_path: Path) -> None:
    with serving_site() as site:
        # More bytes than a page may link to (`limits.page_link_bytes`).
        many = [site.url(f"/many/{number}?{'x' * 100}") for number in range(3_000)]
        site.pages |= {
            "/robots.txt": Answer(
                "User-agent: *\nDisallow: /many\nSitemap: /a.xml\nSitemap: /b.xml", "text/plain"
            ),
            "/": Answer("home"),
            "/a.xml": sitemap(*many),
            "/b.xml": Answer(f"<urlset><url><loc>{site.url('/c')}</loc></url><url><loc>", "text/xml"),
            "/c": Answer("found before the fault"),
        }
        statistics = crawl(
            [site.url("/")],
            tmp_path / "job",
            load_settings(options=[*QUICK, "scope.sitemaps=all", "frontier=sydney"]),
        )
    assert statistics.refused["robots"] == 3_000
    assert "/c" in site.asked
    errors = open_job(tmp_path / "job").table("errors").to_pylist()
    assert [(row["outcome"], row["url"]) for row in errors] == [("listing_damaged", site.url("/b.xml"))]
