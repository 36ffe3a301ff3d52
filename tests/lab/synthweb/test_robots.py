"""robots.txt: a reader of the texts comes to what the truth knows without reading them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from barkspider.lab.synthweb import Request, Web, WebSpec
from barkspider.lab.synthweb.robots import KINDS, kind_of


def _rules(text: str, agent: str) -> list[tuple[bool, str]]:
    """The rules for an agent, read the way of RFC 9309, as plainly as possible."""
    groups: list[tuple[set[str], list[tuple[bool, str]]]] = []
    in_rules = True
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "user-agent":
            if in_rules:
                groups.append((set(), []))
            groups[-1][0].add(value.lower())
            in_rules = False
        elif name in ("allow", "disallow"):
            in_rules = True
            if groups and value:
                groups[-1][1].append((name == "allow", value))
    own = [rule for agents, rules in groups if agent in agents for rule in rules]
    if any(agent in agents for agents, _ in groups):
        return own
    return [rule for agents, rules in groups if "*" in agents for rule in rules]


def _allows(rules: list[tuple[bool, str]], target: str) -> bool:
    best = (-1, True)
    for allow, pattern in rules:
        expression = re.escape(pattern.removesuffix("$")).replace(r"\*", ".*") + (
            "$" if pattern.endswith("$") else ""
        )
        if re.match(expression, target):
            best = max(best, (len(pattern), allow))
    return best[1]


@pytest.fixture(scope="module")
def hosts(small: Web) -> dict[str, list[int]]:
    by_kind: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for host in range(len(small.tables.domain_of)):
        by_kind[kind_of(small.tables, host)].append(host)
    return by_kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("agent", ["barkspider", "googlebot", "someone"])
def test_the_text_means_what_the_truth_says(
    small: Web, hosts: dict[str, list[int]], kind: str, agent: str
) -> None:
    assert hosts[kind], "a web of 20,000 pages has every kind"
    closed = total = 0
    for host in hosts[kind][:40]:
        status, body = small.robots_txt(small.host_name(host))
        rules = _rules(body.decode(), agent) if status == 200 else []
        start, end = small.tables.start[host], small.tables.start[host + 1]
        for page in range(start, min(end, start + 100)):
            url = small.url(page)
            parts = urlsplit(url)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            assert small.allowed(url, agent) == _allows(rules, target), (url, body)
            closed += not small.allowed(url, agent)
            total += 1
    if agent == "barkspider":
        assert closed < total / 2
        forbids = kind not in ("no_robots", "empty", "allow_all", "crawl_delay", "html", "tie")
        assert (closed > 0) == forbids


def test_home_pages_are_open(small: Web) -> None:
    assert all(small.allowed(small.url(int(page))) for page in small.tables.start[:-1])


def test_answers(small: Web, hosts: dict[str, list[int]]) -> None:
    def ask(kind: str, target: str = "/robots.txt") -> tuple[int, str | None]:
        answer = small.answer(Request(small.host_name(hosts[kind][0]), target))
        return answer.status, answer.content_type

    assert ask("no_robots")[0] == 404
    assert ask("html") == (200, "text/html; charset=utf-8")
    assert ask("redirected")[0] == 301
    assert ask("redirected", "/rules/robots-current.txt") == (200, "text/plain")
    assert ask("sections", "/rules/robots-current.txt")[0] == 404
    assert small.robots_txt(small.host_name(hosts["bom"][0]))[1].startswith(b"\xef\xbb\xbf")


def test_crawl_delay(small: Web, hosts: dict[str, list[int]]) -> None:
    host = small.host_name(hosts["crawl_delay"][0])
    assert small.crawl_delay(host) == 1.0
    assert b"Crawl-delay: 1\n" in small.robots_txt(host)[1]
    assert small.crawl_delay(small.host_name(hosts["empty"][0])) is None
    quick = Web(WebSpec(pages=20_000, crawl_delay=0.05))
    assert b"Crawl-delay: 0.05\n" in quick.robots_txt(host)[1]
    assert all(small.tables.start[h + 1] - small.tables.start[h] <= 50 for h in hosts["crawl_delay"])


def test_what_is_no_page_is_not_closed(small: Web) -> None:
    assert small.allowed("http://nowhere.example/x")
