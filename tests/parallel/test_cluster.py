"""Crawls on a Ray cluster; `python -m benchmarks cluster` has larger ones, and nodes that freeze."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from barkspider.cli.app import app
from tests.cli.program import complaint, run
from tests.parallel.clusters import DEFAULTS


def crawled(order: dict[str, object]) -> dict[str, object]:
    """What `tests.parallel.clusters` found, in a process of its own: what Ray warns of is not ours, and it ends with all it has
    started."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.parallel.clusters", json.dumps({**DEFAULTS, **order})],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_crawl_outlives_a_node_and_its_driver() -> None:
    found = crawled({"pages": 3_000, "abandon": True, "crash": True, "kill": True})
    assert found["code"] == 0, found["output"]
    assert found["happened"] == ["abandon", "crash", "kill"]
    assert found["truth"] > 2_500
    assert found["paused"]
    assert [found[name] for name in ("missing", "twice_or_wrong", "too_soon", "problems")] == [0, 0, 0, []], (
        found
    )
    assert found["fetched_again"] <= found["since_copy"], found


def test_a_crawl_is_resized_and_a_node_that_is_drained_hands_over() -> None:
    """With a store in a bucket; nobody's lease has to run out."""
    found = crawled({"pages": 400, "nodes": 1, "lease": 60.0, "resize": 3, "drain": True, "s3": True})
    assert found["code"] == 0, found["output"]
    assert found["happened"] == ["resize", "drain"]
    assert found["truth"] > 350
    assert [found[name] for name in ("missing", "twice_or_wrong", "too_soon", "problems")] == [0, 0, 0, []], (
        found
    )
    assert found["pages_again"] == 0, found
    assert found["resized"]["before"] == 2
    assert found["nodes_after"] == 2  # one of them has joined
    assert "goes on elsewhere" in found["output"]
    assert "started again" not in found["output"]


def address_of_nobody() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def stranger() -> Iterator[str]:
    """The address of somebody who answers, but not as Ray does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    with listener.accept()[0] as there:
                        there.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


CRAWL = ("crawl", "http://127.0.0.1/", "--processes", "2", "--set", "network.allow=127.0.0.0/8", "--ray")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nobody", "nobody answers at"),
        ("somewhere", "write it like"),
    ],
)
def test_a_cluster_that_is_not_there_is_a_line(
    address: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = address_of_nobody() if address == "nobody" else address
    job = tmp_path / "job"
    for command in (
        [*CRAWL, given, "--job", job],
        ["status", job, "--ray", given],
        ["resume", job, "--ray", given],
    ):
        assert run(monkeypatch, *command) == 2
        assert message in complaint(capsys)
    assert not job.exists()


def test_whoever_is_no_cluster_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with stranger() as address:
        assert run(monkeypatch, *CRAWL, address, "--job", tmp_path / "job") == 2
    assert "no part of a Ray cluster" in complaint(capsys)


def test_without_ray_there_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(monkeypatch, *CRAWL, "auto", "--job", tmp_path / "job") == 2
    assert "barkspider[cluster]" in complaint(capsys)


def test_a_job_whose_parts_are_on_nodes_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.toml").write_text("")
    (tmp_path / "job.toml").write_text("processes = 2")
    (tmp_path / "at-0123456789ab" / "0000" / "part-0000").mkdir(parents=True)
    for command in (["status"], ["query"], ["verify"]):
        words = ["SELECT 1"] if command == ["query"] else []
        assert run(monkeypatch, *command, tmp_path, *words) == 2
        assert "add --ray" in complaint(capsys)


def test_one_process_is_not_for_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *CRAWL[:2], "--ray", "auto", "--job", tmp_path / "job") == 2
    assert "--processes" in complaint(capsys)


def test_the_cluster_file_and_the_manifest_of_the_docs_are_what_they_should_be() -> None:
    """By Ray's own schema; of the manifest, what it names is there."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    text = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    file, manifests = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    validate_config(prepare_config(yaml.safe_load(file)))
    seeds, job = yaml.safe_load_all(manifests)
    groups = [
        job["spec"]["rayClusterSpec"]["headGroupSpec"],
        *job["spec"]["rayClusterSpec"]["workerGroupSpecs"],
    ]
    volumes = [{each["name"] for each in group["template"]["spec"]["volumes"]} for group in groups]
    for group, there in zip(groups, volumes, strict=True):
        for container in group["template"]["spec"]["containers"]:
            assert {each["name"] for each in container["volumeMounts"]} == there
    assert seeds["metadata"]["name"] in volumes[0]
    words = [*shlex.split(job["spec"]["entrypoint"])[1:], "--help"]
    assert CliRunner().invoke(app, words).exit_code == 0
