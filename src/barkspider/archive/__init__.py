"""What the crawl keeps: WARC files of every exchange, an index of them, and tables to ask.

    exchange ─► WarcWriter ─► pages-*.warc.gz ─► *.cdxj ─► index.cdxj
        └────── ArchiveWriter ─► tables/pages, links, robots, errors ─► domains, duplicates

The engine hands each finished exchange to the `ArchiveWriter`, which keeps pages in one series of WARC files
and robots.txt in another, and then tells it what reading the page has shown. That becomes a note for the
engine's journal first, and a row when the note comes back; `recover` brings an archive back to what a journal
knows. WARC bytes reach the system within a second; rows of tables become whole files within
`archive.table_interval`. Whoever reads (`WarcFile`, `captures`, `open_table`, `ask`) needs no lock and may do so
while a crawl is writing.
"""

from barkspider.archive.reader import Record, WarcFile, valid_length, warc_files
from barkspider.archive.recovery import Recovered, count_kept, recover
from barkspider.archive.surt import surt
from barkspider.archive.tables import TableFolder, open_table
from barkspider.archive.warc import Original, Stored, WarcWriter
from barkspider.archive.writer import ArchiveWriter, Facts, Fetched

__all__ = [
    "ArchiveWriter",
    "Facts",
    "Fetched",
    "Original",
    "Record",
    "Recovered",
    "Stored",
    "TableFolder",
    "WarcFile",
    "WarcWriter",
    "count_kept",
    "open_table",
    "recover",
    "surt",
    "valid_length",
    "warc_files",
]
