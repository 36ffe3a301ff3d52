"""The one door to a store: a place for copies outside of this machine, at any URL that fsspec knows.

A folder (`/mnt/copies`, `file:///mnt/copies`) goes through `Env`, so that what was written there survives a power loss. All
others go through fsspec and the package that it names for the protocol, such as s3fs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from barkspider.core.errors import StorageError, UsageError
from barkspider.storage.env import Env

_BLOCK = 8 << 20  # bytes that are sent at a time: the least that S3 takes is 5 MB
_FOLDERS = ("", "file", "local")


class Remote:
    """What `Copies` does with a store. Any thread. Everything that goes wrong is a `StorageError` of one line.

    An object appears as a whole or, where the store does not see to that, is named by nobody until it is whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     remote = Remote.at(folder)
    ...     remote.put("a/b", [b"01234", b"56789"])
    ...     remote.get("a/b", 3, 4), remote.names("a"), remote.names("c"), remote.remove(["a/b"]), remote.names("a")
    (b'3456', ['b'], [], None, [])
    """

    def __init__(self, url: str) -> None:
        """Use `at`."""
        self.url = url

    @staticmethod
    def at(url: str) -> Remote:
        """The store at a URL; `UsageError` when there is nothing that could reach it."""
        parts = urlsplit(url)
        if parts.scheme in _FOLDERS:
            path = parts.path if parts.scheme else url
            if not Path(path).is_absolute():
                raise UsageError(f"the store {url} is no absolute path: other processes would look elsewhere")
            return _Folder(url, Path(path))
        return _Fsspec(url)

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write an object, in the place of any that is there."""
        raise NotImplementedError

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object, all of them unless told."""
        raise NotImplementedError

    def names(self, folder: str) -> list[str]:
        """The names of the objects in a folder, sorted, without those in folders below; none when it is missing."""
        raise NotImplementedError

    def walk(self, folder: str) -> list[str]:
        """The names of all objects in a folder and below, from the store's root."""
        raise NotImplementedError

    def remove(self, names: Iterable[str]) -> None:
        """Delete objects; those that are not there are fine."""
        raise NotImplementedError


def check_store(url: str) -> None:
    """Raise `UsageError` unless objects can be written, read and removed there."""
    remote, name = Remote.at(url), f"probe-{secrets.token_hex(8)}"
    try:
        remote.put(name, [b"probe"])
        readable = remote.get(name) == b"probe"
        remote.remove([name])
    except StorageError as error:
        raise UsageError(f"the store cannot be used: {error}; check the URL and your rights") from error
    if not readable:
        raise UsageError(f"the store {_shown(url)} gives back other bytes than were written")


class _Folder(Remote):
    """A folder of this machine, or one that it has mounted."""

    def __init__(self, url: str, root: Path) -> None:
        super().__init__(url)
        self._env, self._root = Env(), root

    def _at(self, name: str) -> Path:
        """Where an object lies; nothing outside of the store is reached, whoever made it and put links there."""
        path = self._root / name
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise StorageError(f"{name} in the store {self._root} leads out of it")
        return path

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        path = self._at(name)
        self._env.make_folder(path.parent)
        # Somebody who was taken for dead may write the same name: each has a file of its own until it is whole.
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        try:
            with self._env.append(fresh) as file:
                for piece in pieces:
                    file.write(piece)
                file.sync()
            self._env.rename(fresh, path)
        except BaseException:
            with suppress(StorageError):
                self._env.remove(fresh)
            raise

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._env.open(self._at(name)) as file:
            return file.pread(offset, file.size if length is None else length)

    def names(self, folder: str) -> list[str]:
        place = self._root / folder
        return [
            name for name in self._env.list(place) if not name.startswith(".") and (place / name).is_file()
        ]

    def walk(self, folder: str) -> list[str]:
        return list(self._walk(Path(folder)))

    def _walk(self, folder: Path) -> Iterator[str]:
        for name in self._env.list(self._root / folder):
            path = self._root / folder / name
            if path.is_dir() and not path.is_symlink():
                yield from self._walk(folder / name)
            else:
                yield str(folder / name)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._env.remove(self._at(name))


class _Fsspec(Remote):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise UsageError(
                f"a store at {_shown(url)} needs fsspec: install barkspider[cluster], or use a folder"
            ) from error
        try:
            # What others write must be seen: nothing is remembered of earlier looks.
            self._files, self._root = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            raise UsageError(f"a store at {_shown(url)} needs another package: {error}") from error
        except Exception as error:
            raise UsageError(f"{_shown(url)} is no store: {_line(error)}") from error

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        pieces = iter(pieces)
        first = next(pieces, b"")
        second = next(pieces, None)
        try:
            if second is None:
                self._files.pipe_file(self._path(name), first)
                return
            with self._files.open(self._path(name), "wb", block_size=_BLOCK) as file:
                file.write(first)
                file.write(second)
                for piece in pieces:
                    file.write(piece)
        except StorageError:
            raise  # of whoever gives the pieces
        except Exception as error:
            raise self._refused("write", name, error) from error

    def get(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""  # which a range cannot say
        end = None if length is None else offset + length
        try:
            data: bytes = self._files.cat_file(self._path(name), start=offset or None, end=end)
        except Exception as error:
            raise self._refused("read", name, error) from error
        return data

    def names(self, folder: str) -> list[str]:
        try:
            found = self._files.ls(self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise self._refused("list", folder, error) from error
        return sorted(_last(each["name"]) for each in found if each["type"] == "file" and _last(each["name"]))

    def walk(self, folder: str) -> list[str]:
        try:
            found: list[Any] = self._files.find(self._path(folder))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise self._refused("list", folder, error) from error
        root = self._files._strip_protocol(self._root).strip("/") + "/"
        return [str(path).strip("/").removeprefix(root) for path in found]

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._files.rm_file(self._path(name))
            except FileNotFoundError:
                continue
            except Exception as error:
                raise self._refused("remove", name, error) from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _refused(self, action: str, name: str, error: Exception) -> StorageError:
        return StorageError(f"cannot {action} {name} in {_shown(self.url)}: {_line(error)}")


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:300]


def _shown(url: str) -> str:
    """A URL without what only its owner should know.

    >>> _shown("s3://me:secret@bucket/crawl")
    's3://bucket/crawl'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
