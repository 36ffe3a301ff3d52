"""Pages per CPU-second: links found, normalised, with keys and domains; ours beside other parsers, in one run.

`synthetic`: pages of the synthetic web, about 25 KB and 60 links each, from parsing to a batch of URLs; the
others get the same normalising and keys. `links`: µs a page of those for the links alone, by kernels and one by one. `real`: the 130 pages of mozilla/readability where they are at hand,
links alone. `hostile`: pages made to be expensive, each in a process of its own: CPU seconds and the peak of
memory above the start.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.engine.links import LinkMaker
from barkspider.engine.links import Links as Found
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.page import Hrefs, PageReader
from barkspider.page.fingerprint import NearDuplicates, simhash

_HARVEST = 80  # pages, as in a fast crawl
_REAL = Path(__file__).parents[2] / "shared" / "data" / "html" / "real-pages.zip"
_TYPE = "text/html; charset=utf-8"
_TAGS = ("a", "area", "link", "iframe", "frame")
_PEERS = ("turbohtml", "resiliparse", "selectolax", "lxml")

Links = Callable[[bytes, str], tuple[Hrefs | list[str], str]]
Pages = list[tuple[str, bytes]]


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    rounds = 3 if quick else 9
    synthetic, real = _synthetic(400 if quick else 1000), _real()
    figures: dict[str, Any] = {
        "synthetic_page_bytes": round(sum(len(body) for _, body in synthetic) / len(synthetic)),
    }
    finders = {"barkspider": _barkspider(), **{name: finder for name in _PEERS if (finder := _peer(name))}}
    # In turns, so that a noisy minute of the machine falls on all alike.
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, links in finders.items():
            _note(best, f"{name}_synthetic", _whole(links, synthetic))
            if real:
                _note(best, f"{name}_real", _alone(links, real))
    megabytes = sum(len(body) for _, body in real) / 1e6
    for name in finders:
        figures[f"{name}_synthetic_pages_per_s"] = round(len(synthetic) / best[f"{name}_synthetic"])
        figures[f"{name}_real_MB_per_s"] = round(megabytes / best[f"{name}_real"]) if real else None
    figures |= _link_figures(synthetic, rounds) | _text_figures(real or synthetic)
    hostile = {name: _hostile(name) for name in _HOSTILE}
    for name, (seconds, mebibytes) in hostile.items():
        figures[f"hostile_{name}"] = f"{seconds:.2f} s, {mebibytes:.0f} MiB"
    pages, speed = figures["barkspider_synthetic_pages_per_s"], figures["barkspider_real_MB_per_s"]
    peers = [name for name in finders if name != "barkspider"]
    return {
        "figures": figures,
        "targets": [
            _target("synthetic: pages per CPU-second", pages, 3500),
            _target("real: MB per CPU-second, links alone", speed, 180),
            _target(
                "synthetic: times the best peer",
                _ratio(pages, [figures[f"{name}_synthetic_pages_per_s"] for name in peers]),
                1.0,
            ),
            _target(
                "real: times the best peer",
                _ratio(speed, [figures[f"{name}_real_MB_per_s"] for name in peers]),
                1.0,
            ),
            _target(
                "hostile: most CPU seconds",
                round(max(seconds for seconds, _ in hostile.values()), 2),
                2.0,
                most=True,
            ),
            _target("hostile: most MiB", round(max(size for _, size in hostile.values())), 256, most=True),
        ],
    }


def _target(name: str, value: float | None, target: float, most: bool = False) -> dict[str, Any]:
    holds = None if value is None else value <= target if most else value >= target
    return {"name": name, "value": value, "target": target, "holds": holds}


def _ratio(ours: float | None, theirs: list[float | None]) -> float | None:
    known = [figure for figure in theirs if figure is not None]
    return round(ours / max(known), 2) if ours is not None and known else None


def _note(best: dict[str, float], name: str, seconds: float) -> None:
    best[name] = min(seconds, best.get(name, seconds))


def _synthetic(count: int) -> Pages:
    web = Web(WebSpec(seed=1, pages=50_000))
    answers = ((url, web.page(url)) for url in web.urls(np.linspace(0, 49_999, count).astype(np.int64)))
    return [(url, bytes(answer.body)) for url, answer in answers if answer.status == 200]


def _real() -> Pages:
    if not _REAL.exists():
        return []
    with zipfile.ZipFile(_REAL) as archive:
        return [("http://example.com/dir/page.html", archive.read(name)) for name in archive.namelist()]


def _whole(links: Links, pages: Pages) -> float:
    """CPU seconds from the bytes of pages to batches of URLs, one for each harvest."""
    maker = LinkMaker(load_settings(options=["scope.level=web", "seed=1"]), [pages[0][0]])
    rows = [UrlRow(1, 2, 3, 0, 0, 0, 0, url.encode()) for url, _ in pages]
    found, harvest = 0, list[Found]()
    before = time.process_time()
    for number, ((url, body), row) in enumerate(zip(pages, rows, strict=True), 1):
        hrefs, base = links(body, url)
        hrefs = hrefs if isinstance(hrefs, Hrefs) else Hrefs.of(hrefs)
        harvest += maker.links(hrefs, base, row)
        if number % _HARVEST == 0 or number == len(pages):
            found += len(maker.batch(harvest))
            harvest = []
    seconds = time.process_time() - before
    assert found > 20 * len(pages)
    return seconds


def _alone(links: Links, pages: Pages) -> float:
    before = time.process_time()
    found = sum(len(hrefs) for hrefs, _ in (links(body, url) for url, body in pages))
    seconds = time.process_time() - before
    assert found > 10 * len(pages)
    return seconds


def _barkspider() -> Links:
    reader = PageReader(load_settings().page)

    def links(body: bytes, url: str) -> tuple[Hrefs, str]:
        page = reader.read(body, _TYPE, url)
        return page.hrefs, page.base

    return links


def _peer(name: str) -> Links | None:
    """Links by another parser, without the care for bases, relations and robots that ours takes."""
    try:
        find = {
            "turbohtml": _turbohtml,
            "lxml": _lxml,
            "selectolax": _selectolax,
            "resiliparse": _resiliparse,
        }[name]()
    except ImportError:
        return None
    return lambda body, url: ([link for link in dict.fromkeys(find(body)) if "\n" not in link], url)


def _turbohtml() -> Callable[[bytes], list[str]]:
    from turbohtml import parse

    def find(body: bytes) -> list[str]:
        elements = parse(body, encoding="utf-8").select(", ".join(_TAGS))
        targets = (element.attr("href") or element.attr("src") for element in elements)
        return [str(target) for target in targets if target]

    return find


def _lxml() -> Callable[[bytes], list[str]]:
    from lxml import etree

    def find(body: bytes) -> list[str]:
        tree = etree.HTML(body, parser=etree.HTMLParser(encoding="utf-8"))
        if tree is None:
            return []
        targets = (element.get("href") or element.get("src") for element in tree.iter(*_TAGS))
        return [target for target in targets if target]

    return find


def _selectolax() -> Callable[[bytes], list[str]]:
    from selectolax.lexbor import LexborHTMLParser

    def find(body: bytes) -> list[str]:
        tree = LexborHTMLParser(body)
        nodes = (node.attrs for tag in _TAGS for node in tree.tags(tag))
        targets = (attributes.get("href") or attributes.get("src") for attributes in nodes)
        return [target for target in targets if target]

    return find


def _resiliparse() -> Callable[[bytes], list[str]]:
    from resiliparse.parse.html import HTMLTree

    def find(body: bytes) -> list[str]:
        root = HTMLTree.parse_from_bytes(body, "utf-8").document
        assert root is not None
        nodes = (node for tag in _TAGS for node in root.get_elements_by_tag_name(tag))
        targets = (node.getattr("href") or node.getattr("src") for node in nodes)
        return [target for target in targets if target]

    return find


def _link_figures(pages: Pages, rounds: int) -> dict[str, Any]:
    """From the links of pages whose hosts are known to rows, by kernels and by a parser for each."""
    maker = LinkMaker(load_settings(options=["scope.level=web", "seed=1"]), [pages[0][0]])
    reader = PageReader(load_settings().page)
    read = [reader.read(body, _TYPE, url) for url, body in pages]
    rows = [UrlRow(1, 2, 3, 0, 0, 0, 0, url.encode()) for url, _ in pages]
    ways: dict[str, Sequence[Hrefs | list[str]]] = {
        "kernels": [page.hrefs for page in read],
        "parser": [page.links for page in read],
    }
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, links in ways.items():
            before = time.process_time()
            for hrefs, page, row in zip(links, read, rows, strict=True):
                maker.links(hrefs, page.base, row)
            _note(best, name, time.process_time() - before)
    return {f"links_by_{name}_us_per_page": round(1e6 * best[name] / len(pages), 1) for name in best}


def _text_figures(pages: Pages) -> dict[str, Any]:
    """What text, language and fingerprints cost, and how fast the index of fingerprints is."""
    megabytes = sum(len(body) for _, body in pages) / 1e6
    figures: dict[str, Any] = {}
    for name in ("simhash", "requisites", "anchors", "detect_language"):
        reader = PageReader(load_settings(options=[f"page.{name}=true"]).page)
        before = time.process_time()
        for url, body in pages:
            reader.read(body, _TYPE, url)
        figures[f"with_{name}_MB_per_s"] = round(megabytes / (time.process_time() - before))
    reader = PageReader(load_settings().page)
    texts = [reader.text(body, _TYPE) for _, body in pages]
    before = time.process_time()
    for text in texts:
        simhash(text)
    figures["simhash_MB_of_text_per_s"] = round(sum(map(len, texts)) / 1e6 / (time.process_time() - before))
    marks = np.random.default_rng(1).integers(0, 2**63, 1_000_000, np.uint64)
    index = NearDuplicates(capacity=len(marks))
    index.add(marks, marks)
    before = time.process_time()
    index.find(marks[:100_000] ^ np.uint64(1 << 5))
    figures["near_duplicates_queries_per_s"] = round(100_000 / (time.process_time() - before))
    return figures


# ── hostile pages, each in a process of its own ───────────────────────────────────────────────────

_HOSTILE: dict[str, Callable[[], str]] = {
    "900000_links_40MB": lambda: "".join(
        f"<a href=/some/longer/path/{n:06}>text</a>\n" for n in range(900_000)
    ),
    "nested_500KB": lambda: "<div>" * 100_000 + "<a href=last>",
    "bold_italic_38KB": lambda: "<b><i>" * 6_400 + "<a href=last>",
    "font_2MB": lambda: "".join(f"<font a={n}><p>" for n in range(125_000)) + "<a href=last>",
}


def _hostile(name: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.page", name],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    seconds, mebibytes = json.loads(done.stdout)
    return seconds, mebibytes


def _peak() -> int:
    """KiB; of this program alone, where getrusage would begin with the peak of the parent."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def _hostile_main(name: str) -> None:
    body = _HOSTILE[name]().encode()
    reader = PageReader(load_settings(options=["page.max_parse=64MB"]).page)
    reader.read(b"<a href=x>", _TYPE, "http://example.com/")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, start = _peak(), time.process_time()
    page = reader.read(body, None, "http://example.com/")
    seconds, mebibytes = time.process_time() - start, (_peak() - before) / 1024
    assert page.links_cut == ("links" in name)
    assert page.links[-1] == "last" or len(page.links) == 10_000
    print(json.dumps([seconds, mebibytes]))


if __name__ == "__main__":
    _hostile_main(sys.argv[1])
