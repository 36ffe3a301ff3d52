"""Finding what an archive holds of a URL, closed files and growing ones alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barkspider.archive.cdxj import INDEX, index_lines, index_name, key_of, look_up, parse_line
from barkspider.archive.reader import Record, WarcFile, warc_files
from barkspider.archive.records import payload_start
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env

_DIGITS = str.maketrans("", "", "-:TZ")
_REVISITS = 100  # that refer to one another; a circle ends here, too


def captures(env: Env, folder: Path, url: str) -> list[dict[str, Any]]:
    """The lines of the indexes for a canonical URL, oldest first; none when it was not archived.

    A file without an index, because it is still growing or its process died, is read through.
    """
    key = key_of(url)
    found: list[bytes] = []
    indexes = {name for name in env.list(folder) if name.endswith(".cdxj") and name != INDEX}
    for name in sorted(indexes):
        found += look_up(env, folder / name, key)
    for path in warc_files(env, folder):
        if index_name(path.name) not in indexes:
            found += [line for line in index_lines(env, path) if line.startswith(f"{key} ".encode())]
    lines = [parse_line(line) for line in found]
    return sorted((line for line in lines if line["url"] == url), key=lambda line: str(line["timestamp"]))


def read_capture(env: Env, folder: Path, capture: dict[str, Any]) -> Record:
    """The record that a line of an index points to."""
    with WarcFile.find(env, folder / capture["filename"]) as file:
        return file.record(int(capture["offset"]))


def whole_response(
    env: Env, folder: Path, record: Record, others: Sequence[Path] = (), most: int = _REVISITS
) -> bytes:
    """The HTTP response of a response or revisit record; of a revisit, the payload is the original's.

    A revisit of earlier versions, or of others, may have the header of a 304 and refer to another revisit: then it is the
    original's as a whole, `most` of them in a row. It is looked for in the archive of the record, then in
    the others; raises `StorageError` when it is in none.
    """
    if record.kind != "revisit":
        return record.block
    url, date = (
        record.header.get("warc-refers-to-target-uri", ""),
        record.header.get("warc-refers-to-date", ""),
    )
    said = record.header.get("warc-payload-digest")
    unchanged = record.header.get("warc-profile", "").endswith("/server-not-modified")
    places = (folder, *others) if url else ()
    for archive, capture in ((place, each) for place in places for each in captures(env, place, url)):
        if capture["timestamp"] != date[:19].translate(_DIGITS):
            continue
        original = read_capture(env, archive, capture)
        if said not in (None, original.header.get("warc-payload-digest")):
            continue
        if original.kind == "response":
            payload = original.block[payload_start(original.block) :]
            return original.block if unchanged else record.block + payload
        if most:
            return whole_response(env, folder, original, others, most - 1)
    raise StorageError(f"the payload of {record.url} is that of {url} at {date}, which is not in {folder}")
