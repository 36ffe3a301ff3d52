"""What `barkspider export` writes for `--what corpus`, and by functions of a user's own."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from barkspider.cli.progress import working
from barkspider.cli.terminal import in_json
from barkspider.cli.terminal import output as output_
from barkspider.core.errors import UsageError
from barkspider.core.plugins import load_function

if TYPE_CHECKING:
    from barkspider.engine import CrawledPage, StoredJob
    from barkspider.engine.corpus import Choice, Text

_GROUP = "barkspider.exporters"
_WITHOUT = ("opt-outs", "near-duplicates")
_ROWS = 1000  # texts of a row group, in memory together
_BETWEEN = "\n\f\n"  # texts: a form feed on a line of its own


class Exporter(Protocol):
    """A function of one's own that writes the pages of a job: `export --format` names it."""

    def __call__(self, pages: Iterator[CrawledPage], output: Path, /) -> int:
        """Write them, and say how many were written."""
        ...


@contextmanager
def stream(output: Path | None) -> Iterator[TextIO]:
    """A file to write text to, or standard output."""
    if output is None:
        yield output_()
    else:
        with output.open("w", encoding="utf-8", errors="replace") as file:
            yield file


def exporter(name: str) -> Callable[[Any, Path | None], dict[str, int]] | None:
    """The user's function of this name; None where no such format can be meant."""
    if ":" not in name and not entry_points(group=_GROUP, name=name):
        return None
    own: Exporter = load_function("--format", name, _GROUP)

    def write_pages(job: StoredJob, output: Path | None) -> dict[str, int]:
        assert output is not None
        return {"pages": int(own(job.changes(), output) or 0)}

    return write_pages


def choice(
    is_corpus: bool, languages: Sequence[str], min_words: int, max_links: float, without: Sequence[str]
) -> Choice | None:
    """Which texts are wanted; None for what is no corpus."""
    if not is_corpus:
        if languages or min_words != 1 or max_links != 1.0 or without:
            raise UsageError("--language, --min-words, --max-links and --without are for --what corpus")
        return None
    if unknown := next((name for name in without if name not in _WITHOUT), ""):
        raise UsageError(f"--without is {unknown!r}; it is {' or '.join(_WITHOUT)}")
    from barkspider.engine.corpus import Choice

    return Choice(
        frozenset(languages),
        min_words,
        max_links,
        "near-duplicates" not in without,
        "opt-outs" not in without,
    )


def write(
    job: StoredJob,
    wanted: Choice,
    older: Collection[tuple[str, int]],
    writer: Callable[[Iterator[Text], Path | None], None],
    output: Path | None,
) -> dict[str, Any]:
    """Write the texts of a job by one of `FORMATS`; how many, and how many were left out and why."""
    from barkspider.engine.corpus import Corpus

    corpus, written = Corpus(job, wanted, older), [0]

    def counted() -> Iterator[Text]:
        for text in corpus:
            written[0] += 1
            yield text

    def whole() -> int:
        return int(job.query("SELECT count(*) AS n FROM pages")["n"][0].as_py())

    with working("writing", lambda: written[0] + corpus.left_out.total(), whole):
        writer(counted(), output)
    return {"texts": written[0], "left_out": dict(corpus.left_out)}


def _jsonl(texts: Iterator[Text], output: Path | None) -> None:
    with stream(output) as file:
        for text in texts:
            row = text.row()
            file.write(in_json({**row, "fetch_time": row["fetch_time"].isoformat()}) + "\n")


def _text(texts: Iterator[Text], output: Path | None) -> None:
    with stream(output) as file:
        for text in texts:
            file.write(text.text.replace("\f", " ").strip() + _BETWEEN)


def _parquet(texts: Iterator[Text], output: Path | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = {
        "words": pa.uint32(),
        "characters": pa.uint32(),
        "link_share": pa.float32(),
        "simhash": pa.uint64(),
    }
    truths = {"near_duplicate": pa.bool_(), "tdm_reserved": pa.bool_()}
    types = numbers | truths | {"fetch_time": pa.timestamp("us", "UTC")}
    names = (
        *("url", "fetch_time", "title", "text", "language", "words", "characters", "link_share", "simhash"),
        *("near_duplicate", "robots_ai", "tdm_reserved", "tdm_policy"),
    )
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        while rows := [text.row() for text in islice(texts, _ROWS)]:
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _wet(texts: Iterator[Text], output: Path | None) -> None:
    """A WARC file of conversion records, as Common Crawl's WET files."""
    assert output is not None
    with output.open("wb") as file:
        for text in texts:
            body = text.text.encode("utf-8", "replace")
            head = [
                "WARC/1.1",
                "WARC-Type: conversion",
                f"WARC-Target-URI: {text.page.url}",
                f"WARC-Date: {text.page.time:%Y-%m-%dT%H:%M:%SZ}",
                f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>",
                *([f"WARC-Identified-Content-Language: {text.language}"] if text.language else []),
                "Content-Type: text/plain",
                f"Content-Length: {len(body)}",
            ]
            file.write(gzip.compress("\r\n".join(head).encode() + b"\r\n\r\n" + body + b"\r\n\r\n", 6))


FORMATS: dict[str, Callable[[Any, Path | None], Any]] = {
    "jsonl": _jsonl,
    "parquet": _parquet,
    "text": _text,
    "wet": _wet,
}
