"""What the crawl keeps: WARC files of every exchange.

The engine hands each finished exchange to a `WarcWriter`, pages to one and robots.txt to another, and
writes the `Place` it gets back into the journal: what lies behind the last journalled end is cut off after
a crash.
"""

from barkspider.archive.warc import Place, WarcWriter

__all__ = ["Place", "WarcWriter"]
