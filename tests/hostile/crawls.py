"""Hazards 12, 21 to 25 and 31 to 36 in whole crawls: what answers and links lead to."""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile.hazard import DOMAIN, Found, Hazard, host_of, site
from tests.hostile.names import Script
from tests.hostile.server import ADDRESS, Line, Request, Serve, moved, ok

Check = Callable[[Found], None]
HERE: Script = ((ADDRESS,),)


def page(*links: str, headers: str = "") -> bytes:
    """A page with these links."""
    body = "".join(f'<a href="{link}">x</a>\n' for link in links)
    return ok(f"<!doctype html><title>t</title>\n{body}".encode(), headers=headers)


def crawled(number: int, name: str, serve: Serve, *options: str) -> Callable[[Check], Hazard]:
    """A crawl from `/` of one host; the function under it says what must come out."""
    host = host_of(number, name)

    def made(check: Check) -> Hazard:
        return Hazard(number, name, {host: serve}, options=options, seeds=(f"http://{host}/",), check=check)

    return made


def sites(number: int, name: str, scripts: dict[str, Serve], check: Check, *options: str) -> Hazard:
    """A crawl of several hosts."""
    return Hazard(
        number,
        name,
        scripts,
        options=options,
        seeds=tuple(f"http://{host}/" for host in scripts),
        check=check,
    )


# ── 12, 21 to 25: what an answer leads to ──────────────────────────────────────────────────────────


async def _garbage(line: Line, request: Request) -> None:
    plain = {"/": page("/garbage"), "/robots.txt": ok(b"")}
    await line.send(plain.get(request.target, b"SSH-2.0-x\r\n"))


@crawled(12, "not HTTP is asked once", _garbage)
def _once(found: Found) -> None:
    assert found.statistics["failed"] == {"protocol_error": 1}
    assert [request.target for request in found.requests].count("/garbage") == 1


@crawled(
    21,
    "redirect loops",
    site({"/": page("/a", "/self"), "/a": moved("/b"), "/b": moved("/a"), "/self": moved("/self")}),
)
def _loops(found: Found) -> None:
    host = host_of(21, "redirect loops")
    assert found.statistics["failed"] == {"redirect_loop": 2}
    assert sorted(found.paths(host)) == ["/", "/a", "/a", "/b", "/self", "/self"]


@crawled(
    22,
    "a chain of redirects",
    site({"/": page("/0", "/short")} | {f"/{hop}": moved(f"/{hop + 1}") for hop in range(50)} | {"/short": moved("/end"), "/end": page()}),
    "scope.depth=1",
)  # fmt: skip
def _chain(found: Found) -> None:
    paths = found.paths(host_of(22, "a chain of redirects"))
    assert "/10" in paths
    assert "/11" not in paths
    assert "/end" in paths  # a redirect keeps the depth of its source
    assert found.statistics["failed"] == {"too_many_redirects": 1}


_SCHEMES = (
    *("file:///etc/passwd", "data:text/html,<a href=/x>", "ftp://ftp.example/", "javascript:alert(1)"),
    *(
        "mailto:a@b.example",
        "gopher://a.example/",
        "blob:http://a.example/1",
        "ws://a.example/",
        "about:blank",
    ),
)


@crawled(
    23,
    "links of other schemes",
    site({"/": page("/moved", "/data", *_SCHEMES), "/moved": moved("file:///etc/passwd"), "/data": moved(_SCHEMES[1])}),
)  # fmt: skip
def _schemes(found: Found) -> None:
    assert found.statistics["out_of_scope"] == {"scheme": len(_SCHEMES) + 2}
    assert (found.statistics["pages"], found.statistics["redirects"]) == (1, 2)
    assert found.statistics["failed"] == {}


@crawled(
    25,
    "redirects to cloud metadata",
    site({"/": page("/a", "/b"), "/a": moved("http://169.254.169.254/latest/"), "/b": moved("http://[::ffff:a9fe:a9fe]/")}),
)  # fmt: skip
def _metadata(found: Found) -> None:
    assert found.statistics["failed"] == {"refused_address": 2}


@crawled(
    25, "a robots.txt at cloud metadata", site({"/robots.txt": moved("http://169.254.169.254/"), "/": page()})
)
def _robots_at_metadata(found: Found) -> None:
    assert found.statistics["pages"] == 1  # as if there were none
    assert len(found.robots) == 1


# ── 31 to 36: names and URLs ───────────────────────────────────────────────────────────────────────


async def _wild(line: Line, request: Request) -> None:
    name = request.host.partition(".")[0]
    await line.send(
        page(*(f"http://{name[-8:]}{step}.wild.{DOMAIN}/" for step in range(5)), "/1", "/2", "/3")
    )


def _wildcard(found: Found) -> None:
    """Only what exists: a budget for a pay-level domain and the probing of names are a frontier's to come."""
    hosts = {request.host for request in found.requests}
    assert found.statistics["stopped_by"] == "pages"
    assert len(hosts) > 20
    assert max(len(found.paths(host)) for host in hosts) <= 2


_WILDCARD = Hazard(
    31,
    "wildcard DNS",
    {f"*.wild.{DOMAIN}": _wild},
    options=("limits.pages=80", "limits.site_urls=2"),
    seeds=(f"http://www.wild.{DOMAIN}/",),
    check=_wildcard,
)
_NAMES = 1_000


@crawled(
    32,
    "thousands of names",
    site({"/": page(*(f"http://n{number}.absent.example/" for number in range(_NAMES)))}),
    "sydney.sample=0",
)
def _many_names(found: Found) -> None:
    assert found.statistics["failed"] == {"dns_no_name": _NAMES}


_ODD = host_of(33, "odd ways to write a URL")


@crawled(
    33,
    "odd ways to write a URL",
    site({"/": page(
        f"http://user:secret@{_ODD}/a", f"http:\\\\{_ODD}\\b", f"ht\ttp://{_ODD}/\nc", f"//user@{_ODD}/d",
        f"http://{_ODD}\\@169.254.169.254/e", f"http://169.254.169.254&#64;{_ODD}/f",
        f"http://user@169.254.169.254:80@{_ODD}/g",
    )}),
)  # fmt: skip
def _odd(found: Found) -> None:
    assert sorted(found.paths(_ODD)) == ["/", "/@169.254.169.254/e", "/a", "/b", "/c", "/d", "/f", "/g"]
    assert {request.header("host") for request in found.requests} == {_ODD}
    assert not any(b"secret" in request.raw for request in found.requests)


@crawled(
    34,
    "URLs too long or malformed",
    site({"/": page("/" + "x" * 3000, "http://xn--a/", "http://xn--0.example/", "http://a b/", "http://[::1/", "http://1.2.3.4.5/", "/fine")
          , "/fine": page(), }),
)  # fmt: skip
def _bad_urls(found: Found) -> None:
    assert found.statistics["out_of_scope"] == {"too_long": 1, "malformed": 5}
    assert found.paths(host_of(34, "URLs too long or malformed")) == ["/", "/fine"]


_PORTS = (1, 22, 23, 25, 53, 110, 143, 465, 587, 993, 3306, 5432, 6379, 6667, 11211, 27017)
_PORTS_HOST = host_of(35, "ports of other protocols")


@crawled(
    35,
    "ports of other protocols",
    site({"/": page("/moved", *(f"http://{_PORTS_HOST}:{port}/" for port in _PORTS)), "/moved": moved(f"http://{_PORTS_HOST}:25/")}),
)  # fmt: skip
def _ports(found: Found) -> None:
    assert found.statistics["out_of_scope"] == {"port": len(_PORTS) + 1}
    assert (found.statistics["pages"], found.statistics["redirects"]) == (1, 1)


_LED_TO_MAIL = host_of(35, "a robots.txt at a port of mail")


@crawled(
    35,
    "a robots.txt at a port of mail",
    site({"/robots.txt": moved(f"http://{_LED_TO_MAIL}:25/"), "/": page()}),
)
def _mail(found: Found) -> None:
    assert [request.header("host") for request in found.requests] == [_LED_TO_MAIL] * 2
    assert found.statistics["pages"] == 1  # as if there were none


def _refresh(target: str) -> bytes:
    return ok(f'<meta http-equiv=refresh content="0; url={target}">'.encode())


@crawled(
    36,
    "meta refresh",
    site({
        "/": page("/file", "/private", "/port", "/good"), "/file": _refresh("file:///etc/passwd"),
        "/private": _refresh("http://10.0.0.1/"), "/port": _refresh("http://a.example:25/"),
        "/good": _refresh("/target"), "/target": page(),
    }),
)  # fmt: skip
def _refreshes(found: Found) -> None:
    assert found.statistics["out_of_scope"] == {"scheme": 1, "port": 1}
    assert found.statistics["failed"] == {"refused_address": 1}
    assert found.paths(host_of(36, "meta refresh"))[-1] == "/target"


LINKS = [
    *(_once, _loops, _chain, _schemes, _metadata, _robots_at_metadata, _WILDCARD, _many_names),
    *(_odd, _bad_urls, _ports, _mail, _refreshes),
]
