"""Checking a job: every checksum, every file that a checkpoint names, every WARC, and that the counters add up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc

from barkspider.archive import open_table
from barkspider.archive.schemas import DIGESTS
from barkspider.archive.verify import Checked, verify_archive
from barkspider.core.errors import BarkspiderError, StorageError
from barkspider.engine.checkpoint import JOURNAL, Checkpoint
from barkspider.engine.folder import SETTINGS, archive_folders, check_job
from barkspider.engine.job import SEEDS, read_seeds
from barkspider.engine.recrawl import LAST, read_last
from barkspider.engine.trust import read_settings
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, restoring
from barkspider.storage.store.verify import DAMAGE, Fault, verify_journal, verify_store


def verify_job(path: Path | str, checked: Checked | None = None) -> Iterator[Fault]:
    """Go through a job that no crawl is running on and give what is wrong, as it is found. Nothing is changed.

    What a crash has left and `resume` will mend is *recoverable*, no damage.
    """
    env, job, checked = Env(), Path(path), checked or Checked()
    check_job(job)
    yield from _check_texts(env, job)
    for folder in archive_folders(job):
        for problem in _verify_part(env, folder, checked):
            where = "" if folder == job else f"{folder.relative_to(job)}/"
            yield problem._replace(file=where + problem.file)


def _verify_part(env: Env, folder: Path, checked: Checked) -> Iterator[Fault]:
    damaged = set()
    for fault in verify_store(env, folder):
        if fault.kind == DAMAGE:
            damaged.add(fault.file)
        yield fault
    if MANIFEST not in damaged:  # without it nobody knows where the journal begins
        try:
            checkpoint = Checkpoint.read(env, folder)
        except StorageError as error:
            yield Fault(DAMAGE, MANIFEST, str(error))
        else:
            if checkpoint is not None:
                checked.files += checkpoint.files
                if not damaged:
                    yield from _check_counters(env, folder, checkpoint)
            applied = checkpoint.progress.sequence if checkpoint else 0
            for fault in verify_journal(env, folder / JOURNAL, applied):
                yield fault
    archive = folder / "archive"
    for fault in verify_store(env, archive / DIGESTS):
        yield Fault(fault.kind, f"{DIGESTS}/{fault.file}", fault.what)
    yield from verify_archive(env, archive, checked)


def _check_texts(env: Env, folder: Path) -> Iterator[Fault]:
    """The files that a person might read."""
    names, checks = env.list(folder), {SETTINGS: read_settings, SEEDS: read_seeds, LAST: read_last}
    for name, read in checks.items():
        if name != LAST or LAST in names:  # most jobs have none
            try:
                read(env, folder)
            except BarkspiderError as error:
                yield Fault(DAMAGE, name, str(error))


def _check_counters(env: Env, folder: Path, checkpoint: Checkpoint) -> Iterator[Fault]:
    """What the frontier counted, what the engine counted, and what the table of pages has, at the checkpoint."""
    file = checkpoint.snapshot
    try:
        counters = checkpoint.counters(env, folder)
    except StorageError as error:
        yield Fault(DAMAGE, file, f"its counters cannot be read: {error}")
        return
    if not counters.balanced():
        yield Fault(DAMAGE, file, f"its counters do not add up: {counters}")
    kept, last = 0, checkpoint.archive.tables.get("pages", -1)
    table = open_table(env, folder / "archive", "pages")
    parts = [part for part in table.parts() if part.last <= last]
    try:
        for batch in table.batches(["fetch_status", "outcome"], parts=parts):
            status = batch["fetch_status"]
            page = pc.and_(pc.greater_equal(status, 200), pc.less(status, 300))
            kept += pc.sum(pc.or_(page, pc.equal(batch["outcome"], "unchanged"))).as_py() or 0
    except StorageError:
        return  # `verify_archive` says which file it is
    with restoring(folder):
        rejected = sum(checkpoint.progress.tally.get("rejected", {}).values())
    before = checkpoint.progress.inherited
    if counters.pages != kept + rejected + before:
        what = f"counts {counters.pages} pages; the table of pages has {kept}, and {rejected} were rejected"
        what += f", {before} were fetched before the crawl was divided anew" if before else ""
        yield Fault(DAMAGE, file, what)
