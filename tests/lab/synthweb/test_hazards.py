"""Each hazard does what it says, over real sockets where the socket matters."""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections import Counter
from email.utils import parsedate_to_datetime
from itertools import pairwise
from urllib.parse import urljoin

import pytest

from barkspider.core.errors import SettingsError
from barkspider.lab.synthweb import HAZARDS, Request, RunningWeb, Web, WebSpec, parse_hazards
from barkspider.lab.synthweb.hazards import KINDS, LinkExchange
from barkspider.lab.synthweb.spec import FIRST_NAMES

from .client import get


def test_every_name_has_a_hazard_and_a_line(hazardous: Web) -> None:
    import barkspider.lab.synthweb.hazards as module

    assert set(KINDS) == set(HAZARDS) == set(hazardous.hazards)
    assert all(f"| {name} |" in (module.__doc__ or "") for name in HAZARDS)
    room = dict(zip(HAZARDS, pairwise(FIRST_NAMES), strict=True))
    assert all(kind.domains <= room[name][1] - room[name][0] for name, kind in KINDS.items())


def test_names_are_checked() -> None:
    assert parse_hazards("all") == frozenset(HAZARDS)
    assert parse_hazards("none") == frozenset()
    with pytest.raises(SettingsError, match="did you mean mirrors"):
        parse_hazards("mirors")


def test_regular_pages_stay_as_they_are(hazardous: Web) -> None:
    from dataclasses import replace

    plain = Web(replace(hazardous.spec, hazards=frozenset()))
    seeds = plain.seeds(1)
    assert plain.reachable(seeds) == hazardous.reachable(seeds)
    assert plain.server(f"www.{hazardous.hazards['calendar'].names[0]}") is None
    for page in range(0, 5_000, 500):
        assert plain.url(page) == hazardous.url(page)
        regular = [link for link in hazardous.links(plain.url(page)) if hazardous.page_id(link) is not None]
        assert regular == plain.links(plain.url(page))


def test_spam_farm(hazardous: Web) -> None:
    seen = set(hazardous.hazards["spam_farm"].entries())
    frontier = list(seen)
    while len(seen) < 2_000:
        url = frontier.pop()
        assert hazardous.exists(url)
        assert hazardous.is_spam(url)
        links = hazardous.links(url)
        assert all(hazardous.server(link.split("/")[2]) for link in links)
        frontier += set(links) - seen
        seen |= set(links)
    hosts = {url.split("/")[2] for url in seen}
    names = hazardous.hazards["spam_farm"].names
    assert len(hosts) > 500
    assert {".".join(host.split(".")[1:]) for host in hosts} <= set(names)
    assert hazardous.is_spam(names[0])
    assert not hazardous.is_spam(hazardous.seeds()[0])


def test_calendar_has_no_end(hazardous: Web) -> None:
    url = next(
        link for link in hazardous.links(hazardous.hazards["calendar"].entries()[0]) if "calendar" in link
    )
    seen = set()
    for _ in range(500):
        seen.add(url)
        url = hazardous.links(url)[1]
    assert len(seen) == 500


def test_session_ids(running: RunningWeb) -> None:
    home = running.web.hazards["session_ids"].entries()[0]
    first = get(running, home)
    second = get(running, home)
    sessions = [re.findall(rb"PHPSESSID=([0-9a-f]{32})", body) for _, _, body in (first, second)]
    assert len(set(sessions[0])) == 1
    assert set(sessions[0]) != set(sessions[1])
    cookie = first[1]["set-cookie"].partition(";")[0]
    status, headers, body = get(running, home, Cookie=cookie)
    assert status == 200
    assert b"PHPSESSID" not in body
    assert "set-cookie" not in headers
    link = urljoin(home, re.findall(rb'href="([^"]+)"', first[2])[1].decode())
    assert get(running, link)[0] == 200
    assert get(running, urljoin(home, "/item-200.html"))[0] == 404


def test_growing_paths(hazardous: Web) -> None:
    url = hazardous.hazards["growing_paths"].entries()[0]
    for _ in range(50):
        url = hazardous.links(url)[0]
    assert url.endswith("/" + "chapter/" * 50)
    assert hazardous.exists(url)


def test_listings(hazardous: Web) -> None:
    home = hazardous.hazards["listings"].entries()[0]
    links = hazardous.links(home)
    assert {home + order for order in ("?N=D", "?M=A", "?C=M;O=A", "?C=N;O=D")} <= set(links)
    assert sorted(hazardous.links(home + "?N=D")) == sorted(links)
    assert hazardous.page(home + "?other=1").status == 404
    seen, frontier = {home}, [home]
    while frontier:
        plain = {link.partition("?")[0] for link in hazardous.links(frontier.pop())} - seen
        seen |= plain
        frontier += plain
    assert len(seen) == (1 + 3 + 9 + 27) * 5  # listings, and four files in each


def test_mirrors(hazardous: Web) -> None:
    homes = hazardous.hazards["mirrors"].entries()
    for path in ("", "doc-7.html", "doc-149.html"):
        assert len({hazardous.page(home + path).body for home in homes}) == 1
    assert len({home.split("/")[2] for home in homes}) == 4
    assert not hazardous.exists(homes[0] + "doc-150.html")


def test_redirects_of_the_plain_kinds(running: RunningWeb) -> None:
    web = running.web
    home = web.hazards["redirects"].entries()[0]
    links = web.links(home)

    def follow(url: str, most: int) -> tuple[int, str]:
        for hops in range(most):
            status, headers, _ = get(running, url)
            if status == 200:
                return hops, url
            assert 300 < status < 400
            url = urljoin(url, headers["location"])
        return most, url

    for number, name in enumerate(("relative", "up/relative", "rooted", "absolute", "no-scheme"), start=1):
        assert home + name in links
        assert follow(home + name, 3) == (1, f"{home}target-{number}.html")
    assert follow(home + "chain-5", 10)[0] == 5
    assert follow(home + "chain-30", 10)[0] == 10
    assert follow(home + "loop-a", 10)[0] == 10
    assert follow(home + "self", 5) == (5, home + "self")
    assert follow(home + "secure", 3) == (1, home.replace("http:", "https:") + "secure")
    assert web.page_id(follow(home + "away", 3)[1]) == 0
    assert get(running, home + "file")[1]["location"] == "file:///etc/passwd"


def test_redirects_that_a_normalising_crawler_loses(running: RunningWeb) -> None:
    web = running.web
    _, index, bare, session, cookie = web.hazards["redirects"].entries()

    assert get(running, index)[1]["location"] == "/index.html"
    assert b"/page-5.html" in get(running, index + "index.html")[2]

    status, headers, _ = get(running, bare)
    www = headers["location"]
    assert (status, www) == (302, bare.replace("http://", "http://www."))
    status, headers, _ = get(running, www)
    assert (status, headers["location"]) == (302, bare)
    assert get(running, bare, Cookie=headers["set-cookie"].partition(";")[0])[0] == 200

    status, headers, _ = get(running, session)
    assert status == 302
    assert re.fullmatch(r"/\?PHPSESSID=[0-9a-f]{32}", headers["location"])
    assert get(running, urljoin(session, headers["location"]))[0] == 200

    status, headers, _ = get(running, cookie)
    assert (status, headers["location"]) == (302, "/")
    assert get(running, cookie, Cookie=headers["set-cookie"].partition(";")[0])[0] == 200
    for home in (index, bare, session, cookie):
        assert get(running, home + "page-5.html")[0] == 200
        assert get(running, home + "page-6.html")[0] == 404


def test_soft_404(hazardous: Web) -> None:
    home = hazardous.hazards["soft_404"].entries()[0]
    gone = [link for link in hazardous.links(home) if "gone" in link]
    assert gone
    bodies = {hazardous.page(link).body for link in [*gone, home + "whatever"]}
    assert len(bodies) == 1
    assert hazardous.page(gone[0]).status == 200
    assert b"not found" in bodies.pop()


def test_wrong_types(running: RunningWeb) -> None:
    home = running.web.hazards["wrong_types"].entries()[0]
    types = [get(running, f"{home}odd-{k}")[1].get("content-type") for k in range(4)]
    assert types == ["text/plain", "application/octet-stream", None, "text/html"]
    assert b"<a href=" in get(running, home + "odd-1")[2]
    _, headers, body = get(running, home + "image.html")
    assert headers["content-type"] == "text/html"
    assert body.startswith(b"\x89PNG")


def test_slow(running: RunningWeb) -> None:
    waits, headers, bodies = running.web.hazards["slow"].entries()
    for url, least in ((waits, 0.05), (headers, 0.4), (bodies, 0.4)):
        began = time.monotonic()
        status, _, body = get(running, url)
        assert time.monotonic() - began >= least
        assert (status, body) == (200, running.web.page(url).body)


def test_dead(running: RunningWeb) -> None:
    web = running.web
    refused, unknown, silent, closed, cut = web.hazards["dead"].entries()
    with pytest.raises(ConnectionRefusedError):
        get(running, refused)
    assert web.server(unknown.split("/")[2]) is None
    assert web.server(silent.split("/")[2]) == ""
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        get(running, closed)
    with pytest.raises(http.client.IncompleteRead):
        get(running, cut)
    assert [web.exists(url) for url in (refused, unknown, silent, closed)] == [True, False, False, False]
    assert not web.allowed(closed)


def test_throttled(running: RunningWeb) -> None:
    seconds, date, absurd, negative = running.web.hazards["throttled"].entries()
    began = time.time()
    status, headers, _ = get(running, seconds)
    assert (status, headers["retry-after"]) == (429, "1")
    status, headers, _ = get(running, date)
    assert status == 503
    assert 0 < parsedate_to_datetime(headers["retry-after"]).timestamp() - began <= 2.5
    assert int(get(running, absurd)[1]["retry-after"]) > 10**8
    assert get(running, negative)[1]["retry-after"] == "-5"
    assert get(running, seconds)[0] == 429


def test_a_throttled_page_comes_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(WebSpec(pages=100, hazards=frozenset({"throttled"})))
    url = web.hazards["throttled"].entries()[0]
    assert web.page(url).status == 429
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + web.spec.retry_after + 0.1)
    assert web.page(url).status == 200


def test_wildcard_dns(hazardous: Web) -> None:
    name = hazardous.hazards["wildcard_dns"].names[0]
    addresses = {hazardous.server(f"{label}.{name}") for label in ("a", "x.y.z", "www", "12345")}
    assert len(addresses) == 1
    links = hazardous.links(f"http://a.{name}/")
    assert all(hazardous.exists(link) for link in links)
    assert set(links).isdisjoint(hazardous.links(f"http://b.{name}/"))


def test_broken_robots(running: RunningWeb) -> None:
    homes = running.web.hazards["broken_robots"].entries()
    assert not any(running.web.allowed(home) for home in homes)
    assert [get(running, home + "robots.txt")[0] for home in homes[:2]] == [500, 503]
    for home in homes[2:]:
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            get(running, home + "robots.txt")
    assert get(running, homes[0])[0] == 200


def test_members_of_a_link_exchange_link_to_nearly_all_others(hazardous: Web) -> None:
    exchange = hazardous.hazards["link_exchange"]
    homes = {f"http://www.{name}/" for name in exchange.names}
    assert len(homes) == 300
    assert len({hazardous.server(home.split("/")[2]) for home in homes}) <= 10
    friends = 0
    for home in sorted(homes)[:20]:
        pages = [home, home + "friends-1.html", home + "friends-2.html"]
        told = [hazardous.links(page) for page in pages]
        assert all(links[:3] == pages for links in told)
        linked = [link for links in told for link in links[3:]]
        assert max(map(len, told)) <= 103
        assert len(linked) == len(set(linked))
        assert set(linked) < homes - {home}
        assert all(map(hazardous.is_spam, pages))
        friends += len(linked)
    assert 0.94 < friends / (20 * 299) < 0.96
    assert not hazardous.exists(home + "friends-3.html")
    body = hazardous.page(home).body.decode()
    assert re.findall(r'href="(http:[^"]+)"', body) == hazardous.links(home)[3:]


def test_members_of_a_link_exchange_buy_their_links_from_domains_that_few_know() -> None:
    web = Web(WebSpec(pages=20_000, domains=1_000, hazards=frozenset({"link_exchange"})))
    homes = {f"http://www.{name}/" for name in web.hazards["link_exchange"].names}
    tables, sold = web.tables, Counter[str]()
    for domain in range(1_000):
        url = web.url(int(tables.start[tables.first_host[domain]]))
        bought = [link for link in web.links(url) if link in homes]
        served = re.findall(r'<a href="([^"]+)">sponsored</a>', web.page(url).body.decode("latin-1"))
        assert served == bought
        assert not bought or domain >= 500
        sold.update(bought)
    assert sold == dict.fromkeys(homes, 3)


def test_a_link_exchange_moves_nothing_else() -> None:
    others = frozenset(HAZARDS) - {"link_exchange"}
    before, after = (Web(WebSpec(pages=2_000, hazards=names)) for names in (others, frozenset(HAZARDS)))
    assert all(after.hazards[name].names == before.hazards[name].names for name in others)
    # Written down when there was no exchange: the first domain, and the last hazard's.
    assert before.seeds() == ["http://www.paduge.de/"]
    assert before.hazards["broken_robots"].names == ["topici.com", "prozece.fr", "lugaca.com", "fupubru.org"]
    for page in range(0, 2_000, 7):
        url = before.url(page)
        assert [link for link in after.links(url) if not _exchanged(after, link)] == before.links(url)


def _exchanged(web: Web, url: str) -> bool:
    site = web.site(url.split("/")[2])
    return site is not None and isinstance(site.hazard, LinkExchange)


def test_a_slow_client_holds_up_nobody_and_gets_everything(running: RunningWeb) -> None:
    url = next(url for page in range(5_000) if (url := running.web.url(page)).startswith("http:"))
    host = url.split("/")[2]
    address = running.web.server(host)
    assert address
    with socket.create_connection((address, running.http_port), timeout=5) as client:
        request = f"GET {url.removeprefix('http://' + host)} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        client.sendall(request * 100 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert get(running, url)[0] == 200
        received = bytearray()
        while chunk := client.recv(1 << 20):
            received += chunk
    assert received.count(b"HTTP/1.1 200 OK") == 101
    assert received.endswith(running.web.page(url).body)


def test_answers_do_not_depend_on_the_scheme_of_hazards(hazardous: Web) -> None:
    name = hazardous.hazards["mirrors"].names[0]
    assert hazardous.answer(Request(f"www.{name}", "/", "https")).status == 200
