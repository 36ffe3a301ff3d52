"""Pages as bytes: an independent parser finds the links that the truth names, and no others."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

import pytest

from barkspider.lab.synthweb import Answer, Web, WebSpec


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.hrefs: list[str] = []
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("a", "base"):
            href = dict(attrs)["href"] or ""
            if tag == "base":
                self.base = href
            elif not href.startswith(("mailto:", "javascript:")):
                self.hrefs.append(href)

    def handle_data(self, data: str) -> None:
        if self.lasttag == "title" and not self.title:
            self.title = data


def _charset(answer: Answer) -> str:
    text = f"{answer.content_type} {answer.body[:300].decode('latin-1')}"
    match = re.search(r"charset=\"?([\w-]+)", text)
    assert match
    return match[1].lower()


def _found(url: str, answer: Answer) -> list[str]:
    parser = _Links()
    parser.feed(answer.body.decode(_charset(answer)))
    parser.close()
    base = urljoin(url, parser.base)
    return [urldefrag(urljoin(base, href)).url for href in parser.hrefs]


@pytest.mark.parametrize("https_share", [0.0, 0.5])
def test_html_has_exactly_the_links_of_the_truth(https_share: float) -> None:
    web = Web(WebSpec(pages=20_000, https_share=https_share))
    for page in range(0, 20_000, 97):
        url = web.url(page)
        answer = web.page(url)
        assert answer.status == 200
        assert _found(url, answer) == web.links(url), url


def test_a_crawl_by_what_pages_say_finds_what_the_truth_says() -> None:
    web = Web(WebSpec(pages=500, page_bytes=3_000))
    seeds = web.seeds(2)
    fetched: list[str] = []
    frontier = [url for url in seeds if web.allowed(url)]
    seen = set(frontier)
    while frontier:
        url = frontier.pop()
        fetched.append(url)
        new = {link for link in _found(url, web.page(url)) if link not in seen and web.allowed(link)}
        seen |= new
        frontier += new
    assert set(fetched) == web.reachable_urls(seeds)
    assert len(fetched) == web.reachable(seeds)


def test_so_have_pages_with_links_to_hazards(hazardous: Web) -> None:
    hazards = 0
    for page in range(0, 5_000, 53):
        url = hazardous.url(page)
        links = hazardous.links(url)
        assert _found(url, hazardous.page(url)) == links
        hazards += sum(hazardous.page_id(link) is None for link in links)
    assert hazards
    homes = {link for seed in hazardous.seeds(20) for link in hazardous.links(seed)}
    assert {entry for hazard in hazardous.hazards.values() for entry in hazard.entries()} <= homes


def test_links_in_comments_and_scripts_lead_nowhere(small: Web) -> None:
    url = small.url(3)
    body = small.page(url).body.decode("latin-1")
    ghosts = re.findall(r"/ghost-\d+\.html", body)
    assert len(ghosts) == 2
    assert "<!-- <a href=" in body
    assert "<script>" in body
    for ghost in ghosts:
        assert urljoin(url, ghost) not in small.links(url)
        assert small.page(urljoin(url, ghost)).status == 404


def test_every_way_of_writing_an_address_occurs(small: Web) -> None:
    text = b"".join(small.page(small.url(page)).body for page in range(0, 20_000, 400)).decode("latin-1")
    for pattern in (
        r'href="/', r"href='", r"href=[^\"' >]+ class", r'HREF="', r'href="\.\./', r'href="//', r'href="http://',
        r"#part-\d", r"&amp;id=", r"&#38;id=", r'<base href="/">', r"href=.[a-z]+[-_][a-z]+[-_]\d+",
    ):  # fmt: skip
        assert re.search(pattern, text), pattern


def test_pages_are_of_the_size_asked_for(small: Web) -> None:
    sizes = [len(small.page(small.url(page)).body) for page in range(0, 20_000, 40)]
    assert 22_000 < sum(sizes) / len(sizes) < 28_000
    assert max(sizes) > 3 * min(sizes)
    short = Web(WebSpec(pages=20_000, page_bytes=8_000))
    sizes = [len(short.page(short.url(page)).body) for page in range(0, 20_000, 40)]
    assert 7_000 < sum(sizes) / len(sizes) < 12_000


def test_charsets_are_as_declared(small: Web) -> None:
    seen = set()
    for page in range(0, 20_000, 200):
        answer = small.page(small.url(page))
        charset = _charset(answer)
        seen.add((answer.content_type, charset))
        answer.body.decode(charset)
    assert {charset for _, charset in seen} == {"utf-8", "iso-8859-1", "windows-1252"}
    assert {charset for kind, charset in seen if kind == "text/html"} == {
        "utf-8",
        "iso-8859-1",
        "windows-1252",
    }


def test_pages_differ(small: Web) -> None:
    bodies = {small.page(small.url(page)).body for page in range(300)}
    assert len(bodies) == 300


def test_the_longest_pages_fit_their_buffer() -> None:
    web = Web(WebSpec(pages=2_000_000, domains=3, links_per_page=500, page_bytes=2_000))
    for page in range(0, 60_000, 70):
        url = web.url(page)
        assert len(web.page(url).body) > 30 * len(web.links(url))


def test_an_edition_changes_the_text_of_a_quarter_of_the_pages_and_no_links() -> None:
    first, second, fifth = (Web(WebSpec(pages=2_000, edition=edition)) for edition in (0, 1, 4))
    urls = [first.url(page) for page in range(0, 2_000, 5)]
    changed = [url for url in urls if second.page(url).body != first.page(url).body]
    assert 0.2 < len(changed) / len(urls) < 0.3
    for url in changed:
        page = second.page_id(url)
        assert page is not None
        assert (first.revision(page), second.revision(page)) == (0, 1)
        assert _found(url, second.page(url)) == _found(url, first.page(url)) == first.links(url)
    assert all(fifth.page(url).body != first.page(url).body for url in urls)
    assert all(fifth.page(url).body == second.page(url).body for url in changed)
