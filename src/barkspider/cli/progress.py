"""A bar on a terminal for what takes longer than two seconds; nothing where there is none, and nothing for less."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barkspider.cli.terminal import is_watched, screen

_LONG = 2.0  # seconds
_LOOK = 0.25  # seconds between two looks at how far it is


@contextmanager
def working(
    words: str,
    done: Callable[[], int] = lambda: 0,
    of: Callable[[], int] = lambda: 0,
    *,
    after: float = _LONG,
) -> Iterator[None]:
    """Around work: how much is `done`, `of` how much if that is known, and for how long it has gone on. On standard error, if
    that is a terminal, `after` some seconds."""
    if not is_watched():
        yield
        return
    over = threading.Event()
    shown = threading.Thread(target=_show, args=(words, done, of, over, after), daemon=True)
    shown.start()
    try:
        yield
    finally:
        over.set()
        shown.join()


def _show(
    words: str, done: Callable[[], int], of: Callable[[], int], over: threading.Event, after: float
) -> None:
    if over.wait(after):
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    whole = of()
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    ]
    if whole:
        columns.append(TimeRemainingColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as bar:
        task = bar.add_task(words, total=whole or None, told="")
        while not over.wait(_LOOK):
            count = done()
            bar.update(task, completed=count, told=f"{count:,}" if count else "")
