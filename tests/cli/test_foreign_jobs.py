"""Jobs that somebody else made to do harm: nothing outside of their folder is touched, and nothing of theirs is run."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barkspider.core.errors import JobError
from barkspider.core.load import load_settings
from barkspider.engine import verify_job
from barkspider.engine.control import ask
from barkspider.engine.trust import read_settings, take_settings, write_settings
from barkspider.storage.env import Env
from barkspider.storage.format import checksum
from tests.cli.program import complaint, run
from tests.cli.small_job import commands, copied, make_small_job, on

COMMANDS = ("resume", "recrawl", "add", "status", "verify", "query", "show", "export", "rank", "plan")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("made") / "job")


@pytest.fixture(scope="module")
def known(made: Path) -> dict[str, list[str]]:
    return commands(made)


@pytest.fixture
def job(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "jobs" / "job")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Files of the user's, which are as they were afterwards."""
    folder = tmp_path / "mine"
    (folder / "deeper").mkdir(parents=True)
    for name in ("diary.txt", "deeper/more.txt", "manifest.json"):
        (folder / name).write_text("precious\n" * 100)
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


FOLDERS = (
    "seen",
    "archive",
    "journal",
    "cookies",
    "frontier",
    "queues",
    "archive/digests",
    "archive/tables/pages",
)
FILES = (
    "log.jsonl",
    "seeds.txt",
    "job.lock",
    "settings.toml",
    "manifest.json",
    "control.sock",
    "recrawl.json",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_job_with_a_link_is_refused_by_every_command(
    command: str,
    known: dict[str, list[str]],
    job: Path,
    outside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warc = next((job / "archive").glob("pages-*.warc.gz"))
    files = (*FILES, f"archive/{warc.name}.open", "archive/pages-20200101000000-00009.warc.gz.open", "seen/x")
    for name in (*FOLDERS, *files):
        place, kept = job / name, tmp_path / "kept"
        if place.is_dir():
            place.rename(kept)
            place.symlink_to(outside, target_is_directory=True)
        else:
            if place.exists():
                place.rename(kept)
            place.symlink_to(outside / "diary.txt")
        if name == "settings.toml":  # what it leads to is one, or nobody would take this for a job
            place.unlink()
            shutil.copy(kept, tmp_path / "theirs.toml")
            place.symlink_to(tmp_path / "theirs.toml")
        assert run(monkeypatch, *on(job, known[command])) == 2, name
        assert f"{place} is a link" in complaint(capsys)
        place.unlink()
        if kept.exists() or kept.is_symlink():
            kept.rename(place)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_in_a_job_blocks_nobody(
    command: str,
    known: dict[str, list[str]],
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (job / "log.jsonl").unlink()
    os.mkfifo(job / "log.jsonl")
    assert run(monkeypatch, *on(job, known[command])) == 2
    assert "is neither a file nor a folder" in complaint(capsys)


def forge(job: Path, change: str, value: object, manifest: str = "manifest.json") -> None:
    """Rewrite the manifest with a structure, a file or a length of one's choice, and with the right checksum."""
    path = job / manifest
    first, _, rest = path.read_bytes().partition(b"\n")
    body = json.loads(rest)
    if change == "structure":
        body["structures"][str(value)] = {}
    elif change == "file":
        body["structures"]["seen"]["files"][str(value)] = 0
    elif change == "length":
        name = next(iter(body["structures"]["frontier"]["files"]))
        body["structures"]["frontier"]["files"][name] = value
    else:
        body[change] = value
    text = json.dumps(body)
    head = json.loads(first) | {"checksum": f"{checksum(text.encode()):016x}"}
    path.write_text(f"{json.dumps(head)}\n{text}\n")


@pytest.mark.parametrize("command", ["resume", "recrawl", "add", "verify"])
@pytest.mark.parametrize("change", ["structure", "file"])
def test_a_manifest_that_names_others_files_is_refused(
    command: str,
    known: dict[str, list[str]],
    change: str,
    job: Path,
    outside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [
        "../../mine",
        "../../mine/deeper",
        str(outside),
        "seen/../../../mine",
        "..",
        "",
        ".",
        "a//b",
        "a\0b",
    ]
    names += [f"{name}/diary.txt" for name in names[:4]] if change == "file" else []
    manifest = (job / "manifest.json").read_bytes()
    for name in names:
        forge(job, change, name)
        assert run(monkeypatch, *on(job, known[command])) == 1, name
        output = capsys.readouterr()
        assert "which is not in its folder" in output.out + output.err
        assert (output.out + output.err).count("\n") <= (2 if command == "verify" else 1)
        (job / "manifest.json").write_bytes(manifest)


def test_a_manifest_of_digests_that_names_others_files_is_damage(job: Path, outside: Path) -> None:
    forge(job, "structure", "../../../../mine", "archive/digests/manifest.json")
    found = [problem for problem in verify_job(job) if problem.kind == "damage"]
    assert [problem.file for problem in found] == ["digests/manifest.json"]


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("structures", []),
        ("structures", {"seen": 7}),
        ("structures", {"seen": {"files": []}}),
        ("structures", None),
        ("number", "7"),
        ("number", -1),
        ("length", "7"),
        ("length", -7),
        ("length", None),
        ("length", True),
    ],
)
def test_a_manifest_of_wrong_types_is_damaged(
    change: str, value: object, job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(job, change, value)
    assert run(monkeypatch, "resume", job) == 1
    assert "manifest.json is damaged" in complaint(capsys)


def test_a_socket_that_is_a_link_is_not_spoken_to(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        other.settimeout(0)
        (tmp_path / "job").mkdir()
        (tmp_path / "job" / "control.sock").symlink_to(tmp_path / "other")
        assert ask(tmp_path / "job", "stop") is None
        with pytest.raises(BlockingIOError):
            other.accept()


REACHING = {
    "page.classifier": "evil:judge",
    "budget.function": "evil:function",
    "cookies.file": "/home/somebody/cookies.txt",
    "fetch.tls_authority": "/home/somebody/authority.pem",
    "network.proxy": "http://127.0.0.1:3128",
    "network.allow": "10.0.0.0/8",
    "network.ports": "10.0.0.0/8:80=22",
    "dns.servers": "192.0.2.53",
}


@pytest.mark.parametrize("command", ["resume", "recrawl", "add"])
def test_settings_of_another_load_no_code(
    command: str,
    known: dict[str, list[str]],
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text(
        "from pathlib import Path\nPath('ran').touch()\njudge = function = print\n"
    )
    text = (job / "settings.toml").read_text()
    for old, new in (
        ('classifier = ""', 'classifier = "evil:judge"'),
        ('function = "irlbot"', 'function = "evil:f"'),
    ):
        (job / "settings.toml").write_text(text.replace(old, new))
        assert run(monkeypatch, *on(job, known[command])) == 2
        line = complaint(capsys)
        assert new.partition(" ")[0] in line
        assert "add --trust-settings" in line
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", REACHING)
def test_what_reaches_beyond_a_job_is_the_users_choice(name: str, tmp_path: Path) -> None:
    settings = load_settings(options=[f"{name}={REACHING[name]}", "limits.pages=7"])
    write_settings(Env(), tmp_path, settings)
    assert take_settings(Env(), tmp_path, [], False) == (settings, False)  # one's own goes on as it was
    path = tmp_path / "settings.toml"
    path.write_text(path.read_text().replace("pages = 7", "pages = 8"))
    with pytest.raises(JobError, match=f"and {name} would load code or files, or reach networks"):
        take_settings(Env(), tmp_path, [], False)
    assert read_settings(Env(), tmp_path).limits.pages == 8  # for whoever only reads
    assert take_settings(Env(), tmp_path, [], True)[1]
    if name != "budget.function":  # which cannot be changed
        assert take_settings(Env(), tmp_path, [f"{name}={REACHING[name]}"], False)[0].limits.pages == 8
    write_settings(Env(), tmp_path, take_settings(Env(), tmp_path, [], True)[0])
    assert take_settings(Env(), tmp_path, [], False)[0].limits.pages == 8  # asked for once


def test_settings_that_reach_nowhere_need_no_trust(tmp_path: Path) -> None:
    write_settings(Env(), tmp_path, load_settings(options=["budget.function=equal", "scope.level=web"]))
    path = tmp_path / "settings.toml"
    path.write_text(path.read_text().rpartition("# sealed")[0])
    assert take_settings(Env(), tmp_path, [], False)[0].scope.level == "web"


def test_the_key_of_another_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    write_settings(Env(), tmp_path, load_settings(options=["page.classifier=evil:judge"]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    with pytest.raises(JobError):
        take_settings(Env(), tmp_path, [], False)
    assert (tmp_path / "mine" / "barkspider" / "key").stat().st_mode & 0o777 == 0o600


def test_without_a_place_for_a_key_a_job_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    write_settings(Env(), tmp_path, load_settings(options=["page.classifier=mine:judge"]))
    with pytest.raises(JobError):
        take_settings(Env(), tmp_path, [], False)
    assert take_settings(Env(), tmp_path, [], True)[0].page.classifier == "mine:judge"
