"""Pages that are made to be expensive cost what any other of their size costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_HOSTILE = {
    "formatting": "".join(f"<font a={n}><p>" for n in range(125_000))[:2_000_000],
    "nested": "<div>" * 100_000,
    "bold": "<b><i>" * 6_400,
    "drawings": "<svg>" * 100_000,
    "stray": "<svg>" + "<g>" * 1000 + "</x>" * 300_000 + "</svg>",
    "noscripts": "<noscript>" * 100_000,
    "comments": "<!--" * 100_000,
    "templates": "<template>" * 100_000,
    "attributes": "<a " + " ".join(f"x{n}=1" for n in range(150_000)) + ">",
    "tags": "<a" * 500_000,
    "links": "".join(f"<a href={n}>" for n in range(140_000)),
    "title": "<title>" + "&amp;" * 300_000,
    "references": "<a href='" + "&lt;&" * 300_000 + "'>",
    "ends": "<script>" + "</scrip" * 200_000,
    "words": "<a href=x rel='" + "nofollo " * 200_000 + "'>",
    "frames": "".join(f"<a href={n}>" for n in range(10_000)) + "<iframe src=x></iframe>" * 40_000,
    "commas": "<img srcset='" + ",(" * 500_000 + "'>",
    "candidates": "<img srcset='" + "x, (" * 250_000 + "'>",
    "images": "".join(f"<img src={n}>" for n in range(100_000)),
    "style": "<style>" + "/*" * 300_000 + "url(" * 300_000 + "</style>",
    "unbroken": "<p>" + "x" * 1_000_000,
    "declarations": "<meta charset=" * 100_000,
    "hidden": "<script><meta charset=koi8-r>" * 70_000,
    "foreign": "<meta charset=windows-1252><a href='?" + "\x81" * 600_000 + "'>",
    "letters": "<meta charset=windows-1252>" + ("<a href='?" + "\x81&#1078;" * 200 + "'>") * 500,
    "styles": "<style>" + "url(x) " * 200_000 + "</style>",
    "entities": "<!DOCTYPE x [<!ENTITY a 'aaaa'>" + "<!ENTITY b '&a;&a;'>" * 50_000 + "]>&b;",
}
_PROGRAM = """
import json, re, sys
from pathlib import Path
from barkspider.core.settings import Page
from barkspider.page import PageReader
def peak():  # of this program alone; what getrusage gives begins with that of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
reader = PageReader(Page(simhash=True, requisites=True, anchors=True, forms=True))
reader.read(b"<a href=x>", None, "http://example.com/")
results = {}
for name, size in json.loads(sys.argv[1]):
    body = sys.stdin.buffer.read(size)
    before = peak()
    page = reader.read(body, None, "http://example.com/")
    results[name] = [peak() - before, len(page.links), "last" in page.links, page.links_cut]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def costs() -> dict[str, tuple[int, int, bool, bool]]:
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory is read from /proc")
    # A program of its own gets the pages ready-made, so that its peak is that of reading alone. Reading one takes
    # some hundredths of a second; what is not linear would need minutes and run into the timeout.
    pages = {name: (markup + "<a href=last>").encode() for name, markup in _HOSTILE.items()}
    sizes = json.dumps([(name, len(page)) for name, page in pages.items()])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, sizes],
        input=b"".join(pages.values()),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return {name: tuple(figures) for name, figures in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", list(_HOSTILE))
def test_hostile_markup_costs_no_more_than_any_other(
    costs: dict[str, tuple[int, int, bool, bool]], name: str
) -> None:
    kibibytes, links, deepest, cut = costs[name]
    assert kibibytes < 64 * 1024
    assert links <= 10_000
    assert cut == (name in ("links", "frames", "images", "candidates", "letters", "styles"))
    if name in ("formatting", "nested", "bold", "drawings", "stray", "noscripts", "unbroken"):
        assert deepest
