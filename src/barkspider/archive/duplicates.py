"""Pages of equal content, all of them: digests go through a DRUM, however many there are.

The recent digests of a writer find most repeats at once, within bounded memory; this finds the rest, in batches,
when the crawl ends or at a checkpoint. Its answer is the table `duplicates`: the key of a page, and the key of
the first page that had the same content: without its encodings, since the same page is sent in other chunks, or packed
in another way, from one time to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive.inherited import Inherited
from barkspider.archive.records import first_bits
from barkspider.archive.schemas import DIGESTS
from barkspider.archive.tables import open_table
from barkspider.core.events import Prepared
from barkspider.storage.columns import Keys
from barkspider.storage.drum.repository import CHECK_UPDATE, UPDATE, Drum
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store, restoring

_DISK = 1_000_000_000
_DOMAIN = "url_host_registered_domain"


class _Progress:
    """How many rows of `pages` were looked at, committed together with the DRUM."""

    name = "progress"

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def prepare(self) -> Prepared:
        state: dict[str, Any] = {"rows": self.rows, "files": {}}
        return lambda: state

    def committed(self) -> None:
        return


def find_duplicates(
    env: Env,
    folder: Path,
    memory: int = 16_000_000,
    earlier: Inherited | None = None,
) -> int:
    """Look at the pages that were added to the tables since the last call; how many duplicates there were. The first call
    takes note of the pages in `earlier` archives, if there are any, that would be in this one now.

    64 bits of a digest stand for it: of forty crawls of a billion pages, one has a pair that agrees by chance.
    A crash before the commit writes some rows of the table once more, which the view `pages` takes as one.
    """
    store = Store.open(env, folder / DIGESTS)
    with restoring(folder / DIGESTS):
        progress = _Progress(int((store.state("progress") or {"rows": 0})["rows"]))
        drum = Drum(
            env,
            folder / DIGESTS,
            "seen",
            value=np.uint64,
            aux=True,
            update=lambda old, _: old,  # the first holder stands
            sizing=Sizing.choose(memory, _DISK, value=8, aux=8),
            state=store.state("seen"),
        )
    try:
        store.add(progress)
        store.add(drum)
        for archive in earlier.archives if earlier and not progress.rows + len(drum) else ():
            for digests, keys in _pages(env, archive, 0, memory // 2, earlier):
                has = np.flatnonzero(digests)
                drum.feed(UPDATE, digests[has], keys[has])
        for digests, keys in _pages(env, folder, progress.rows, memory // 2):
            progress.rows += len(digests)
            has = np.flatnonzero(digests)
            drum.feed(CHECK_UPDATE, digests[has], keys[has], aux=[key.tobytes() for key in keys[has]])
        drum.merge()
        table = open_table(env, folder, "duplicates", memory // 2)
        count = 0
        for result in drum.results():
            assert result.aux is not None
            rows = np.flatnonzero(~result.unique)
            found = np.frombuffer(b"".join(result.aux.tolist()), np.uint64)[rows]
            holders = np.asarray(result.values, np.uint64)[rows]
            other = found != holders  # a page that was fetched again is not its own duplicate
            if other.any():
                count += int(other.sum())
                table.write(pa.table([found[other], holders[other]], schema=table.schema))
        table.compact()
        store.commit()
    finally:
        drum.close()
    return count


def _pages(
    env: Env, folder: Path, seen: int, memory: int, earlier: Inherited | None = None
) -> Iterator[tuple[Keys, Keys]]:
    """64 bits of the digest, 0 where there is none, and the key of each page behind the first `seen` rows; of an archive
    of before, those that belong here now."""
    pages = open_table(env, folder, "pages", memory)
    columns = ["key", "content_digest", "fetch_status", "content_decoded_digest"]
    for batch in pages.batches([*columns, *([_DOMAIN] if earlier else [])], seen):
        if earlier is not None:
            batch = batch.filter(pa.array(earlier.owns(batch[_DOMAIN].to_pylist())))
        # Rows of older versions, and pages whose encodings could not be undone, have the digest as sent alone.
        content = pc.coalesce(batch["content_decoded_digest"], batch["content_digest"])
        rows = zip(content.to_pylist(), batch["fetch_status"].to_pylist(), strict=True)
        digests = [_short(digest) if 200 <= status < 300 else 0 for digest, status in rows]
        yield np.array(digests, np.uint64), batch["key"].to_numpy()


def _short(digest: str | None) -> int:
    return first_bits(digest) if digest else 0
