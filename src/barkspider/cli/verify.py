"""`barkspider verify`: whether everything that a crawl keeps is whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import printable, say, say_json


def verify(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl that is not running.")],
    json_: Annotated[bool, typer.Option("--json", help="Print what was found as one JSON object.")] = False,
) -> int:
    """Check every checksum, every file that a checkpoint names, every WARC file and every row of a crawl.

    One line a problem. What a kill left and `resume` mends is recoverable, not damage. Nothing is changed; the exit
    code is 1 when something is damaged.

    Example: barkspider verify jobs/mine
    """
    from barkspider.archive.verify import Checked
    from barkspider.engine import verify_job
    from barkspider.engine.job import hold

    checked, kinds, problems = Checked(), Counter[str](), []
    with hold(job), working("checking", lambda: checked.files + checked.records + checked.rows):
        for problem in verify_job(job, checked):
            kinds[problem.kind] += 1
            if json_:
                problems.append(problem._asdict())
            else:
                say(f"{problem.kind}: {printable(problem.file)}: {printable(problem.what)}")
    sound = not kinds["damage"]
    if json_:
        say_json({"job": str(job), "sound": sound, **asdict(checked), "problems": problems})
    else:
        looked = f"{checked.files:,} files, {checked.records:,} WARC records, {checked.lines:,} lines of indexes and "
        found = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items())) or "nothing wrong"
        say(f"{'sound' if sound else 'DAMAGED'}: {looked}{checked.rows:,} rows were checked; {found}")
    return 0 if sound else 1
