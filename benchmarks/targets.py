"""How many of 10,000 ways to an address that is not public are open: none may be.

IP literals in every way of writing and embedding, names with mixed, aliased and changing answers, redirects,
and addresses given by force go through the crawler's own parsing, resolving and fetching. Every attempt to
connect is recorded and refused, and judged by IANA's registries in code that the crawler does not use.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from tests.hostile.registry import is_public
from tests.hostile.targets import make_cases
from tests.hostile.targets import run as lead

_CASES = 10_000
_SEED = 7


def run(quick: bool) -> dict[str, Any]:  # noqa: ARG001  (all cases take a few seconds)
    """See the module."""
    cases = make_cases(_CASES, _SEED)
    started = time.monotonic()
    result = lead(cases)
    refused = {address for _, address in result.not_public}
    kinds = Counter(case.kind for case in cases)
    figures = {
        "cases": sum(result.ends.values()),
        "kinds": ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        "ends": ", ".join(f"{count} {end}" for end, count in sorted(result.ends.items())),
        "connect_attempts": len(result.attempts),
        "share_connecting": round(result.connected / len(cases), 3),
        "addresses_tried": len({address for _, address in result.attempts if is_public(address)}),
        "not_public_examples": ", ".join(sorted(refused)[:8]),
        "seconds": round(time.monotonic() - started, 1),
    }
    targets = [
        {
            "name": "connects to addresses that are not public",
            "value": len(result.not_public),
            "target": 0,
            "holds": not result.not_public,
        },
        {
            "name": "cases",
            "value": figures["cases"],
            "target": _CASES,
            "holds": figures["cases"] == _CASES,
        },
    ]
    return {"figures": figures, "targets": targets}
