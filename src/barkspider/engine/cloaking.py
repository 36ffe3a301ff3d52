"""Whether sites show others something else than us (Viúva Negra, section 2.2.3): some pages fetched under two names.

    a sample of the pages ─► as we are called ─► under the second name ─► as we are called, once more ─► a row each

A page that is another each time is not cloaked, so what counts is whether the second name gets what the first did not get twice. robots.txt
has to allow both names; each host is left alone between two requests. Both names stand before the same contact: nobody is told that we
are a browser.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from barkspider.core.errors import UsageError
from barkspider.core.settings import Settings
from barkspider.engine.explain import explain
from barkspider.engine.stored import StoredJob
from barkspider.url import split

SAME, CLOAKED, CHANGES, NOT_ASKED = "same", "cloaked", "changes", "not_asked"
_AT_ONCE = 16  # hosts that are asked at the same time
# One page of a host after the other, from all of the crawl; by their keys, so the same each time.
_CHOSEN = """
    SELECT url FROM (SELECT url, row_number() OVER (PARTITION BY url_host_name ORDER BY hash(key)) AS number, key
        FROM (SELECT DISTINCT url, url_host_name, key FROM stored_pages WHERE fetch_status BETWEEN 200 AND 299))
    ORDER BY number, hash(key) LIMIT {most}
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page showed: under our name, under the second, and the verdict. A status of 0 is no answer."""

    url: str
    verdict: str
    status: int = 0
    second_status: int = 0
    bytes: int = 0
    second_bytes: int = 0


async def compare_names(job: StoredJob, settings: Settings, most: int) -> list[Shown]:
    """Ask for so many pages under both names; `UsageError` where the settings have no second one."""
    if not settings.agent.second:
        raise UsageError(
            "nobody is asked under two names unless you say which: --set agent.second=NAME, a name of yours"
        )
    other = replace(settings, agent=replace(settings.agent, name=settings.agent.second))
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(url: str) -> Shown:
        async with locks[split(url).host], room:
            return await _compare(url, (settings, other, settings))

    urls = job.query(_CHOSEN.format(most=most))["url"].to_pylist()
    return await asyncio.gather(*map(one, urls))


async def _compare(url: str, ways: Sequence[Settings]) -> Shown:
    answers = list[tuple[int, str, int]]()
    for settings in ways:
        found = await explain(url, settings)
        await asyncio.sleep(settings.politeness.host_delay)
        if found.response is None:
            return Shown(url, NOT_ASKED)
        body = found.response.body
        told = found.redirect or sha256(body).hexdigest()
        answers.append((found.response.exchange.status, told, len(body)))
    first, second, again = answers
    same = first[:2] == second[:2] or second[:2] == again[:2]
    verdict = SAME if same else CLOAKED if first[:2] == again[:2] else CHANGES
    return Shown(url, verdict, first[0], second[0], first[2], second[2])
