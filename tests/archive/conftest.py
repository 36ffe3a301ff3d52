"""Where the tests find pywb."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.archive.replaying import ROOT

# setuptools: pywb asks for pkg_resources, which newer ones have no more.
PACKAGES = ("pywb==2.10.0", "setuptools<81")


@pytest.fixture(scope="session")
def pywb() -> Path:
    """The Python of an environment that has pywb.

    Its pins clash with ours, so it has a virtual environment of its own in the project's folder, made once (about
    twenty seconds) and kept.
    """
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
