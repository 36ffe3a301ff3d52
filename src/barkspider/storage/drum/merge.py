"""One merge: every bucket of a generation against the sorted cache Z, in one pass over Z.

For each bucket in turn (IRLbot, section 4.3): its rows are read and sorted, compared with the run of Z that
has the same key prefix, and merged into the new Z; then the order of arrival is restored, the aux is read in
that order, and the results are written. RAM holds one bucket without its aux, one block of Z and one of aux.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.texts import NO_BYTES, Bytes, Texts
from barkspider.storage.columns import NO_KEYS, Column, Keys, Kind, blank, join, part, take, unpack
from barkspider.storage.drum.blocks import BlockReader, BlockSpan
from barkspider.storage.drum.buckets import CHECK, UPDATE, Generation
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.known import BLOCK, SEGMENT, Cursor, Segment, Writer, read_blocks
from barkspider.storage.drum.results import ResultWriter
from barkspider.storage.drum.update import Update
from barkspider.storage.drum.values import LookedUp, compare
from barkspider.storage.env import Env, ReadFile
from barkspider.storage.kernels import insert_keys, probe, sort_rows

# Which (keys, values) to drop while Z is rewritten: a mask.
Predicate = Callable[[Keys, Any], npt.NDArray[np.bool_]]

_SMALL = 1 << 18  # most bytes of keys and values of buckets that are taken together
_EMIT = 1 << 16  # rows of a block of results when there is no aux to follow


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a DRUM tells each of its merges."""

    env: Env
    folder: Path
    kind: Kind
    has_aux: bool
    update: Update
    unique_only: bool
    segment: int = SEGMENT
    block: int = BLOCK  # bytes of Z that are read and written at a time; a merge takes some four times that


@dataclass(frozen=True, slots=True)
class Merged:
    """The new Z, and the name and length of the file of results."""

    segments: list[Segment]
    results: tuple[str, int] | None
    counters: DrumCounters


@dataclass(slots=True)
class _Bucket:
    """The rows of a bucket: as they came, and sorted."""

    keys: Keys
    ops: Bytes  # empty when all are `op`
    op: int
    values: Column | None
    sorted_keys: Keys
    order: npt.NDArray[np.uint32]
    unique: Bytes
    answers: list[LookedUp] = field(default_factory=list)

    @property
    def updates(self) -> bool:
        return bool(self.op & UPDATE) if not len(self.ops) else bool((self.ops & UPDATE).any())


class Merge:
    """One merge, run once by a thread of its own. It changes nothing that exists: it only adds files."""

    def __init__(
        self,
        plan: MergePlan,
        number: int,
        generation: Generation,
        segments: list[Segment],
        expunge: Predicate | None = None,
    ) -> None:
        self._plan, self._generation, self._expunge = plan, generation, expunge
        self._counters = DrumCounters(merges=1, rows_merged=int(generation.rows.sum()))
        env, folder = plan.env, plan.folder
        self._cursor = Cursor(env, folder, segments, plan.kind, self._counters)
        self._writer = Writer(env, folder, number, self._counters, plan.segment, plan.block)
        self._results = ResultWriter(env, folder / f"{number:08d}.results", self._counters)
        self._reader = BlockReader()
        # Rows compared at a time, so that what is new fits a buffer, and bytes of buckets that are taken together.
        self._chunk, self._small = plan.block // 8, min(_SMALL, plan.block // 4)
        self._new_keys = np.empty(self._chunk, np.uint64)
        self._new_places = np.empty(self._chunk, np.int64)
        self._merged = np.empty(0, np.uint64)

    def run(self) -> Merged:
        """Do it. When anything fails, no file of this merge remains."""
        plan, generation = self._plan, self._generation
        try:
            with plan.env.open(generation.pairs_path) as pairs:
                if generation.aux_path is None:
                    self._all(pairs, None)
                else:
                    with plan.env.open(generation.aux_path) as aux:
                        self._all(pairs, aux)
            self._writer.finish()
            return Merged(self._writer.segments, self._results.finish(), self._counters)
        except BaseException:
            self._writer.abandon()
            self._results.abandon()
            raise

    def _all(self, pairs: ReadFile, aux: ReadFile | None) -> None:
        buckets = self._generation.buckets
        shift = 64 - (buckets.bit_length() - 1)
        blocks, held = list[tuple[int, BlockSpan]](), 0
        for number, size in enumerate(self._generation.pair_bytes.tolist()):
            # Neighbours with few rows are taken as one: a nearly empty bucket costs as much as a thousand rows.
            if blocks and held + size > self._small:
                self._one(blocks, (number << shift) - 1, pairs, aux)
                blocks, held = [], 0
            blocks += [(number, span) for span in self._generation.spans[number]]
            held += size
        self._one(blocks, (buckets << shift) - 1, pairs, aux)

    def _one(
        self, blocks: list[tuple[int, BlockSpan]], bound: int, pairs: ReadFile, aux: ReadFile | None
    ) -> None:
        """A bucket, or some that lie side by side; what it takes in RAM is free again at the end."""
        bucket = self._load(blocks, pairs)
        self._walk(bucket, bound)
        self._emit([span for _, span in blocks], bucket, aux)

    def _load(self, blocks: list[tuple[int, BlockSpan]], pairs: ReadFile) -> _Bucket:
        """Read the rows of a bucket and sort them."""
        rows = sum(span.rows for _, span in blocks)
        keys = np.empty(rows, np.uint64)
        ops, columns, at = [], [], 0
        for number, span in blocks:
            block, _ = self._reader.read(pairs, span.offset, span.size)
            self._counters.pairs_read += span.size
            if block.tag != number or len(block.keys) != span.rows:
                raise StorageError(f"{pairs.path} is damaged at byte {span.offset}")
            keys[at : at + block.rows] = block.keys
            at += block.rows
            ops.append((block.op, block.rows, block.ops.copy() if len(block.ops) else None))
            if self._plan.kind is not None:
                where = f"{pairs.path} is damaged at byte {span.offset}"
                column = unpack(self._plan.kind, block.rows, block.value_lengths, block.values.copy(), where)
                columns.append(column)
        op, mixed = _joined_ops(ops)
        sorted_keys, order = np.empty(rows, np.uint64), np.empty(rows, np.uint32)
        sort_rows(keys, sorted_keys, order)
        values = join(columns) if columns else None
        return _Bucket(keys, mixed, op, values, sorted_keys, order, np.zeros(rows, np.uint8))

    def _walk(self, bucket: _Bucket, bound: int) -> None:
        """Compare a bucket with all of Z up to `bound`."""
        keys, at, cursor = bucket.sorted_keys, 0, self._cursor
        rewrites = bucket.updates or self._expunge is not None
        while True:
            segment = cursor.whole_segment(bound)
            if segment is not None and self._expunge is None:
                stop = int(np.searchsorted(keys, np.uint64(segment.last), "right"))
                if stop == at or not rewrites:
                    # Nothing to insert here: the segment stays, and is read only if something is asked.
                    at = self._ask(segment, bucket, at, stop)
                    self._writer.carry_over(segment)
                    cursor.skip()
                    continue
            run = cursor.run(bound)
            if run is None:
                break
            stop = int(np.searchsorted(keys, run[0][-1], "right"))
            self._compare(*run, bucket, at, stop)
            at = stop
        empty = None if self._plan.kind is None else blank(self._plan.kind, 0)
        self._compare(NO_KEYS, empty, bucket, at, len(keys))

    def _ask(self, segment: Segment, bucket: _Bucket, at: int, stop: int) -> int:
        if at == stop:
            return stop
        plan = self._plan
        for known, values in read_blocks(
            plan.env, plan.folder, segment, plan.kind, self._reader, self._counters
        ):
            to = int(np.searchsorted(bucket.sorted_keys, known[-1], "right"))
            self._compare(known, values, bucket, at, to, rewrite=False)
            at = to
        return stop

    def _compare(
        self, known: Keys, values: Column | None, bucket: _Bucket, at: int, stop: int, rewrite: bool = True
    ) -> None:
        """Rows `at` to `stop` against a run of Z whose keys are all in reach of them, in bounded steps."""
        keys = bucket.sorted_keys
        while stop - at > self._chunk:
            # All rows of a key stay together.
            to = int(np.searchsorted(keys, keys[at + self._chunk - 1], "right"))
            cut = int(np.searchsorted(known, keys[to - 1], "right"))
            head = None if values is None else part(values, 0, cut)
            self._compare_part(known[:cut], head, bucket, at, to, rewrite)
            values = None if values is None else part(values, cut, len(known))
            known, at = known[cut:], to
        self._compare_part(known, values, bucket, at, stop, rewrite)

    def _compare_part(
        self, known: Keys, values: Column | None, bucket: _Bucket, at: int, stop: int, rewrite: bool
    ) -> None:
        if stop > at and self._plan.kind is None:
            known = self._compare_keys(known, bucket, at, stop)
        elif stop > at:
            assert values is not None
            assert bucket.values is not None
            order = bucket.order[at:stop]
            ops = bucket.ops[order] if len(bucket.ops) else np.full(len(order), bucket.op, np.uint8)
            found = compare(
                known,
                values,
                bucket.sorted_keys[at:stop],
                ops,
                order,
                bucket.values,
                self._plan.update,
                not self._plan.unique_only,
            )
            bucket.unique[order[found.unique]] = 1
            if not self._plan.unique_only:
                bucket.answers.append(found.answers)
            known, values = found.keys, found.values
        if rewrite and len(known):
            if self._expunge is not None:
                kept = np.flatnonzero(~self._expunge(known, values))
                known, values = known[kept], None if values is None else take(values, kept)
            self._writer.append(known, values)

    def _compare_keys(self, known: Keys, bucket: _Bucket, at: int, stop: int) -> Keys:
        """The same without values: the run of Z with what is new, valid until the next call."""
        new = probe(
            known,
            bucket.sorted_keys[at:stop],
            bucket.order[at:stop],
            bucket.ops,
            bucket.op,
            bucket.unique,
            self._new_keys,
            self._new_places,
        )
        if not new:
            return known
        if len(self._merged) < len(known) + new:
            self._merged = np.empty(len(known) + self._chunk, np.uint64)
        merged = self._merged[: len(known) + new]
        insert_keys(known, self._new_keys[:new], self._new_places[:new], merged)
        return merged

    def _emit(self, blocks: list[BlockSpan], bucket: _Bucket, aux: ReadFile | None) -> None:
        """Write the results of a bucket in order of arrival."""
        if not len(bucket.ops) and not bucket.op & CHECK:
            return
        asked: Any = bucket.ops & CHECK if len(bucket.ops) else None
        unique = bucket.unique if asked is None else bucket.unique & asked
        self._counters.unique += int(np.count_nonzero(unique))
        wanted = unique if self._plan.unique_only else asked
        answers = _Answers(self._plan.kind, bucket)
        start = held = 0
        given, texts = list[npt.NDArray[np.int64]](), list[Texts]()
        spans = [span.rows for span in blocks] if aux else _even(len(bucket.keys))
        for index, rows in enumerate(spans):
            stop = start + rows
            chosen = np.arange(rows) if wanted is None else np.flatnonzero(wanted[start:stop])
            if len(chosen):
                given.append(chosen + start)
                if aux:
                    texts.append(self._texts(aux, blocks[index].number, rows).take(chosen))
                    held += texts[-1].size()
            start = stop
            # Small blocks of aux are given out as one: each costs its reader more than a hundred rows.
            if given and (aux is None or held > self._small or index == len(spans) - 1):
                rows_given = np.concatenate(given)
                self._results.append(
                    bucket.keys[rows_given],
                    NO_BYTES if self._plan.unique_only else 1 - bucket.unique[rows_given],
                    answers.of(rows_given),
                    Texts.join(texts) if aux else None,
                )
                given, texts, held = [], [], 0

    def _texts(self, aux: ReadFile, offset: int, rows: int) -> Texts:
        block, after = self._reader.read(aux, offset)
        self._counters.aux_read += after - offset
        where = f"{aux.path} is damaged at byte {offset}"
        if block.rows != rows:
            raise StorageError(where)
        texts = unpack(bytes, rows, block.aux_lengths, block.aux, where)
        assert isinstance(texts, Texts)
        return texts


class _Answers:
    """The stored values of a bucket's rows, by row."""

    def __init__(self, kind: Kind, bucket: _Bucket) -> None:
        self._kind = kind
        self._values: Column | None = None
        if kind is None:
            return
        parts = [answers.values for answers in bucket.answers]
        self._values = join([blank(kind, 1), *parts])  # 0 is the blank of a unique key
        self._place = np.zeros(len(bucket.keys), np.int64)
        base = 1
        for answers in bucket.answers:
            self._place[answers.rows] = answers.places + base
            base += len(answers.values)

    def of(self, rows: npt.NDArray[np.int64]) -> Column | None:
        """Blank where there was none."""
        return None if self._values is None else take(self._values, self._place[rows])


def _joined_ops(ops: list[tuple[int, int, Bytes | None]]) -> tuple[int, Bytes]:
    """One operation for all rows, or an array when they differ."""
    if not ops:
        return CHECK, NO_BYTES
    if all(mixed is None for _, _, mixed in ops) and len({op for op, _, _ in ops}) == 1:
        return ops[0][0], NO_BYTES
    parts = [np.full(rows, op, np.uint8) if mixed is None else mixed for op, rows, mixed in ops]
    return 0, np.concatenate(parts)


def _even(rows: int) -> list[int]:
    return [min(_EMIT, rows - start) for start in range(0, rows, _EMIT)]
