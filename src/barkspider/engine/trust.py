"""JOB/settings.toml, and whose it is: what reaches beyond the job counts only if this user chose it.

    settings ─► TOML, sealed with the user's key ─► JOB/settings.toml ─► the seal is right: as before
                                                                     └► it is not: --trust-settings, or --set anew

A job may have been made by another, or on another machine. What its settings say of the crawl is taken as it is; what
makes this process import code, read files or speak to private networks is not (docs/decisions/0019). The key lies in the
user's state folder; the seal is the last line of the file, a comment, so that both are replaced in one step.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from barkspider.core.errors import JobError, SettingsError
from barkspider.core.load import change_settings, dump_settings, parse_settings, reaching
from barkspider.core.settings import Settings
from barkspider.engine.folder import SETTINGS
from barkspider.storage.env import Env

_SEAL = b"# sealed by the user who chose these settings: "
_KEY_SIZE = 32
_LONGEST = 1 << 24  # bytes of a settings.toml: lists of a hundred thousand hosts


def write_settings(env: Env, folder: Path, settings: Settings) -> None:
    """Replace the settings of a job by ones that this user chose."""
    data, key = dump_settings(settings).encode(), _key()
    if key:
        data += _SEAL + _digest(key, data) + b"\n"
    env.write_whole(folder / SETTINGS, data)


def read_settings(env: Env, folder: Path) -> Settings:
    """The settings of a job for whoever only reads it; nothing of what they name may be loaded or spoken to."""
    return _read(env, folder)[0]


def take_settings(env: Env, folder: Path, options: Iterable[str], trust: bool) -> tuple[Settings, bool]:
    """The settings of a job to go on with, changed by `a.b=c` options, and whether they are to be written.

    Raises `JobError` where they reach beyond the job by no choice of this user's.
    """
    options = list(options)
    stored, own = _read(env, folder)
    settings = change_settings(stored, options)
    given = {option.partition("=")[0].strip() for option in options}
    foreign = [] if own else [name for name in reaching(settings) if name not in given]
    if foreign and not trust:
        raise JobError(
            f"{folder / SETTINGS} was not written by you on this machine, and {', '.join(foreign)} would load code or "
            "files, or reach networks, of its choice: look at it, then add --trust-settings, or --set your own"
        )
    return settings, settings != stored or bool(foreign)


def _read(env: Env, folder: Path) -> tuple[Settings, bool]:
    """What the file says, and whether its seal is this user's."""
    data = env.read(folder / SETTINGS, 0, _LONGEST)
    try:
        settings = parse_settings(data.decode("utf-8-sig"), str(folder / SETTINGS))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{folder / SETTINGS} is not UTF-8 text: {error.reason}") from error
    body, mark, seal = data.rpartition(_SEAL)
    key = _key() if mark else b""
    return settings, bool(key) and hmac.compare_digest(seal.strip(), _digest(key, body))


def _digest(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).hexdigest().encode()


def _key() -> bytes:
    """The user's key, made when there is none; b"" where there is no place for one."""
    named = os.environ.get("XDG_STATE_HOME", "")
    state = Path(named) if named else Path(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111  never raises
    path = state / "barkspider" / "key"
    with suppress(OSError):
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f"key.{secrets.token_hex(8)}")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, secrets.token_bytes(_KEY_SIZE))
                with suppress(FileExistsError):  # another process was faster
                    path.hardlink_to(fresh)
            finally:
                os.close(descriptor)
                fresh.unlink()
        found, key = path.stat(), path.read_bytes()
        if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077 and len(key) == _KEY_SIZE:
            return key
    return b""
