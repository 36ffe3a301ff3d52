"""All that a page needs to be shown is fetched, wherever it is, and nothing that lies behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barkspider import crawl, load_settings
from barkspider.engine import verify_job
from tests.website import QUICK, Answer, Site, serving_site

ELSEWHERE = {
    "/robots.txt": Answer("User-agent: *\nDisallow: /private", "text/plain"),
    "/style.css": Answer("@import 'more.css'; p { background: url(back.png) }", "text/css"),
    "/more.css": Answer("@font-face { src: url(font.woff) } /* url(no.woff) */", "text/css"),
    "/frame.html": Answer("<img src=inside.png><a href=/behind>x</a><iframe src=second.html></iframe>"),
    "/second.html": Answer("<img src=deep.png>"),
    **{
        f"/{name}": Answer(b"\x89PNG", "image/png")
        for name in (
            "back.png",
            "font.woff",
            "inside.png",
            "deep.png",
            "1.png",
            "2.png",
            "moved.png",
            "n.png",
        )
    },
    "/private/x.png": Answer(b"\x89PNG", "image/png"),
    "/behind": Answer("not needed"),
    "/page": Answer("out of scope"),
    **{f"/trap{n}.css": Answer(f"@import 'trap{n + 1}.css'", "text/css") for n in range(30)},
}
NEEDED = {
    *("/robots.txt", "/style.css", "/more.css", "/back.png", "/font.woff", "/1.png", "/2.png", "/moved.png"),
    *("/frame.html", "/inside.png", "/second.html", "/deep.png", "/n.png"),
}


@pytest.fixture
def elsewhere() -> Iterator[Site]:
    with serving_site(ELSEWHERE, "127.0.0.2") as site:
        yield site


def pages_that_need(site: Site) -> dict[str, Answer | str]:
    other = site.origin
    return {
        "/": f"<link rel=stylesheet href={other}/style.css><img src={other}/1.png srcset='{other}/2.png 2x'>"
        f"<iframe src={other}/frame.html></iframe><img src=/moved><img src={other}/private/x.png>"
        f"<a href={other}/page>out</a><a href=/blog/one>in</a><a href=/nofollow>in</a>",
        "/moved": Answer(status=302, headers={"Location": f"{other}/moved.png"}),
        "/nofollow": f"<meta name=robots content=nofollow><img src={other}/n.png><a href=/never>x</a>",
        "/blog/one": "<link rel=stylesheet href=/static/s.css><iframe src=/blog/framed></iframe>",
        "/blog/framed": "<a href=/blog/two>a link of a frame that is in scope</a>",
        "/blog/two": "<p style='background: url(/static/p.png)'>",
        "/static/s.css": Answer("b { background: url(s.png) }", "text/css"),
        "/static/s.png": Answer(b"\x89PNG", "image/png"),
        "/static/p.png": Answer(b"\x89PNG", "image/png"),
    }


def run(site: Site, job: Path, *options: str, start: str = "/") -> set[str]:
    """The paths that were asked for, besides robots.txt."""
    settings = load_settings(options=[*QUICK, "page.requisites=true", *options])
    crawl([site.url(start)], job, settings)
    assert list(verify_job(job)) == []
    assert len(site.asked) == len(set(site.asked))
    return set(site.asked) - {"/robots.txt"}


@pytest.mark.parametrize("level", ["site", "domain"])
@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
def test_requisites_come_from_anywhere_and_links_do_not(
    elsewhere: Site, tmp_path: Path, level: str, frontier: str
) -> None:
    with serving_site(pages_that_need(elsewhere)) as site:
        asked = run(site, tmp_path / "job", f"scope.level={level}", f"frontier={frontier}")
    assert asked == set(site.pages)
    assert set(elsewhere.asked) == NEEDED


def test_a_page_alone_is_fetched_with_all_that_it_needs(elsewhere: Site, tmp_path: Path) -> None:
    with serving_site(pages_that_need(elsewhere)) as site:
        assert run(site, tmp_path / "job", "scope.level=page") == {"/", "/moved"}
    assert set(elsewhere.asked) == NEEDED - {"/n.png"}


def test_what_a_list_includes_is_for_pages_and_what_it_excludes_for_all(
    elsewhere: Site, tmp_path: Path
) -> None:
    with serving_site(pages_that_need(elsewhere)) as site:
        asked = run(site, tmp_path / "job", "scope.include_paths=/blog/", start="/blog/one")
        assert asked == {path for path in site.pages if path.startswith(("/blog/", "/static/"))}
        site.asked.clear()
        excluded = ["scope.exclude_hosts=127.0.0.2", "scope.exclude_extensions=css"]
        asked = run(site, tmp_path / "second", *excluded)
        assert asked == set(site.pages) - {"/static/s.css", "/static/s.png"}
    assert elsewhere.asked == []


def test_sheets_that_need_sheets_without_end_are_not_followed_for_ever(
    elsewhere: Site, tmp_path: Path
) -> None:
    with serving_site({"/": f"<link rel=stylesheet href={elsewhere.origin}/trap0.css>"}) as site:
        run(site, tmp_path / "job")
    assert elsewhere.asked == ["/robots.txt", *(f"/trap{number}.css" for number in range(6))]


def test_nothing_else_is_fetched_unless_it_is_asked_for(elsewhere: Site, tmp_path: Path) -> None:
    with serving_site(pages_that_need(elsewhere)) as site:
        asked = run(site, tmp_path / "job", "page.requisites=false")
    assert asked == {"/", "/nofollow", "/blog/one", "/blog/framed", "/blog/two"}
    assert elsewhere.asked == []
