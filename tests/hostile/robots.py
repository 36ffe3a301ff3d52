"""Hazards 51 to 55: robots.txt of every kind, and servers that ask for time."""

from __future__ import annotations

from itertools import pairwise

from tests.hostile.crawls import crawled, page, sites
from tests.hostile.hazard import DOMAIN, Found, host_of, says, site
from tests.hostile.server import Line, Request, Serve, moved, ok

_PAGES = {"/": page("/open", "/closed"), "/open": page(), "/closed": page()}


def _robots(body: bytes) -> Serve:
    return site({**_PAGES, "/robots.txt": ok(body, "text/plain")})


_FILLING = b"# nothing to see here, move along\n" * 16_000  # 544,000 bytes


@crawled(
    51,
    "a robots.txt of 600 KiB",
    _robots(b"User-agent: *\nDisallow: /closed\n" + _FILLING + b"Disallow: /\n"),
)
def _long_robots(found: Found) -> None:
    assert sorted(found.paths(host_of(51, "a robots.txt of 600 KiB"))) == ["/", "/open"]
    assert found.statistics["refused"] == {"robots": 1}


_CLOSED = 400  # links
_WILD = b"User-agent: *\nDisallow: /c\n" + b"".join(b"Disallow: /*%d\n" % number for number in range(27_000))


@crawled(53, "a robots.txt that refuses every link", site({
    "/robots.txt": ok(b"User-agent: *\nDisallow: /c\n", "text/plain"),
    "/": page(*(f"/closed{number}" for number in range(_CLOSED))),
}))  # fmt: skip
def _refused(found: Found) -> None:
    assert found.statistics["refused"] == {"robots": _CLOSED}


@crawled(
    51,
    "a robots.txt of wildcards",
    site(
        {
            "/robots.txt": ok(_WILD, "text/plain"),
            "/": page(*(f"/closed{'x' * number}" for number in range(_CLOSED))),
        }
    ),
    "sydney.sample=0",
)
def _wildcards(found: Found) -> None:
    # Its few pages may be taken for closed, too: nobody has to weigh so many rules for each link.
    assert found.paths(host_of(51, "a robots.txt of wildcards")) in (["/"], [])
    assert found.statistics["refused"] in ({"robots": _CLOSED}, {"robots": 1})


async def _endless_robots(line: Line, request: Request) -> None:
    if request.target != "/robots.txt":
        return await line.send(_PAGES[request.target])
    await line.send(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /closed\n")
    while True:
        await line.send(_FILLING)


@crawled(51, "an endless robots.txt", _endless_robots)
def _no_end(found: Found) -> None:
    assert sorted(found.paths(host_of(51, "an endless robots.txt"))) == ["/", "/open"]


def _status(status: str) -> Serve:
    return site({**_PAGES, "/robots.txt": ok(b"User-agent: *\nDisallow: /\n", "text/plain", status=status)})


_SILENT_ROBOTS = f"silent-52.{DOMAIN}"
_BROKEN_ROBOTS = {f"status-{status.partition(' ')[0]}.{DOMAIN}": _status(status) for status in ("500 Error", "503 Busy", "429 Slow")}  # fmt: skip
_MISSING_ROBOTS = {f"status-{status.partition(' ')[0]}.{DOMAIN}": _status(status) for status in ("404 None", "403 No", "410 Gone", "401 Who")}  # fmt: skip


def _asked_again(found: Found) -> None:
    for host in (*_BROKEN_ROBOTS, _SILENT_ROBOTS):
        asked = [request.target for request in found.requests if request.host == host]
        assert asked == ["/robots.txt"] * 2, host
    assert found.statistics["refused"] == {"robots_unreachable": len(_BROKEN_ROBOTS) + 1}
    assert found.pages == []


def _allowed(found: Found) -> None:
    for host in _MISSING_ROBOTS:
        assert sorted(found.paths(host)) == ["/", "/closed", "/open"], host


def _read_well(found: Found) -> None:
    for host in _ODD_ROBOTS:
        assert sorted(found.paths(host)) == ["/", "/open"], host
    for host in _NO_ROBOTS:
        assert sorted(found.paths(host)) == ["/", "/closed", "/open"], host


def _led_on(hops: int) -> Serve:
    steps = {f"/{step}": moved(f"/{step + 1}") for step in range(1, hops)}
    last = {f"/{hops}": ok(b"User-agent: *\nDisallow: /closed\n", "text/plain")}
    return site({**_PAGES, "/robots.txt": moved("/1"), **steps, **last})


_RULES = b"User-agent: *\nDisallow: /closed\n"
_ODD_ROBOTS = {
    f"bom.53.{DOMAIN}": _robots(b"\xef\xbb\xbf" + _RULES),
    f"utf16.53.{DOMAIN}": _robots(_RULES.decode().encode("utf-16")),
    f"cr.53.{DOMAIN}": _robots(_RULES.replace(b"\n", b"\r")),
    f"crlf.53.{DOMAIN}": _robots(_RULES.replace(b"\n", b"\r\n")),
    f"noise.53.{DOMAIN}": _robots(b"\0\xff\xfe garbage : \n" + _RULES),
}
_ODD_ROBOTS[f"broken.53.{DOMAIN}"] = site(
    # An answer of a server that knows no CR must not close its site.
    {
        **_PAGES,
        "/robots.txt": b"HTTP/1.0 200 OK\nContent-Type : text/plain\n; charset=x\nContent-Length: %d\n\n%b"
        % (len(_RULES), _RULES),
    }
)
_NO_ROBOTS = {
    f"html.53.{DOMAIN}": _robots(b"<!DOCTYPE html><p>\nUser-agent: *\nDisallow: /\n"),
    f"empty.53.{DOMAIN}": _robots(b""),
}
_HOPS = {f"five.53.{DOMAIN}": _led_on(5), f"six.53.{DOMAIN}": _led_on(6), f"round.53.{DOMAIN}": site({**_PAGES, "/robots.txt": moved("/robots.txt")})}  # fmt: skip


def _five_hops(found: Found) -> None:
    closed = {request.host for request in found.requests if request.target == "/closed"}
    assert closed == {f"six.53.{DOMAIN}", f"round.53.{DOMAIN}"}
    assert [request.target for request in found.requests].count("/6") == 0
    assert sum(request.host == f"round.53.{DOMAIN}" for request in found.requests) == 6 + 3


_WAITS = {
    "absurd": "99999999999999999999",
    "negative": "-5",
    "past": "Thu, 01 Jan 1970 00:00:00 GMT",
    "future": "Fri, 31 Dec 9999 23:59:59 GMT",
}


def _busy(text: str) -> Serve:
    answers = [ok(b"", status="503 Busy", headers=f"Retry-After: {text}\r\n"), page()]

    async def serve(line: Line, request: Request) -> None:
        await line.send(answers.pop(0) if request.target == "/" else ok(b""))

    return serve


_BUSY = {f"{name}-54.{DOMAIN}": _busy(text) for name, text in _WAITS.items()}


def _waited(found: Found) -> None:
    for host in _BUSY:
        first, second = (
            request.time for request in found.requests if request.host == host and request.target == "/"
        )
        assert second - first >= 1.0, host  # and not for as long as was said, or this crawl would not end
    assert found.statistics["pages"] == len(_BUSY)


_SLOW = {
    f"fair-55.{DOMAIN}": _robots(b"User-agent: *\nCrawl-delay: 0.3\n"),
    f"absurd-55.{DOMAIN}": _robots(b"User-agent: *\nCrawl-delay: 3600\n"),
    f"infinite-55.{DOMAIN}": _robots(b"User-agent: *\nCrawl-delay: inf\n"),
    f"negative-55.{DOMAIN}": _robots(b"User-agent: *\nCrawl-delay: -1\n"),
}


def _slowly(found: Found) -> None:
    fair, absurd, *nonsense = _SLOW
    times = [request.time for request in found.requests if request.host == fair]
    assert len(times) == 4
    assert min(later - sooner for sooner, later in pairwise(times)) >= 0.3
    assert found.paths(absurd) == []
    assert found.statistics["refused"] == {"crawl_delay": 1}
    for host in nonsense:
        assert len(found.paths(host)) == 3, host


ROBOTS = [
    *(_long_robots, _wildcards, _refused, _no_end),
    sites(
        52,
        "robots.txt cannot be had",
        {**_BROKEN_ROBOTS, _SILENT_ROBOTS: says(stay=True)},
        _asked_again,
        "politeness.max_retry_after=100ms",
    ),
    sites(52, "robots.txt is not there", _MISSING_ROBOTS, _allowed),
    sites(53, "robots.txt of every kind", {**_ODD_ROBOTS, **_NO_ROBOTS}, _read_well),
    sites(53, "robots.txt elsewhere", _HOPS, _five_hops),
    sites(54, "Retry-After of every kind", _BUSY, _waited, "politeness.max_retry_after=1s"),
    sites(55, "Crawl-delay of every kind", _SLOW, _slowly),
]
