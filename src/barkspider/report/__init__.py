"""A crawl as a document: one HTML file with pictures, which opens without a network.

    job ─► facts: figures (SQL over tables), top, limits, servers, history ─► page: curves, svg, markup ─► report.html

`facts` collects all that is said of a crawl: `figures` are SQL, `top` is IRLbot's Table 4, `limits` Table VI of Viúva Negra, `servers` a
sample of the archive. `page` writes it down; `curves` are the pictures of a history, drawn by `svg`; `markup` escapes, `words` are
numbers for people. The dashboard shows the same pictures, live.
"""

from pathlib import Path

from barkspider.report.facts import collect
from barkspider.report.page import render

__all__ = ["collect", "render", "write_report"]


def write_report(job: Path, output: Path, against: Path | None = None) -> int:
    """Write the report of a job, beside another if one is given; its size in bytes."""
    facts = [collect(each) for each in (job, against) if each is not None]
    data = render(facts).encode()
    output.write_bytes(data)
    return len(data)
