"""Names that cost nothing: hosts of a domain with a wildcard share a pause and a bound, and others do not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import DomainProbed, ProbeDomain
from barkspider.core.load import load_settings
from barkspider.engine.outcomes import as_rows, from_rows, is_kept
from barkspider.frontier import Driver
from barkspider.frontier.politeness.wildcards import PROBING, WILDCARD_HOSTS, WILDCARD_TLD, Wildcards
from tests.frontier.test_recovery import Run, starter
from tests.frontier.virtual import KEYS, VirtualWeb, batch, row
from tests.parallel.virtual import Crawling

Make = Callable[..., Driver]
PARKED, GOOD, ADS = "127.1.1.1", "127.2.2.2", "127.3.3.3"
START = "http://start.example/"


class Spam(dict[str, list[str]]):
    """A home page with links to good hosts and to a domain under which every name leads to five others; beside it are its real hosts."""

    def __init__(self) -> None:
        names = [f"http://w{number}.wild.example/" for number in range(120)]
        for number, name in enumerate(names):
            self[name] = [names[(5 * number + step) % len(names)] for step in range(5)]
        self.blogs = [f"http://blog{number}.wild.example/" for number in range(30)]
        self.good = [f"http://h{number}.good.example/" for number in range(30)]
        self.squatted = [f"http://s{number}.squat/" for number in range(5)]
        for name in (*self.blogs, *self.good, *self.squatted):
            self[name] = []
        self[START] = [names[0], *self.blogs, *self.good, *self.squatted]

    def web(self) -> VirtualWeb:
        servers = {name.split("/")[2]: PARKED for name in self if "//w" in name}
        servers |= {name.split("/")[2]: GOOD for name in self.blogs}
        servers |= {name.split("/")[2]: ADS for name in self.squatted}
        return VirtualWeb(self, servers=servers, wildcards={"wild.example": [PARKED], "squat": [ADS]})


def fetched(web: VirtualWeb, part: str) -> list[str]:
    return [url for url in web.fetched() if part in url]


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_free_names_are_bounded_and_good_hosts_are_not(sydney: Make, name: str) -> None:
    spam = Spam()
    web = spam.web()
    frontier = sydney(
        frontier=name, limits__wildcard_hosts=20, sydney__sample=0, politeness__server_delay="0s"
    )
    web.run(frontier, batch(START))
    assert len(fetched(web, "//w")) == 20
    assert sorted(fetched(web, "//blog")) == sorted(spam.blogs)
    assert sorted(fetched(web, "good")) == sorted(spam.good)
    assert not fetched(web, "squat")
    assert frontier.counters.refused[WILDCARD_TLD] == 5
    assert frontier.counters.refused[WILDCARD_HOSTS] > 0
    assert sorted(web.probed) == ["example", "good.example", "squat", "wild.example"]
    told = {
        details["domain"]: details["addresses"]
        for event, details in frontier.notices()
        if event == "wildcard"
    }
    assert told == {"wild.example": [PARKED], "squat": [ADS]}
    without = spam.web()
    plain = sydney(frontier=name, sydney__sample=0, politeness__server_delay="0s")
    without.run(plain, batch(START), validate=False)
    assert not without.probed
    assert len(fetched(without, "//w")) == 120
    assert set(fetched(without, "good")) == set(spam.good)


def test_hosts_of_a_wildcard_share_one_pause(sydney: Make) -> None:
    web = Spam().web()
    frontier = sydney(
        limits__wildcard_hosts=100,
        politeness__host_delay="4s",
        politeness__server_delay="0s",
        sydney__sample=0,
    )
    web.run(frontier, batch(START), validate=False)
    times = sorted(time for time, host, *_ in web.requests if host.startswith("w"))
    late = times[60:]  # when it is known
    assert len(late) > 40
    assert min(after - before for before, after in itertools.pairwise(late)) >= 4.0


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_what_was_probed_survives_kills(tmp_path: Path, name: str) -> None:
    spam = Spam()
    web = spam.web()
    settings = load_settings(
        overrides={
            "seed": 1,
            "memory": "64MB",
            "limits.wildcard_hosts": 20,
            "sydney.sample": 0,
            "politeness.server_delay": "0s",
            "politeness.host_delay": "0s",
        }
    )
    run = Run(web, starter(name, settings, tmp_path), tmp_path, seed=3)
    run.crawl(batch(START), kills=3)
    assert run.kills == 3
    assert len({url for url in run.applied if "//w" in url and "robots" not in url}) <= 20
    assert set(spam.good + spam.blogs) <= set(run.applied)
    assert max(run.applied.values()) == 1


def test_several_processes_bound_them_too(tmp_path: Path) -> None:
    spam = Spam()
    options = ("limits.wildcard_hosts=20", "frontier=sydney", "sydney.sample=0", "politeness.server_delay=0s")
    crawling = Crawling({}, tmp_path, 3, *options, web=spam.web())
    pages = crawling.run([START], kills=4)
    assert len([url for url in pages if "//w" in url]) <= 20
    assert set(spam.good + spam.blogs) <= set(pages)
    for process in crawling.processes:
        process.driver.close()


def test_a_probe_is_a_record_of_the_journal() -> None:
    for addresses in ((), (PARKED, GOOD)):
        outcome = DomainProbed(ProbeDomain("x.wild.example", "wild.example", 7), addresses)
        assert is_kept(outcome)
        assert from_rows(as_rows([outcome]), UrlBatch.from_rows([])) == [outcome]


def looked_up(wildcards: Wildcards, hosts: Sequence[str], address: str) -> list[str]:
    return [
        wildcards.located(row(f"http://{host}/").host_key, KEYS.of("wild.example"), host, address)
        for host in hosts
    ]


def test_a_top_level_domain_is_probed_first_and_a_domain_again_at_eight_times_as_many_hosts() -> None:
    wildcards = Wildcards(1, most=5)
    hosts = [f"h{number}.wild.example" for number in range(200)]
    assert looked_up(wildcards, hosts[:2], GOOD) == [PROBING, PROBING]
    (top,) = wildcards.probes()
    assert (top.domain, top.host.endswith(".example")) == ("example", True)
    wildcards.probed(DomainProbed(top, ()))
    looked_up(wildcards, hosts[:15], GOOD)
    looked_up(wildcards, hosts[:15], GOOD)  # again, since addresses expire
    assert not wildcards.probes()
    looked_up(wildcards, hosts[15:40], GOOD)
    (probe,) = wildcards.probes()
    wildcards.probed(DomainProbed(probe, ()))
    again = Wildcards(1, most=5)
    again.load(json.loads(json.dumps(wildcards.save())))
    assert json.dumps(again.save()) == json.dumps(wildcards.save())
    looked_up(again, hosts[40:180], PARKED)
    assert not again.probes()
    assert looked_up(again, hosts[180:], "127.0.0.1")[0] == ""
    assert looked_up(again, ["127.0.0.1", "localhost"], GOOD) != [PROBING, PROBING]
