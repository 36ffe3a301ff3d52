"""Copies in a store: brought back exactly, whatever was interrupted, and whoever else believes to own them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from barkspider.core.errors import StorageError, UsageError
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from barkspider.storage.store import copies as module
from barkspider.storage.store.copies import CopiedFile, Copies, FencedError, bring_back, last_copy
from barkspider.storage.store.remote import Remote, check_store
from tests.storage.buckets import s3

Content = dict[str, bytes]


class InterruptedCopyError(Exception):
    pass


class Watched(Remote):
    """A store that calls something before each of its changes and looks, and leaves what was being written torn."""

    def __init__(self, inner: Remote, before: Callable[[int], None]) -> None:
        super().__init__(inner.url)
        self._inner, self._before, self.operations = inner, before, 0

    def _count(self) -> None:
        self.operations += 1
        self._before(self.operations)

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        data = b"".join(pieces)
        self._inner.put(name, [data[: len(data) // 2]])  # as a store that is not atomic shows it
        self._count()
        self._inner.put(name, [data])

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._inner.get(name, offset, length)

    def names(self, folder: str) -> list[str]:
        self._count()
        return self._inner.names(folder)

    def walk(self, folder: str) -> list[str]:
        self._count()
        return self._inner.walk(folder)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._count()
            self._inner.remove([name])


class Crawl:
    """A folder whose files grow, come and go, as those of a crawl do."""

    def __init__(self, folder: Path, seed: int, number: int = 0) -> None:
        self._folder, self._random, self._number = folder, Random(seed), number
        self.content: Content = {}
        folder.mkdir(exist_ok=True)

    def go_on(self) -> None:
        self._number += 1
        log = self.content.get("seen/rows.log", b"") + self._random.randbytes(self._random.randrange(40))
        kept = {name: data for name, data in self.content.items() if self._random.random() < 0.7}
        new = {
            f"{folder}/{self._number}-{place}": self._random.randbytes(self._random.randrange(100))
            for place, folder in enumerate(("seen", "archive", "archive/tables"))
        }
        self.content = {**kept, **new, "seen/rows.log": log, "manifest.json": b"%d" % self._number}
        for name, data in self.content.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data + b"what came since")

    def sources(self) -> dict[str, CopiedFile | None]:
        return {
            name: CopiedFile(
                self._folder / name, len(data), name != "manifest.json", name.startswith("archive")
            )
            for name, data in self.content.items()
        }


class Unsynced(Calls):
    """System calls for those who need not survive a power loss: to wait for the disk is most of these tests' time."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def brought_back(remote: Remote, folder: Path) -> Content:
    index = last_copy(remote, "part")
    assert index is not None
    bring_back(remote, index, Env(Unsynced()), folder)
    return {name: (folder / name).read_bytes() for name in index.files}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE", 64)
    monkeypatch.setattr(module, "_PORTION", 16)


@pytest.fixture(params=["folder", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "s3":
        with s3() as url:
            yield url
    else:
        yield str(tmp_path / "store") if request.param == "folder" else f"memory://{tmp_path.name}"


def test_every_copy_is_brought_back_exactly(store: str, tmp_path: Path) -> None:
    check_store(store)
    remote, crawl = Remote.at(store), Crawl(tmp_path / "job", 1)
    copies = Copies.claim(remote, "part")
    for round_ in range(12):
        crawl.go_on()
        if round_ % 5 == 4:
            copies = Copies.claim(remote, "part")
        copies.copy(crawl.sources())
        assert brought_back(Remote.at(store), tmp_path / f"back-{round_}") == crawl.content
    needed = copies.last.objects()
    rest = set(remote.walk("part")) - needed
    assert sorted(name.split("/")[1] for name in rest) == ["claims", "indexes"]
    sizes = sum(len(data) for data in crawl.content.values())
    assert sum(len(remote.get(name)) for name in needed) <= 3 * sizes  # little is kept of what nobody needs


def test_what_grows_is_sent_once_or_a_few_times(tmp_path: Path) -> None:
    sent = [0]

    class Counted(Watched):
        def put(self, name: str, pieces: Iterable[bytes]) -> None:
            data = b"".join(pieces)
            sent[0] += len(data) if "/packs/" in name or "/files/" in name else 0
            self._inner.put(name, [data])

    remote = Counted(Remote.at(f"memory://{tmp_path.name}"), lambda _: None)
    copies, path = Copies.claim(remote, "part"), tmp_path / "rows.log"
    for round_ in range(1, 301):
        path.write_bytes(bytes(4 * round_))
        copies.copy({"rows.log": CopiedFile(path, 4 * round_)})
    assert len(copies.last.files["rows.log"]) <= 1200 // 64 + 6
    assert sent[0] <= 1200 * 6  # log2(64 / 4) times, and once more


def test_a_copy_that_is_killed_at_any_operation_leaves_the_former_one(tmp_path: Path) -> None:
    killed = 0
    for stop in range(1, 100):
        inner = Remote.at(f"memory://{tmp_path.name}-{stop}")
        crawl = Crawl(tmp_path / f"job-{stop}", 2)
        first = Copies.claim(inner, "part")
        for _ in range(3):
            crawl.go_on()
            first.copy(crawl.sources())
        former = crawl.content

        def kill(number: int, stop: int = stop) -> None:
            if number == stop:
                raise InterruptedCopyError

        crawl.go_on()
        watched = Watched(inner, kill)
        try:
            Copies.claim(watched, "part").copy(crawl.sources())
        except InterruptedCopyError:
            killed += 1
        else:
            assert stop > 10
            break
        back = brought_back(inner, tmp_path / f"back-{stop}")
        assert back in (former, crawl.content)
        crawl.go_on()
        Copies.claim(inner, "part").copy(crawl.sources())
        assert brought_back(inner, tmp_path / f"again-{stop}") == crawl.content
        assert len({name.split("/")[1] for name in inner.walk("part")}) <= 4
        assert len(inner.names("part/indexes")) == len(inner.names("part/claims")) == 1
    assert killed > 10


@pytest.mark.parametrize("copied", [False, True])
def test_whoever_is_taken_for_dead_at_any_operation_does_no_harm(tmp_path: Path, copied: bool) -> None:
    """It stands still at some operation, another brings the copy back and goes on, and it goes on too."""

    def take_over(stop: int, inner: Remote, other: Crawl, met: list[Content], number: int) -> None:
        if number == stop:
            successor = Copies.claim(inner, "part")
            met.append(brought_back(inner, tmp_path / f"met-{stop}"))
            if copied:
                other.content = dict(met[0])
                other.go_on()
                successor.copy(other.sources())

    interleaved = 0
    for stop in range(1, 100):
        inner = Remote.at(f"memory://{tmp_path.name}-{stop}")
        crawl, other = Crawl(tmp_path / f"job-{stop}", 3), Crawl(tmp_path / f"other-{stop}", 4, 10)
        stale = Copies.claim(inner, "part")
        for _ in range(2):
            crawl.go_on()
            stale.copy(crawl.sources())
        met: list[Content] = []
        crawl.go_on()
        stale._remote = Watched(inner, partial(take_over, stop, inner, other, met))
        try:
            stale.copy(crawl.sources())
            crawl.go_on()
            stale.copy(crawl.sources())
        except FencedError:
            interleaved += 1
        if not met:
            break
        if copied:
            assert brought_back(inner, tmp_path / f"back-{stop}") == other.content
        else:  # what the successor met is still whole
            index = last_copy(inner, "part")
            assert index is not None
            assert brought_back(inner, tmp_path / f"back-{stop}")
    assert interleaved > 10


def test_damage_in_a_store_is_named(tmp_path: Path) -> None:
    remote, crawl = Remote.at(str(tmp_path / "store")), Crawl(tmp_path / "job", 5)
    crawl.go_on()
    Copies.claim(remote, "part").copy(crawl.sources())
    (pack,) = remote.names("part/packs")
    data = bytearray(remote.get(f"part/packs/{pack}"))
    data[3] ^= 1
    remote.put(f"part/packs/{pack}", [bytes(data)])
    with pytest.raises(StorageError, match="is damaged"):
        brought_back(remote, tmp_path / "back")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("relative/folder", "no absolute path"),
        ("/proc/nowhere", "cannot be used"),
        ("nosuch://bucket/x", "is no store"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_in_a_line(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        check_store(url)
    assert "\n" not in str(raised.value)
