"""Feed PostgreSQL with the pages of a job, each exactly once.

    pip install 'psycopg[binary]'
    python feed_postgresql.py jobs/example "dbname=web"

The pages and the cursor behind them are written by one transaction: so whatever is killed, this, the crawl or the
database, the next run goes on where the last transaction ended. Run it as often as you like, also while the job is crawled.
"""

from __future__ import annotations

import sys
from itertools import islice

import psycopg

import barkspider

TABLES = """
CREATE TABLE IF NOT EXISTS pages (
    url text NOT NULL, fetched timestamptz NOT NULL, status int NOT NULL, title text NOT NULL, body text NOT NULL
);
CREATE TABLE IF NOT EXISTS cursors (job text PRIMARY KEY, cursor text NOT NULL);
"""
PAGE = "INSERT INTO pages VALUES (%s, %s, %s, %s, %s)"
CURSOR = "INSERT INTO cursors VALUES (%s, %s) ON CONFLICT (job) DO UPDATE SET cursor = excluded.cursor"
PORTION = 100  # pages of a transaction


def feed(job: str, database: str) -> int:
    """Write the pages that are new since the last run; how many these were."""
    count = 0
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TABLES)
        found = connection.execute("SELECT cursor FROM cursors WHERE job = %s", [job]).fetchone()
        changes = barkspider.open_job(job).changes(since=found[0] if found else "")
        pages = (page for page in changes if page.outcome == "ok")
        while portion := list(islice(pages, PORTION)):
            with connection.transaction():
                connection.cursor().executemany(PAGE, [row(page) for page in portion])
                connection.execute(CURSOR, [job, portion[-1].cursor])
            count += len(portion)
    return count


def row(page: barkspider.CrawledPage) -> list[object]:
    """A page as PostgreSQL takes it, whose texts have no NUL."""
    texts = [text.replace("\0", "\ufffd") for text in (page.title, page.text)]
    return [page.url, page.time, page.status, *texts]


if __name__ == "__main__":
    print(feed(*sys.argv[1:3]), "pages")
