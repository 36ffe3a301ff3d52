"""`barkspider export`: a crawl for other programs: pages with their text, a log of URLs, a WACZ file, or the graph of
domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import in_json, printable, say, say_json
from barkspider.cli.terminal import output as output_
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.engine import StoredJob

_ROWS = 1000  # pages of a row group: their texts are in memory together
_EDGES = """
    SELECT source_domain, target_domain, count(*) AS links FROM links
    WHERE source_domain <> target_domain GROUP BY ALL ORDER BY ALL
"""
_OLDER = """
    SELECT url, epoch_us(fetch_time) AS time FROM pages
    QUALIFY row_number() OVER (PARTITION BY url ORDER BY fetch_time DESC) > 1
"""
_LOG = """
    SELECT fetch_time AS time, fetch_status, outcome, content_length, content_mime_detected, depth, tries, url FROM pages
    UNION ALL
    SELECT time, 0, outcome, NULL, NULL, NULL, tries, url FROM errors
    WHERE what = 'page' AND key NOT IN (SELECT key FROM pages)
    ORDER BY time
"""


def export(
    job: Annotated[str, typer.Argument(help="The folder of a crawl, which may be running, or its store.")],
    what: Annotated[
        str, typer.Option(help="pages (HTML pages with their text) or graph (links between domains).")
    ] = "pages",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="jsonl, parquet, log (a line a URL, without texts) or wacz (the whole archive in one file, to replay) for "
            "pages, edges or npz for graph; the first if not given.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The file to make; standard output if not given, for jsonl, log and edges."),
    ] = None,
    newest: Annotated[
        bool, typer.Option("--newest", help="Of pages that were fetched several times the last one only.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was written as one JSON object.")] = False,
) -> int:
    """Write a crawl out for other programs.

    Example: barkspider export jobs/mine --format parquet --output pages.parquet
    """
    output = None if output == Path("-") else output
    write = _writer(what, format_, output, newest, json_)
    from barkspider.engine import open_job
    from barkspider.engine.borrowing import at_hand

    with at_hand(job) as folder:
        written = _write(open_job(folder), write, newest, output)
    if json_:
        say_json({"output": str(output), **written})
    if written.get("edges") == 0:
        note = "no link from one domain to another was found, so the graph is empty"
        say(f"barkspider: {note}", error=True)
    return 0


def _writer(
    what: str, format_: str | None, output: Path | None, newest: bool, json_: bool
) -> Callable[[Any, Path | None], dict[str, int]]:
    """What writes what is asked for; `UsageError` in one line when it cannot be had like this."""
    if what not in _WRITERS:
        raise UsageError(f"--what is {what!r}; it is {' or '.join(_WRITERS)}")
    writers = _WRITERS[what]
    chosen = format_ or next(iter(writers))
    if chosen not in writers:
        raise UsageError(f"--format is {chosen!r}; for {what} it is {' or '.join(writers)}")
    if newest and writers[chosen] not in _OF_TEXTS:
        raise UsageError("--newest is for pages as jsonl or parquet")
    if output is None and (json_ or chosen in ("parquet", "wacz", "npz")):
        raise UsageError(f"{'--json' if json_ else chosen} needs a file to write to; name one with --output")
    if chosen == "wacz" and output is not None and output.suffix != ".wacz":
        raise UsageError(f"the name of a WACZ file ends in .wacz, which {output} does not")
    if output is not None and output.exists():
        raise UsageError(f"{output} exists; name another file with --output")
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"the folder of {output} does not exist; create it first")
    return writers[chosen]


def _write(
    opened: StoredJob, writer: Callable[[Any, Path | None], dict[str, int]], newest: bool, output: Path | None
) -> dict[str, int]:
    of_texts, passed = writer in _OF_TEXTS, Counter[str]()

    def counted(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            passed["pages"] += 1
            yield row

    def whole() -> int:
        return int(opened.query("SELECT count(*) AS n FROM pages")["n"][0].as_py()) if of_texts else 0

    with working("writing", lambda: passed["pages"], whole):
        pages = counted(_pages(opened, _older(opened) if newest else set())) if of_texts else opened
        return writer(pages, output)


def _older(job: StoredJob) -> set[tuple[str, int]]:
    """Captures of which there are newer ones: URLs and times in microseconds."""
    found = job.query(_OLDER)
    return set(zip(found["url"].to_pylist(), found["time"].to_pylist(), strict=True))


def _pages(job: StoredJob, left_out: set[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """The HTML pages of a crawl; equal pages at several URLs come several times."""
    for page in job.pages():
        if left_out and (page.url, round(page.time.timestamp() * 1e6)) in left_out:
            continue
        if 200 <= page.status < 300 and page.is_html:
            yield {
                "url": page.url,
                "fetch_time": page.time,
                "fetch_status": page.status,
                "content_mime_type": page.header("content-type"),
                "content_charset": page.charset,
                "title": page.title,
                "text": page.text,
            }


@contextmanager
def _stream(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield output_()
    else:
        with output.open("w", encoding="utf-8", errors="replace") as file:
            yield file


def _log(job: StoredJob, output: Path | None) -> dict[str, int]:
    """A line for each answer, and for each try of a URL that never answered; the columns are those of `_LOG`, "-" is what is
    not known."""
    table = job.query(_LOG)
    with _stream(output) as file:
        for batch in table.to_batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                time, *others = row
                texts = [
                    f"{time:%Y-%m-%dT%H:%M:%S.%f}Z",
                    *("-" if value is None else str(value) for value in others),
                ]
                file.write("\t".join(map(printable, texts)) + "\n")
    return {"lines": len(table)}


def _jsonl(rows: Iterator[dict[str, Any]], output: Path | None) -> dict[str, int]:
    count = 0
    with _stream(output) as file:
        for row in rows:
            file.write(in_json({**row, "fetch_time": row["fetch_time"].isoformat()}) + "\n")
            count += 1
    return {"pages": count}


def _parquet(rows: Iterator[dict[str, Any]], output: Path | None) -> dict[str, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ("url", "content_mime_type", "content_charset", "title", "text")
    schema = pa.schema(
        [
            *((name, pa.string()) for name in texts[:1]),
            ("fetch_time", pa.timestamp("us", "UTC")),
            ("fetch_status", pa.int16()),
            *((name, pa.string()) for name in texts[1:]),
        ]
    )
    count = 0
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
            count += len(batch)
    return {"pages": count}


def _wacz(job: StoredJob, output: Path | None) -> dict[str, int]:
    assert output is not None
    return job.write_wacz(output)


def _edges(job: StoredJob, output: Path | None) -> dict[str, int]:
    table = job.query(_EDGES)
    with _stream(output) as file:
        for batch in table.to_batches():
            columns = [column.to_pylist() for column in batch.columns]
            file.writelines(
                f"{source}\t{target}\t{links}\n" for source, target, links in zip(*columns, strict=True)
            )
    return {"edges": len(table)}


def _npz(job: StoredJob, output: Path | None) -> dict[str, int]:
    """The out-links of domains in compressed sparse rows: `indices[indptr[i]:indptr[i + 1]]` are those of
    domain i, whose name is line i of the file of names."""
    import numpy as np

    assert output is not None
    table = job.query(_EDGES)
    names, numbers = np.unique(
        np.concatenate([table["source_domain"].to_numpy(), table["target_domain"].to_numpy()]).astype(str),
        return_inverse=True,
    )
    sources, targets = numbers[: len(table)], numbers[len(table) :]
    order = np.lexsort((targets, sources))
    counts = np.bincount(sources, minlength=len(names))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    with output.open("wb") as file:
        np.savez_compressed(file, indptr=indptr, indices=targets[order].astype(np.int32))
    output.with_suffix(".names.txt").write_text("".join(f"{name}\n" for name in names), "utf-8")
    return {"domains": len(names), "edges": len(table)}


# By what is written and the format, the first of which is taken if none is given. Those of texts take pages, others the job.
_OF_TEXTS = (_jsonl, _parquet)
_WRITERS: dict[str, dict[str, Callable[[Any, Path | None], dict[str, int]]]] = {
    "pages": {"jsonl": _jsonl, "parquet": _parquet, "log": _log, "wacz": _wacz},
    "graph": {"edges": _edges, "npz": _npz},
}
