"""Duplicate hosts, against a comparison of every site with every other."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from barkspider.archive import open_table
from barkspider.archive.schemas import SCHEMAS
from barkspider.cli.app import app
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.core.load import load_settings
from barkspider.core.settings import Settings
from barkspider.engine import Job, open_job
from barkspider.engine.duphosts import SAME_HOME, SAME_HOME_AND_1_DOC, SHARES, duplicate_hosts, www_rule
from barkspider.engine.revisiting import revisit
from barkspider.storage.env import Env
from tests.website import QUICK, Site, serving_site

Web = dict[str, dict[str, str]]  # contents by host and path


def make(folder: Path, web: Web) -> Path:
    job = Job.create(folder, Settings(seed=7), ["http://a.example/"], Env())
    rows = [
        {
            "url": f"http://{host}{path}",
            "url_host_name": host.partition(":")[0],
            "url_host_registered_domain": ".".join(host.split(".")[-2:]),
            "url_path": path,
            "fetch_status": 200,
            "fetch_time": datetime(2026, 1, 1),
            "content_decoded_digest": content,
            "key": number,
        }
        for number, (host, path, content) in enumerate(
            (host, path, content) for host, pages in web.items() for path, content in pages.items()
        )
    ]
    rows.append(
        {"url_host_name": "gone.example", "url_path": "/", "fetch_status": 404, "content_digest": "x"}
    )
    table = open_table(job.env, job.archive, "pages", 1 << 20)
    table.write(pa.Table.from_pylist(rows, schema=SCHEMAS["pages"]))
    table.compact()
    job.close()
    return folder


def slowly(web: Web) -> dict[str, dict[str, set[str]]]:
    """For each heuristic: to each replica all that may be its original, in section 2.3's words."""

    def rank(host: str) -> tuple[int, int, str]:
        return -len(set(web[host].values())), len(host), host

    found: dict[str, dict[str, set[str]]] = {name: {} for name in (SAME_HOME, SAME_HOME_AND_1_DOC, *SHARES)}
    for replica, original in permutations(web, 2):
        if rank(original) > rank(replica):
            continue
        one, other = set(web[replica].values()), set(web[original].values())
        equal, home = len(one & other), web[replica].get("/")
        same_home = home is not None and home == web[original].get("/")
        holds = {SAME_HOME: same_home, SAME_HOME_AND_1_DOC: same_home and equal > 1}
        holds |= {
            name: equal > 1 and equal / len(one) >= share and equal / len(other) >= share
            for name, share in SHARES.items()
        }
        for name in holds:
            if holds[name]:
                found[name].setdefault(replica, set()).add(original)
    return found


def made_up(seed: int) -> Web:
    """Sites of several sizes; some are copies of others, whole, in part, or but for the home page."""
    random_ = random.Random(seed)
    web: Web = {}
    for number in range(12):
        pages = {f"/{page}": f"{number}-{page}" for page in range(random_.randint(1, 9))}
        web[f"s{number}.example"] = {"/": f"home-{number}", **pages, "/about": "the same everywhere"}
    for number in range(8):
        source = web[f"s{random_.randrange(12)}.example"]
        kept = {
            path: content
            for path, content in source.items()
            if random_.random() < random_.choice((0.7, 0.9, 1))
        }
        if random_.random() < 0.3:
            kept["/"] = "a home of its own"
        if kept:
            web[f"mirror{number}.example"] = kept
    web["only-home.example"] = {"/": "home-3"}
    return web


@pytest.mark.parametrize("seed", range(6))
def test_every_heuristic_finds_what_a_comparison_of_all_pairs_finds(tmp_path: Path, seed: int) -> None:
    web = made_up(seed)
    expected, found = slowly(web), duplicate_hosts(open_job(make(tmp_path / "job", web)))
    assert found.sites == len(web)
    for name, pairs in found.pairs.items():
        assert {pair.replica for pair in pairs} == set(expected[name]), name
        for pair in pairs:
            assert pair.original in expected[name][pair.replica], name


def test_a_page_that_all_have_makes_no_more_pairs_than_there_are_sites(tmp_path: Path) -> None:
    web: Web = {f"s{n}.example": {"/": "parked", "/terms": "terms"} for n in range(300)}
    found = duplicate_hosts(open_job(make(tmp_path / "job", web)))
    for name in found.pairs:
        assert len(found.pairs[name]) == 299
    assert found.rows()[0] == {"heuristic": SAME_HOME, "replicas": 299, "share": 299 / 300, "coverage": 1.0}


def test_the_command_prints_the_table_and_writes_a_list(tmp_path: Path) -> None:
    pages = {"/": "home", "/a": "a", "/b": "b"}
    web: Web = {
        "original.example": {**pages, "/c": "c"},
        "copy.example": pages,
        "other.example": {"/": "mine"},
    }
    job, listed = make(tmp_path / "job", web), tmp_path / "list.txt"
    run = CliRunner().invoke(app, ["duphosts", str(job), "-o", str(listed), "--by", "Dups60"])
    assert run.exit_code == 0, run.output
    assert "among 3 sites" in run.output
    assert listed.read_text() == "copy.example original.example\n"
    run = CliRunner().invoke(app, ["duphosts", str(job), "--json"])
    told = json.loads(run.output)
    assert [len(told["pairs"][name]) for name in told["pairs"]] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("wrong", [["--by", "Dups61"], ["-o", "/none/at/all"], ["--memory", "much"]])
def test_wrong_input_is_refused(tmp_path: Path, wrong: list[str]) -> None:
    job = make(tmp_path / "job", {"a.example": {"/": "a"}})
    run = CliRunner().invoke(app, ["duphosts", str(job), *wrong])
    assert isinstance(run.exception, BarkspiderError)


def site(address: str, pages: dict[str, str], port: int = 0) -> AbstractContextManager[Site]:
    return serving_site(dict(pages), address, port)


def test_pairs_are_visited_once_more_politely_and_as_robots_txt_allows(tmp_path: Path) -> None:
    pages = {path: path for path in ("/", "/a", "/b", "/c")}
    rules = {"/robots.txt": "User-agent: *\nDisallow: /c"}
    now = pages | {"/": "new", "/a": "new", "/b": "new"}
    with (
        site("127.0.0.2", pages | rules) as same,
        site("127.0.0.3", pages, port=int(same.origin.rpartition(":")[2])) as copy,
        site("127.0.0.4", now, port=int(same.origin.rpartition(":")[2])) as changed,
    ):
        hosts = [each.origin.removeprefix("http://") for each in (same, copy, changed)]
        web: Web = dict.fromkeys(hosts, pages) | {"gone.example": pages}
        settings = load_settings(
            options=["dns.servers=127.0.0.1:9", "dns.timeout=50ms", "dns.tries=1", *QUICK]
        )
        job = open_job(make(tmp_path / "job", web))
        found = duplicate_hosts(job)
        told = asyncio.run(revisit(found, job, settings))
        assert "/c" not in same.asked
        assert set(copy.asked) <= {"/robots.txt", *pages}
        assert len(copy.asked) <= 2 * 3
    for name, each in told.items():
        assert (each.pairs, each.invalid, each.visited, each.same) == (3, 1, 2, 1), name
        assert each.precision == 0.5


def test_nobody_public_is_visited_without_a_contact(tmp_path: Path) -> None:
    job = open_job(make(tmp_path / "job", {host: {"/": "home"} for host in ("93.184.216.34", "1.1.1.1")}))
    with pytest.raises(UsageError, match=r"agent\.contact"):
        asyncio.run(revisit(duplicate_hosts(job), job, load_settings()))


def test_what_the_rule_about_www_would_do_is_counted_by_level(tmp_path: Path) -> None:
    web: Web = {}
    for number in range(10):  # four names are the same with www., one leads there, two have no such name
        for name in (f"s{number}.org", f"n.t{number}.org"):
            web[name] = {"/": name}
            web[f"www.{name}"] = {"/": name if number < 4 else f"www {name}"}
    web |= {"only.org": {"/": "x"}, "a.b.c.org": {"/": "x"}, "www.a.b.c.org": {"/": "x"}}
    path = make(tmp_path / "job", web)
    job = Job.open(path, Env())
    when = datetime(2026, 1, 2)
    leads = {
        "url": "http://s9.org/",
        "url_host_name": "s9.org",
        "url_host_registered_domain": "s9.org",
        "url_path": "/",
        "fetch_status": 301,
        "fetch_redirect": "http://www.s9.org/",
        "fetch_time": when,
        "key": 999,
    }
    fails = [
        {
            "time": when,
            "what": "page",
            "outcome": "dns_no_name",
            "url": f"http://{name}/",
            "url_host_name": name,
        }
        for name in ("www.s7.org", "www.s8.org", "www.n.t8.org")
    ]
    for name, rows in (("pages", [leads]), ("errors", fails)):
        table = open_table(job.env, job.archive, name, 1 << 20)
        table.write(pa.Table.from_pylist(rows, schema=SCHEMAS[name]))
        table.compact()
    job.close()
    assert [(each.level, each.names, each.duphosts, each.lost) for each in www_rule(open_job(path))] == [
        (2, 10, 5, 2),
        (3, 10, 4, 1),
    ]
    run = CliRunner().invoke(app, ["duphosts", str(path), "--www"])
    assert run.exit_code == 0, run.output
    assert [line.split()[2:] for line in run.output.splitlines() if "%" in line]


def test_the_command_shows_all_columns_of_table_i_when_it_has_visited(tmp_path: Path) -> None:
    pages = {"/": "home", "/a": "a"}
    with site("127.0.0.2", pages) as one, site("127.0.0.3", pages, int(one.origin.rpartition(":")[2])) as two:
        job = make(tmp_path / "job", {each.origin.removeprefix("http://"): pages for each in (one, two)})
        options = [argument for option in (QUICK[0], *QUICK[3:]) for argument in ("--set", option)]
        run = CliRunner().invoke(app, ["duphosts", str(job), "--visit", "5", "--json", *options])
    assert run.exit_code == 0, run.output
    first = json.loads(run.output)["table"][0]
    assert first == {
        "heuristic": "SameHome",
        "replicas": 1,
        "share": 0.5,
        "coverage": 1.0,
        "invalid": 0.0,
        "visited": 1,
        "precision": 1.0,
    }


def test_pages_are_summed_up_by_server_and_network(tmp_path: Path) -> None:
    job = Job.create(tmp_path / "job", Settings(seed=7), ["http://a.example/"], Env())
    served = [
        ("a", "192.0.2.1"),
        ("b", "192.0.2.1"),
        ("b", "192.0.2.9"),
        ("c", "2001:db8:7:1::5"),
        ("d", None),
    ]
    rows = [
        {
            "url_host_name": f"www.{name}.example",
            "url_host_registered_domain": f"{name}.example",
            "fetch_status": 200,
            "content_length": 10,
            "fetch_address": address,
        }
        for name, address in served
    ]
    table = open_table(job.env, job.archive, "pages", 1 << 20)
    table.write(pa.Table.from_pylist(rows, schema=SCHEMAS["pages"]))
    table.compact()
    job.close()
    stored = open_job(tmp_path / "job")
    servers = stored.query("SELECT server, pages, domains FROM servers ORDER BY server").to_pylist()
    assert [tuple(row.values()) for row in servers] == [
        ("192.0.2.1", 2, 2),
        ("192.0.2.9", 1, 1),
        ("2001:db8:7:1::5", 1, 1),
    ]
    networks = stored.query(
        "SELECT network, servers, pages, bytes, domains FROM networks ORDER BY network"
    ).to_pylist()
    assert [tuple(row.values()) for row in networks] == [
        ("192.0.2.0/24", 2, 3, 30, 2),
        ("2001:db8:7::/48", 1, 1, 10, 1),
    ]
