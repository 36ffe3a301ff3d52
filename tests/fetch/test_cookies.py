"""Cookies by RFC 6265, and within bounds."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.settings import Cookies
from barkspider.fetch.cookies import Cookie, CookieJar, parse_date
from barkspider.url import Domains, split

DOMAINS = Domains(private=True)
NOW = 1_700_000_000.0


class Jar:
    """A jar that is spoken to in URLs."""

    def __init__(self, **settings: Any) -> None:
        self.jar = CookieJar(Cookies(**settings), DOMAINS)

    def take(self, url: str, *values: bytes | str, now: float = NOW) -> Jar:
        self.jar.take(split(url), values, now)
        self.jar.validate()
        return self

    def header(self, url: str, now: float = NOW) -> str:
        return self.jar.header(split(url), now)


def after(value: bytes | str, url: str = "https://www.example.com/a/b?c=/d") -> Jar:
    return Jar().take(url, value)


def test_a_cookie_goes_back_to_its_host_alone() -> None:
    jar = after("id=7; HttpOnly; SameSite=Strict; Nonsense")
    assert jar.header("https://www.example.com/a/x") == "id=7"
    for url in ("https://example.com/a/", "https://a.www.example.com/a/", "https://www.example.org/a/"):
        assert jar.header(url) == ""


@pytest.mark.parametrize("domain", ["example.com", ".example.com", "EXAMPLE.com", " example.com "])
def test_a_domain_opens_a_cookie_to_all_hosts_below_it(domain: str) -> None:
    jar = after(f"id=7; Path=/; Domain={domain}")
    for host in ("example.com", "www.example.com", "a.b.example.com"):
        assert jar.header(f"https://{host}/") == "id=7"
    for host in ("badexample.com", "example.com.evil.org", "example.org"):
        assert jar.header(f"https://{host}/") == ""


@pytest.mark.parametrize(
    ("host", "domain", "taken"),
    [
        ("www.example.com", "other.example.com", False),
        ("www.example.com", "a.www.example.com", False),
        ("www.example.com", "xample.com", False),
        ("www.example.com", "example.org", False),
        ("www.example.com", "com", False),
        ("www.example.com", ".com", False),
        ("www.example.co.uk", "co.uk", False),
        ("www.example.co.uk", "example.co.uk", True),
        ("me.github.io", "github.io", False),  # a suffix of the private section
        ("github.io", "github.io", True),
        ("co.uk", "co.uk", True),
        ("localhost", "localhost", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.1", False),
        ("127.0.0.1", "1", False),
        ("[::1]", "[::1]", True),
        ("www.example.com", "", True),
        ("www.example.com", ".", True),
        ("www.example.com", "..example.com", False),
        ("www.example.com", "example.com.", False),
    ],
)
def test_a_host_sets_cookies_for_its_own_domains_only(host: str, domain: str, taken: bool) -> None:
    assert bool(after(f"id=7; Domain={domain}", f"http://{host}/").header(f"http://{host}/")) is taken


@pytest.mark.parametrize(
    ("setter", "domain", "others"),
    [
        ("co.uk", "co.uk", ["example.co.uk", "www.example.co.uk"]),
        ("github.io", "github.io", ["me.github.io"]),
        ("127.0.0.1", "127.0.0.1", ["127.0.0.2", "1.127.0.0.1"]),
        ("localhost", "localhost", ["a.localhost"]),
    ],
)
def test_a_public_suffix_keeps_its_cookies_to_itself(setter: str, domain: str, others: list[str]) -> None:
    jar = after(f"id=7; Domain={domain}", f"http://{setter}/")
    assert jar.header(f"http://{setter}/") == "id=7"
    assert [jar.header(f"http://{other}/") for other in others] == [""] * len(others)


@pytest.mark.parametrize(
    ("path", "matching", "others"),
    [
        ("", ["/a", "/a/", "/a/x?q", "/a?q=/b"], ["/", "/ab", "/b/a"]),  # the folder of /a/b
        ("; Path=a", ["/a"], ["/"]),
        ("; Path=", ["/a"], ["/"]),
        ("; Path=/", ["/", "/a", "/?q"], []),
        ("; Path=/x", ["/x", "/x/", "/x/y", "/x?y"], ["/", "/xy", "/X", "/a/x"]),
        ("; Path=/x/", ["/x/", "/x/y"], ["/x", "/xy"]),
        ("; Path=/x; Path=/y", ["/y"], ["/x"]),
        ("; Path=/" + "x" * 1024, ["/a"], ["/" + "x" * 1024]),
    ],
)
def test_paths(path: str, matching: list[str], others: list[str]) -> None:
    jar = after("id=7" + path)
    assert [jar.header(f"https://www.example.com{target}") for target in matching] == ["id=7"] * len(matching)
    assert [jar.header(f"https://www.example.com{target}") for target in others] == [""] * len(others)


@pytest.mark.parametrize("target", ["/", "/x", "/?a/b", "/x?a/b"])
def test_the_folder_of_a_page_at_the_top_is_the_top(target: str) -> None:
    assert after("id=7", f"http://a.example{target}").header("http://a.example/y") == "id=7"


def test_secure_cookies_travel_on_https_alone() -> None:
    jar = after("id=7; Path=/; Secure")
    assert jar.header("https://www.example.com/") == "id=7"
    assert jar.header("http://www.example.com/") == ""
    jar.take("http://www.example.com/", "id=8; Path=/")
    assert jar.header("https://www.example.com/") == "id=7"
    jar.take("https://www.example.com/", "id=9; Path=/")
    assert jar.header("http://www.example.com/") == "id=9"
    assert after("id=7; Secure", "http://www.example.com/").header("https://www.example.com/") == ""


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("__Secure-id=7; Secure", True),
        ("__Secure-id=7", False),
        ("__SECURE-id=7", False),
        ("__Host-id=7; Secure; Path=/", True),
        ("__Host-id=7; Path=/", False),
        ("__Host-id=7; Secure", False),
        ("__Host-id=7; Secure; Path=/a", False),
        ("__Host-id=7; Secure; Path=/; Domain=www.example.com", False),
        ("__host-id=7", False),
    ],
)
def test_prefixes_of_names_keep_their_promise(value: str, taken: bool) -> None:
    url = "https://www.example.com/a/"
    assert bool(after(value, url).header(url)) is taken
    assert after(value, "http://www.example.com/a/").header(url) == ""


@pytest.mark.parametrize(
    ("attributes", "life"),
    [
        ("", None),
        ("; Max-Age=60", 60),
        ("; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 60),
        ("; Expires=Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("; Expires=Tue, 14-Nov-23 22:14:20 GMT; Max-Age=soon", 60),
        ("; Expires=whenever", None),
        ("; Expires=Tue, 31 Feb 2023 22:14:20 GMT", None),
        ("; Max-Age=" + "9" * 1000, None),
        ("; Max-Age=0", 0),
        ("; Max-Age=-1", 0),
        ("; Max-Age=-" + "9" * 1000, 0),
        ("; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)
def test_cookies_expire(attributes: str, life: float | None) -> None:
    url = "https://www.example.com/a/"
    jar = after("id=6").take(url, "id=7" + attributes)
    if life is None:
        assert jar.header(url, now=NOW + 1e9) == "id=7"
    elif life:
        assert [jar.header(url, now=NOW + life - 1), jar.header(url, now=NOW + life)] == ["id=7", ""]
    else:
        assert jar.header(url) == ""  # what was there before is gone too


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Wed, 09 Jun 2021 10:18:14 GMT", 1623233894.0),
        ("Wednesday, 09-Jun-21 10:18:14 GMT", 1623233894.0),
        ("Wed Jun  9 10:18:14 2021", 1623233894.0),
        ("9 june 2021 10:18:14 +0300", 1623233894.0),  # the zone never counts
        ("10:18:14 9th 2021 Jun", 1623233894.0),
        ("01 Jan 70 00:00:00", 0.0),
        ("01 Jan 69 00:00:00", 3124224000.0),
        ("01 Jan 1600 00:00:00", None),
        ("01 Jan 2021 24:00:00", None),
        ("32 Jan 2021 00:00:00", None),
        ("01 Jan 2021", None),
        ("00:00:00 2021", None),
        ("", None),
        ("1" * 1000, None),
    ],
)
def test_dates(text: str, seconds: float | None) -> None:
    assert parse_date(text) == seconds


def test_longer_paths_come_first_and_older_cookies_before_younger_ones() -> None:
    jar = Jar().take("http://a.example/x/y", "c=1; Path=/", "a=1; Path=/x", "b=1; Path=/x/y", "d=1; Path=/x")
    assert jar.header("http://a.example/x/y") == "b=1; a=1; d=1; c=1"
    jar.take("http://a.example/", "a=2; Path=/x")  # keeps its age
    assert jar.header("http://a.example/x/y") == "b=1; a=2; d=1; c=1"


@pytest.mark.parametrize(
    "value",
    ["", ";", "=", "=v", "novalue", "; Path=/", "a\r\nb=1", "a=1\r\nX: y", "a=1\n", "a=\0", "a=\x7f", "a=\t", "a=ü", b"a=\xff", b"a=1\r\nb", b"\xfe=1", "a=\x85", "a=1; Path=/\x01", "a=" + "x" * 4096, "x" * 4096 + "=1"],
)  # fmt: skip
def test_what_is_malformed_is_ignored(value: bytes | str) -> None:
    assert after(value).header("https://www.example.com/a/") == ""


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a=", "a="),
        (" a = 1 ;", "a=1"),
        ('a="x y, z"', 'a="x y, z"'),
        (b"a=b=c", "a=b=c"),
        ("a=" + "x" * 4095, "a=" + "x" * 4095),
    ],
)
def test_what_is_odd_but_harmless_is_sent_as_it_came(value: bytes | str, sent: str) -> None:
    assert after(value).header("https://www.example.com/a/") == sent


def test_ten_thousand_cookies_in_one_response_cost_little() -> None:
    values = [f"c{number}=v" for number in range(10_000)]
    sent = Jar(set_per_response=5, per_site=3).take("http://a.example/", *values).header("http://a.example/")
    assert sent == "c2=v; c3=v; c4=v"


def test_a_site_keeps_its_youngest_cookies() -> None:
    jar = Jar(per_site=2)
    for number in range(5):
        jar.take(f"http://h{number}.example.com/", f"c{number}=v; Domain=example.com")
    assert jar.header("http://example.com/") == "c3=v; c4=v"
    jar = Jar(site_size=100).take("http://a.example/", *(f"c{number}={'x' * 40}" for number in range(5)))
    assert jar.header("http://a.example/") == f"c3={'x' * 40}; c4={'x' * 40}"
    assert Jar(site_size=10).take("http://a.example/", "a=" + "x" * 20).header("http://a.example/") == ""


def test_the_sites_used_last_are_remembered() -> None:
    jar = Jar(sites=2).take("http://a.example/", "id=a").take("http://b.example/", "id=b")
    assert jar.header("http://a.example/") == "id=a"
    jar.take("http://c.example/", "id=c")
    assert [jar.header(f"http://{name}.example/") for name in "abc"] == ["id=a", "", "id=c"]


def test_all_sites_together_take_no_more_than_the_memory_for_them() -> None:
    jar = Jar(memory=200_000)
    for number in range(1000):
        jar.take(f"http://{number}.example/", *(f"c{n}={'x' * 390}" for n in range(20)))
        jar.take(f"http://small-{number}.example/", "id=7")
    assert 150_000 < len(jar.jar.save()) < 200_000
    assert jar.header("http://small-999.example/") == "id=7"
    assert (jar.header("http://999.example/") != "", jar.header("http://900.example/")) == (True, "")
    other = Jar(memory=100_000)
    other.jar.load(jar.jar.save())
    other.jar.validate()
    assert other.header("http://small-999.example/") == "id=7"


def test_cookies_of_the_user_are_not_forgotten_for_others() -> None:
    jar = Jar(memory=20_000)
    jar.jar.give([Cookie("login", "secret", "mine.example", True, "/", False, inf)])
    for number in range(100):
        jar.take(f"http://{number}.example/", f"c={'x' * 1000}")
    assert jar.header("http://mine.example/") == "login=secret"
    assert (jar.header("http://0.example/"), jar.header("http://99.example/") != "") == ("", True)


def test_a_jar_that_is_switched_off_stays_empty() -> None:
    assert Jar(enabled=False).take("http://a.example/", "id=7").header("http://a.example/") == ""


LABELS = st.sampled_from(
    ["a", "b", "www", "com", "co", "uk", "github", "io", "example", "localhost", "1", "0"]
)
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
PATHS = st.sampled_from(["/", "/a", "/a/", "/a/b?c"])


@settings(deadline=None)
@given(st.lists(st.tuples(HOSTS, HOSTS | st.just(""), PATHS), max_size=20), st.lists(HOSTS, max_size=10))
def test_no_cookie_reaches_another_pay_level_domain(
    taken: list[tuple[str, str, str]], asked: list[str]
) -> None:
    jar = Jar()
    for number, (host, domain, path) in enumerate(taken):
        jar.take(f"http://{host}{path}", f"c{number}={DOMAINS.pay_level(host)}; Domain={domain}")
    for host in [*asked, *(host for host, _, _ in taken)]:
        for pair in filter(None, jar.header(f"http://{host}/a/b").split("; ")):
            number, _, site = pair[1:].partition("=")
            assert site == DOMAINS.pay_level(host)
            setter, domain, _ = taken[int(number)]
            assert setter == host or (domain and f".{host}".endswith(f".{domain}"))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(HOSTS, st.lists(st.text(max_size=30) | st.binary(max_size=30), max_size=8)), max_size=20
    )
)
def test_whatever_comes_the_jar_stays_bounded_and_the_header_printable(
    responses: list[tuple[str, list[str | bytes]]],
) -> None:
    jar = Jar(sites=3, per_site=2, site_size=40, max_size=20, set_per_response=4)
    for host, values in responses:
        jar.take(f"https://{host}/", *values)  # checks the bounds
        sent = jar.header(f"https://{host}/")
        assert sent.isascii()
        assert sent.isprintable()
        assert len(sent) <= 40 + 2 + 2
