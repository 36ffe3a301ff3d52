"""Traps: what is cut, what never is, and that both survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.events import PageFetched, Ruled, Seeds
from barkspider.core.load import load_settings
from barkspider.frontier import Driver
from barkspider.frontier.rulings import PARDON
from barkspider.frontier.traps import Traps
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url.shape import shape, shapes
from tests.frontier.test_rulings import opened, run
from tests.frontier.virtual import VirtualWeb, batch, row

SETTINGS = load_settings(overrides={"seed": 1, "traps.evidence": 16})
Site = Callable[[str], tuple[int, list[str]]]  # what a page says, and its links


def walk(site: Site, first: str, most: int) -> tuple[Traps, list[str]]:
    """Fetch breadth-first what no trap catches, as far as it goes; what was fetched."""
    traps, queue, seen, fetched = Traps(SETTINGS), [first], {first}, list[str]()
    while queue and len(fetched) < most:
        url = queue.pop(0)
        page = row(url)
        if traps.catches([page])[0]:
            continue
        fetched.append(url)
        gist, links = site(url)
        traps.learn([(page, batch(*links), gist)], now=1.0)
        fresh = [link for link in links if link not in seen]
        seen.update(fresh)
        queue += fresh
    return traps, fetched


def calendar(url: str) -> tuple[int, list[str]]:
    if "month=" not in url:
        return 1, ["http://a.example/calendar?month=1", "http://a.example/about"]
    month = int(url.rpartition("=")[2])
    return 100 + month % 12, [f"http://a.example/calendar?month={month + step}" for step in (-1, 1, 12)]


def growing(url: str) -> tuple[int, list[str]]:
    return 7, [f"{url}chapter/", f"{url}notes/", "http://a.example/"]


def wildcard(url: str) -> tuple[int, list[str]]:
    place = hash(url) % 2**32
    return 7, [f"http://n{place * 7 + k}.a.example/" for k in range(5)]


@pytest.mark.parametrize(
    ("site", "first", "pattern"),
    [
        (calendar, "http://a.example/", "a.example/calendar?month"),
        (growing, "http://a.example/chapter/", "a.example/chapter/notes/"),
        (wildcard, "http://a.example/", "*.a.example/"),
    ],
)
def test_a_place_that_repeats_itself_without_end_is_cut(site: Site, first: str, pattern: str) -> None:
    traps, fetched = walk(site, first, 3_000)
    assert pattern in [trap.pattern for trap in traps.traps.values()]
    assert len(fetched) < 300
    (event, found), *_ = traps.notices()
    assert (event, found.repeated >= 16, found.repeated <= found.pages) == ("trap", True, True)


def gallery(url: str) -> tuple[int, list[str]]:
    """An index of five hundred photographs with the same words under each; each leads to its neighbours."""
    if url.endswith("/"):
        return 1, [f"http://a.example/photo-{number}" for number in range(500)]
    number = int(url.rpartition("-")[2])
    return 2, [f"http://a.example/photo-{min(max(number + step, 0), 499)}" for step in (-1, 1)]


def archive(url: str) -> tuple[int, list[str]]:
    """Lists of articles that say nothing themselves, three hundred in a row."""
    if "page=" not in url:
        return hash(url) & 0xFFFFFFFF, ["http://a.example/list?page=1"]
    number = int(url.rpartition("=")[2])
    articles = [f"http://a.example/article-{number * 10 + k}" for k in range(10)]
    return 2, [*articles, *([f"http://a.example/list?page={number + 1}"] if number < 300 else [])]


def mirrored(url: str) -> tuple[int, list[str]]:
    """What another domain says word for word, two hundred pages of it."""
    if "//a." in url and url.endswith("/"):
        return 5, ["http://b.example/", *(f"http://a.example/{number}" for number in range(200))]
    if url.endswith("/"):
        return 5, [f"http://b.example/{number}" for number in range(200)]
    return 1_000 + int(url.rpartition("/")[2]), []


@pytest.mark.parametrize(("site", "pages"), [(gallery, 501), (archive, 1 + 300 + 3000), (mirrored, 402)])
def test_what_ends_or_leads_on_is_never_cut(site: Site, pages: int) -> None:
    traps, fetched = walk(site, "http://a.example/", 10_000)
    assert (len(fetched), traps.traps) == (pages, {})


def test_a_trap_that_begins_to_say_something_is_released() -> None:
    numbers = count(1)

    def site(url: str) -> tuple[int, list[str]]:
        number = next(numbers)
        return (7 if number < 50 else number), [f"http://a.example/{number * 100 + k}x/" for k in range(100)]

    traps, fetched = walk(site, "http://a.example/", 4_000)
    assert [event for event, _ in traps.notices()] == ["trap", "released"]
    assert len(fetched) > 500


def test_a_seed_is_fetched_wherever_it_lies() -> None:
    traps, _ = walk(growing, "http://a.example/chapter/", 3_000)
    urls = [
        row(f"http://a.example/{'chapter/notes/' * number}", flags=flags)
        for number in (30, 31)
        for flags in (0, 1)
    ]
    assert traps.catches(urls)[1::2] == [False, False]


def test_evidence_survives() -> None:
    """The same verdict at the same page, whether it was saved in between or not."""
    url = "http://a.example/"
    for _ in range(9):
        url += "chapter/"

    def pages() -> Iterator[str]:
        for number in range(200):
            yield f"http://a.example/{'chapter/' * (number % 40 + 1)}{number}/"

    straight, saved = Traps(SETTINGS), Traps(SETTINGS)
    cuts: list[int] = []
    for number, each in enumerate(pages()):
        for traps in (straight, saved):
            traps.learn([(row(each), batch(*(f"{each}{k}/" for k in range(2))), 7)], now=1.0)
        assert set(straight.traps) == set(saved.traps)
        cuts += [number] if len(straight.traps) > len(cuts) else []
        head, arrays = saved.save()
        saved = Traps(SETTINGS)
        saved.load(head, {name: np.asarray(array).tobytes() for name, array in arrays.items()})
    assert cuts


def test_shapes_are_told_apart_as_people_do() -> None:
    from barkspider.core.texts import Texts

    same = [
        ["http://a.example/x?a=1&b=2", "http://b.example/x?b=&a=9&a=3"],
        ["http://a.example/p1/q/p1/", "http://a.example/p2/q/", "http://a.example/q/p3/"],
        ["http://a.example/item-5.html", "https://a.example:81/item-77.html"],
        ["http://a.example/item-5.html?"],
        ["http://a.example/p1/q"],
        ["http://a.example/"],
        ["http://a.example/x?a"[:-2]],
    ]
    urls = [url for group in same for url in group]
    texts = Texts.of([url.encode() for url in urls])
    found = dict(zip(urls, shapes(texts.data, texts.offsets).tolist(), strict=True))
    assert [len({found[url] for url in group}) for group in same] == [1] * len(same)
    assert len(set(found.values())) == len(same)
    assert shape("http://a.example/p1/q/p2/?x=1") == "/#/q/?x"


class Endless(VirtualWeb):
    """A site of forty articles, and a calendar without end."""

    def page(self, asked, url):  # type: ignore[no-untyped-def]
        if "/day-" not in url:
            links = [f"http://a.example/article-{chr(97 + k)}" for k in range(26)] + [
                "http://a.example/day-1"
            ]
            return PageFetched(asked, 200, links=batch(*links), gist=hash(url) & 0xFFFFFFFF)
        day = int(url.rpartition("-")[2])
        links = [f"http://a.example/day-{day + step}" for step in (1, 2)]
        return PageFetched(asked, 200, links=batch(*links), gist=9)


@pytest.mark.parametrize("kind", ["irlbot", "sydney", "sydney-disk"])
def test_a_crawl_ends_though_a_site_does_not(kind: str, tmp_path: Path) -> None:
    web, store = Endless({}), Store.open(Env(), tmp_path)

    def start(resumed: float | None = None) -> Driver:
        return opened(kind, tmp_path, store, resumed, politeness__host_delay="0s", traps__evidence=16)

    frontier = start()
    now = run(web, frontier, {0.0: Seeds(batch("http://a.example/"))})
    store.commit()
    (trap,) = frontier.about_traps()
    assert trap["pattern"] == "a.example/day-#"
    assert 16 <= len([url for url in web.fetched() if "day-" in url]) < 100
    assert len([url for url in web.fetched() if "article" in url]) == 26
    held = frontier.counters.refused["trap"]
    assert held > 0
    frontier.close()
    # A trap is known, and holds what it held, when the crawl goes on; pardoned, it is gone into again.
    store = Store.open(Env(), tmp_path)
    frontier, before = start(now), len(web.fetched())
    now = run(web, frontier, {}, now)
    assert len(web.fetched()) - before <= 8  # the 1st, 2nd, 4th … that comes up
    assert frontier.about_traps()[0]["pattern"] == trap["pattern"]
    frontier.step(now, [Ruled(((PARDON, trap["pattern"]),))])
    assert frontier.about_traps() == []
    assert frontier.waits
    frontier.close()


def test_without_detection_nothing_is_kept(tmp_path: Path) -> None:
    settings = replace(SETTINGS, traps=replace(SETTINGS.traps, detect=False))
    assert not settings.traps.detect
    frontier = opened("irlbot", tmp_path, traps__detect=False)
    assert (frontier.about_traps(), frontier.trap_news()) == ([], [])
    frontier.close()
