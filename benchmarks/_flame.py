"""A flame graph from stacks that a sampler has collapsed, as a picture without scripts: docs/performance.md says how to make one.

    python -m benchmarks._flame STACKS.txt PICTURE.svg "what it shows"

A line of stacks is `function (file:line);…;function (file:line) COUNT`, the outermost first, as `py-spy record --format raw`
writes it. Width is time; the functions of one room have one colour. Importing, what is below our functions, and what is too
narrow to be read are left out.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

_FRAME = re.compile(r"(?P<name>.+?) \((?P<file>[^:)]*)(?::\d+)?\)")
_ROOMS = ("fetch", "page", "archive", "frontier", "storage", "url", "engine", "core")
_COLOURS = dict(
    zip(
        _ROOMS,
        ("#4e79a7", "#59a14f", "#f28e2b", "#e15759", "#b07aa1", "#edc948", "#9c755f", "#bab0ac"),
        strict=True,
    )
)
_OTHER = "#d7d7d7"
_NARROW = 0.004  # of the whole
_LETTER = 0.0047  # width of one, of the whole


def _stacks(text: str) -> Counter[tuple[str, ...]]:
    """Samples by stack, from the first function of ours on; a function counts once, whatever its line."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        if "importlib._bootstrap" in line:
            continue
        stack, _, count = line.rpartition(" ")
        frames = []
        for frame in stack.split(";"):
            match = _FRAME.fullmatch(frame)
            name, file = (match["name"], match["file"]) if match else (frame, "")
            parts = file.split("/")
            room = parts[parts.index("barkspider") + 1] if "barkspider" in parts[:-1] else ""
            frames.append(f"{room.removesuffix('.py')}:{Path(file).stem}.{name}" if room else f":{name}")
        first = next((at for at, frame in enumerate(frames) if not frame.startswith(":")), None)
        if first is not None:
            found[tuple(frames[first:])] += int(count)
    return found


def draw(stacks: Counter[tuple[str, ...]], title: str, path: Path) -> None:
    """Write the picture."""
    total = sum(stacks.values())
    figure = Figure(figsize=(14, 7.5))
    axes = figure.subplots()
    deepest = 0

    def put(rows: list[tuple[tuple[str, ...], int]], left: float, depth: int) -> None:
        nonlocal deepest
        groups: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for stack, count in rows:
            if len(stack) > depth:
                groups.setdefault(stack[depth], []).append((stack, count))
        for frame in sorted(groups):
            width = sum(count for _, count in groups[frame]) / total
            if width >= _NARROW:
                deepest = max(deepest, depth)
                room, _, name = frame.partition(":")
                colour = _COLOURS.get(room, _OTHER)
                axes.barh(depth, width, 1, left, color=colour, edgecolor="white", linewidth=0.4)
                letters = int(width / _LETTER)
                if letters >= 4:
                    axes.text(left + 0.001, depth, name[:letters], va="center", fontsize=6.5, clip_on=True)
                put(groups[frame], left, depth + 1)
            left += width

    put(sorted(stacks.items()), 0.0, 0)
    for room, colour in _COLOURS.items():
        axes.barh(0, 0, color=colour, label=room)
    axes.barh(0, 0, color=_OTHER, label="libraries")
    axes.legend(loc="upper right", ncols=5, fontsize=7)
    axes.set(xlim=(0, 1), ylim=(-0.5, deepest + 3), yticks=[], xticks=[], title=title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(_stacks(Path(sys.argv[1]).read_text()), sys.argv[3], Path(sys.argv[2]))
