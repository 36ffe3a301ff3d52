"""Hazards 21 and 38 to 41: passwords and cookies go back to where they came from, or nowhere."""

from __future__ import annotations

from tests.hostile.crawls import HERE, crawled, page
from tests.hostile.hazard import DOMAIN, Found, Hazard, host_of, site
from tests.hostile.server import Line, Request, moved, ok

_GUARDED, _OTHER = host_of(38, "a password in a URL"), f"other-38.{DOMAIN}"
_UNAUTHORISED = ok(b"", status="401 Unauthorized", headers='WWW-Authenticate: Basic realm="x"\r\n')


def _no_authorization(found: Found) -> None:
    assert found.paths(_OTHER) == ["/moved", "/linked"] or found.paths(_OTHER) == ["/linked", "/moved"]
    assert found.statistics["failed"] == {"http_401": 1}
    assert not any(request.header("authorization") for request in found.requests)
    assert not any(b"secret" in request.raw for request in found.requests)


_AUTHORIZATION = Hazard(
    38,
    "a password in a URL",
    {
        _GUARDED: site(
            {
                "/": page("/401", "/moved", f"http://me:secret@{_OTHER}/linked"),
                "/401": _UNAUTHORISED,
                "/moved": moved(f"http://me:secret@{_OTHER}/moved"),
            }
        ),
        _OTHER: site({"/moved": page(), "/linked": page()}),
    },
    seeds=(f"http://me:secret@{_GUARDED}/",),
    check=_no_authorization,
)

_SETS = (
    "Set-Cookie: mine=1; Path=/\r\nSet-Cookie: wide=1; Path=/; Domain=cookies-one.example\r\n"
    "Set-Cookie: theirs=1; Path=/; Domain=cookies-two.example\r\nSet-Cookie: top=1; Path=/; Domain=example\r\n"
)


def _own_site_only(found: Found) -> None:
    sent = {(request.host, request.target): request.header("cookie") for request in found.requests}
    assert sent["www.cookies-one.example", "/second"] == "mine=1; wide=1"
    assert sent["cookies-one.example", "/"] == "wide=1"
    assert sent["cookies-two.example", "/"] == ""
    assert sent["cookies-two.example", "/moved"] == ""


_COOKIES = Hazard(
    39,
    "cookies stay with their site",
    {
        "www.cookies-one.example": site(
            {
                "/": page(
                    "/second",
                    "/moved",
                    "http://cookies-one.example/",
                    "http://cookies-two.example/",
                    headers=_SETS,
                ),
                "/second": page(),
                "/moved": moved("http://cookies-two.example/moved", headers=_SETS),
            }
        ),
        "cookies-one.example": site({"/": page()}),
        "cookies-two.example": site({"/": page(), "/moved": page()}),
    },
    dict.fromkeys(("www.cookies-one.example", "cookies-one.example", "cookies-two.example"), HERE),
    seeds=("http://www.cookies-one.example/",),
    check=_own_site_only,
)
_SECURE = f"secure-39.{DOMAIN}"


async def _two_schemes(line: Line, request: Request) -> None:
    sets = "Set-Cookie: safe=1; Path=/; Secure\r\nSet-Cookie: plain=1; Path=/\r\n"
    answers = {"/": page(f"http://{_SECURE}/open", f"https://{_SECURE}/closed", headers=sets)}
    await line.send(answers.get(request.target, page()))


def _secure_only(found: Found) -> None:
    sent = {request.target: request.header("cookie") for request in found.requests}
    assert sent["/open"] == "plain=1"
    assert sent["/closed"] == "safe=1; plain=1"


_SECURE_COOKIES = Hazard(
    39,
    "secure cookies stay with https",
    {_SECURE: _two_schemes},
    seeds=(f"https://{_SECURE}/",),
    check=_secure_only,
)


def _no_suffix(found: Found) -> None:
    sent = {(request.host, request.target): request.header("cookie") for request in found.requests}
    assert sent["first-hostile.co.uk", "/second"] == "mine=1"
    assert sent["second-hostile.co.uk", "/"] == ""


_SUFFIX_COOKIES = Hazard(
    40,
    "a cookie for a public suffix",
    {
        "first-hostile.co.uk": site(
            {
                "/": page(
                    "/second",
                    "http://second-hostile.co.uk/",
                    headers="Set-Cookie: mine=1; Path=/\r\nSet-Cookie: all=1; Path=/; Domain=co.uk\r\n"
                    "Set-Cookie: every=1; Path=/; Domain=.uk\r\n",
                ),
                "/second": page(),
            }
        ),
        "second-hostile.co.uk": site({"/": page()}),
    },
    {"first-hostile.co.uk": HERE, "second-hostile.co.uk": HERE},
    seeds=("http://first-hostile.co.uk/",),
    check=_no_suffix,
)


def _setting(cookies: range) -> str:
    return "".join(f"Set-Cookie: c{number}=x\r\n" for number in cookies)


@crawled(
    41,
    "ten thousand cookies",
    site({
        "/": page("/1", headers=_setting(range(1000))), "/10": page(),
        **{f"/{n}": page(f"/{n + 1}", headers=_setting(range(1000 * n, 1000 * n + 1000))) for n in range(1, 10)},
    }),
)  # fmt: skip
def _many_cookies(found: Found) -> None:
    sent = found.requests[-1].header("cookie")
    assert found.requests[-1].target == "/10"
    assert 0 < sent.count("=") <= 20  # cookies.per_site
    assert len(sent) < 8192  # cookies.site_size


async def _gate(line: Line, request: Request) -> None:
    if "passed=1" in request.header("cookie"):
        await line.send(page("/behind"))
    elif request.target == "/":
        await line.send(moved("/", headers="Set-Cookie: passed=1; Path=/\r\n"))
    else:
        await line.send(ok(b"", status="404 Not Found"))


@crawled(21, "a cookie check", _gate)
def _cookie_check(found: Found) -> None:
    assert found.paths(host_of(21, "a cookie check")) == ["/", "/", "/behind"]
    assert found.statistics["failed"] == {}


CREDENTIALS = [
    *(_AUTHORIZATION, _COOKIES, _SECURE_COOKIES, _SUFFIX_COOKIES, _many_cookies, _cookie_check),
]
