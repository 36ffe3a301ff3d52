"""Looking for a few bytes in what a manifest names, without changing anything: who only looks has no right to.

    manifest ─► states of queues, of DRUMs ─► blocks that count ─► where the bytes are, behind how many items

The owner of the files may be at work: what the manifest names stays as it is until the next one is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.storage.columns import Keys
from barkspider.storage.drum.blocks import BlockReader, scan
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.known import Segment, read_all, read_blocks
from barkspider.storage.env import Env
from barkspider.storage.format import BLOCK_HEAD_SIZE, HEADER_SIZE, check_block, read_block_head
from barkspider.storage.queue.items import unpack

_QUEUE = {"read", "last", "popped", "appended", "files"}


class Hit(NamedTuple):
    """Where some bytes were found: the structure, which of its queues or files, and how many items come before."""

    needle: bytes
    structure: str
    file: str
    ahead: int


def find(env: Env, folder: Path, states: Mapping[str, Any], needles: Sequence[bytes]) -> Iterator[Hit]:
    """Every item of a queue, and every row that waits in a DRUM, that has one of the needles in it; everything is read once.

    >>> import tempfile
    >>> from barkspider.storage.queue.disk_queue import DiskQueue
    >>> with tempfile.TemporaryDirectory() as name:
    ...     queue = DiskQueue(Env(), Path(name), "Q")
    ...     queue.append_batch(pa.array([b"one", b"two", b"three"], pa.binary()))
    ...     list(find(Env(), Path(name), {"mine": queue.prepare()()}, [b"hre"])), queue.close()
    ([Hit(needle=b'hre', structure='mine', file='Q', ahead=2)], None)
    """
    for structure, state in states.items():
        for queue in _queues(state):
            yield from _in_queue(env, folder, structure, queue, needles)
        if "generations" in state:
            yield from _in_drum(env, folder, structure, state, needles)


def is_known(env: Env, folder: Path, name: str, state: Mapping[str, Any], key: int) -> bool:
    """Whether the sorted cache of a DRUM without values has a key: one file of it is read at most."""
    for fields in state["segments"]:
        segment = Segment(*fields)
        if segment.first <= key <= segment.last:
            blocks = read_blocks(env, folder / name, segment, None, BlockReader(), DrumCounters())
            for keys, _ in blocks:
                place = int(np.searchsorted(keys, np.uint64(key)))
                if place < len(keys):
                    return int(keys[place]) == key
    return False


def numbers(
    env: Env, folder: Path, name: str, state: Mapping[str, Any]
) -> Iterator[tuple[Keys, npt.NDArray[np.uint32]]]:
    """The sorted cache of a DRUM of one number a key, block by block; each is valid until the next is asked for."""
    segments = [Segment(*fields) for fields in state["segments"]]
    for keys, values in read_all(env, folder / name, segments, np.dtype("<u4")):
        assert isinstance(values, np.ndarray)
        yield keys, values


def _queues(state: Any) -> Iterator[Mapping[str, Any]]:
    """The states of queues within a state, in their order."""
    if isinstance(state, Mapping):
        if state.keys() >= _QUEUE:
            yield state
            return
        for part in state.values():
            yield from _queues(part)
    elif isinstance(state, list):
        for part in state:
            yield from _queues(part)


def _in_queue(
    env: Env, folder: Path, structure: str, state: Mapping[str, Any], needles: Sequence[bytes]
) -> Iterator[Hit]:
    segment, offset, item = state["read"]
    passed = -int(item)
    for name in sorted(state["files"]):
        number, length = int(Path(name).stem), int(state["files"][name])
        if number < segment:
            continue
        begin = offset if number == segment else HEADER_SIZE
        with env.open(folder / name) as file:
            while begin < length:
                head_bytes = file.pread(begin, BLOCK_HEAD_SIZE)
                head = read_block_head(head_bytes, file.path, begin)
                stored = pa.py_buffer(file.pread(begin + BLOCK_HEAD_SIZE, head.stored))
                check_block(head_bytes, stored, file.path, begin)
                items = unpack(head.codec, stored, head.raw, head.items)
                for needle, place in _places(items, needles):
                    if passed + place >= 0:
                        yield Hit(needle, structure, str(Path(name).parent), passed + place)
                passed += len(items)
                begin += BLOCK_HEAD_SIZE + head.stored


def _places(items: pa.BinaryArray, needles: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """The numbers of the items that have each of the needles."""
    offsets = np.frombuffer(items.buffers()[1], np.int32, len(items) + 1 + items.offset)[items.offset :]
    data = items.buffers()[2]
    whole = b"" if data is None else data.to_pybytes()
    for needle in needles:
        start = whole.find(needle)
        while start >= 0:
            place = int(np.searchsorted(offsets, start, "right")) - 1
            if 0 <= place < len(items) and start + len(needle) <= offsets[place + 1]:
                yield needle, place
                start = whole.find(needle, int(offsets[place + 1]))
            else:
                start = whole.find(needle, start + 1)


def _in_drum(
    env: Env, folder: Path, structure: str, state: Mapping[str, Any], needles: Sequence[bytes]
) -> Iterator[Hit]:
    """Rows that wait for a merge, and results that were not taken; a row counts by the block that it is in."""
    reader, base = BlockReader(), folder / structure
    for about in state["generations"]:
        name = f"{about['number']:08d}"
        length = int(state["files"].get(f"{structure}/{name}.pairs", 0))
        if not state["aux"] or not length:
            continue
        with env.open(base / f"{name}.pairs") as pairs, env.open(base / f"{name}.aux") as aux:
            for span in scan(pairs, HEADER_SIZE, length):
                rows = reader.read(aux, span.number)[0].aux.tobytes()
                yield from (
                    Hit(needle, structure, "waits for a merge", 0) for needle in needles if needle in rows
                )
    for name, size, place in state["results"]:
        with env.open(base / name) as file:
            while place < size:
                block, place = reader.read(file, place)
                rows = block.aux.tobytes()
                yield from (
                    Hit(needle, structure, "after a merge", 0) for needle in needles if needle in rows
                )
