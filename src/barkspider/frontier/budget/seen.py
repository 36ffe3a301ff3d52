"""Which URLs are new: DRUM `URLseen` of IRLbot (section 4.3).

    links ─► feed ─► DRUM, check+update ─► unique ─► star

A job that was stopped can be divided among another number of processes, because each URL in the cache Z tells
its *slot*, which is its domain's hash modulo 4096 (its host's or its own under other partitions); processes own slots. The
slot is no value beside the key, it takes the place of the key's lowest 12 bits. So Z stays at 8 bytes a URL. The DRUM has no
values (7.0 million rows of 70 bytes per CPU-second against 4.1 with a value of two bytes) and may have a front set.
Buckets go by the highest bits, so they stay even however large a domain is.

The price: within a slot 52 bits of hash are left, so a domain of n URLs loses n²/2^53 of them to collisions:
1 of 100 million, 111 of a billion. Over all domains it is as before, since URLs of different slots never
collide: the 41.5 billion of IRLbot, spread evenly, would lose 47 either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Prepared
from barkspider.storage.drum.repository import CHECK_UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env
from barkspider.url.partition import slotted


class Seen:
    """Lets each URL pass once. Filled with seeds and links, emptied into `star`; one thread owns it.

    What was fed comes out after a merge: when a bucket is full, or when `merge` is called. It is a
    `Structure` of the store, and its state is that of its DRUM.

    >>> import tempfile
    >>> from barkspider.core.records import UrlRow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     seen = Seen(Env(), Path(folder))
    ...     seen.feed(UrlBatch.from_rows([UrlRow(1 << 20, 2, 3, 0, 0, 0, 0, b"http://a.example/")] * 2))
    ...     seen.merge()
    ...     [len(batch) for batch in seen.unique()], len(seen), seen.close()
    ([1], 1, None)
    """

    name = "seen"

    def __init__(
        self,
        env: Env,
        folder: Path,
        *,
        sizing: Sizing | Allowance | None = None,
        front: int = 0,
        slot_of: str = "pld_key",
        background: bool = True,
        state: dict[str, Any] | None = None,
    ) -> None:
        """`sizing` and `front`, the bytes of the front set, are those of the DRUM; `slot_of` is the column that tells the
        slot of a URL; `state` is the store's."""
        self._slot_of = slot_of
        self.drum = Drum(
            env,
            folder,
            self.name,
            aux=True,
            output="unique",
            sizing=sizing,
            front=front,
            background=background,
            state=state,
        )

    def __len__(self) -> int:
        """URLs seen, without those that wait for a merge."""
        return len(self.drum)

    @property
    def pending(self) -> int:
        """URLs, new or not, that wait for a merge."""
        return self.drum.pending

    def feed(self, batch: UrlBatch) -> None:
        """Ask for a batch of URLs, and remember them."""
        self.drum.feed(CHECK_UPDATE, slotted(batch.key, getattr(batch, self._slot_of)), aux=batch.packed)

    def merge(self, wait: bool = True) -> None:
        """Decide on all URLs fed so far; with `wait` return when that is done."""
        self.drum.merge(wait)

    def unique(self) -> Iterator[UrlBatch]:
        """Take the new URLs that are there; a commit counts those as taken that came out."""
        for found in self.drum.results():
            assert found.aux is not None
            yield UrlBatch.checked(found.aux)

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self.drum.prepare()

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self.drum.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self.drum.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        self.drum.close()
