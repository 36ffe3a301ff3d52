"""Crawls by several processes over real sockets; `python -m benchmarks chaos` kills them more often."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barkspider import open_job
from barkspider.core.errors import JobError
from barkspider.core.load import load_settings
from barkspider.engine import Job
from barkspider.engine.control import ask
from barkspider.engine.folder import part_folders
from barkspider.engine.recrawl import fetch_again
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.parallel.frozen import Frozen
from barkspider.storage.env import Env
from barkspider.url import split
from barkspider.url.partition import top_level
from tests.cli.program import run
from tests.engine.warcs import archived
from tests.parallel.firewalls import behind_firewalls
from tests.parallel.killed import DEFAULTS, NONE
from tests.parallel.killed import run as run_killed
from tests.parallel.together import crawl_together, create

SMALL = {"pages": 150, "host_delay": 0.05, "crawl_delay": 0.1, "checkpoint": 0.3, "longest": 1.5, "seed": 3}


def test_a_crawl_whose_processes_are_killed_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Nor does it count a link between domains twice, or ask a server too soon."""
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    calm = run_killed({**DEFAULTS, **SMALL, "kills": 0}, tmp_path / "one")
    found = run_killed({**DEFAULTS, **SMALL, "kills": 4}, tmp_path / "two")
    for each in (calm, found):
        assert each["code"] == 0, each["output"]
        assert {name: each[name] for name in NONE} == dict.fromkeys(NONE, 0), each
        assert each["problems"] == []
    assert found["kills"] == 4
    assert found["truth"] > 150
    assert found["in_degrees"] == calm["in_degrees"]
    assert len(calm["in_degrees"]) > 3


@pytest.mark.parametrize(("partition", "robots"), [("url", 2), ("address", 1)])
def test_processes_that_share_hosts_lose_nothing_and_keep_to_pauses_either(
    partition: str, robots: int, tmp_path: Path
) -> None:
    """Divided by URL, with kills: turns at hosts are leases, each process asks for a robots.txt once. By address, hosts are not
    shared, and go to processes when they are known."""
    order = {"kills": 3, "processes": 2, "options": [f"parallel.partition={partition}"], "robots": robots}
    found = run_killed({**DEFAULTS, **SMALL, **order}, tmp_path)
    assert found["code"] == 0, found["output"]
    assert {name: found[name] for name in NONE} == dict.fromkeys(NONE, 0), found
    assert (found["kills"], found["problems"]) == (3, [])


@pytest.mark.parametrize("partition", ["site", "address"])
def test_a_recrawl_asks_each_part_for_all_its_pages(partition: str, tmp_path: Path) -> None:
    spec = WebSpec(seed=5, pages=100, domains=8, page_bytes=2_000)
    with running_web(spec) as web:
        chosen = [f"{name}={value}" for name, value in web.settings().items()]
        chosen += ["politeness.host_delay=1ms", "politeness.server_delay=1ms", "politeness.slow_factor=0"]
        chosen += ["memory=64MB", "scope.level=web", "parallel.processes=2", "parallel.interval=50ms"]
        job, seeds = tmp_path / "job", web.web.seeds(2)
        settings = load_settings(options=[*chosen, "seed=7", f"parallel.partition={partition}"])
        create(job, settings, seeds)
        asyncio.run(crawl_together(job))
        truth = Counter(web.web.reachable_urls(seeds))
        assert pages_of(job) == truth
        whole = Job.open(job, Env())
        assert fetch_again(whole, time.time()).pages == len(truth)
        whole.close()
        asyncio.run(crawl_together(job))
        assert pages_of(job) == truth + truth
    parts = open_job(job).query(
        "SELECT url_host_name AS host, count(DISTINCT part) AS n FROM pages GROUP BY 1"
    )
    assert set(parts["n"].to_pylist()) == {1}


Program = Callable[..., str]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """Runs a command; what it printed, or complained of if that is expected."""

    def call(*arguments: str, code: int = 0) -> str:
        assert run(monkeypatch, *arguments) == code, capsys.readouterr()
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return call


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    spec = WebSpec(seed=5, pages=600, domains=60, page_bytes=3_000, crawl_delay=0.1)
    with running_web(spec, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


def options(served: RunningWeb, *more: str) -> list[str]:
    chosen = [f"{name}={value}" for name, value in served.settings().items()]
    chosen += ["politeness.host_delay=10ms", "politeness.server_delay=1ms", "politeness.slow_factor=0"]
    chosen += ["memory=128MB", "seed=7", "scope.level=web", "parallel.interval=100ms", "checkpoint=1s", *more]
    return [word for option in chosen for word in ("--set", option)]


def pages_of(job: Path) -> Counter[str]:
    return Counter(url for folder in part_folders(job) for url in archived(folder, "pages"))


def test_a_job_of_parts_is_one_job_to_every_command(
    served: RunningWeb, tmp_path: Path, program: Program
) -> None:
    job, seeds = tmp_path / "job", served.web.seeds(3)
    told = json.loads(
        program(
            "crawl",
            *seeds,
            "--job",
            str(job),
            "--processes",
            "3",
            "--pages",
            "57",
            "--json",
            *options(served),
        )
    )
    assert (told["pages"], told["stopped_by"]) == (57, "pages")
    assert sum(pages_of(job).values()) == 57
    assert json.loads(program("status", str(job), "--json"))["pages"] == 57
    program("verify", str(job))

    rest = json.loads(program("resume", str(job), "--pages", "0", "--json"))
    truth = served.web.reachable_urls(seeds)
    assert rest["stopped_by"] == "done"
    assert pages_of(job) == Counter(truth)
    assert (
        rest["pages"]
        == len(truth)
        == open_job(job).query("SELECT count(DISTINCT url) AS n FROM pages")["n"][0].as_py()
    )
    parts = (
        open_job(job).query("SELECT part, count(*) AS n FROM pages GROUP BY part ORDER BY part").to_pylist()
    )
    assert [row["part"] for row in parts] == [0, 1, 2]
    assert len(open_job(job).table("pages")) == len(truth)
    assert open_job(job).page(seeds[0]).status == 200
    changes = list(open_job(job).changes())
    assert sorted(page.url for page in changes) == sorted(truth)
    rest_of_them = open_job(job).changes(since=changes[len(truth) // 2].cursor)
    assert [page.url for page in rest_of_them] == [page.url for page in changes[len(truth) // 2 + 1 :]]
    assert rest["gauges"]["sent"] == rest["gauges"]["received"] > 100
    ends = open_job(job).query(
        "SELECT sum(pages) AS n FROM (SELECT part, max(pages) AS pages FROM history GROUP BY part)"
    )
    assert ends["n"][0].as_py() == open_job(job).history().last("pages") == len(truth)
    sent = open_job(job).history().group("exchange")
    assert {name: sent[f"{name} taken"][-1] for name in sent if " " not in name} == {
        name: counts[-1] for name, counts in sent.items() if " " not in name
    }

    # Metrics of the whole (Parallel Crawlers, section 4), and by pair in tables.
    assert rest["parallel"] == json.loads(program("status", str(job), "--json"))["parallel"]
    told = rest["parallel"]
    assert (told["overlap"], told["coverage"], told["coverage_is"]) == (0.0, 1.0, "exact")
    assert (told["urls"], told["backlog"]) == (rest["gauges"]["sent"], [])
    (found,) = open_job(job).query("SELECT * FROM parallel").to_pylist()
    assert (found["pages"], found["overlap"]) == (len(truth), 0.0)
    assert [found[name] for name in ("urls", "messages", "bytes")] == [
        told[name] for name in ("urls", "messages", "bytes")
    ]
    pairs = open_job(job).query(
        "SELECT sender, part, sum(links) >= sum(urls) AS more FROM batches GROUP BY ALL"
    )
    assert sorted((row["sender"], row["part"], row["more"]) for row in pairs.to_pylist()) == [
        (sender, part, True) for sender in range(3) for part in range(3) if sender != part
    ]
    planned = json.loads(program("plan", "--from", str(job), "--json"))["measured"]
    assert planned["measured_pages"] == len(truth)
    assert planned["drums"].keys() >= {"seen", "edges", "indegree", "robots"}
    assert planned["parameters"]["compression"] > 0
    packed = ["--format", "wacz", "--output", str(tmp_path / "crawl.wacz"), "--json"]
    assert json.loads(program("export", str(job), *packed))["pages"] == len(truth)

    chosen = ["parallel.processes=2", f"parallel.replicate={job}:20"]
    replicas = Frozen.read(load_settings(options=chosen)).replicas
    links = Counter(row["target_url"] for row in open_job(job).table("links").to_pylist() if row["in_scope"])
    assert replicas == sorted(links, key=lambda url: (-links[url], url))[:20]
    chosen = ["parallel.processes=2", "parallel.partition=hierarchical", f"parallel.weights={job}"]
    weights = Frozen.read(load_settings(options=chosen)).weights
    assert weights == Counter(top_level(split(url).host) for url in truth)

    before = served.log_path.read_text().count("\n") if served.log_path else 0
    again = json.loads(program("recrawl", str(job), "--older-than", "0s", "--json"))
    assert again["again"] == len(truth)
    assert (again["pages"], again["unchanged"]) == (2 * len(truth), len(truth)), again
    assert served.log_path is not None
    assert len(read_log(served.log_path)) - before >= len(truth)
    program("verify", str(job))


@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
def test_a_part_whose_hosts_are_all_to_be_left_alone_tells_so(
    frontier: str, served: RunningWeb, tmp_path: Path
) -> None:
    """So that it is not taken for one that hangs."""
    chosen = [
        *options(served, f"frontier={frontier}", "parallel.processes=2")[1::2],
        "politeness.host_delay=1h",
    ]
    create(tmp_path / "job", load_settings(options=chosen), served.web.seeds(1))
    folders = part_folders(tmp_path / "job")

    async def look() -> list[bool]:
        crawling = asyncio.create_task(crawl_together(tmp_path / "job"))
        async with asyncio.timeout(60):
            while True:
                await asyncio.sleep(0.05)
                with suppress(JobError):
                    told = [(await asyncio.to_thread(ask, each, "status"))["others"] for each in folders]
                    if any(each["sleeps"] for each in told):
                        break
        for folder in folders:
            await asyncio.to_thread(ask, folder, "stop")
        await crawling
        return sorted(each["is_idle"] for each in told)

    assert asyncio.run(look()) == [False, True]


def test_a_firewall_fetches_what_the_simulation_says(
    served: RunningWeb, tmp_path: Path, program: Program
) -> None:
    job, seeds = tmp_path / "job", served.web.seeds(3)
    chosen = options(served, "parallel.mode=firewall")
    told = json.loads(program("crawl", *seeds, "--job", str(job), "--processes", "2", "--json", *chosen))
    pages, expected = pages_of(job), behind_firewalls(served.web, seeds, 2, 7, tmp_path)
    assert pages == Counter(expected)
    assert 0 < len(expected) < len(served.web.reachable_urls(seeds))
    assert told["gauges"]["not_ours"] > 0
    assert told["gauges"]["sent"] == 0
    true = len(expected) / len(served.web.reachable_urls(seeds))
    assert told["parallel"]["overlap"] == 0.0
    assert told["parallel"]["coverage_is"] == "estimate"
    assert true <= told["parallel"]["coverage"] < 1  # what the URLs that were left would lead to is not known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--processes", "0"], "parallel.processes"),
        (["--processes", "5000"], "parallel.processes"),
        (["--processes", "9", "--set", "memory=64MB"], "each needs 16 MB"),
        (["--processes", "3", "--pages", "2"], "which need one each"),
        (
            ["--processes", "2", "--set", "budget.reputation=supporters", "--set", "parallel.partition=site"],
            "budget.reputation",
        ),
        (["--set", "parallel.partition=country"], "parallel.partition 'country' is unknown"),
        (
            ["--allow-network", "127.0.0.0/8", "--set", "parallel.partition=no.such.module:owner"],
            "cannot be imported",
        ),
        (["--allow-network", "127.0.0.0/8", "--set", "parallel.partition=json:decoder"], "is not a function"),
        (["--processes", "2", "--set", "parallel.mode=none"], "parallel.mode"),
        (["--processes", "2", "--set", "parallel.partition=hierarchical"], "parallel.weights"),
        (["--processes", "2", "--set", "parallel.replicate=/no/such/file"], "cannot read /no/such/file"),
        (["--processes", "2", "--set", "parallel.replicate=/dev:10"], "/dev"),
        (
            ["--processes", "2", "--set", "parallel.mode=firewall", "--set", "parallel.replicate=x"],
            "nothing is sent in firewall mode",
        ),
        (["--set", "order=backlinks", "--frontier", "sydney"], "order = backlinks"),
    ],
)
def test_what_cannot_be_divided_is_refused_in_one_line(
    words: list[str], message: str, tmp_path: Path, program: Program
) -> None:
    told = program("crawl", "http://127.0.0.1/", "--job", str(tmp_path / "job"), *words, code=2)
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "job").exists()


def test_the_number_of_processes_of_a_job_stays(served: RunningWeb, tmp_path: Path, program: Program) -> None:
    job = tmp_path / "job"
    program(
        "crawl", *served.web.seeds(1), "--job", str(job), "--processes", "2", "--pages", "4", *options(served)
    )
    assert "cannot be changed" in program("resume", str(job), "--set", "parallel.processes=3", code=2)


def test_a_limit_of_pages_that_is_lowered_is_kept_exactly(
    served: RunningWeb, tmp_path: Path, program: Program
) -> None:
    # No page comes before the pause after the robots.txt is over.
    job, given = tmp_path / "job", options(served, "limits.time=1ms", "politeness.host_delay=1m")
    program(
        "crawl", *served.web.seeds(3), "--job", str(job), "--processes", "2", "--pages", "400", *given, code=1
    )
    changed = ["--set", "limits.time=0s", "--set", "politeness.host_delay=10ms"]
    told = json.loads(program("resume", str(job), "--pages", "31", *changed, "--json"))
    assert (told["pages"], told["stopped_by"]) == (31, "pages")
    assert sum(pages_of(job).values()) == 31


def test_a_job_that_lacks_something_is_refused_by_every_command(
    served: RunningWeb, tmp_path: Path, program: Program
) -> None:
    job = tmp_path / "job"
    program(
        "crawl", *served.web.seeds(1), "--job", str(job), "--processes", "2", "--pages", "4", *options(served)
    )
    part, division = job / "part-0001", (job / "job.toml").read_bytes()
    for command in (["verify"], ["resume"], ["status"], ["query", "SELECT 1"], ["stop"]):
        if command[0] != "query":  # reading a part does no harm
            assert "is one part of a crawl" in program(command[0], str(part), *command[1:], code=2)
        part.rename(tmp_path / "away")
        assert "has 1 parts of 2" in program(command[0], str(job), *command[1:], code=2)
        (tmp_path / "away").rename(part)
        for damaged, message in ((b"", "is damaged"), (b"processes = 3", "has 2 parts of 3")):
            (job / "job.toml").write_bytes(damaged)
            assert message in program(command[0], str(job), *command[1:], code=2)
        (job / "job.toml").unlink()
        assert "job.toml is missing" in program(command[0], str(job), *command[1:], code=2)
        (job / "job.toml").write_bytes(division)
    program("verify", str(job))
