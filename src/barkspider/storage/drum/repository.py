"""DRUM, the Disk Repository with Update Management of IRLbot (section 4.3).

Rows of (key, value, aux) come in batches, each row to check, to update or both. They are spread over
buckets (`filling`), and when a bucket is large enough all buckets are merged with the sorted cache Z in one
pass (`merge`), by a thread of its own (`merge_thread`), while further rows go to the next generation of buckets:

    feed ─► front set ─► buffers ─► generation files ─► merge with Z ─► result files ─► results

The cost per row stays flat however many keys are stored, because a pass over Z is shared by all rows that
the disk space for buckets holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.columns import Column, Keys, Kind, as_column, kind_name, take
from barkspider.storage.drum.buckets import CHECK, CHECK_UPDATE, UPDATE, Batch, Generation, describe
from barkspider.storage.drum.counters import DrumCounters, stored_bytes
from barkspider.storage.drum.filling import Filling
from barkspider.storage.drum.frontset import FrontSet
from barkspider.storage.drum.known import BLOCK, SEGMENT, Segment, read_all, write_all
from barkspider.storage.drum.merge import Merge, Merged, MergePlan, Predicate
from barkspider.storage.drum.merge_thread import MergeThread
from barkspider.storage.drum.results import ResultFile, Results
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.drum.sweep import Sweep
from barkspider.storage.drum.update import choose
from barkspider.storage.env import Env

__all__ = ["CHECK", "CHECK_UPDATE", "UPDATE", "Drum", "Results"]

_DEFAULT_RAM, _DEFAULT_DISK = 64_000_000, 1_000_000_000
_BLOCK_SHARE, _SMALLEST_BLOCK = 16, 1 << 16  # of the RAM; what a merge reads and writes of Z at a time


class Drum:
    """See the module. One thread owns a `Drum` and calls its methods; merges run beside it.

    The result is as if the rows had been applied to a dict one by one in order of arrival. Invariants:
    segments are in order and do not overlap; at most one generation is being merged and one is being
    filled; a file that the last manifest names, or may name, is never changed below the named length and
    not removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     seen = Drum(Env(), Path(folder), "seen", aux=True, output="unique")
    ...     seen.feed(CHECK_UPDATE, np.array([7, 8, 7], np.uint64), aux=[b"seven", b"eight", b"again"])
    ...     seen.merge()
    ...     [result.aux.tolist() for result in seen.results()], len(seen), seen.close()
    ([[b'seven', b'eight']], 2, None)
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        name: str,
        *,
        value: npt.DTypeLike | type[bytes] | None = None,
        aux: bool = False,
        update: str | Callable[..., Any] = "replace",
        item: int = 8,
        output: str = "all",
        sizing: Sizing | Allowance | None = None,
        front: int = 0,
        background: bool = True,
        segment: int = SEGMENT,
        state: dict[str, Any] | None = None,
    ) -> None:
        """`value` is None, a numpy dtype or `bytes`; `output` is all results or those of unique keys only;
        `front` is the bytes of RAM of the front set; `state` is what the store has of this name, without
        which the DRUM is new and files that an earlier one left are removed."""
        if output not in ("all", "unique"):
            raise ValueError(f"output is {output!r}; it is all or unique")
        kind: Kind = value if value is None or value is bytes else np.dtype(value)
        if front and (kind is not None or output != "unique"):
            raise ValueError("a front set works on keys without values and with unique output only")
        self.name, self.counters = name, DrumCounters()
        self._env, self._folder, self._has_aux = env, folder / name, aux
        self._kind: Kind = kind
        self._sizing = sizing or Sizing.choose(_DEFAULT_RAM, _DEFAULT_DISK)
        block = min(BLOCK, max(self._sizing.ram // _BLOCK_SHARE, _SMALLEST_BLOCK))
        self._plan = MergePlan(
            env, self._folder, kind, aux, choose(update, kind, item), output == "unique", segment, block
        )
        self._front = FrontSet(front) if front else None
        self._number = 1
        self._segments: list[Segment] = []
        self._results: list[ResultFile] = []
        self._filling = Filling(env, self._folder, kind, aux)
        self._merging: Generation | None = None
        self._thread = MergeThread(f"drum-{name}", background)
        self._sweep = Sweep(env, self._folder, background)
        env.make_folder(self._folder)
        if state is not None:
            self._restore(state)
        else:
            for stale in env.list(self._folder):
                env.remove(self._folder / stale)

    def __len__(self) -> int:
        """Keys in Z; rows that wait for a merge are not among them."""
        return sum(segment.rows for segment in self._segments)

    @property
    def pending(self) -> int:
        """Rows that wait for a merge, or for the end of the one that runs."""
        rows = sum(int(generation.rows.sum()) for generation in self._generations())
        return rows + self._filling.buffered

    @property
    def merging(self) -> bool:
        """Whether a merge is running at this moment."""
        return self._thread.running

    @property
    def uncollected(self) -> bool:
        """Whether a merge is running, or has ended and nobody has looked for its results yet."""
        return self._thread.busy

    @property
    def accepted(self) -> int:
        """Rows of the last batch that are in; all of them unless `feed` failed."""
        return self._filling.accepted

    def feed(
        self,
        op: int | npt.NDArray[np.uint8],
        keys: npt.NDArray[np.uint64],
        values: Any = None,
        aux: Any = None,
    ) -> None:
        """Add rows, with one operation for all or one for each.

        Values may be left out when nothing is updated, aux when it is empty. Blocks only while a merge runs
        and the next generation is full as well. The error of a merge that failed is raised at the start,
        before anything was taken. When the disk refuses in the middle, `accepted` rows are in.
        """
        self._filling.accepted = 0
        self._collect(raising=True)
        batch: Batch | None = Batch.of(self._kind, self._has_aux, op, keys, values, aux)
        assert batch is not None
        self.counters.rows += len(keys)
        checks = np.count_nonzero(batch.ops & CHECK) if len(batch.ops) else batch.op & CHECK and len(keys)
        self.counters.checks += int(checks)
        self.counters.value_bytes += 0 if batch.values is None else stored_bytes(batch.values)
        self.counters.aux_bytes += 0 if batch.aux is None else stored_bytes(batch.aux)
        if self._front is not None:
            batch = self._sifted(batch)
        try:
            self._take(batch)
        except BaseException:
            if self._front is not None:
                self._front.clear()  # it remembers keys that are not in
            raise
        self._filling.accepted = len(keys)

    def merge(self, wait: bool = True, expunge: Predicate | None = None) -> None:
        """Merge all rows fed so far; with `wait` return when that is done.

        `expunge(keys, values)` marks what to drop from Z while it is rewritten, after the updates.
        """
        self.wait()
        if self._merging is not None:  # one that failed, or was under way at the commit we come from
            self._start(None)
            self.wait()
        if self._front is not None and expunge is not None:
            self._front.clear()
        self._seal(always=expunge is not None)
        if self._merging is not None:
            self._start(expunge)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait for the merge that runs, if any; raises what it failed with."""
        self._thread.join()
        self._collect(raising=True)

    def results(self) -> Iterator[Results]:
        """Take the results that are there, block by block; a commit counts those as taken that came out."""
        self._collect(raising=False)
        while self._results:
            head = self._results[0]
            found = head.next(self._env, self._folder, self._kind, self._has_aux, self.counters)
            if found is not None:
                yield found
                continue
            # `pop` by identity: a merge may have added others while the caller had its turn.
            self._results.remove(head)
            self._sweep.drop({head.name: head.size})

    def traffic(self) -> dict[str, int]:
        """What it counted, how many keys and bytes Z has, and the bytes that wait in RAM, of how many."""
        size = sum(segment.size for segment in self._segments)
        return asdict(self.counters) | {
            "keys": len(self),
            "known_bytes": size,
            "ram": self._filling.ram,
            "ram_share": self._sizing.buffers,
        }

    def load(self, batches: Iterable[tuple[npt.NDArray[np.uint64], Any]]) -> None:
        """Fill an empty DRUM with (keys, values), strictly ascending over all batches."""
        if self._segments or self.pending:
            raise ValueError(f"{self.name} is not empty: only an empty DRUM can be loaded")
        columns = (
            (keys, None if self._kind is None else as_column(self._kind, values)) for keys, values in batches
        )
        number = self._take_number()
        self._segments = write_all(
            self._env, self._folder, number, columns, self.counters, self._plan.segment
        )

    def items(self) -> Iterator[tuple[Keys, Column | None]]:
        """All of Z in order of keys, in blocks; every checksum is compared on the way."""
        for keys, values in read_all(self._env, self._folder, list(self._segments), self._kind):
            everything = np.arange(len(keys))
            yield keys.copy(), None if values is None else take(values, everything)

    def verify(self) -> int:
        """Read every block of every file and compare its checksum; the keys in Z.

        The first block that is damaged is named in a `StorageError`.
        """
        self._await()
        self._filling.spill(self.counters)
        for generation in self._generations():
            generation.verify()
        for file in self._results:
            unread = ResultFile(file.name, file.size, file.place)
            while unread.next(self._env, self._folder, self._kind, self._has_aux, DrumCounters()) is not None:
                pass
        return sum(len(block[0]) for block in self.items())

    def prepare(self) -> Prepared:
        """See `core.events.Structure`; a merge that runs is described as not yet begun."""
        self._collect(raising=False)
        self._filling.spill(self.counters)
        syncs = [generation.syncing() for generation in self._generations()]
        state: dict[str, Any] = {
            "value": kind_name(self._kind),
            "aux": self._has_aux,
            "number": self._number,
            "segments": [[part.name, part.size, part.rows, part.first, part.last] for part in self._segments],
            "results": [[file.name, file.size, file.place] for file in self._results],
            "generations": [describe(generation) for generation in self._generations()],
            "counters": asdict(self.counters),
            "files": {f"{self.name}/{name}": size for name, size in self._files().items()},
        }
        self._sweep.prepare(self._files())

        def finish() -> dict[str, Any]:
            for sync in syncs:
                sync()
            return state

        return finish

    def committed(self) -> None:
        """Remove what only the manifest before the last one needed."""
        self._sweep.committed()

    def close(self) -> None:
        """Wait for a merge and close the files; what was committed stays, the rest counts as never fed."""
        self._await()
        self._sweep.join()
        for generation in self._generations():
            generation.close()
        self._filling.release()
        self._front = None

    def validate(self) -> None:
        """Check the invariants."""
        last = -1
        for segment in self._segments:
            assert segment.rows > 0
            assert last < segment.first <= segment.last
            last = segment.last
        assert not self._thread.running or self._merging is not None
        assert not self._sweep.garbage.keys() & self._files().keys()
        for generation in self._generations():
            generation.validate()
        self._filling.validate()

    # What follows changes state; the owner's thread only.

    def _restore(self, state: dict[str, Any]) -> None:
        if (state["value"], state["aux"]) != (kind_name(self._kind), self._has_aux):
            raise StorageError(
                f"{self._folder} holds values {state['value']} and aux {state['aux']}, not "
                f"{kind_name(self._kind)} and {self._has_aux}: open it as it was created"
            )
        self._number = state["number"]
        self.counters = DrumCounters(**state.get("counters", {}))  # manifests of before have none
        self._segments = [Segment(*fields) for fields in state["segments"]]
        self._results = [ResultFile(*fields) for fields in state["results"]]
        generations = []
        known = sum(segment.size for segment in self._segments)
        for about in state["generations"]:
            # What was filled goes on as it began; a generation of an older manifest has its buckets only.
            about = asdict(self._sizing.generation(known)) | about
            number = about.pop("number")
            generation = Generation(self._env, self._folder, number, Sizing(**about), self._has_aux)
            generation.open()
            generations.append(generation)
        if generations:
            self._filling.generation = generations.pop()
        if generations:
            self._merging = generations.pop()
        self._sweep.prepare(self._files())

    def _sifted(self, batch: Batch) -> Batch | None:
        assert self._front is not None
        if batch.op != CHECK_UPDATE:
            # A key that is only checked is not in Z after that; one that is only updated has no answer.
            return batch
        rows = self._front.sift(batch.keys)
        self.counters.sifted += len(batch.keys) - len(rows)
        if len(rows) == len(batch.keys):
            return batch
        return Batch(batch.keys, batch.op, aux=batch.aux, rows=rows) if len(rows) else None

    def _begin(self) -> None:
        """A generation of buckets, as large as Z asks for now."""
        known = sum(segment.size for segment in self._segments)
        self._filling.open(self._take_number(), self._sizing.generation(known))

    def _take(self, batch: Batch | None) -> None:
        begin = 0
        while batch is not None and begin < len(batch):
            if self._filling.generation is None:
                self._begin()
            begin, is_full = self._filling.put(batch, begin, self.counters)
            if is_full:
                self._turn()

    def _turn(self) -> None:
        """The generation is full: merge it, after the one before it."""
        self._await()
        if self._merging is not None and not self._thread.failed:
            self._start(None)
            self._await()
        # After a failure the next call of `feed` says so; until then rows are still taken.
        if not self._thread.failed:
            self._seal()
            self._start(None)

    def _await(self) -> None:
        self._thread.join()
        self._collect(raising=False)

    def _seal(self, always: bool = False) -> None:
        """What is being filled becomes what is being merged."""
        if self._filling.generation is None and always:
            self._begin()
        self._merging = self._filling.seal(self.counters)

    def _start(self, expunge: Predicate | None) -> None:
        assert self._merging is not None
        self._merging.flush()
        merge = Merge(self._plan, self._take_number(), self._merging, self._segments, expunge)
        self._thread.start(merge)
        self._collect(raising=False)

    def _collect(self, raising: bool) -> None:
        """Make the output and the new Z of a finished merge visible, both at once."""
        merged = self._thread.collect()
        if merged is not None:
            self._install(merged)
        if raising:
            self._thread.complain()

    def _install(self, merged: Merged) -> None:
        assert self._merging is not None
        kept = {segment.name for segment in merged.segments}
        gone = {segment.name: segment.size for segment in self._segments if segment.name not in kept}
        gone |= self._merging.files()
        self._merging.close()
        self._segments, self._merging = merged.segments, None
        if merged.results is not None:
            self._results.append(ResultFile(*merged.results))
        self.counters.add(merged.counters)
        self._sweep.drop(gone)

    def _take_number(self) -> int:
        self._number += 1
        return self._number - 1

    def _generations(self) -> list[Generation]:
        return [
            generation for generation in (self._merging, self._filling.generation) if generation is not None
        ]

    def _files(self) -> dict[str, int]:
        files = {segment.name: segment.size for segment in self._segments}
        files |= {file.name: file.size for file in self._results}
        for generation in self._generations():
            files |= generation.files()
        return files
