"""What each method moves from and to disk, by the formulas of section VI-D and Table III.

F is the bytes of one direction of the graph, Ω the memory, h = 4 the bytes of a node's number.
"""

from __future__ import annotations

import math

from barkspider.graph.sorting import BUFFER

_H = 4


def quick_visit_bytes(size: int) -> int:
    """QVS: D = 2F.

    >>> quick_visit_bytes(15_700_000_000)
    31400000000
    """
    return 2 * size


def in_degree_bytes(nodes: int) -> int:
    """IN: the offsets of the in-graph."""
    return 8 * (nodes + 1)


def pagerank_bytes(size: int, nodes: int, rounds: int = 1) -> int:
    """PageRank: D = rF, and the offsets of the out-graph; WIN is one round of it.

    >>> pagerank_bytes(15_800_000_000, 89_000_000, 40)
    632712000008
    """
    return rounds * size + in_degree_bytes(nodes)


def distant_supporters_bytes(size: int, nodes: int, sources: int, depth: int, memory: int) -> int:
    """SUPP_D and TSE at any distance: D times F for as many sources as have a bit in the memory.

    >>> distant_supporters_bytes(3_200_000, 100_000, 100_000, 3, 64_000_000)
    393600000
    """
    words = max(1, (memory - _H * nodes) // (16 * nodes))
    return depth * size * math.ceil(sources / (64 * words))


def bit_vector_bytes(size: int, rounds: int, depth: int = 2) -> int:
    """BV: D = 2rF for distance two.

    >>> bit_vector_bytes(15_800_000_000, 2)
    63200000000
    """
    return depth * rounds * size


def top_supporters_bytes(size: int) -> int:
    """TSE: D = 2F."""
    return 2 * size


def supporters_a_bytes(size: int, nodes: int, edges: int, supporters: int, memory: int) -> int:
    """SUPP2-A, equation (4): F for each time that the memory is filled, and F for loading Q.

    What fills it is a number for each node, for each of its in-neighbours and for each of its supporters:
    F (E[d_in] + E[SUPP2]) / E[d_in] with F counted as lists (x, y1, y2, …). The last time it is not full, but
    the graph is read all the same.

    >>> nodes, memory = 89_000_000, 4_000_000_000
    >>> round(supporters_a_bytes(15_800_000_000, nodes, 20 * nodes, 21_000 * nodes, memory) / 1e12)
    30
    """
    return size * (1 + math.ceil(_H * (nodes + edges + supporters) / memory))


def supporters_b_bytes(size: int, paths: int, memory: int) -> tuple[float, float, int]:
    """SUPP2-B: bytes read, bytes written, merge phases: D = 2h n E[QVS] each way in each of ⌈log_k m⌉ phases.

    In all phases but one only as many blocks are merged as is needed, so with several this is the most that it takes.
    3F is for reading both graphs, and the in-graph again.

    >>> read, written, phases = supporters_b_bytes(15_800_000_000, 89_000_000 * 34_400, 8_000_000_000)
    >>> round(written / 1e12, 1), phases
    (24.5, 1)
    """
    written = 2 * _H * paths
    blocks, ways = max(1, math.ceil(written / memory)), max(2, memory // BUFFER)
    phases = max(1, math.ceil(math.log(blocks, ways))) if blocks > 1 else 0
    return 3 * size + phases * written, phases * written, phases
