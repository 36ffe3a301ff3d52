"""`barkspider drum`: a DRUM by itself, for people: load keys, check others against them, look at it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.terminal import in_json, put, say, say_json, screen
from barkspider.core.errors import UsageError
from barkspider.core.units import format_size, parse_size

if TYPE_CHECKING:
    from barkspider.storage.drum.repository import Drum
    from barkspider.storage.store.manifest import Store

drum_app = typer.Typer(
    help="Keep billions of keys on disk and check texts against them (IRLbot's DRUM).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_NAME = "keys"
_ROWS = 100_000
_FREE_SHARE = 4  # of the disk space that is free: two generations of buckets may be there at a time

Folder = Annotated[Path, typer.Argument(help="The folder of the DRUM.")]
Inputs = Annotated[
    list[Path], typer.Argument(help="Text files, a text a line (- for standard input), or *.parquet.")
]
Column = Annotated[
    str, typer.Option(help="Column of a Parquet file: text or bytes, or integers as ready keys.")
]
Ram = Annotated[str, typer.Option(help="Memory to use.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@drum_app.command()
def load(
    folder: Folder, inputs: Inputs, column: Column = "", ram: Ram = "256MB", as_json: Json = False
) -> None:
    """Add texts to a DRUM, which is created if need be; each is kept as a 64-bit key.

    Example: barkspider drum load seen/ urls.txt more.parquet --column url
    """
    from barkspider.storage.drum.repository import UPDATE

    _check_inputs(inputs)
    with _opened(folder, ram, create=True) as (store, drum):
        before, rows = len(drum), 0
        for keys, _ in _shown(_batches(inputs, column), as_json):
            drum.feed(UPDATE, keys)
            rows += len(keys)
        drum.merge()
        store.commit()
        added = len(drum) - before
        _say(
            as_json,
            {"rows": rows, "new": added, "keys": len(drum)},
            f"{rows:,} rows read, {added:,} of them new; {len(drum):,} keys in {folder}",
        )


@drum_app.command()
def check(
    folder: Folder,
    inputs: Inputs,
    column: Column = "",
    add: Annotated[bool, typer.Option(help="Also add what is new.")] = False,
    known: Annotated[bool, typer.Option(help="Print what is known instead of what is new.")] = False,
    ram: Ram = "256MB",
    as_json: Json = False,
) -> None:
    """Print the texts that the DRUM does not have; with --json their number.

    The order is by bucket of the DRUM and, within a bucket, as they came.

    Example: barkspider drum check seen/ candidates.txt > new.txt

    Example: zcat links.gz | barkspider drum check seen/ - --add > new.txt
    """
    from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE

    _check_inputs(inputs)
    counts = {"rows": 0, "new": 0, "known": 0}
    with _opened(folder, ram) as (store, drum):

        def take() -> None:
            for found in drum.results():
                new = int(found.unique.sum())
                counts["new"] += new
                counts["known"] += len(found) - new
                assert found.aux is not None
                if not as_json:
                    chosen = (~found.unique if known else found.unique).nonzero()[0]
                    put(b"".join(text + b"\n" for text in found.aux.take(chosen).tolist()))

        for keys, texts in _shown(_batches(inputs, column), as_json):
            drum.feed(CHECK_UPDATE if add else CHECK, keys, aux=texts)
            counts["rows"] += len(keys)
            take()
        drum.merge()
        take()
        if add:
            store.commit()
    if as_json:
        say_json(counts)


@drum_app.command()
def dump(folder: Folder, as_json: Json = False) -> None:
    """Print every key in ascending order, 16 hexadecimal digits a line; with --json one list.

    Example: barkspider drum dump seen/ > keys.txt
    """
    with _opened(folder) as (_, drum):
        first = True
        for block in drum.items():
            keys = [f"{key:016x}" for key in block[0].tolist()]
            if as_json:
                say(("[" if first else ",") + in_json(keys)[1:-1], end="")
            else:
                say("\n".join(keys))
            first = False
        if as_json:
            say("[]" if first else "]")


@drum_app.command()
def stats(folder: Folder, as_json: Json = False) -> None:
    """Tell how large a DRUM is.

    Example: barkspider drum stats seen/ --json
    """
    with _opened(folder) as (store, drum):
        files = drum.prepare()()["files"]
        size = sum(files.values())
        _say(
            as_json,
            {
                "keys": len(drum),
                "pending": drum.pending,
                "files": len(files),
                "bytes": size,
                "commits": store.number,
            },
            f"{len(drum):,} keys, {drum.pending:,} rows waiting, {len(files)} files of {format_size(size)}, "
            f"{store.number} commits",
        )


@drum_app.command()
def verify(folder: Folder, as_json: Json = False) -> None:
    """Read everything and compare every checksum; a damaged file is named.

    Example: barkspider drum verify seen/
    """
    with _opened(folder) as (_, drum):
        drum.validate()
        keys = drum.verify()
        _say(as_json, {"keys": keys, "sound": True}, f"{keys:,} keys, all sound")


@contextmanager
def _opened(folder: Path, ram: str = "16MB", create: bool = False) -> Iterator[tuple[Store, Drum]]:
    from barkspider.storage.drum.repository import Drum
    from barkspider.storage.drum.sizing import Allowance
    from barkspider.storage.env import Env
    from barkspider.storage.store.manifest import MANIFEST, Store

    if not (folder / MANIFEST).is_file():
        if not create:
            raise UsageError(f"{folder} is not a DRUM; make one with: barkspider drum load {folder} FILE")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is neither a DRUM nor an empty folder; give another name")
    env = Env()
    sizing = Allowance(parse_size(ram), lambda: env.free_space(folder) // _FREE_SHARE)
    env.make_folder(folder)
    lock = env.lock(folder / "lock")
    if lock is None:
        raise UsageError(f"{folder} is in use by another process; wait until it has ended")
    try:
        store = Store.open(env, folder)
        state = store.state(_NAME)
        if state is None and not create:
            raise UsageError(f"{folder} has a manifest but no DRUM of this command")
        drum = Drum(env, folder, _NAME, aux=True, sizing=sizing, state=state)
        store.add(drum)
        try:
            yield store, drum
        finally:
            drum.close()
    finally:
        lock.release()


def _check_inputs(inputs: list[Path]) -> None:
    for path in inputs:
        if str(path) != "-" and not path.is_file():
            raise UsageError(f"cannot read {path}: no such file")


def _shown(batches: Iterator[tuple[Any, Any]], as_json: bool) -> Iterator[tuple[Any, Any]]:
    """The same batches, with the number of rows so far on a terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn

    console = screen(error=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} rows"))
    with Progress(
        *columns, console=console, transient=True, disable=as_json or not console.is_terminal
    ) as bar:
        task = bar.add_task("rows", total=None)
        for keys, texts in batches:
            yield keys, texts
            bar.advance(task, len(keys))


def _batches(inputs: list[Path], column: str) -> Iterator[tuple[Any, Any]]:
    """(keys, texts) of all inputs."""
    for path in inputs:
        yield from _parquet(path, column) if path.suffix == ".parquet" else _lines(path)


def _lines(path: Path) -> Iterator[tuple[Any, Any]]:
    from itertools import islice

    stream = sys.stdin.buffer if str(path) == "-" else path.open("rb")
    with stream:
        while lines := [line.rstrip(b"\r\n") for line in islice(stream, _ROWS)]:
            texts = [line for line in lines if line]
            yield _keys(texts), texts


def _parquet(path: Path, column: str) -> Iterator[tuple[Any, Any]]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise UsageError(f"{path} is not a Parquet file") from error
    names = file.schema_arrow.names
    name = column or names[0]
    if name not in names:
        raise UsageError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    kind = file.schema_arrow.field(name).type
    for batch in file.iter_batches(_ROWS, columns=[name]):
        values = batch.column(0).drop_null()
        if pa.types.is_integer(kind):
            keys = values.to_numpy().astype(np.uint64)
            yield keys, [str(key).encode() for key in keys.tolist()]
        elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
            texts = values.cast(pa.large_binary()).to_pylist()
            yield _keys(texts), texts
        else:
            raise UsageError(f"column {name!r} of {path} holds {kind}; give one of texts or integers")


def _keys(texts: list[bytes]) -> Any:
    import numpy as np
    import xxhash

    return np.fromiter(map(xxhash.xxh3_64_intdigest, texts), np.uint64, len(texts))


def _say(as_json: bool, data: dict[str, Any], text: str) -> None:
    say(in_json(data) if as_json else text)
