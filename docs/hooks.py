"""What the pages need beside Markdown to be a site that asks nothing of the network.

Links out of docs/, to files of the repository, become their paths: in a site they would lead nowhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
_OUTSIDE = re.compile(r"\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name files outside of docs/ by their path instead of a link that leads nowhere in a site."""

    def named(found: re.Match[str]) -> str:
        target = (_DOCS / page.file.src_path).parent / found[1]
        path = target.resolve()
        if path.is_relative_to(_DOCS):
            return found[0]
        return f"] (`{path.relative_to(_DOCS.parent)}`)"

    return _OUTSIDE.sub(named, markdown)
