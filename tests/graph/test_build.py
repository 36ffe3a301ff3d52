"""Graphs on disk: built in little memory, read back, damaged, imported."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barkspider.core.errors import StorageError, UsageError
from barkspider.graph.arrays import ArrayFile, ArrayWriter, Traffic
from barkspider.graph.build import build_graph
from barkspider.graph.importing import read_edges, read_graph
from barkspider.graph.sorting import Sorter
from barkspider.graph.store import Graph
from barkspider.storage.env import Env
from barkspider.url import KeyMaker
from tests.graph.reference import linked_from, scale_free


def links_of(graph: Graph) -> list[tuple[str, str]]:
    """All edges by name, read from the out-graph."""
    return [
        (graph.name(first + row), graph.name(int(target)))
        for first, offsets, neighbours in graph.out.scan(Traffic())
        for row in range(len(offsets) - 1)
        for target in neighbours[offsets[row] : offsets[row + 1]]
    ]


def test_building_takes_the_memory_it_is_given(tmp_path: Path) -> None:
    """Where all edges just fit, nothing is as large that is made of them on the way."""
    memory, random = 40_000_000, np.random.default_rng(1)
    edges = memory // 16  # half of it for each direction
    batches = (
        (random.integers(0, 100_000, 50_000), random.integers(0, 100_000, 50_000))
        for _ in range(edges // 50_000)
    )
    tracemalloc.start()
    try:
        build_graph(Env(), tmp_path / "graph", batches, memory=memory)
        assert tracemalloc.get_traced_memory()[1] < 1.4 * memory
    finally:
        tracemalloc.stop()


def test_names_are_numbered_in_the_memory_that_is_given(tmp_path: Path) -> None:
    """60,000 names as a table in RAM would make it 16 MB."""

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(0, 60_000, 5_000):
            sources = [f"domain-{number}.example" for number in range(begin, begin + 5_000)]
            targets = [f"domain-{number // 7}.example" for number in range(begin, begin + 5_000)]
            yield pa.record_batch({"source": sources, "target": targets})

    read_edges(Env(), tmp_path / "warm", islice(batches(), 1))  # compiled by now
    tracemalloc.start()
    try:
        graph = read_edges(Env(), tmp_path / "graph", batches(), memory=2_000_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert (graph.nodes, graph.edges) == (60_000, 59_999)
    assert all(
        graph.name(node) == f"domain-{node}.example" for node in range(0, 60_000, 7)
    )  # as they came up
    assert graph.out.neighbours.tolist() == [node // 7 for node in range(1, 60_000)]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_two_names_with_one_key_are_refused_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        KeyMaker, "column", lambda _, names: np.array([len(name) for name in names], np.uint64)
    )
    edges = pa.record_batch({"source": ["a", "bcd"], "target": ["cc", "ab"]})
    with pytest.raises(UsageError, match="cc and ab have the same hash"):
        read_edges(Env(), tmp_path / "graph", iter([edges]))
    assert list((tmp_path / "graph").iterdir()) == []


@pytest.mark.parametrize("memory", [1, 100_000, 10_000_000])
def test_both_directions_hold_every_edge_once_however_little_memory(tmp_path: Path, memory: int) -> None:
    edges = scale_free(3_000, 40_000)
    pairs = np.array(edges)
    batches = [(part[:, 0], part[:, 1]) for part in np.array_split(pairs, 7)]
    graph = build_graph(Env(), tmp_path / "graph", batches, nodes=3_000, memory=memory)
    into = linked_from(3_000, edges)
    assert graph.edges == sum(map(len, into))
    sides = graph.into.offsets.tolist(), graph.into.neighbours.tolist()
    assert [sides[1][b:e] for b, e in zip(sides[0], sides[0][1:], strict=False)] == [sorted(s) for s in into]
    turned = {(source, target) for target, sources in enumerate(into) for source in sources}
    assert links_of(graph) == [(str(a), str(b)) for a, b in sorted(turned)]
    assert sorted(Env().list(tmp_path / "graph")) == [
        "in.neighbours", "in.offsets", "out.neighbours", "out.offsets",
    ]  # fmt: skip


def test_a_reader_may_begin_anywhere(tmp_path: Path) -> None:
    pairs = np.array(scale_free(3_000, 40_000))
    graph = build_graph(Env(), tmp_path / "graph", [(pairs[:, 0], pairs[:, 1])], nodes=3_000)
    for begin in (0, 1, 1234, 2999):
        chunk = graph.into.reader(Traffic(), begin).take(1)
        low, high = graph.into.offsets[begin : begin + 2]
        assert chunk.neighbours.tolist() == graph.into.neighbours[low:high].tolist()
        assert chunk.first == begin


def test_sorting_gives_each_key_once_and_leaves_no_file(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    keys = random.integers(0, 60_000, 200_000).astype(np.uint64)
    sorter = Sorter(Env(), tmp_path, 40_000, Traffic(), "keys")
    for part in np.array_split(keys, 9):
        sorter.add(part)
    assert np.concatenate(list(sorter.merged())).tolist() == np.unique(keys).tolist()
    assert Env().list(tmp_path) == []


def test_damage_is_named_when_mapped_and_when_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    with ArrayWriter(Env(), path, "<u4") as writer:
        writer.write(np.arange(100_000))
    whole = path.read_bytes()
    assert ArrayFile(Env(), path, "<u4").map().tolist() == list(range(100_000))
    for place in (20, 200_000):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        file = ArrayFile(Env(), path, "<u4")
        with pytest.raises(StorageError, match=r"numbers is damaged at byte"):
            file.map()
        with pytest.raises(StorageError, match=r"numbers is damaged at byte"):
            file.stream(Traffic()).take(100_000)
    for bad in (b"", whole[:10], whole[:-1], whole[:-100], whole[:16]):
        path.write_bytes(bad)
        with pytest.raises(StorageError, match="numbers"):
            ArrayFile(Env(), path, "<u4")
    path.write_bytes(whole)
    with pytest.raises(StorageError, match="does not hold items of type <i4"):
        ArrayFile(Env(), path, "<i4")


def test_a_failed_build_leaves_an_empty_folder_and_a_full_one_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    with pytest.raises(UsageError, match="names node -1"):
        build_graph(Env(), folder, [(np.array([0, 1]), np.array([1, -1]))])
    assert Env().list(folder) == []
    build_graph(Env(), folder, [(np.array([0]), np.array([1]))], names=[b"a.org", b"b.org"])
    assert Graph(Env(), folder).name(1) == "b.org"
    with pytest.raises(UsageError, match="is not empty"):
        build_graph(Env(), folder, [])
    with pytest.raises(UsageError, match="names for 0 to 1 only"):
        build_graph(Env(), tmp_path / "other", [(np.array([0]), np.array([2]))], names=[b"a", b"b"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numbers.csv", "source,target\n0,1\n1,2\n1,2\n2,2\n"),
        ("blanks.txt", "# a comment\n0 1\n1 2\n"),
        ("tabs.tsv", "0\t1\n1\t2\n"),
        ("more.csv", "0,1,weight\n1,2,weight\n"),
        ("spaces.csv", " 0 ,\t1\n1 , 2 \n"),
        ("mark.csv", "\ufeffSource,Target\n0,1\n1,2\n"),
    ],
)
def test_edge_lists_of_numbers(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    graph = read_graph(Env(), tmp_path / name, tmp_path / "graph")
    assert links_of(graph) == [("0", "1"), ("1", "2")]
    assert not graph.named


def test_edge_lists_of_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("from,to\na.org,b.org\nb.org,c.org\na.org,b.org\n")
    pq.write_table(pa.table({"x": ["a.org", "b.org"], "y": ["b.org", "c.org"]}), tmp_path / "a.parquet")
    for number, name in enumerate(("a.csv", "a.parquet")):
        graph = read_graph(Env(), tmp_path / name, tmp_path / str(number))
        assert sorted(links_of(graph)) == [("a.org", "b.org"), ("b.org", "c.org")]
        assert read_graph(Env(), tmp_path / str(number), tmp_path / "unused").nodes == 3
    pq.write_table(pa.table({"x": [0, 1], "y": [1, 2]}), tmp_path / "n.parquet")
    assert links_of(read_graph(Env(), tmp_path / "n.parquet", tmp_path / "n")) == [("0", "1"), ("1", "2")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "a.org , b.org\n  b.org,c d \n"),
        ("a.csv", '"a.org", "b.org"\n "b.org" ,"c d"\n'),
        ("a.tsv", "a.org \t b.org\nb.org\tc d\n"),
    ],
)
def test_blanks_around_names_are_no_part_of_them(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    graph = read_graph(Env(), tmp_path / name, tmp_path / "graph")
    assert sorted(links_of(graph)) == [("a.org", "b.org"), ("b.org", "c d")]


def test_every_word_can_be_a_name(tmp_path: Path) -> None:
    names = ["NA", "null", "nan", "NULL", "N/A", "#N/A", "#", "#a", "%", "-", "None", "true"]
    (tmp_path / "a.csv").write_text("\n".join(f"{name},hub.org" for name in names))
    graph = read_graph(Env(), tmp_path / "a.csv", tmp_path / "graph")
    assert sorted(links_of(graph)) == sorted((name, "hub.org") for name in names)


@pytest.mark.parametrize(
    "text", ["a.org,b.org\n ,c.org\n", "a.org,b.org\nc.org,\n", 'a.org,b.org\n"",c.org\n']
)
def test_an_edge_needs_both_its_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match="lacks its source or its target"):
        read_graph(Env(), tmp_path / "a.csv", tmp_path / "graph")


@pytest.mark.parametrize(
    ("name", "text", "rest"),
    [
        ("a.csv", "citing,cited\n0,1\n", [("0", "1")]),
        ("a.csv", "Linking Site, linked site\na.org,b.org\n", [("a.org", "b.org")]),
        ("a.csv", "linker,linkee\na.org,b.org\n", [("a.org", "b.org")]),
        ("a.csv", "from_domain,b\na,b\n", [("a", "b")]),
        ("a.csv", "source,weight\na,b\n", [("a", "b")]),
        ("a.tsv", "from_host\tto_host\na.org\tb.org\n", [("a.org", "b.org")]),
        ("a.txt", "id1 id2\n0 1\n", [("0", "1")]),
    ],
)
def test_a_first_line_that_may_be_a_header_is_asked_about(
    tmp_path: Path, name: str, text: str, rest: list[tuple[str, str]]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(
        UsageError, match=r"the first line, .*, may be a header or an edge: say --header"
    ) as error:
        read_graph(Env(), tmp_path / name, tmp_path / "asked")
    assert "\n" not in str(error.value)
    assert links_of(read_graph(Env(), tmp_path / name, tmp_path / "less", header=True)) == rest
    assert len(links_of(read_graph(Env(), tmp_path / name, tmp_path / "all", header=False))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "a.org,b.org\nc.org,d.org\n",
        "a,b\nc,d\n",
        "localhost,a.org\nb.org,c.org\n",
        "node.org,b\nc,d\n",
        "a,b",
    ],
)
def test_a_first_line_like_the_others_is_an_edge(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    graph = read_graph(Env(), tmp_path / "a.csv", tmp_path / "graph")
    assert len(links_of(graph)) == len(text.splitlines())


def test_a_known_header_can_be_an_edge_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("u,v\nv,w\n")
    assert links_of(read_graph(Env(), tmp_path / "a.csv", tmp_path / "less")) == [("v", "w")]
    graph = read_graph(Env(), tmp_path / "a.csv", tmp_path / "all", header=False)
    assert sorted(links_of(graph)) == [("u", "v"), ("v", "w")]
