"""Pictures as files: .svg, .png or .pdf, without a screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from barkspider.core.errors import UsageError
from barkspider.core.extras import needing
from barkspider.lab.papers.comparison import Picture

# What can be written, and how its date is left out.
_UNDATED: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}


def check_format(path: Path) -> Path:
    """The same path, if a picture can be written under that name."""
    if path.suffix.lower() not in _UNDATED:
        raise UsageError(f"{path} is no name for a picture; let it end in .svg, .png or .pdf")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder; make it first, or write the picture elsewhere")
    return path


def draw(pictures: Sequence[Picture], path: Path) -> None:
    """Write pictures side by side into one file; the same pictures give the same bytes."""
    save([partial(_lines, picture=picture) for picture in pictures], path)


def save(panels: Sequence[Callable[[Any], None]], path: Path) -> None:
    """Write panels into one file, three in a row; each is a function that draws on the axes it is given."""
    with needing("matplotlib", "lab"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    # Without a salt, an SVG file differs from run to run.
    with rc_context({"svg.hashsalt": "barkspider", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(6.4 * columns, 4.2 * rows), layout="constrained")
        for place, panel in enumerate(panels, start=1):
            panel(figure.add_subplot(rows, columns, place))
        figure.savefig(path, dpi=150, metadata=_UNDATED[path.suffix.lower()])


def _lines(axes: Any, picture: Picture) -> None:
    colours: dict[str, str] = {}
    for line in picture.lines:
        label = "_nolegend_" if line.name in colours else line.name
        colour = colours.setdefault(line.name, f"C{len(colours)}")
        axes.plot(line.x, line.y, "o" if line.points else "-", color=colour, markersize=5, label=label)
    axes.plot([], [], "o", color="0.4", markersize=5, label=picture.points)
    axes.set(xscale="log", yscale="log", xlabel=picture.x, ylabel=picture.y, title=picture.title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
