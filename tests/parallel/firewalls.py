"""What processes find that keep to their own domains, by the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from barkspider.lab.simulate.parallel import Setup, Simulation
from barkspider.lab.synthweb import Web, write_graph
from barkspider.lab.webgraph import load_web


def behind_firewalls(web: Web, seeds: Sequence[str], processes: int, seed: int, folder: Path) -> set[str]:
    """The URLs that so many processes fetch from these seeds, the first ones of the web; `seed` is that of the keys."""
    graph, names = folder / "web.npz", folder / "web.names.txt"
    write_graph(web, graph, names, seeds=len(seeds))
    urls = names.read_text().split()
    simulation = Simulation(load_web(graph))
    owners = simulation.divider.owners("domain", processes, seed)
    first = np.array([urls.index(each) for each in seeds], np.int32)
    given = [first[owners[first] == process] for process in range(processes)]
    found = simulation.crawl(Setup("firewall", processes, "domain"), owners, given)
    return {urls[page] for page in np.flatnonzero(found.times)}
