"""pywb serves what we archived, from our WARC files by our index.

Its pins clash with ours, so it has a virtual environment of its own in the project's folder, made once (about
twenty seconds) and kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from barkspider.archive import WarcWriter, surt
from barkspider.archive.cdxj import merge
from barkspider.core.settings import Archive
from barkspider.storage.env import Env

# setuptools: pywb asks for pkg_resources, which newer ones have no more.
PACKAGES = ("pywb==2.10.0", "setuptools<81")
ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def pywb() -> Path:
    """The Python of an environment that has pywb."""
    name = f"{PACKAGES[0].replace('==', '-')}-py{sys.version_info[0]}{sys.version_info[1]}"
    folder = ROOT / ".venv-pywb" / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "10", *PACKAGES]
        done = subprocess.run(install, capture_output=True, text=True, timeout=600)
        if done.returncode:
            pytest.skip(f"pywb cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")
        (folder / "ready").touch()
    return python


def serve(pywb: Path, archive: Path, paths: list[str]) -> list[tuple[int, str]]:
    config = archive / "pywb.yaml"
    index = archive / "index.cdxj"
    config.write_text(
        f"collections:\n  job:\n    index_paths: {json.dumps(str(index))}\n"
        f"    archive_paths: {json.dumps(f'{archive}/')}\n"
    )
    done = subprocess.run(
        [pywb, "-W", "ignore", ROOT / "tests" / "archive" / "replay.py", config],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        cwd=archive,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(status, body) for status, body in json.loads(done.stdout)]


def test_pywb_serves_archived_pages_and_revisits(pywb: Path, tmp_path: Path) -> None:
    writer = WarcWriter(Env(), tmp_path, "pages", Archive(warc_size=1500), {})
    bodies = {
        "http://www.example.com/": "<title>Home</title>" + "words " * 300,
        "http://example.com/A/b.html?y=2&x=%C3%BC": "<title>Second</title>" + "others " * 300,
        "http://example.org:8080/c": "<title>Third</title>" + "more " * 300,
        "http://mirror.example.org/": "<title>Home</title>" + "words " * 300,
    }
    stored = []
    for number, (url, body) in enumerate(bodies.items()):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        response = (head + body).encode()
        stored.append(writer.write_exchange(url, b"GET /", response, "192.0.2.1", NOW + number))
    writer.close()
    merge(Env(), tmp_path)
    assert [one.revisit for one in stored] == [False, False, False, True]
    assert len({one.file for one in stored}) > 1
    asked = [f"/job/2027id_/{url}" for url in bodies]
    answers = serve(
        pywb, tmp_path, [*asked, "/job/2027mp_/http://www.example.com/", "/job/2027id_/http://no.example/"]
    )
    assert [body for _, body in answers[: len(bodies)]] == list(bodies.values())
    assert [status for status, _ in answers] == [200] * (len(bodies) + 1) + [404]
    assert "<title>Home</title>" in answers[-2][1]


def test_our_keys_are_those_that_pywb_looks_for(pywb: Path) -> None:
    urls = [
        "http://www3.example.com:80/a//b/../c/?b=2&a=1&A=0",
        "https://example.com/%7Ea/%2541?q=%26&sid=0123456789abcdef0123456789abcdef",
        "http://127.0.0.1:8000/(S(4hqa0555fwsecu455xqckv45))/a.aspx",
        "http://xn--bcher-kva.example/%C3%BC?%3F=%23&x",
    ]
    code = "import json, sys, surt; print(json.dumps([surt.surt(url) for url in json.load(sys.stdin)]))"
    done = subprocess.run(
        [pywb, "-W", "ignore", "-c", code], input=json.dumps(urls), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [surt(url) for url in urls]
