"""Partitions and modes on a virtual clock, with kills, against the simulation of the same web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import SettingsError, StorageError
from barkspider.core.events import (
    FetchPage,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    ResolveHost,
    Seeds,
)
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.core.settings import Budget, Limits
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.batches import cookies_of, inbox
from barkspider.frontier.budget.hearsay import Hearsay
from barkspider.frontier.budget.star import Star
from barkspider.frontier.shares import Shares
from barkspider.lab.simulate.parallel import Setup
from barkspider.storage.env import Env
from barkspider.url.partition import by_hash
from tests.frontier.virtual import KEYS, VirtualWeb, batch, row
from tests.parallel.virtual import Crawling, made_up_web, simulated

WEB = made_up_web(200, seed=3)
FIRST = next(iter(WEB))
REDIRECTED = "http://w0.d1.example/moved"
FAST = ("politeness.host_delay=20ms", "politeness.server_delay=1ms", "politeness.obey_robots=false")


@pytest.mark.parametrize("partition", ["domain", "site", "url"])
def test_exchange_fetches_every_page_once_and_sends_what_is_simulated(partition: str, tmp_path: Path) -> None:
    crawl = Crawling(WEB, tmp_path, 3, *FAST, f"parallel.partition={partition}", "parallel.batch=5")
    assert crawl.run([FIRST], kills=3) == Counter(WEB.keys())
    assert crawl.kills == 3
    expected, _ = simulated(WEB, [FIRST], Setup("exchange", 3, partition, batch=5))
    assert expected.coverage == 1.0
    assert crawl.gauge("sent") == crawl.gauge("received") == pytest.approx(expected.sent, rel=0.1)


@pytest.mark.parametrize(
    ("mode", "partition"),
    [("firewall", "url"), ("cross-over", "site"), ("cross-over", "url"), ("independent", "site")],
)
def test_processes_that_send_nothing_fetch_what_is_simulated(
    mode: str, partition: str, tmp_path: Path
) -> None:
    seeds = list(WEB)[:6]
    options = (f"parallel.partition={partition}", f"parallel.mode={mode}")
    slots = (
        1 if partition == "site" else 99
    )  # one request at a time leaves room for the next when it has ended alone
    crawl = Crawling(WEB, tmp_path, 3, *FAST, *options, f"fetch.in_flight={slots}")
    fetched = crawl.run(seeds, kills=2)
    expected, urls = simulated(WEB, seeds, Setup(mode, 3, partition))
    assert fetched == Counter(dict(zip(urls, expected.times.tolist(), strict=True)))
    assert crawl.gauge("sent") == 0
    if mode == "firewall":
        assert expected.overlap == 0
        assert expected.coverage < 1
    else:
        assert expected.overlap > 0
        assert expected.coverage == 1


def test_in_degrees_are_those_of_one_process_whatever_the_partition(tmp_path: Path) -> None:
    """Each domain is counted by one process, and those who have URLs of it are told."""
    alone = VirtualWeb(WEB)
    settings = load_settings(options=["seed=1", "memory=64MB", *FAST])
    frontier = open_frontier(settings, Env(), tmp_path / "alone", background=False)
    alone.run(frontier, batch(FIRST), validate=False)
    expected = counted(frontier)
    frontier.close()
    crawl = Crawling(WEB, tmp_path, 3, *FAST, "parallel.partition=url", "parallel.batch=5")
    crawl.run([FIRST], kills=2)
    found = Counter[int]()
    for process in crawl.processes:
        found += counted(process.driver)
    assert found == expected
    domains = np.unique(batch(*WEB).pld_key)
    for process in crawl.processes:
        star = process.driver._source._star  # type: ignore[attr-defined]
        degrees, sharers = star.hearsay.of(domains, star._in_force().of(domains))
        told = (by_hash(domains, 3) != process.number) & (degrees > 0)
        assert told.sum() > 4  # of 12, some of which are its own
        assert set(sharers[told].tolist()) == {3}


def counted(frontier: Driver) -> Counter[int]:
    """How many domains have which in-degree."""
    star = frontier._source._star  # type: ignore[attr-defined]
    star.merge()
    known = star.distribution()
    return Counter(dict(zip(known.degrees.tolist(), known.counts.tolist(), strict=True)))


def test_a_budget_is_divided_among_those_who_have_urls_of_the_domain(tmp_path: Path) -> None:
    hearsay = Hearsay(part=0, processes=2, most=9)
    star = Star(Env(), tmp_path, Budget(base=10), hearsay=hearsay, background=False)
    ours = UrlBatch.of([b"http://a.example/"], key=[1], pld_key=[7])
    star.check(ours)
    star.merge()
    assert [budgets.tolist() for _, budgets in star.budgeted()] == [[10]]
    hearsay.hear(1, (1).to_bytes(4, "little") + np.array([7], "<u8").tobytes())
    star.check(ours)
    star.merge()
    assert [budgets.tolist() for _, budgets in star.budgeted()] == [[5]]
    with pytest.raises(StorageError, match="damaged"):
        hearsay.hear(1, b"12345")
    star.close()


def test_what_is_heard_is_bounded_and_survives(tmp_path: Path) -> None:
    hearsay = Hearsay(part=0, processes=2, most=3)
    domains = np.arange(4090, 4096, dtype=np.uint64)  # of the other process
    hearsay.notice(domains)
    hearsay.notice(np.array([5], np.uint64))
    saved = {name: np.ascontiguousarray(data).tobytes() for name, data in hearsay.save().items()}
    again = Hearsay(part=0, processes=2, most=3)
    again.load(saved)
    news = again.news(1, lambda keys: np.zeros(len(keys), np.uint32))
    assert np.frombuffer(news[4:], "<u8").tolist() == [4093, 4094, 4095]
    assert again.news(1, lambda keys: np.zeros(len(keys), np.uint32)) == b""


def test_what_is_told_of_domains_is_capped() -> None:
    """In bytes a batch; the rest comes with the next ones, the highest in-degrees first."""
    asking, counting = (Hearsay(part, 2, most=20_000) for part in range(2))
    domains = (np.arange(5_000, dtype=np.uint64) << np.uint64(12)) + np.uint64(4_095)  # counted by the second
    asking.notice(domains)
    asked = [asking.news(1, lambda keys: np.zeros(len(keys), np.uint32)) for _ in range(2)]
    assert [len(news) for news in asked] == [4 + 8 * 4_096, 4 + 8 * (5_000 - 4_096)]
    for news in asked:
        counting.hear(0, news)
    told = [counting.news(0, lambda keys: (keys >> np.uint64(12)).astype(np.uint32)) for _ in range(2)]
    assert [len(news) for news in told] == [4 + 14 * 4_096, 4 + 14 * (5_000 - 4_096)]
    asking.hear(1, told[0])
    degrees, _ = asking.of(domains, np.zeros(5_000, np.uint32))
    assert degrees.tolist() == [*[0] * 904, *range(904, 5_000)]


def test_by_url_each_process_asks_for_a_robots_txt_once_and_when_it_expires(tmp_path: Path) -> None:
    pages = {f"http://a.example/{number}": [] for number in range(90)}
    first, *others = pages
    origin, asked = "http://a.example", {}
    for name, age in (("lasting", 86_400.0), ("short", 20.0)):
        web = VirtualWeb(pages | {first: others}, robots={origin: b"User-agent: *"}, ages={origin: age})
        chosen = ("parallel.partition=url", "politeness.host_delay=1s", "politeness.server_delay=1ms")
        crawl = Crawling({}, tmp_path / name, 3, *chosen, "politeness.robots_min_expiry=20s", web=web)
        assert crawl.run([first]) == Counter(pages.keys())
        asked[name] = web.times(f"{origin}/robots.txt")
        assert web.closest(1) >= 1.0, "processes take turns at a host"
    assert asked["lasting"] == 3
    lasted = max(time for time, *_ in web.requests)
    assert 3 < asked["short"] <= 3 * (1 + lasted / 20)


def test_a_limit_of_a_site_is_divided_where_processes_share_sites() -> None:
    parts = [Shares(Limits(site_urls=5), part, of_site=3) for part in range(3)]
    rows = [row(f"http://a.example/{number}") for number in range(9)]
    admitted = [sum(not shares.verdict(each) for each in rows) for shares in parts]
    assert sorted(admitted) == [1, 2, 2]


@pytest.mark.parametrize(("partition", "column"), [("url", "key"), ("site", "host_key")])
def test_cookies_follow_a_redirect_through_other_processes(
    partition: str, column: str, tmp_path: Path
) -> None:
    """Those of all redirects that led to a URL, to whoever fetches it."""
    urls = [f"http://w{number}.a.example/{number}" for number in range(200)]
    by_owner: dict[int, list[str]] = {}
    for url in urls:
        by_owner.setdefault(int(by_hash(getattr(batch(url), column), 3)[0]), []).append(url)
    first, second, third = (by_owner[number][0] for number in range(3))
    web = CookieWeb({first: second, second: third, third: []})
    crawl = Crawling({}, tmp_path, 3, *FAST, f"parallel.partition={partition}", web=web)
    crawl.run([first])
    mail = {
        number: cookies_of(Env(), path)
        for number in range(3)
        for path in inbox(tmp_path / "part-0000", number).glob("*.snapshot")
    }
    assert mail[1] == [(first, ("c=0",))]
    assert mail[2] == [(first, ("c=0",)), (second, ("c=0",))]


class CookieWeb(VirtualWeb):
    """Redirects set cookies."""

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        answer = super().page(asked, url)
        return replace(answer, cookies=("c=0",)) if answer.redirect else answer


def test_replicas_are_fetched_by_their_owners_and_never_sent(tmp_path: Path) -> None:
    links = Counter(link for targets in WEB.values() for link in targets)
    popular = [url for url, _ in links.most_common(6)]
    sent = {}
    for name, replicas in (("without", []), ("with", popular)):
        crawl = Crawling(
            WEB, tmp_path / name, 3, *FAST, "parallel.partition=site", "parallel.batch=5", replicas=replicas
        )
        assert crawl.run([FIRST], kills=1) == Counter(WEB.keys())
        sent[name] = crawl.gauge("sent")
    saved = crawl.gauge("not_sent")
    assert sent["with"] + saved == pytest.approx(sent["without"], rel=0.05)  # batches end elsewhere
    assert saved > 0.05 * sent["without"]
    for name, number in (("without", 0), ("with", len(popular))):
        expected, _ = simulated(WEB, [FIRST], Setup("exchange", 3, "site", batch=5, replicated=number))
        assert sent[name] == pytest.approx(expected.sent, rel=0.1)


@dataclass
class MovingWeb(VirtualWeb):
    """Servers with three hosts each, and some without an address; whoever asks again is told another address."""

    asked: Counter[str] = field(default_factory=Counter)

    def answer(self, now: float, instruction: Instruction) -> Outcome:
        if not isinstance(instruction, ResolveHost):
            return super().answer(now, instruction)
        number = int(instruction.host.split(".")[1][1:])
        if instruction.assigns:
            self.asked[instruction.host] += 1
            if number == 7:
                return HostResolved(instruction, (), "dns_failure")
        return HostResolved(instruction, (f"127.1.{self.asked[instruction.host]}.{number}",))


@pytest.mark.parametrize("order", ["budget", "backlinks"])
def test_a_host_is_assigned_once_by_its_address_whoever_is_killed(order: str, tmp_path: Path) -> None:
    web = MovingWeb(WEB | {FIRST: [*WEB[FIRST], REDIRECTED], REDIRECTED: list(WEB)[9]})
    options = ("parallel.partition=address", "parallel.batch=5", f"order={order}")
    crawl = Crawling(web.pages, tmp_path, 3, *FAST, *options, web=web, replicas=list(WEB)[20:24])
    assert crawl.run([FIRST], kills=8, often=0.05) == Counter(web.pages.keys())
    assert crawl.kills == 8
    parts = {}
    for part, pages in enumerate(crawl.applied):
        for url in pages:
            assert parts.setdefault(url.split("/")[2], part) == part, "two processes have pages of a host"
    assert set(parts.values()) == {0, 1, 2}
    for host, part in parts.items():
        number = int(host.split(".")[1][1:])
        # As the last record has it: one that was lost with a kill does not count.
        addresses = [f"127.1.{asked}.{number}" for asked in range(1, web.asked[host] + 1)]
        keys = [KEYS.of(host if number == 7 else each) for each in addresses]
        owners = by_hash(np.array(keys, np.uint64), 3)
        assert part in owners
    assert sum(web.asked.values()) < len(parts) + 8
    assert crawl.gauge("unassigned") == 0
    # All of a page's links to its own host stay where they are: far fewer are sent than with the long way for all.
    assert crawl.gauge("sent") < 2 * simulated(WEB, [FIRST], Setup("exchange", 3, "site", batch=5))[0].sent


def test_what_is_fetched_again_goes_to_whoever_has_the_host(tmp_path: Path) -> None:
    web = MovingWeb(WEB)
    crawl = Crawling(WEB, tmp_path, 3, *FAST, "parallel.partition=address", "parallel.batch=5", web=web)
    crawl.run([FIRST])
    before = [set(pages) for pages in crawl.applied]
    for process in crawl.processes:
        process.push(1e6, Seeds(batch(*list(WEB)[:50], flags=int(Flag.SEED | Flag.AGAIN))))
    fetched = crawl.run([])
    assert fetched == Counter(WEB.keys()) + Counter(list(WEB)[:50])
    assert [set(pages) for pages in crawl.applied] == before


def test_addresses_need_processes_that_tell_each_other() -> None:
    with pytest.raises(SettingsError, match=r"parallel\.mode=exchange"):
        load_settings(options=["parallel.partition=address", "parallel.mode=firewall"])


def by_scheme(urls: Sequence[str], processes: int) -> list[int]:
    """A partition of one's own."""
    return [len(url) % processes for url in urls]


def test_top_level_domains_and_functions_of_ones_own_divide_a_crawl(tmp_path: Path) -> None:
    web = {
        url.replace(".example/", f".{'de' if 'd1' in url else 'fr'}/"): links for url, links in WEB.items()
    }
    renamed = dict(zip(WEB, web, strict=True))
    web = {url: [renamed[link] for link in links] for url, links in web.items()}
    seeds = [next(iter(web))]
    weights = dict(Counter(url.split("/")[2].rsplit(".", 1)[1] for url in web))
    for number, options in enumerate(
        (["parallel.partition=hierarchical"], [f"parallel.partition={__name__}:by_scheme"])
    ):
        crawl = Crawling(web, tmp_path / str(number), 2, *FAST, *options, weights=weights)
        assert crawl.run(seeds, kills=1) == Counter(web.keys())
        assert all(crawl.applied)
    assert all(len(url) % 2 == part for part, pages in enumerate(crawl.applied) for url in pages)
