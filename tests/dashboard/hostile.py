"""A job in which everything that others wrote is an attack on whoever looks at it."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from barkspider.archive.schemas import SCHEMAS, VERSION

_ATTACKS = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "'><svg onload=window.hacked=1>",
    "</td></table><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "${window.hacked=1}",
    "<a href=javascript:window.hacked=1 autofocus onfocus=window.hacked=1>x</a>",
    "<body onload=window.hacked=1>",
    "<math><mtext></style><img src=x onerror=window.hacked=1>",
    "<link rel=stylesheet href=http://192.0.2.1/x.css>",
    "<style>@import url(http://192.0.2.1/y.css);</style>",
    "<meta http-equiv=refresh content=0;url=http://192.0.2.1/>",
    "<base href=http://192.0.2.1/>",
    "<form action=http://192.0.2.1/><button>x</button></form>",
    "\u202e<b>backwards</b>\u2066",
    "\x1b]0;owned\x07\x9b31m",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "<!--<script>window.hacked=1//-->",
    "]]><script>window.hacked=1</script>",
    "data:text/html,<script>parent.hacked=1</script>",
    "<details open ontoggle=window.hacked=1>",
    "<video><source onerror=window.hacked=1>",
    "\\u003cscript\\u003ewindow.hacked=1\\u003c/script\\u003e",
)
_AROUND = (
    *(
        "{}",
        "http://x.example/{}",
        "http://{}/",
        " {}",
        "\n{}",
        "\t{}",
        "'{}'",
        '"{}"',
        "`{}`",
        "<!-- {} -->",
    ),
    *(
        "{}{{}}",
        "a\r\ndata: {}",
        "%3C{}",
        "é{}",
        "{}\ud7ff",
        "/*{}*/",
        "//{}",
        "--{}",
        "\ufeff{}",
        "=cmd|'{}'!A1",
    ),
)
STRINGS = [around.replace("{}", attack) for attack in _ATTACKS for around in _AROUND]
assert len(set(STRINGS)) == 500


def make_hostile(job: Path, folder: Path) -> Path:
    """A copy of a job with a row for each string in its tables, and events with them in its log."""
    copied = Path(shutil.copytree(job, folder / "<img src=x onerror=window.hacked=1>"))
    tables = copied / "archive" / "tables"
    now = datetime(2026, 1, 1)
    pages = [
        _row("pages", key=number, url=each, url_host_name=each, url_host_registered_domain=each, url_host_tld=each, title=each, description=each,
             fetch_time=now, fetch_seconds=0.1, fetch_status=200, outcome=each, content_length=7, content_mime_detected=each, content_charset=each,
             content_languages=each, content_truncated=each, depth=1)
        for number, each in enumerate(STRINGS)
    ]  # fmt: skip
    errors = [_row("errors", time=now, what=each, outcome=each, url=each, url_host_name=each, key=1, tries=0) for each in STRINGS]  # fmt: skip
    links = [_row("links", source=1, target=2, source_domain="a.example", target_domain=each, target_url=each, anchor=each) for each in STRINGS]  # fmt: skip
    robots = [_row("robots", origin=each, url=each, url_host_name=each, fetch_time=now, fetch_status=200, outcome="ok") for each in STRINGS]  # fmt: skip
    for name, rows in (("pages", pages), ("errors", errors), ("links", links), ("robots", robots)):
        schema = SCHEMAS[name].with_metadata({"barkspider.schema": str(VERSION)})
        (tables / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), tables / name / "000900-000900.parquet")
    shutil.rmtree(tables / "domains")
    with (copied / "log.jsonl").open("a") as log:
        for number, each in enumerate(STRINGS):
            log.write(json.dumps({"time": 1e9 + number, "event": each, "part": each, each: each}) + "\n")
    return copied


def _row(table: str, **values: object) -> dict[str, object]:
    return {name: values.get(name) for name in SCHEMAS[table].names}
