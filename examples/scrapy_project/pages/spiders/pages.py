"""A spider that knows nothing of where its requests wait."""

from collections.abc import Iterator
from typing import Any

from scrapy.http import Response

import scrapy


class Page(scrapy.Item):
    """A page and the way to it."""

    url = scrapy.Field()
    title = scrapy.Field()
    parent = scrapy.Field()
    depth = scrapy.Field()


class Pages(scrapy.Spider):
    """Follows every link."""

    name = "pages"

    def __init__(self, start: str = "", **others: Any) -> None:
        super().__init__(**others)
        self.start_urls = start.split()

    def parse(self, response: Response, parent: str = "") -> Iterator[Any]:
        """An item, and a request for each link, which is told where it was found."""
        depth = response.meta.get("way", 0)
        yield Page(
            url=response.url, title=response.css("title::text").get(default=""), parent=parent, depth=depth
        )
        for link in response.css("a::attr(href)").getall():
            url = response.urljoin(link).partition("#")[0]
            if url.startswith(("http://", "https://")):
                yield scrapy.Request(
                    url, self.parse, cb_kwargs={"parent": response.url}, meta={"way": depth + 1}
                )
