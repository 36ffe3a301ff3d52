"""The examples that feed a database and a dataset: each page once, whoever is killed."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from barkspider import CrawledPage, UsageError, crawl, load_settings, open_job
from barkspider.engine import resume
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from tests.examples.postgresql import database, programs

EXAMPLES = Path(__file__).parents[2] / "examples"
KILLS = 20
QUICK = {
    "scope.level": "web",
    "politeness.host_delay": "25ms",
    "politeness.server_delay": "0s",
    "checkpoint": "50ms",
    "memory": "64MB",
    "archive.recent_digests": "1000",
}


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=4, pages=150, domains=15, page_bytes=2_000, crawl_delay=0.01)) as web:
        yield web


@pytest.fixture(scope="module")
def job(served: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has ended."""
    folder = tmp_path_factory.mktemp("jobs") / "job"
    crawl(served.web.seeds(1), folder, load_settings(options=options(served, **{"limits.pages": "60"})))
    return folder


def options(served: RunningWeb, **more: str) -> list[str]:
    return [f"{name}={value}" for name, value in (served.settings() | QUICK | more).items()]


def example(name: str) -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def fork(work: Callable[[], object]) -> int:
    """Do it in a process of its own, which has everything imported."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def kill(child: int) -> bool:
    """Whether it was still there."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        assert status == 0
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def all_of(job: Path) -> Counter[str]:
    return Counter(page.url for page in open_job(job).changes() if page.outcome == "ok")


def feed_sqlite(job: Path, file: Path) -> None:
    """As the examples do, in another database."""
    with sqlite3.connect(file, isolation_level=None) as connection:
        found = connection.execute("SELECT cursor FROM cursors").fetchone()
        changes = open_job(job).changes(since=found[0] if found else "")
        while portion := list(islice(changes, 3)):
            connection.execute("BEGIN")
            rows = [(page.url, page.outcome, len(page.text)) for page in portion]
            connection.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM cursors")
            connection.execute("INSERT INTO cursors VALUES (?)", [portion[-1].cursor])
            connection.execute("COMMIT")


def test_a_reader_and_a_crawl_that_are_killed_again_and_again(served: RunningWeb, tmp_path: Path) -> None:
    """Every page once: 20 kills of the reader at random moments, 3 of the crawl beside it."""
    job, file, random = tmp_path / "job", tmp_path / "pages.sqlite", Random(1)
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE pages (url, outcome, length)")
        connection.execute("CREATE TABLE cursors (cursor)")
    settings = load_settings(options=options(served))
    seeds = served.web.seeds(1)
    crawler = fork(lambda: crawl(seeds, job, settings))
    kills = crawls = 0
    start = time.monotonic()
    while kills < KILLS:
        if not (job / "manifest.json").exists():
            assert time.monotonic() < start + 60
            time.sleep(0.01)
            continue
        reader = fork(lambda: feed_sqlite(job, file))
        time.sleep(random.uniform(0.0, 0.03))
        kills += kill(reader)
        if crawls < 3 and kills >= 5 * (crawls + 1):
            crawls += kill(crawler)
            crawler = fork(lambda: resume(job))
    os.waitpid(crawler, 0)
    assert crawls == 3
    feed_sqlite(job, file)
    with sqlite3.connect(file) as connection:
        stored = Counter(url for (url,) in connection.execute("SELECT url FROM pages WHERE outcome = 'ok'"))
        assert connection.execute(
            "SELECT count(*) FROM pages WHERE length = 0 AND outcome = 'ok'"
        ).fetchone() == (0,)
    truth = Counter(open_job(job).query("SELECT url FROM pages WHERE outcome = 'ok'")["url"].to_pylist())
    assert sum(truth.values()) > 100
    assert max(truth.values()) == 1
    assert stored == truth


def test_what_a_page_knows_and_where_its_cursor_leads(job: Path) -> None:
    opened = open_job(job)
    pages = list(opened.changes())
    assert [page.url for page in pages] == opened.table("pages")["url"].to_pylist()
    for place in (0, 7, len(pages) - 1):
        rest = opened.changes(since=pages[place].cursor)
        assert [page.url for page in rest] == [page.url for page in pages[place + 1 :]]
    for page in pages:
        again = opened.page(page.url)
        assert (page.status, page.body, page.text) == (again.status, again.body, again.text)
        assert page.time.replace(microsecond=0) == again.time.replace(microsecond=0)
    links = set(opened.table("links")["target_url"].to_pylist())
    assert links <= {url for page in pages for url in page.links}
    assert any(page.links and page.title for page in pages)
    assert all(page.title == opened.page(page.url).title for page in pages if page.outcome == "ok")


def test_rows_keep_their_places_when_files_are_merged(job: Path) -> None:
    """A cursor from before: another file, in which the number of its write is no beginning any more."""
    pages = [page.url for page in open_job(job).changes()]
    middle = json.loads(list(open_job(job).changes())[9].cursor)
    middle["at"]["."] = [10, 3, 8]  # as one of when the third write had a file of its own
    assert [page.url for page in open_job(job).changes(since=json.dumps(middle))] == pages[10:]


def test_cursors_that_are_none(job: Path) -> None:
    good = next(open_job(job).changes()).cursor
    with pytest.raises(UsageError, match="is no cursor"):
        next(open_job(job).changes(since="yesterday"))
    with pytest.raises(UsageError, match="is no cursor"):
        next(open_job(job).changes(since=good.replace("[1,", "[-1,")))
    with pytest.raises(UsageError, match="another job"):
        next(open_job(job).changes(since=good.replace('"job":"', '"job":"0')))
    with pytest.raises(UsageError, match="fewer pages"):
        next(open_job(job).changes(since=good.replace("[1,", "[1000,")))


@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed (apt-get install postgresql)")
def test_the_example_that_feeds_postgresql(job: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    feed_postgresql = example("feed_postgresql")
    feed_postgresql.PORTION = 7
    row = feed_postgresql.row

    with database() as where:
        for number in (5, 20):  # dies in the midst of a transaction
            calls = iter(range(number))

            def deadly(page: CrawledPage, calls: Iterator[int] = calls) -> list[object]:
                if next(calls, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return list(row(page))

            feed_postgresql.row = deadly
            child = fork(lambda: feed_postgresql.feed(str(job), where))
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
        feed_postgresql.row = row
        feed_postgresql.feed(str(job), where)
        assert feed_postgresql.feed(str(job), where) == 0
        with psycopg.connect(where) as connection:
            stored = Counter(url for (url,) in connection.execute("SELECT url FROM pages").fetchall())
            assert connection.execute("SELECT min(length(body)) > 0 FROM pages").fetchone() == (True,)
    assert stored == all_of(job)


def test_the_example_that_writes_a_dataset(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet_dataset = example("parquet_dataset")
    replace = Path.replace
    for files in (0, 2):  # dies before a file gets its name
        names = iter(range(files))

        def deadly(old: Path, new: Path, names: Iterator[int] = names) -> Path:
            if next(names, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return replace(old, new)

        monkeypatch.setattr(Path, "replace", deadly)
        child = fork(lambda: parquet_dataset.write(str(job), str(tmp_path / "set"), 7))
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    monkeypatch.undo()
    parquet_dataset.write(str(job), str(tmp_path / "set"), 7)
    assert parquet_dataset.write(str(job), str(tmp_path / "set"), 7) == 0
    table = pq.read_table(tmp_path / "set")
    assert Counter(table["url"].to_pylist()) == all_of(job)
    assert min(map(len, table["text"].to_pylist())) > 0
