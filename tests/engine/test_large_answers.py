"""Answers that cost little to send and much to read: they are read aside, cut, and recorded as cut."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
import zstandard

from barkspider import Statistics, crawl, load_settings
from barkspider.archive import open_table
from barkspider.archive.records import base_32
from barkspider.core.events import RobotsFetched
from barkspider.core.settings import Fetch
from barkspider.engine import contents as contents_module
from barkspider.engine import ledger
from barkspider.engine.contents import LARGE, Content, Contents
from barkspider.engine.harvest import Harvest
from barkspider.engine.work import Worker
from barkspider.fetch import HttpExchange, Response
from barkspider.page import Page, PageReader
from barkspider.storage.env import Env
from barkspider.url.robots import MAX_SIZE
from tests.website import QUICK, Answer, serving_site

_GZIP = {"Content-Encoding": "gzip"}
_PAGE = b"<title>t</title><a href=/first>" + b"<p>words</p>" * 100_000 + b"<a href=/last>"


def crawled(folder: Path, pages: dict[str, Answer | str], *options: str) -> tuple[Statistics, list[str]]:
    """A crawl of a site: its statistics and the paths that were asked for."""
    with serving_site(pages) as site:
        found = crawl(
            [site.url("/")], folder / "job", load_settings(options=[*QUICK, "scope.level=site", *options])
        )
        return found, site.asked


def row(folder: Path, path: str) -> dict[str, Any]:
    table = open_table(Env(), folder / "job" / "archive", "pages").read()
    return next(each for each in table.to_pylist() if each["url_path"] == path)


def test_a_page_that_unpacks_to_much_is_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(_PAGE) > LARGE
    threads: dict[str, str] = {}
    read: Callable[..., Page] = PageReader.read

    def note(reader: PageReader, body: bytes, kind: str | None, url: str, *more: Any) -> Page:
        threads[url.rpartition("/")[2]] = threading.current_thread().name
        return read(reader, body, kind, url, *more)

    monkeypatch.setattr(PageReader, "read", note)
    pages: dict[str, Answer | str] = {"/first": "<a href=/>", "/last": "text"}
    pages["/"] = Answer(gzip.compress(_PAGE), headers=_GZIP)
    found, asked = crawled(tmp_path, pages)
    assert sorted(asked) == ["/", "/first", "/last", "/robots.txt"]
    assert threads.pop("").startswith("pages")
    assert set(threads.values()) == {threading.current_thread().name}
    assert (found.pages, row(tmp_path, "/")["title"], row(tmp_path, "/")["links"]) == (3, "t", 2)


@pytest.mark.parametrize("cores", [1, 3])
def test_pages_are_read_in_threads_where_there_are_cores_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    threads: dict[str, str] = {}
    read: Callable[..., Page] = PageReader.read

    def note(reader: PageReader, body: bytes, kind: str | None, url: str, *more: Any) -> Page:
        threads[url.rpartition("/")[2]] = threading.current_thread().name
        return read(reader, body, kind, url, *more)

    monkeypatch.setattr(PageReader, "read", note)
    names = [f"p{number}" for number in range(30)]
    text = "".join(f"<a href=/{name}>{name}</a>" for name in names) + "<p>words</p>" * 4_000
    pages: dict[str, Answer | str] = {"/": "".join(f"<a href=/{name}>" for name in names)}
    pages |= {f"/{name}": f"<title>{name}</title>{text}" for name in names}
    found, asked = crawled(tmp_path, pages)
    assert (found.pages, len(asked), found.failed) == (31, 32, {})
    here = threading.current_thread().name
    assert threads.pop("") == here
    assert all((thread == here) == (cores == 1) for thread in threads.values())
    for name in names:
        told = row(tmp_path, f"/{name}")
        assert (told["title"], told["links"]) == (name, 30)
        assert told["content_decoded_digest"] == base_32(
            sha1(f"<title>{name}</title>{text}".encode()).digest()
        )


def test_while_much_waits_for_the_thread_nothing_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "_MOST_WAITING", 0)
    waiting: list[int] = []
    begin = Worker.begin

    def note(self: Worker, *asked: Any) -> None:
        waiting.append(self._contents._waiting)
        begin(self, *asked)

    monkeypatch.setattr(Worker, "begin", note)
    pages: dict[str, Answer | str] = {
        path: Answer(gzip.compress(_PAGE), headers=_GZIP) for path in ("/", "/first", "/last")
    }
    assert crawled(tmp_path, pages)[0].pages == 3
    assert waiting == [0] * 5  # a name, robots.txt, three pages


def test_what_fails_in_a_thread_ends_as_any_other_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Page:
        raise ValueError(threading.current_thread().name)

    monkeypatch.setattr(PageReader, "read", fail)
    found, _ = crawled(tmp_path, {"/": Answer(gzip.compress(_PAGE), headers=_GZIP)})
    assert found.failed == {"internal_error": 1}
    assert "ValueError: pages" in (tmp_path / "job" / "log.jsonl").read_text()


def test_a_page_is_the_same_wherever_it_is_read() -> None:
    response = Response(
        "http://a.example/",
        "192.0.2.1",
        b"",
        HttpExchange(status=200, headers=[(b"content-encoding", b"gzip")], body=gzip.compress(_PAGE)),
        Fetch(),
        LARGE,
    )

    async def both() -> None:
        settings = load_settings(options=["page.keep_words=words", "limits.site_duplicates=3", "seed=1"])
        contents = Contents(settings)
        read: asyncio.Future[Content | Exception] = asyncio.get_running_loop().create_future()
        contents.read_aside(response, read.set_result)
        here, aside = contents.read(response), await read
        contents.close()
        assert not isinstance(aside, Exception)
        assert here._replace(text=str) == aside._replace(text=str)
        assert here.text() == aside.text()
        assert (here.page.links, here.decoded, here.digest != 0) == (["/first", "/last"], True, True)

    asyncio.run(both())


def test_of_a_robots_txt_no_more_than_counts_is_unpacked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    write = ledger.Ledger.write

    def note(self: ledger.Ledger, harvest: Harvest) -> None:
        kept.extend(len(each.body) for each in harvest.outcomes if isinstance(each, RobotsFetched))
        write(self, harvest)

    monkeypatch.setattr(ledger.Ledger, "write", note)
    rules = b"User-agent: *\nDisallow: /private\n" + b"#\n" * 3_900_000
    packed = zstandard.compress(zstandard.compress(rules))
    assert len(packed) < 1000
    robots = Answer(packed, "text/plain", headers={"Content-Encoding": "zstd, zstd"})
    _, asked = crawled(tmp_path, {"/robots.txt": robots, "/": "<a href=/private/x><a href=/y>"})
    assert kept == [MAX_SIZE + 1]
    assert sorted(asked) == ["/", "/robots.txt", "/y"]


def test_the_bytes_that_links_of_a_page_make_are_bounded(tmp_path: Path) -> None:
    base = f"<base href=/{'b' * 900}/>"
    pages: dict[str, Answer | str] = {
        "/": "<a href=/few><a href=/many>",
        "/few": base + "".join(f"<a href={number}>" for number in range(9)),
        "/many": base + "".join(f"<a href=x{number}>" for number in range(100)),
    }
    found, _ = crawled(tmp_path, pages, "limits.page_link_bytes=10KB", "limits.pages=3")
    assert found.links == 2 + 9 + 100
    assert [
        (row(tmp_path, path)["links"], row(tmp_path, path)["links_cut"]) for path in ("/few", "/many")
    ] == [
        (9, False),
        (10, True),
    ]


def test_a_link_longer_than_any_url_is_counted_and_nothing_else(tmp_path: Path) -> None:
    pages: dict[str, Answer | str] = {"/": f"<a href='/{'x' * 10_000}'><a href='/{'y' * 3_000}'><a href=/z>"}
    found, asked = crawled(tmp_path, pages)
    assert found.out_of_scope == {"too_long": 2}
    assert sorted(asked) == ["/", "/robots.txt", "/z"]
