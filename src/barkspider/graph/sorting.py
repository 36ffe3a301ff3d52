"""Sorting on disk: keys go in in any order and come out ascending, each once.

Keys are gathered, sorted and written as runs, then runs are merged, k at a time, until one merge is enough:
the k-way merge of SUPP2-B (section VI-D), with its 256 KB for each run: half is a piece of the file, half its
share of the block that is made of all pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.graph.arrays import PIECE, ArrayFile, ArrayWriter, Traffic
from barkspider.graph.kernels import drop_repeated
from barkspider.storage.env import Env

BUFFER = 2 * PIECE  # bytes in RAM for each run that is being merged
_BLOCK = 1 << 18  # keys handed out at a time: what is made of them takes several times their memory
_KEYS = "<u8"


class Sorter:
    """Sorts 64-bit keys in about `memory` bytes of RAM and the rest on disk. One thread.

    `add` fills it; `merged` empties it, once, and removes its files, `NAME-NNNNNNNN.run`.
    """

    def __init__(
        self, env: Env, folder: Path, memory: int, traffic: Traffic, name: str, early: bool = True
    ) -> None:
        """Repeated keys are dropped `early`, wherever two of them meet, or else only at the end."""
        self._early = early
        self._env, self._folder, self._name = env, folder, name
        self._traffic = traffic
        self._gathered = np.empty(max(1024, memory // 8), np.uint64)
        self._count = 0
        self._runs: list[Path] = []
        self._number = 0
        self._ways = max(2, memory // BUFFER)

    def add(self, keys: npt.NDArray[np.uint64]) -> None:
        """Take keys in."""
        while len(keys):
            room = len(self._gathered) - self._count
            part = keys[:room]
            self._gathered[self._count : self._count + len(part)] = part
            self._count += len(part)
            keys = keys[len(part) :]
            if self._count == len(self._gathered):
                self._tidy()
                # Half empty after all repeated ones are gone: go on filling it.
                if self._count * 2 > len(self._gathered):
                    self._write_run(iter([self._gathered[: self._count]]))
                    self._count = 0

    def merged(self) -> Iterator[npt.NDArray[np.uint64]]:
        """All keys, ascending, each once, in blocks."""
        last = -1
        for block in self._sorted():
            # A key may be repeated on both sides of the edge of a piece, if it was not dropped early.
            keys = block[1:] if len(block) and block[0] == last else block
            for begin in range(0, len(keys), _BLOCK):
                yield keys[begin : begin + _BLOCK]
            last = int(block[-1]) if len(block) else last

    def _sorted(self) -> Iterator[npt.NDArray[np.uint64]]:
        self._tidy()
        if not self._runs:
            kept = self._gathered[: self._count]
            yield kept[: drop_repeated(kept)]
            return
        if self._count:
            self._write_run(iter([self._gathered[: self._count]]))
        self._gathered = np.empty(0, np.uint64)
        while len(self._runs) > self._ways:
            # As few keys as possible go through one more merge: the first ones together make room for one.
            count = min(self._ways, len(self._runs) - self._ways + 1)
            chosen, self._runs = self._runs[:count], self._runs[count:]
            self._write_run(self._merge(chosen, self._early))
        runs, self._runs = self._runs, []
        yield from self._merge(runs, True)

    def _tidy(self) -> None:
        kept = self._gathered[: self._count]
        kept.sort()
        if self._early:
            self._count = drop_repeated(kept)

    def _write_run(self, blocks: Iterator[npt.NDArray[np.uint64]]) -> None:
        path = self._folder / f"{self._name}-{self._number:08}.run"
        self._number += 1
        with ArrayWriter(self._env, path, _KEYS, self._traffic, durable=False) as writer:
            for block in blocks:
                writer.write(block)
        self._runs.append(path)

    def _merge(self, runs: list[Path], drops: bool) -> Iterator[npt.NDArray[np.uint64]]:
        pieces = [ArrayFile(self._env, run, _KEYS).pieces(self._traffic) for run in runs]
        heads = [next(piece) for piece in pieces]
        while heads:
            # Nothing unread is smaller than the smallest of the last keys read.
            bound = min(head[-1] for head in heads)
            cuts = [int(np.searchsorted(head, bound, "right")) for head in heads]
            block = np.concatenate([head[:cut] for head, cut in zip(heads, cuts, strict=True)])
            block.sort()
            yield block[: drop_repeated(block)] if drops else block
            heads = [
                head[cut:] if cut < len(head) else next(piece, head[:0])
                for head, cut, piece in zip(heads, cuts, pieces, strict=True)
            ]
            pieces = [piece for piece, head in zip(pieces, heads, strict=True) if len(head)]
            heads = [head for head in heads if len(head)]
        for run in runs:
            self._env.remove(run)
