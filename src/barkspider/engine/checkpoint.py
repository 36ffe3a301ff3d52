"""What a checkpoint of a job holds, for whoever looks at it without crawling: `verify`, `recrawl`, and the way back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from barkspider.archive import Committed
from barkspider.core.errors import JobError, StorageError
from barkspider.core.events import Counters
from barkspider.engine.harvest import is_harvest
from barkspider.frontier.memory import read_counters
from barkspider.storage.env import Env
from barkspider.storage.store.journal import Journal
from barkspider.storage.store.manifest import MANIFEST, read_manifest

JOURNAL = "journal"
# 2: journals of harvests; slots in the keys of edges, of what is done, and in Sydney's set. 1 had none of these.
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """What the engine itself puts into a checkpoint.

    `format` is that of the job, `sequence` the last record of the journal that has been applied; `seconds` is how long
    the crawl has run, `extended` what was added to its scope, `tally` what was counted. `inherited` are pages that count here
    and lie in archives of parts that there were before the crawl was divided anew.
    """

    format: int = FORMAT
    sequence: int = 0
    seconds: float = 0.0
    extended: list[str] = field(default_factory=list)
    tally: Mapping[str, Any] = field(default_factory=dict)
    inherited: int = 0

    @classmethod
    def read(cls, state: Mapping[str, Any] | None) -> Progress:
        """From what `as_dict` gave, by this version or an earlier one."""
        if state is None:
            return cls()
        try:
            if "format" not in state:
                return cls(format=1, sequence=int(state["sequence"]), tally=dict(state["tally"]))
            return cls(
                format=int(state["format"]),
                sequence=int(state["sequence"]),
                seconds=float(state["seconds"]),
                extended=[str(url) for url in state["extended"]],
                tally=dict(state["tally"]),
                inherited=int(state.get("inherited", 0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"the checkpoint is damaged: {error!r}") from error

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last checkpoint of a job: what the engine, the frontier and the archive had done by then.

    `snapshot` is the file of what the frontier had in RAM, `files` is how many files there are in all.
    """

    progress: Progress
    archive: Committed
    snapshot: str
    files: int

    @classmethod
    def read(cls, env: Env, folder: Path) -> Checkpoint | None:
        """That of a job; None when it has none yet."""
        if MANIFEST not in env.list(folder):
            return None
        _, states = read_manifest(env, folder)
        try:
            crawl, frontier, kept = states["crawl"], states["frontier"], states["kept"]
            (snapshot,) = frontier["files"]
        except (KeyError, ValueError) as error:
            raise StorageError(f"{folder / MANIFEST} is not that of a crawl") from error
        return cls(
            Progress.read(crawl),
            Committed.read(kept),
            snapshot,
            sum(len(state.get("files", {})) for state in states.values()),
        )

    def counters(self, env: Env, folder: Path) -> Counters:
        """What the frontier had counted; StorageError when that cannot be read."""
        return read_counters(env, folder / self.snapshot)


def how_far(env: Env, folders: Sequence[Path]) -> dict[str, Any]:
    """What a crawl, or all its parts, had done by the last checkpoint, by the names that `Statistics` has for it; {} without
    one."""
    total, seconds = dict[str, Any](), 0.0
    for folder in folders:
        checkpoint = Checkpoint.read(env, folder)
        if checkpoint is None:
            return {}
        seconds = max(seconds, checkpoint.progress.seconds)
        for name, value in {**checkpoint.progress.tally, **asdict(checkpoint.counters(env, folder))}.items():
            if isinstance(value, Mapping):
                total[name] = dict(Counter(total.get(name, {})) + Counter(value))
            else:
                total[name] = total.get(name, 0) + value
    rate = total["pages"] / seconds if seconds else 0.0
    return {**total, "seconds": seconds, "pages_per_second": round(rate, 2)}


def check_format(env: Env, folder: Path) -> None:
    """Refuse to go on with a job of an older format; what it has archived can be read all the same."""
    checkpoint = Checkpoint.read(env, folder)
    progress = checkpoint.progress if checkpoint else Progress()
    _, record = next(Journal(env, folder / JOURNAL, progress.sequence).tail(), (0, b""))
    if progress.format < FORMAT or (record and not is_harvest(record)):
        raise JobError(
            f"{folder} was begun by an older barkspider and cannot go on with this one: query, show, export and rank "
            "read what it has; crawl anew into another --job, or finish it with barkspider 0.1.0"
        )
    if progress.format > FORMAT:
        raise JobError(f"{folder} was begun by a newer barkspider: go on with that one")
