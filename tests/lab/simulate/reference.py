"""Strategies as slow, plain Python, to compare the compiled loops with."""

from __future__ import annotations

from collections import deque
from math import inf

import numpy as np

from barkspider.frontier.sampling import sample
from barkspider.lab.webgraph import WebGraph


def figure_2(
    web: WebGraph, seeds: list[int], t: int, seed: int, limit: float = inf, keeps: bool = True
) -> tuple[list[int], int, set[int], int, int]:
    """The Sydney strategy line by line, within a limit as section 3.3 has it, without the kernels' rules of places.

    Pages by first visit, visits, pages re-visited, the largest queue, and links that were lost.
    """
    state = np.array([seed], np.uint64)
    primary, secondary = deque(dict.fromkeys(seeds)), deque[int]()
    seen, visited = set(primary), dict[int, int]()
    largest, visits, lost = len(primary), 0, 0
    while primary:
        page = primary.popleft()
        visited[page] = visited.get(page, 0) + 1
        visits += 1
        new = [target for target in dict.fromkeys(web.links(page).tolist()) if target not in seen]
        free = limit - len(primary) - len(secondary)
        stays = keeps and 0 < t < len(new) and (free > 1 or (free == 1 and bool(primary)))
        if stays:
            secondary.append(page)
            free -= 1
        taken = int(min(t or len(new), len(new), max(free, 0)))
        chosen = sample(len(new), taken, state) if taken else [False] * len(new)
        for target, takes in zip(new, chosen, strict=True):
            if takes:
                seen.add(target)
                primary.append(target)
        lost += 0 if stays else len(new) - taken
        largest = max(largest, len(primary) + len(secondary))
        if not primary:
            primary, secondary = secondary, deque()
    return list(visited), visits, {page for page, count in visited.items() if count > 1}, largest, lost


def by_backlinks(web: WebGraph, seeds: list[int]) -> list[int]:
    """Seeds, then pages by the number of links seen so far; of equal ones the one that had as many first."""
    links, waiting = dict[int, tuple[int, int]](), list(seeds)
    clock, order = 0, list[int]()
    while waiting or links:
        page = waiting.pop(0) if waiting else min(links, key=lambda each: (-links[each][0], links[each][1]))
        links.pop(page, None)
        order.append(page)
        for target in web.links(page).tolist():
            if target not in order:
                links[target] = (links.get(target, (0, 0))[0] + 1, clock)
                clock += 1
    return order


def depth_first(web: WebGraph, seeds: list[int]) -> list[int]:
    """A stack of pages, the newest first."""
    stack, seen, order = list(seeds), set(seeds), list[int]()
    while stack:
        page = stack.pop()
        order.append(page)
        for target in web.links(page).tolist():
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return order
