"""The responses among the test cases of llhttp, each over a real socket."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.hostile.hazard import Hazard, fetched, says

_FILE = Path(__file__).parents[3] / "shared" / "data" / "http" / "llhttp_cases.jsonl"


def _read() -> list[tuple[Hazard, bool]]:
    if not _FILE.exists():
        return []
    cases = []
    for number, line in enumerate(_FILE.read_text().splitlines()):
        case = json.loads(line)
        if case["meta"].get("type") == "response":
            hazard = fetched(
                12, f"llhttp {number} {case['title']}", says(base64.b64decode(case["input_b64"]))
            )
            cases.append((hazard, case["error"] is not None))
    return cases


_READ = _read()
CASES = [hazard for hazard, _ in _READ]
WRONG = [hazard for hazard, is_wrong in _READ if is_wrong]
RIGHT = [hazard for hazard, is_wrong in _READ if not is_wrong]
