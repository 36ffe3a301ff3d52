"""Files of a job, changed, and then opened by every way that reads them: verify, query, show, export and resume.

Half of the changes are forged: the checksums fit, as somebody would make them fit who means harm. Then what is read is
looked at by nobody else, and must be looked at by whoever reads it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import xxhash

from barkspider import crawl, load_settings, open_job
from barkspider.core.clock import SystemClock
from barkspider.core.errors import BarkspiderError
from barkspider.engine import resume, verify_job
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.recovery import open_components
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from barkspider.storage.format import BLOCK_HEAD_SIZE, HEADER_SIZE, block_head, checksum, read_block_head
from barkspider.storage.store.journal import RECORD_HEAD
from tests.fuzz.fuzzing import Fuzzer, mutate

_STEPS = 20
_PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None  # on a disk, that would be most of the time
_NAMES = (b"../../x", b"/etc/passwd", b"seen", b'"files"', b"null", b"-1", b"1e999", b"[]", b"{}")


@cache
def killed_job() -> Path:
    """A job with a checkpoint and harvests behind it, as a kill leaves one: it has all kinds of files."""
    folder = Path(tempfile.mkdtemp(prefix="barkspider-fuzz-")) / "job"
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    with running_web(WebSpec(seed=3, pages=400, page_bytes=2_000)) as served:
        chosen = served.settings() | {
            "politeness.host_delay": "10ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "seed": "4",
            "memory": "64MB",
            "limits.pages": "30",
            "archive.recent_digests": "1000",
            "budget.reputation": "supporters",
            "budget.merge_redirects": "true",
        }
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        crawl(served.web.seeds(1), folder, settings)
        with patch.object(Ledger, "commit"):  # the last checkpoint of the second run is never made
            resume(folder, ["limits.pages=60"])
    return folder


def _make(random: Random) -> tuple[Any, int]:
    """Which files of the job have which bytes."""
    job = killed_job()
    files = sorted(path for path in job.rglob("*") if path.is_file() and path.name != "job.lock")
    kinds = sorted({path.suffix for path in files})
    changed, size = {}, 0
    for _ in range(random.choice((1, 1, 1, 3))):
        kind = random.choice(kinds)
        path = random.choice([path for path in files if path.suffix == kind])
        data = path.read_bytes()
        forge = _FORGERS.get(path.suffix) if random.random() < 0.5 else None
        changed[path.relative_to(job)] = (forge or mutate)(data, random)
        size += len(data)
    return changed, size


def _forge_manifest(data: bytes, random: Random) -> bytes:
    """Values of the JSON exchanged for others, deep within, and the right checksum."""
    if not data.startswith(b'{"magic'):
        return mutate(data, random, _NAMES)
    first, _, rest = data.partition(b"\n")
    body = json.loads(rest)
    for _ in range(random.randint(1, 4)):
        place: Any = body
        while True:
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and random.random() < 0.9:
                place = place[key]
                continue
            place[key] = random.choice(
                (
                    None,
                    -1,
                    0,
                    1,
                    2**31,
                    2**62,
                    2**70,
                    1.5,
                    "x",
                    "../x",
                    [],
                    {},
                    [[]],
                    True,
                    place[key],
                    [7] * 9,
                )
            )
            break
    text = json.dumps(body)
    head = json.loads(first) | {"checksum": f"{checksum(text.encode()):016x}"}
    return f"{json.dumps(head)}\n{text}\n".encode()


def _forge_blocks(data: bytes, random: Random) -> bytes:
    """The stored bytes, or the numbers in the head, of one block changed, and the right checksum."""
    places, place = [], HEADER_SIZE
    with suppress(BarkspiderError):
        while place < len(data):
            places.append(place)
            place += BLOCK_HEAD_SIZE + read_block_head(data[place:], Path(), place).stored
    if not places:
        return mutate(data, random)
    place = random.choice(places)
    head = read_block_head(data[place:], Path(), place)
    begin = place + BLOCK_HEAD_SIZE
    stored = data[begin : begin + head.stored]
    raw, items, first, codec = head.raw, head.items, head.first, head.codec
    match random.randrange(5):
        case 0:
            raw = random.choice((0, 1, raw - 1, raw + 1, 2**30, 2**31))
        case 1:
            items = random.choice((0, 1, items + 1, 2 * items, 2**31, 2**32 - 1))
        case 2:
            first = random.choice((0, first + 1, 2**63, 2**64 - 1))
        case 3:
            codec = random.randrange(4)
        case _:
            changed = bytearray(stored)
            for _ in range(random.randint(1, 6)):
                if changed:  # the length stays, so that blocks behind it stay where they are
                    where = random.randrange(len(changed))
                    changed[where : where + 4] = random.choice(
                        (b"\xff\xff\xff\xff", bytes(4), random.randbytes(4))
                    )
            stored = bytes(changed[: head.stored])
    packed = block_head(codec, max(raw, 0) % 2**32, items % 2**32, first % 2**64, stored)
    return data[:place] + packed + stored + data[begin + head.stored :]


def _forge_journal(data: bytes, random: Random) -> bytes:
    """One record changed, with the right checksum."""
    places, place = [], HEADER_SIZE
    while place + RECORD_HEAD <= len(data):
        (length,) = struct.unpack_from("<I", data, place)
        places.append((place, length))
        place += RECORD_HEAD + length
    if not places:
        return mutate(data, random)
    place, length = random.choice(places)
    begin = place + RECORD_HEAD
    record = mutate(data[begin : begin + length], random, _NAMES)
    fields = struct.pack("<I", len(record)) + data[place + 4 : place + 12]
    digest = xxhash.xxh3_64(fields + record).intdigest()
    return data[:place] + fields + struct.pack("<Q", digest) + record + data[begin + length :]


def _forge_snapshot(data: bytes, random: Random) -> bytes:
    """Head and arrays changed, with the right checksum."""
    length = data[HEADER_SIZE : HEADER_SIZE + 8]
    rest = mutate(data[HEADER_SIZE + 16 :], random, _NAMES)
    digest = xxhash.xxh3_64(length + rest).intdigest()
    return data[:HEADER_SIZE] + length + struct.pack("<Q", digest) + rest


_FORGERS: dict[str, Callable[[bytes, Random], bytes]] = {
    ".json": _forge_manifest,
    ".journal": _forge_journal,
    ".snapshot": _forge_snapshot,
    **dict.fromkeys((".known", ".pairs", ".aux", ".queue", ".results", ".log"), _forge_blocks),
}


def _run(changed: dict[Path, bytes]) -> None:
    """Every way to read the job; an error of the project's own ends one of them alone."""
    with tempfile.TemporaryDirectory(prefix="barkspider-fuzz-", dir=_PLACE) as folder:
        open_everyhow(_put(changed, Path(folder) / "job"))


def _put(changed: dict[Path, bytes], folder: Path) -> Path:
    shutil.copytree(killed_job(), folder)
    for name, data in changed.items():
        (folder / name).write_bytes(data)
    return folder


def _keep(changed: dict[Path, bytes], number: int) -> str:
    """No two killed jobs are alike, so the job itself is kept."""
    return str(_put(changed, Path(tempfile.mkdtemp(prefix=f"barkspider-fuzz-{number}-")) / "job"))


def open_everyhow(job: Path) -> None:
    """Open a job in every way that reads its files; raises the last of the project's own errors that this met."""
    met = None
    for way in (_verify, _query, _read, _resume):
        try:
            way(job)
        except BarkspiderError as error:
            met = error
    if met is not None:
        raise met


class _Unsynced(Calls):
    """Nothing here is to survive a power loss."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def _verify(job: Path) -> None:
    for _ in verify_job(job):
        pass


def _query(job: Path) -> None:
    open_job(job).query("SELECT count(*), max(title) FROM pages JOIN errors USING (key)")


def _read(job: Path) -> None:
    opened = open_job(job)
    for page in islice(opened.pages(), 5):
        opened.captures(page.url)
        opened.page(page.url)


def _resume(job: Path) -> None:
    """As far as a crawl that goes on gets without a network; what is asked for is never answered."""

    async def run() -> None:
        components = open_components(held, SystemClock())
        try:
            for step in range(_STEPS):
                components.frontier.step(components.steady.now() + step, [])
        finally:
            for part in (components.archive, components.ledger, components.frontier):
                part.close()
            await components.worker.close()

    held = Job.open(job, Env(_Unsynced()), trust=True)
    try:
        asyncio.run(run())
    finally:
        held.close()


# A resume opens some forty files and compiles nothing: half a second is ten times what it takes.
JOBS = Fuzzer("jobs", _make, _run, 3.0, 1e-6, _keep)
