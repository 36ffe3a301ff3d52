"""Asking pywb, in a process of its own, for what an archive holds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def serve(pywb: Path, archive: Path, paths: list[str]) -> list[tuple[int, str]]:
    config = archive / "pywb.yaml"
    index = archive / "index.cdxj"
    config.write_text(
        f"collections:\n  job:\n    index_paths: {json.dumps(str(index))}\n"
        f"    archive_paths: {json.dumps(f'{archive}/')}\n"
    )
    done = subprocess.run(
        [pywb, "-W", "ignore", ROOT / "tests" / "archive" / "replay.py", config],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        cwd=archive,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(status, body) for status, body in json.loads(done.stdout)]
