"""Links to replicas are links to their originals: compiled, one by one, as seeds, of redirects, and in a crawl."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider import crawl, load_settings
from barkspider.core.errors import UsageError
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.engine import open_job
from barkspider.engine.links import LinkMaker
from barkspider.page import Hrefs
from barkspider.url import KeyMaker
from tests.website import QUICK, Answer, serving_site

REPLICAS = {"www.a.example": "a.example", "mirror.example": "a.example", "[::1]": "b.example"}
PIECES = [
    *("http://", "https://", "//", "/", "..", "x", "A", "?", "sid=12345678", ":8080", ":80", "user@"),
    *("a.example", "www.a.example", "WWW.a.example", "mirror.example", "[::1]", "www.mirror.example"),
]
_links = st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=1, max_size=20)


def listed(folder: Path, lines: str, *options: str) -> Settings:
    path = folder / "replicas.txt"
    path.write_text(lines)
    return load_settings(options=["scope.level=web", "seed=7", f"scope.duplicate_hosts={path}", *options])


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> LinkMaker:
    lines = "".join(f"{replica} {original}\n" for replica, original in REPLICAS.items())
    return LinkMaker(
        listed(tmp_path_factory.mktemp("list"), f"# a comment\n\n{lines}"), ["http://s.example/"]
    )


@given(
    _links, st.sampled_from(["http://a.example/d/", "http://mirror.example/d/", "http://www.a.example:8080/"])
)
def test_compiled_links_are_those_made_one_by_one_and_none_is_on_a_replica(
    maker: LinkMaker, texts: list[str], base: str
) -> None:
    page = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")
    hrefs = Hrefs.of(texts, 1_000)
    (compiled,), (one_by_one,) = maker.links(hrefs, base, page), maker.links(hrefs.texts(), base, page)
    assert compiled.urls.rows() == one_by_one.urls.rows()
    for row in compiled.urls.rows():
        host = row.url.decode().split("/")[2].rpartition("@")[2]
        assert not any(host in (name, f"{name}:8080") for name in REPLICAS), row.url


def test_rows_have_the_keys_of_the_original(maker: LinkMaker) -> None:
    keys, page = KeyMaker(7), UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")
    (links,) = maker.links(["http://www.a.example/x", "//mirror.example:8080/"], "http://a.example/", page)
    for row, url in zip(links.urls.rows(), ("http://a.example/x", "http://a.example:8080/"), strict=True):
        assert row.url == url.encode()
        assert (row.key, row.host_key, row.pld_key) == (
            keys.of(url),
            keys.of("a.example"),
            keys.of("a.example"),
        )


def test_seeds_redirects_and_what_is_fetched_again(maker: LinkMaker) -> None:
    assert maker.more_seeds(["http://mirror.example/s"]).url.tolist() == [b"http://a.example/s"]
    source = UrlRow(1, 2, 3, 0, 0, 0, int(Flag.SEED), b"http://s.example/")
    found = maker.redirect("https://www.a.example/r", source)
    assert found is not None
    assert (found[0].url, found[1]) == (
        b"https://a.example/r",
        b"https://www.a.example/r",
    )
    pages = pa.record_batch(
        {
            "key": pa.array([1, 2], pa.uint64()),
            "url": ["http://a.example/", "http://mirror.example/"],
            "depth": pa.array([0, 0], pa.uint16()),
            "parent": pa.array([0, 0], pa.uint64()),
        }
    )
    assert maker.again(pages).url.tolist() == [b"http://a.example/"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("c.example b.example\nb.example www.A.example\n", {"c.example": "www.a.example"}),
        ("bücher.example a.example", {"xn--bcher-kva.example": "a.example"}),
        ("a.example a.example\nb.example a.example\nb.example a.example", {"b.example": "a.example"}),
    ],
)
def test_a_list_is_read(tmp_path: Path, lines: str, expected: dict[str, str]) -> None:
    from barkspider.engine.replicas import read_replicas
    from barkspider.url import Domains

    found = read_replicas(listed(tmp_path, lines), Domains())
    assert expected.items() <= found.items()
    assert not set(found) & set(found.values())


def test_names_are_as_the_rule_about_www_has_them(tmp_path: Path) -> None:
    settings = listed(tmp_path, "www.b.com b.com\nc.com b.com\n", "url.add_www=true")
    made = LinkMaker(settings, ["http://c.com/", "http://b.com/x"]).seeds().url.tolist()
    assert made == [b"http://www.b.com/", b"http://www.b.com/x"]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("a.example", "replicas.txt:1: 'a.example' is not a replica"),
        ("\na.example b.example c.example", "replicas.txt:2: "),
        ("http://a.example/ b.example", "replicas.txt:1: "),
        ("a.example:80 b.example", "replicas.txt:1: "),
        ("a.example b.example\nb.example a.example", "replicas.txt:2: b.example is an original already"),
        ("a.example b.example\na.example c.example", "replicas.txt:2: a.example has another original"),
        ("a b\nb c\nc a", "replicas.txt:3: c is an original already"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, lines: str, complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        LinkMaker(listed(tmp_path, lines), [])
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_list_that_cannot_be_read_is_told_before_the_crawl(tmp_path: Path) -> None:
    settings = load_settings(options=[f"scope.duplicate_hosts={tmp_path / 'none'}", *QUICK])
    with pytest.raises(UsageError, match=r"cannot read .*none: No such file"):
        crawl("http://127.0.0.1/", tmp_path / "job", settings)
    assert not (tmp_path / "job").exists()


def test_a_crawl_asks_no_replica(tmp_path: Path) -> None:
    with serving_site(address="127.0.0.2") as replica, serving_site(address="127.0.0.3") as original:
        port = original.origin.rpartition(":")[2]
        pages = f'<a href="/a">a</a><a href="http://127.0.0.2:{port}/b">b</a>'
        for path in ("/", "/a", "/b"):
            original.pages[path] = replica.pages[path] = Answer(pages)
        settings = listed(tmp_path, "127.0.0.2 127.0.0.3\n", *QUICK)
        crawl(f"http://127.0.0.2:{port}/", tmp_path / "job", settings)
        assert not replica.asked
        assert sorted(original.asked) == ["/", "/a", "/b", "/robots.txt"]
    found = open_job(tmp_path / "job").query("SELECT DISTINCT url_host_name AS host FROM pages")
    assert found["host"].to_pylist() == ["127.0.0.3"]


def test_a_crawl_stops_a_mirror_and_says_so_in_its_log_and_a_table(tmp_path: Path) -> None:
    with serving_site(address="127.0.0.2") as original, serving_site(address="127.0.0.3") as mirror:
        names = [f"/{number}" for number in range(12)]
        for path in ("/", *names):
            text = f"page {path}" + "".join(f'<a href="{name}">{name}</a>' for name in names)
            original.pages[path] = mirror.pages[path] = Answer(text)
        settings = load_settings(options=["scope.stop_mirrors=true", "seed=7", *QUICK])
        crawl([original.url("/"), mirror.url("/")], tmp_path / "job", settings)
        asked = sorted([len(original.asked), len(mirror.asked)])
    assert asked[0] <= 5
    assert asked[1] == 14
    told = open_job(tmp_path / "job").query("SELECT replica, original FROM mirrors").to_pylist()
    (row,) = told
    assert {row["replica"], row["original"]} == {"127.0.0.2", "127.0.0.3"}
    lines = map(json.loads, (tmp_path / "job" / "log.jsonl").read_text().splitlines())
    assert [line["original"] for line in lines if line["event"] == "mirror"] == [row["original"]]
