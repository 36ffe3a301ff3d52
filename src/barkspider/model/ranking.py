"""What the ranking methods of Sparkman, Lee and Loguinov (INFOCOM 2011) cost, in RAM (section VI-A to C, Table
II) and in external memory (section VI-D, Table III), and how far their estimates are off (figure 3(b)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HASH = 8  # h: bytes of a node's hash
COUNTER = 4  # m: bytes of a counter of supporters
VECTOR = 8  # b: bytes of a bit vector
BUFFER = 256_000  # M: bytes for an open file
MEMORY_LATENCY = 60e-9  # seconds of a random access, as the paper assumes


@dataclass(frozen=True, slots=True)
class DomainGraph:
    """A graph of pay-level domains by its averages; the paper's own by default, rounded as its tables have it."""

    nodes: float = 89e6  # n
    in_degree: float = 20  # E[d_in]
    supporters: float = 21_000  # E[SUPP_2]
    visits: float = 34_400  # E[QVS]
    size: float = 15.7e9  # F: bytes of the in-graph; the text says 15.8, Table III was made with 15.7


@dataclass(frozen=True, slots=True)
class Work:
    """Random accesses to RAM, and other operations."""

    hits: float
    operations: float


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes read and written, bytes of RAM, and merge phases where there are any."""

    read: float
    written: float
    ram: float
    phases: int = 0


def supp2(graph: DomainGraph) -> Work:
    """Exact level-2 supporters by BFS from each node: mark each node visited, clear the marks, count.

    >>> f"{supp2(DomainGraph()).hits * MEMORY_LATENCY / 3600:.0f} hours"
    '82 hours'
    """
    return Work(graph.nodes * (graph.visits + graph.supporters), graph.nodes * graph.supporters)


def tse(graph: DomainGraph, share: float) -> Work:
    """Top Supporters Estimation from a `share` p of all nodes: that share of the work of BFS."""
    whole = supp2(graph)
    return Work(share * whole.hits, share * whole.operations)


def bit_vector(graph: DomainGraph, rounds: int) -> Work:
    """Bit Vector: two passes over the edges a round, and a random number for each bit of each node, which is what
    Table II counts as operations (the OR beside each hit is left out there)."""
    return Work(2 * rounds * graph.nodes * graph.in_degree, rounds * 8 * VECTOR * graph.nodes)


def quick_visit(graph: DomainGraph) -> Work:
    """Quick Visit: an addition for each edge."""
    return Work(graph.nodes * graph.in_degree, graph.nodes * graph.in_degree)


def supp2_a_disk(graph: DomainGraph, ram: float) -> Disk:
    """SUPP2-A, equation (4): the in-graph is read again for each part of the result that fits RAM.

    >>> f"{supp2_a_disk(DomainGraph(), ram=8e9).read / 1e12:.0f} TB"
    '32 TB'
    """
    read = graph.size**2 * (graph.in_degree + graph.supporters) / (graph.in_degree * ram)
    return Disk(read, 0, ram)


def supp2_b_disk(graph: DomainGraph, ram: float) -> Disk:
    """SUPP2-B: all pairs of a node and a supporter are written, then merged in as many phases as RAM calls for.

    >>> supp2_b_disk(DomainGraph(), ram=100e6).phases
    3
    """
    pairs = 2 * graph.nodes * HASH * graph.visits
    blocks, fan_in = pairs / ram, ram / BUFFER
    phases = max(1, math.ceil(math.log(blocks) / math.log(fan_in)))
    return Disk(phases * pairs, phases * pairs, ram, phases)


def bit_vector_disk(graph: DomainGraph, rounds: int) -> Disk:
    """Bit Vector: 2r passes over the graph; two vectors and a counter for each node in RAM."""
    return Disk(2 * rounds * graph.size, 0, (2 * VECTOR + COUNTER) * graph.nodes)


def quick_visit_disk(graph: DomainGraph) -> Disk:
    """Quick Visit: two passes; two hashes and two counts for each node in RAM."""
    return Disk(2 * graph.size, 0, 2 * (HASH + COUNTER) * graph.nodes)


def tse_disk(graph: DomainGraph, share: float) -> Disk:
    """TSE: the out-graph and the in-graph once each; the sampled nodes' neighbours in RAM.

    >>> tse_disk(DomainGraph(), share=0.01).ram
    157000000.0
    """
    return Disk(2 * graph.size, 0, share * graph.size)


def sampling_error(p: float, supporters: float) -> float:
    """The mean relative error of TSE for a node with so many supporters: √(2 (1 - p) / (π p S)).

    The number of sampled supporters is binomial with relative deviation √((1 - p) / (p S)), and a normal
    variable is √(2/π) deviations from its mean on average.

    >>> round(sampling_error(0.01, 630_000), 4)
    0.01
    """
    return math.sqrt(2 * (1 - p) / (math.pi * p * supporters)) if supporters else 0.0


def bit_vector_error(bits: int) -> float:
    """The least mean relative error that Bit Vector can have with so many bits a node and all its rounds.

    A round in which λ of a node's supporters set each bit on average tells of log S as much as b λ² / (e^λ - 1)
    (Fisher's information: a bit stays 0 with probability e^-λ). λ doubles from round to round, so all rounds
    together tell b times the integral of λ / (e^λ - 1), which is π²/6, over log 2; no unbiased estimate
    deviates less than the inverse root of that.

    >>> round(bit_vector_error(64), 4)
    0.0647
    """
    information = bits * math.pi**2 / (6 * math.log(2))
    return math.sqrt(2 / (math.pi * information))
