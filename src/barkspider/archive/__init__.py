"""What the crawl keeps: WARC files of every exchange, an index of them, and tables to ask.

    exchange ─► WarcWriter ─► pages-*.warc.gz ─► *.cdxj ─► index.cdxj
        └────── ArchiveWriter ─► tables/pages, links, robots, errors ─► domains, duplicates

The engine hands each finished exchange to the `ArchiveWriter`, which keeps pages in one series of WARC files
and robots.txt in another, and then tells it what reading the page has shown. WARC bytes reach the system
within a second; rows of tables become whole files within `archive.table_interval`. Whoever reads (`WarcFile`,
`captures`, `open_table`, `ask`) needs no lock and may do so while a crawl is writing.
"""

from barkspider.archive.reader import Record, WarcFile, valid_length, warc_files
from barkspider.archive.surt import surt
from barkspider.archive.tables import TableFolder, open_table
from barkspider.archive.warc import Stored, WarcWriter
from barkspider.archive.writer import ArchiveWriter, Facts, Fetched

__all__ = [
    "ArchiveWriter",
    "Facts",
    "Fetched",
    "Record",
    "Stored",
    "TableFolder",
    "WarcFile",
    "WarcWriter",
    "open_table",
    "surt",
    "valid_length",
    "warc_files",
]
