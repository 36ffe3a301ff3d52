"""A spider whose requests have everything that a request may have; prints what came back as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from scrapy import Field, FormRequest, Item, Request, Spider
from scrapy.crawler import CrawlerProcess


class Half(Item):  # type: ignore[misc]
    """An item that is handed from callback to callback."""

    name = Field()


META: dict[str, Any] = {
    "texts": ["ä", "\ud800", b"\x00\xff", None, True, 1.5, -(1 << 70)],
    "tuple": (1, ("a", [2])),
    "sets": ({1, 2}, frozenset("ab")),
    "times": [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2026, 1, 2)],
    "keys": {1: "a", ("b", 2): {"$": "c"}, None: []},
    "item": Half(name="half"),
}
found: dict[str, Any] = {}
counts = Counter[str]()


class Odd(Spider):  # type: ignore[misc]
    name = "odd"
    handle_httpstatus_list = (404, 405)  # the web has no such pages

    async def start(self) -> Any:
        yield Request(order["page"], self.first)

    def first(self, response: Any) -> Iterator[Any]:
        page = order["page"]
        yield Request(
            f"{page}?kept", self.kept, meta=META, cb_kwargs={"given": META}, priority=7, flags=["f"]
        )
        for _ in range(3):
            yield Request(f"{page}?filtered", self.count, cb_kwargs={"as_what": "filtered"})
            yield Request(f"{page}?not", self.count, cb_kwargs={"as_what": "not filtered"}, dont_filter=True)
        yield FormRequest(f"{page}?posted", formdata={"a": "1"}, callback=self.posted)
        nobody = {"proxy": None, "dont_retry": True}
        yield Request("http://127.0.0.1:9/", self.count, errback=self.failed, meta=nobody)
        yield Request(f"{page}?memory", lambda response: self.count(response, "in memory"))
        yield Request("data:,hello", self.data)

    def kept(self, response: Any, given: dict[str, Any]) -> None:
        meta = {name: value for name, value in response.meta.items() if name in META}
        equal = meta == META == given and type(meta["item"]) is Half and response.request.flags == ["f"]
        found["kept"] = f"method {response.request.method}, {equal}, priority {response.request.priority}"

    def count(self, response: Any, as_what: str = "") -> None:
        counts[as_what] += 1

    def posted(self, response: Any) -> None:
        found["posted"] = f"{response.request.method} {response.request.body.decode()}"

    def failed(self, failure: Any) -> None:
        found["errback"] = failure.request.url

    def data(self, response: Any) -> None:
        found["data"] = response.text


if __name__ == "__main__":
    order = json.load(sys.stdin)
    os.environ["http_proxy"] = order["proxy"]
    process = CrawlerProcess(
        order["settings"]
        | {"SCHEDULER": "barkspider.scrapy.Scheduler", "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False}
    )
    crawler = process.create_crawler(Odd)
    process.crawl(crawler)
    process.start()
    found["unserializable"] = crawler.stats.get_value("scheduler/unserializable")
    print(json.dumps(found | counts))
