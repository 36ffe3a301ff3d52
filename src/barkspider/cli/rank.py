"""`barkspider rank`: who in a domain graph deserves to be crawled."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json
from barkspider.core.errors import UsageError
from barkspider.core.units import parse_size

if TYPE_CHECKING:
    from barkspider.graph.rank import Choice, Result
    from barkspider.graph.store import Graph

_ROUGH = 1_000  # nodes of a sample below which its scores are too rough to tell the order
_SHOWN = 15  # of the top list on a screen unless --top says otherwise: as many as Table I has
_TINY = 20_000  # nodes up to which all supporters are counted in a moment

Method = Annotated[
    str,
    typer.Option(
        help="in, win, pagerank, supp (supp-a, supp-b), qvs, bv or tse; if not given, tse for more than 20,000 nodes, "
        "else supp, which is exact.",
        show_default=False,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        help="Length of the top list; 1000 if not given, of which 15 are printed.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(help="Write all scores (.parquet); with --compare a picture (.svg, .png, .pdf)."),
]
Header = Annotated[
    bool | None,
    typer.Option(help="Of edges in text: whether the first line is a header, where that cannot be told."),
]
MergeRedirects = Annotated[
    bool,
    typer.Option("--merge-redirects", help="Of a job: count domains that only redirect with their targets."),
]


def rank(
    graph: Annotated[
        Path, typer.Argument(help="A job, a graph's folder, .npz, or edges in .csv, .tsv, .txt or .parquet.")
    ],
    method: Method = "",
    p: Annotated[float, typer.Option(help="Share of nodes that tse samples.")] = 0.01,
    depth: Annotated[int, typer.Option(help="Distance of supporters (supp, bv, tse).")] = 2,
    top: Top = None,
    memory: Annotated[
        str, typer.Option(help="Rank from disk in about so much RAM, such as 64MB; else all in RAM.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the sample of tse and the bits of bv.")] = 1,
    output: Output = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the imported graph in this folder, to rank it again.")
    ] = None,
    header: Header = None,
    merge_redirects: MergeRedirects = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run all methods and show them side by side.")
    ] = False,
    spam_list: Annotated[Path | None, typer.Option(help="With --compare: names of spam, one a line.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="With --compare: lines `name number` from another source.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rank the nodes of a domain graph by their place in it.

    Example: barkspider rank jobs/example --merge-redirects --method supp --top 20

    Example: barkspider rank domains.npz --method tse --p 0.001 --top 20

    Example: barkspider rank edges.parquet --save graph/ --method supp-b --memory 64MB --output scores.parquet

    Example: barkspider rank graph/ --compare --spam-list spam.txt --output compare.svg
    """
    from barkspider.cli import rank_compare
    from barkspider.graph.rank import Choice

    shown = _SHOWN if top is None else top
    size = parse_size(memory) if memory else None
    choice = Choice(method or "tse", p, depth, 1000 if top is None else top, size, seed, output is not None)
    _check_options(choice, output, save, compare, spam_list or scores)
    if compare:
        spam = rank_compare.read_spam(spam_list)
        outside = rank_compare.read_scores(scores)
        with _opened(graph, save, choice, merge_redirects, header) as opened:
            rank_compare.compare(opened, choice, spam, outside, output, as_json)
        return
    with _opened(graph, save, choice, merge_redirects, header) as opened:
        if not method and opened.nodes <= _TINY:
            choice = replace(choice, method="supp")
        _rank_one(opened, choice, output, shown, as_json)


def _check_options(
    choice: Choice, output: Path | None, save: Path | None, compare: bool, outside: Path | None
) -> None:
    from barkspider.graph.methods import check_depth, sample_limit
    from barkspider.graph.rank import METHODS, VARIANTS

    if choice.method not in METHODS + VARIANTS:
        raise UsageError(f"{choice.method!r} is no method; the methods are {', '.join(METHODS + VARIANTS)}")
    sample_limit(choice.p)
    check_depth(choice.depth)
    if choice.top < 1:
        raise UsageError(f"the top list has {choice.top} nodes; give 1 or more")
    if compare and choice.memory is not None:
        raise UsageError("--compare ranks in RAM only: leave --memory out")
    if outside is not None and not compare:
        raise UsageError("--spam-list and --scores are for --compare: give it too")
    wanted = (".svg", ".png", ".pdf") if compare else (".parquet",)
    if output is not None and output.suffix not in wanted:
        raise UsageError(f"{output} does not end in {' or '.join(wanted)}")
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"the folder of {output} does not exist; create it first")
    if save is not None and save.exists() and not save.is_dir():
        raise UsageError(f"{save} is a file; name a folder with --save")


@contextmanager
def _opened(
    path: Path, save: Path | None, choice: Choice, merge_redirects: bool, header: bool | None
) -> Iterator[Graph]:
    if save is not None:
        yield _read(path, save, choice, merge_redirects, header)
        return
    with tempfile.TemporaryDirectory(prefix="barkspider-rank-") as folder:
        yield _read(path, Path(folder), choice, merge_redirects, header)


def _read(path: Path, folder: Path, choice: Choice, merge_redirects: bool, header: bool | None) -> Graph:
    """The graph in a file or a folder, or of the links that a job has found."""
    from barkspider.graph.importing import read_edges, read_graph
    from barkspider.storage.env import Env

    memory = {} if choice.memory is None else {"memory": choice.memory}
    if not (path / "settings.toml").is_file():
        if merge_redirects:
            raise UsageError(
                f"--merge-redirects is for jobs, and {path} is none: it does not tell who redirects"
            )
        return read_graph(Env(), path, folder, header=header, **memory)
    if header is not None:
        raise UsageError(f"{path} is a job: --header and --no-header are for edges in text")
    from barkspider.engine.stored import open_job  # here: only a job needs all that reads pages

    job = open_job(path)
    merged = job.domain_aliases() if merge_redirects else {}
    if merge_redirects:
        say(f"{len(merged):,} domains only redirect to another and are counted with it", error=True)
    try:
        with working("reading links"):
            return read_edges(Env(), folder, job.domain_links(merged), **memory)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _rank_one(graph: Graph, choice: Choice, output: Path | None, shown: int, as_json: bool) -> None:
    from barkspider.graph.rank import rank as run

    if output is None:
        with working(f"ranking {graph.nodes:,} nodes"):
            result = run(graph, choice)
    else:
        with _score_file(graph, output) as take, working(f"ranking {graph.nodes:,} nodes"):
            result = run(graph, choice, take)
    if as_json:
        say_json(as_dict(graph, result))
        return
    for place, (node, score) in enumerate(result.top[:shown], 1):
        say(f"{place:4}  {score:>16,.6g}  {graph.name(node)}")
    if len(result.top) > shown:
        say(f"      and {len(result.top) - shown:,} more with --top or --json")
    moved = ""
    if result.bytes_read:
        moved = f", {result.bytes_read / 1e6:,.1f} MB read, {result.bytes_written / 1e6:,.1f} MB written"
    say(
        f"{result.method} on {result.nodes:,} nodes and {result.edges:,} edges: {result.seconds:.2f} s, "
        f"{result.cpu_seconds:.2f} s of CPU, {result.ram_hits:,} memory hits{moved}"
    )
    sampled = round(choice.p * result.nodes)
    if choice.method == "tse" and sampled < _ROUGH and choice.p < 1:
        say(f"only some {sampled:,} nodes were sampled: --method supp counts all of them", error=True)


def as_dict(graph: Graph, result: Result) -> dict[str, Any]:
    """A result as JSON has it: names in place of numbers where there are names."""
    shown = asdict(result)
    shown["top"] = [[graph.name(node) if graph.named else node, score] for node, score in result.top]
    return shown


@contextmanager
def _score_file(graph: Graph, path: Path) -> Iterator[Any]:
    """Writes blocks of scores as rows of a Parquet file: node, name where there are names, score."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [
        ("node", pa.uint32()),
        *([("name", pa.string())] if graph.named else []),
        ("score", pa.float64()),
    ]
    schema = pa.schema(fields)
    rows = 1 << 18
    with pq.ParquetWriter(path, schema) as writer:

        def take(first: int, scores: Any) -> None:
            for begin in range(0, len(scores), rows):
                part = scores[begin : begin + rows]
                nodes = np.arange(first + begin, first + begin + len(part))
                columns = [pa.array(nodes, pa.uint32()), pa.array(part.astype(np.float64))]
                if graph.named:
                    columns.insert(1, pa.array([graph.name(node) for node in nodes.tolist()], pa.string()))
                writer.write_batch(pa.record_batch(columns, schema=schema))

        yield take
