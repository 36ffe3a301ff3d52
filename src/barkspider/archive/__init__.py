"""What the crawl keeps: WARC files of every exchange, an index of them, and tables to ask.

    exchange ─► WarcWriter ─► pages-*.warc.gz ─► *.cdxj ─► index.cdxj
        └────── ArchiveWriter ─► tables/pages, links, robots, errors ─► domains, duplicates

The engine hands each finished exchange to the `ArchiveWriter`, which keeps pages in one series of WARC files and
robots.txt in another, and then tells it what reading the page has shown. That becomes a note, part of a batch for the
engine's journal, and a row when the batch comes back; `recover` brings an archive back to what a journal knows. WARC
bytes reach the system within a second; rows of tables become whole files within `archive.table_interval`. `committed`
names the files that a checkpoint stands on. Whoever reads (`WarcFile`, `captures`, `open_table`, `ask`) needs no lock
and may do so while a crawl is writing.

Writing: `writer` is the whole. `warc` writes files of `records`, packed one by one (`packing`), and knows which
payloads the job has (`payloads`); `cdxj` makes their indexes, whose keys are `surt`. `notes` are rows before they
count, `rows` are on their way to `tables`, whose columns `schemas` declares. At the end `duplicates` finds equal pages,
and `domains` sums up pages and links, both in bounded memory (`grouping`). `recovery` is the way back after a crash,
`inherited` what there was before a crawl was divided anew.
Reading: `reader` reads WARC files, `captures` finds a URL
in them, `views` answers SQL, `wacz` packs a crawl into one file, `verify` checks it all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barkspider.archive.notes import Note, as_batch, batches_of, decode_batch, encode_batch, error_note
    from barkspider.archive.reader import Record, WarcFile, valid_length, warc_files
    from barkspider.archive.recovery import Committed, Recovered, count_kept, recover
    from barkspider.archive.tables import TableFolder, open_table
    from barkspider.archive.warc import Original, Stored, WarcWriter
    from barkspider.archive.writer import ArchiveWriter, Fetched, PageFacts

__all__ = [
    "ArchiveWriter",
    "Committed",
    "Fetched",
    "Note",
    "Original",
    "PageFacts",
    "Record",
    "Recovered",
    "Stored",
    "TableFolder",
    "WarcFile",
    "WarcWriter",
    "as_batch",
    "batches_of",
    "count_kept",
    "decode_batch",
    "encode_batch",
    "error_note",
    "open_table",
    "recover",
    "valid_length",
    "warc_files",
]

_MODULES = {
    "ArchiveWriter": "writer",
    "Committed": "recovery",
    "PageFacts": "writer",
    "Fetched": "writer",
    "Note": "notes",
    "Original": "warc",
    "Record": "reader",
    "Recovered": "recovery",
    "Stored": "warc",
    "TableFolder": "tables",
    "WarcFile": "reader",
    "WarcWriter": "warc",
    "as_batch": "notes",
    "batches_of": "notes",
    "count_kept": "recovery",
    "decode_batch": "notes",
    "encode_batch": "notes",
    "error_note": "notes",
    "open_table": "tables",
    "recover": "recovery",
    "valid_length": "reader",
    "warc_files": "reader",
}


def __getattr__(name: str) -> Any:
    # Writing takes compiled kernels: whoever asks in SQL does not wait for these.
    if name in _MODULES:
        return getattr(import_module(f"barkspider.archive.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
