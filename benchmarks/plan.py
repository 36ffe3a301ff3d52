"""What a crawl moves on disk, beside what the models say of it: every DRUM, and the queues of BEAST.

The IRLbot frontier crawls a million pages of a virtual web, in RAM and without pauses, robots.txt included. On the way
its job is stopped and gone on with three times; the counters must not notice. Memory is short, so that DRUMs merge
because they are full as well as because fetchers are idle. The models get the sizes and merges that the crawl had
(`cli.measured`); equations (8), (10) and (11) get its pages, domains and budgets. A URLseen that never merged early
is equation (5) with the D of each of its generations: with so little memory that is nearly what happens.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.frontier.sites import SiteWeb, crawl

from barkspider.cli.measured import Compared, budgets_compared, drum_compared, whole_generations
from barkspider.core.load import load_settings
from barkspider.frontier.stages import Space
from barkspider.storage.env import Env

_SETTINGS = {"seed": 1, "politeness.host_delay": "0s", "politeness.server_delay": "0s"}
_RUNS = 4


def run(quick: bool) -> dict[str, Any]:
    """A million pages of ten million; when `quick` 100,000 of a million."""
    pages, memory = (100_000, "32MB") if quick else (1_000_000, "64MB")
    web = SiteWeb(10 * pages, 5_000, seed=1)
    settings = load_settings(overrides={**_SETTINGS, "memory": memory})
    figures: dict[str, Any] = {"pages": pages, "resumes": _RUNS - 1}
    found: list[dict[str, Compared]] = []
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for frontier in crawl(web, settings, Path(folder), pages, _RUNS):
            traffic = frontier.traffic()
            budgets = budgets_compared(
                traffic["beast"], traffic["drum"]["seen"], frontier.gauges()["domains"], seconds=1
            )
            drums = {name: drum_compared(about) for name, about in traffic["drum"].items()}
            found.append(drums | {"beast": budgets.moved})
        space = Space(settings, Env(), Path(folder)).seen
        ram, disk = space.ram, space.disk()
    seen, taken = traffic["drum"]["seen"], traffic["beast"]["taken"]
    figures |= {
        "cpu_seconds": round(time.process_time() - begun, 1),
        "links": seen["rows"],
        "links_sifted": round(seen["sifted"] / seen["rows"], 3),
        "unique_urls": seen["unique"],
        "merges": {name: about["merges"] for name, about in traffic["drum"].items()},
        "expected_budget": round(budgets.budget, 2),
        "domains": budgets.domains,
        "over_budget": round(budgets.excess, 2),
        "queues": [budgets.queues, budgets.predicted_queues],
        "beast_bytes_per_page": round(budgets.bytes_per_second / taken),
        "beast_bytes_per_page_by_10": round(budgets.beast_bytes_per_second / taken),
        "beast_bytes_per_page_by_8": round(budgets.naive_bytes_per_second / taken),
    }
    whole = whole_generations(seen, ram, disk) / found[-1]["seen"].counted_bytes
    targets = [_target("seen_by_equation_5_and_its_disk_alone_by_counted_within_10%", whole)]
    for name in found[0]:
        ratios = [run[name].predicted_bytes / run[name].counted_bytes for run in found]
        figures[f"{name}_megabytes"] = round(found[-1][name].counted_bytes / 1e6, 1)
        figures[f"{name}_predicted_by_counted"] = [round(ratio, 3) for ratio in ratios]
        worst = max(ratios, key=lambda ratio: abs(ratio - 1))
        targets.append(_target(f"{name}_predicted_by_counted_within_10%", worst))
    return {"figures": figures, "targets": targets}


def _target(name: str, ratio: float) -> dict[str, Any]:
    return {"name": name, "value": round(ratio, 3), "target": 1.0, "holds": 0.9 <= ratio <= 1.1}
