"""robots.txt: ours and Protego in one run: microseconds to read a file and to judge a URL, and verdicts.

Files are written after a fixed seed: a few kilobytes, a group for all with rules of which one in five has a
wildcard, and groups for others. URLs are paths of the same words, so that some match. Verdicts are those of
Google's published parser, where its cases are beside the project; Protego is given whole URLs as it wants them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from barkspider.url import RobotsRules

_CASES = Path(__file__).parents[1].parent / "shared" / "data" / "robots" / "google_robots_cases.json"
_AGENT = "barkspider"
_RULES = (10, 60, 200)  # in the group for all, by turns
_WORDS = [f"{first}{second}" for first in ("cat", "user", "shop", "blog", "tag") for second in range(40)]


def run(quick: bool) -> dict[str, Any]:
    """Reads 300 files (60 when `quick`), judges 40 URLs by each; the best of three."""
    random = Random(1)
    files = [_file(random, _RULES[number % len(_RULES)]) for number in range(60 if quick else 300)]
    targets = [_target(random) for _ in range(40)]
    figures: dict[str, Any] = {"files": len(files), "bytes_per_file": sum(map(len, files)) // len(files)}
    ours = _ours(files, targets)
    figures |= {f"barkspider_{name}": value for name, value in ours.items()}
    theirs = _theirs(files, targets)
    figures |= {f"protego_{name}": value for name, value in theirs.items()}
    figures["same_verdicts"] = _agreement(files, targets) if theirs else None
    wanted = (
        ("verdicts of 145", ours["verdicts"], 145),
        ("times Protego's speed, reading", _times(theirs, ours, "parse_microseconds"), 1.5),
        ("times Protego's speed, judging", _times(theirs, ours, "match_microseconds"), 5.0),
    )
    return {
        "figures": figures,
        "targets": [
            {
                "name": name,
                "value": value,
                "target": target,
                "holds": None if value is None else value >= target,
            }
            for name, value, target in wanted
        ],
    }


def _times(theirs: dict[str, Any], ours: dict[str, Any], name: str) -> float | None:
    return round(theirs[name] / ours[name], 1) if theirs else None


def _ours(files: list[bytes], targets: list[str]) -> dict[str, Any]:
    def judge(case: dict[str, Any]) -> bool:
        rules = RobotsRules.parse(case["robots"].encode(), case["ua"])
        return rules.allows(_path(case["url"]))

    return _measure(
        files,
        targets,
        lambda body: RobotsRules.parse(body, _AGENT),
        lambda rules, target: rules.allows(target),
        judge,
    )


def _theirs(files: list[bytes], targets: list[str]) -> dict[str, Any]:
    try:
        from protego import Protego
    except ImportError:
        return {}

    def judge(case: dict[str, Any]) -> bool:
        return bool(Protego.parse(case["robots"]).can_fetch(case["url"], case["ua"]))

    urls = [f"https://example.com{target}" for target in targets]
    return _measure(
        files,
        urls,
        lambda body: Protego.parse(body.decode()),
        lambda rules, url: rules.can_fetch(url, _AGENT),
        judge,
    )


def _measure(
    files: list[bytes],
    urls: list[str],
    read: Callable[[bytes], Any],
    judge: Callable[[Any, str], bool],
    verdict: Callable[[dict[str, Any]], bool],
) -> dict[str, Any]:
    reading = judging = float("inf")
    for _ in range(3):
        start = time.process_time()
        made = [read(body) for body in files]
        middle = time.process_time()
        for rules in made:
            for url in urls:
                judge(rules, url)
        judging = min(judging, time.process_time() - middle)
        reading = min(reading, middle - start)
    right = None
    if _CASES.exists():
        right = sum(verdict(case) == case["allowed"] for case in json.loads(_CASES.read_text())["allowed"])
    return {
        "parse_microseconds": round(reading / len(files) * 1e6, 1),
        "match_microseconds": round(judging / len(files) / len(urls) * 1e6, 2),
        "verdicts": right,
    }


def _agreement(files: list[bytes], targets: list[str]) -> float:
    """The share of verdicts on these files that are the same."""
    from protego import Protego

    same = 0
    for body in files:
        ours, theirs = RobotsRules.parse(body, _AGENT), Protego.parse(body.decode())
        same += sum(
            ours.allows(target) == theirs.can_fetch(f"https://example.com{target}", _AGENT)
            for target in targets
        )
    return round(same / len(files) / len(targets), 4)


def _path(url: str) -> str:
    """Path and query by the reading of Google's cases, some of which are no URLs: nothing at all means `/`."""
    rest = re.sub(r"^(?:[a-z]+:)?//", "", url).partition("#")[0]
    start = re.search(r"[/?]", rest)
    return "/" + rest[start.start() :].removeprefix("/") if start else "/"


def _file(random: Random, rules: int) -> bytes:
    lines = ["# made for a benchmark", "User-agent: otherbot", "User-agent: slowbot", "Disallow: /", ""]
    lines.append("User-agent: *")
    for _ in range(rules):
        path = f"/{random.choice(_WORDS)}/{random.choice(_WORDS)}"
        ending = random.choice(["", "", "", "/", "/*.pdf$", "*/print"][: 6 if random.random() < 0.6 else 4])
        lines.append(f"{random.choice(['Disallow', 'Disallow', 'Disallow', 'Allow'])}: {path}{ending}")
    lines += ["Crawl-delay: 2", "Sitemap: https://example.com/sitemap.xml", ""]
    return "\n".join(lines).encode()


def _target(random: Random) -> str:
    return f"/{random.choice(_WORDS)}/{random.choice(_WORDS)}/article-{random.randrange(10**6)}.html?page=2"
