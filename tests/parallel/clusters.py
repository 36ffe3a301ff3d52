"""Ray clusters of several nodes on this machine, which are killed, stopped and added, and what a crawl on one leaves behind.

    python -m tests.parallel.clusters '{"pages": 3000, "nodes": 2, "kill": true, …}'

prints what was found as one JSON object. A node that is killed loses its disk, too.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from barkspider.engine import verify_job
from barkspider.engine.copying import restore_job
from barkspider.engine.folder import archive_folders, events
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.storage.env import Env
from tests.engine.warcs import archived
from tests.parallel.killed import children
from tests.storage.buckets import s3

DEFAULTS: dict[str, Any] = {
    "pages": 400,
    "nodes": 2,
    "processes": 2,
    "lease": 4.0,
    "server_delay": 0.02,
    "crash": False,  # kill the process of a part
    "kill": False,  # a node with -9, in the middle, and add another
    "freeze": False,  # stop a node for longer than its lease, and let it go on
    "resize": 0,  # let it end after 100 pages, and go on with so many parts and a node more
    "drain": False,  # tell Ray that a node is about to go, and add another
    "s3": False,  # with a store in a bucket, not in a folder
    "abandon": False,  # kill the driver, pause the crawl, and come back
    "stop": False,  # stop the crawl, and go on
    "store": True,
    "patience": 240.0,
    "seed": 5,
}
# Ray takes the addresses of this machine for the loopback's then; nothing listens elsewhere.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_NODE = {
    "num_cpus": 1,
    "object_store_memory": 80 << 20,
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
}


def main() -> None:
    """Run as the order on the command line says."""
    os.environ.update(LOOPBACK)
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        print(json.dumps(run(DEFAULTS | json.loads(sys.argv[1]), Path(folder))))


@contextmanager
def ray_cluster(nodes: int) -> Iterator[Any]:
    """A cluster of so many nodes; `LOOPBACK` is in the environment."""
    from ray.cluster_utils import Cluster

    # The names of sockets have room for 107 bytes: not in the folder of a test.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = (
            folder  # where it notes, in a folder that has to be there, which cluster began last
        )
        Path(folder, "ray").mkdir()
        cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "temp_dir": folder})
        try:
            for _ in range(nodes - 1):
                cluster.add_node(**_NODE)
            yield cluster
        finally:
            cluster.shutdown()


def run(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Crawl a web on a cluster to which happens what is ordered, and compare all there is with the truth."""
    spec = WebSpec(
        seed=order["seed"],
        pages=order["pages"],
        domains=order["pages"] // 10,
        page_bytes=3_000,
        crawl_delay=0.1,
    )
    with ExitStack() as stack:
        served = stack.enter_context(running_web(spec, log_path=folder / "requests.log"))
        store = stack.enter_context(s3()) if order["s3"] else str(folder / "store")
        cluster = stack.enter_context(ray_cluster(order["nodes"]))
        crawl = Watched(order, served, cluster, folder, store)
        stack.callback(crawl.end)
        crawl.run()
        return {**crawl.told, **compare(order, served, crawl)}


class Watched:
    """A crawl on a cluster, seen by its driver's commands and the processes of its nodes."""

    def __init__(
        self, order: dict[str, Any], served: RunningWeb, cluster: Any, folder: Path, store: str
    ) -> None:
        self.order, self.served, self.cluster = order, served, cluster
        self.job, self.store, self.seeds = folder / "job", store, served.web.seeds(3)
        self.told: dict[str, Any] = {"happened": []}
        self._end = time.monotonic() + order["patience"]
        self._output = (folder / "output.txt").open("a+b")
        self._driver: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """From the start to the end."""
        self._start("crawl", *self.seeds)
        for happening in (
            self._abandon,
            self._stop,
            self._resize,
            self._crash,
            self._drain,
            self._kill,
            self._freeze,
        ):
            if self.order[happening.__name__.strip("_")]:
                self.wait(lambda: self._copied() >= 2 * self._begun() or self._has_ended())
                happening()
                self.told["happened"].append(happening.__name__.strip("_"))
        assert self._driver is not None
        self.wait(self._has_ended)
        self._output.seek(0)
        self.told |= {"code": self._driver.returncode, "output": self._output.read().decode()[-6000:]}

    def _begun(self) -> int:
        """How often things have happened since these parts are there."""
        happened = self.told["happened"]
        return len(happened) - happened.index("resize") if "resize" in happened else 1 + len(happened)

    def _has_ended(self) -> bool:
        return self._driver is not None and self._driver.poll() is not None

    def end(self) -> None:
        """Whatever happened: leave nothing behind."""
        if self._driver is not None and self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()
        self._output.close()
        for process in [each for node in self._processes().values() for each in node]:
            _signal(process, signal.SIGKILL)

    def wait(self, condition: Any) -> None:
        """Until something is so."""
        while not condition():
            assert time.monotonic() < self._end, self.output()
            time.sleep(0.1)

    def output(self) -> str:
        """What the driver has said."""
        self._output.flush()
        return Path(self._output.name).read_text()[-3000:]

    def _start(self, command: str, *words: str) -> None:
        given = [sys.executable, "-m", "barkspider.cli", command, *words, "--ray", self.cluster.address]
        if command == "crawl":
            given += ["--job", str(self.job), "--processes", str(self.order["processes"])]
            given += ["--store", self.store] if self.order["store"] else []
            given += [word for option in self._options() for word in ("--set", option)]
        self._driver = subprocess.Popen(
            given, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output
        )

    def _options(self) -> list[str]:
        chosen = [f"{name}={value}" for name, value in self.served.settings().items()]
        chosen += [f"politeness.server_delay={1000 * self.order['server_delay']:g}ms", "seed=7"]
        chosen += [
            "politeness.host_delay=20ms",
            "politeness.slow_factor=0",
            "scope.level=web",
            "memory=128MB",
        ]
        chosen += ["checkpoint=1s", "parallel.interval=200ms", "fetch.timeout=2s", "limits.grace=1s"]
        chosen += ["limits.pages=100"] if self.order["resize"] else []
        return [*chosen, f"parallel.lease={self.order['lease']:g}s"]

    def _parts(self) -> list[Path]:
        """Those of the last generation that there is."""
        return sorted(self.job.glob("at-*/*/generation-*/part-*")) or sorted(self.job.glob("at-*/*/part-*"))

    def _copied(self) -> int:
        """The fewest checkpoints that any part has made: each is copied before it is logged."""
        counts = [sum(each["event"] == "checkpoint" for each in events(part)) for part in self._parts()]
        return min(counts) if len(counts) >= self.order["processes"] else 0

    def _processes(self) -> dict[Any, list[int]]:
        return {node: process_tree(node) for node in self.cluster.list_all_nodes()}

    def _victim(self) -> tuple[Any, list[int]]:
        """A node other than the head that has parts."""
        for node, processes in self._processes().items():
            if node is not self.cluster.head_node and any(self._is_at(part, node) for part in self._parts()):
                return node, processes
        raise AssertionError("no node but the head has parts")

    def _abandon(self) -> None:
        assert self._driver is not None
        self._driver.kill()
        self._driver.wait()
        self.told["paused"] = "paused" in self._ask("pause")["state"]
        self._ask("add", self.seeds[0])
        self._start("resume", str(self.job))

    def _stop(self) -> None:
        self._stop_it()
        self._start("resume", str(self.job))

    def _ask(self, command: str, *words: str) -> dict[str, Any]:
        """What a command tells of the crawl."""
        given = [sys.executable, "-m", "barkspider.cli", command, str(self.job), *words, "--json"]
        done = subprocess.run(
            [*given, "--ray", self.cluster.address], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _crash(self) -> None:
        processes = [each for node in self._processes().values() for each in node]
        parts = [
            each
            for each in processes
            if b"barkspider.parallel.part" in Path(f"/proc/{each}/cmdline").read_bytes()
        ]
        assert len(parts) == self.order["processes"]
        _signal(parts[0], signal.SIGKILL)

    def _drain(self) -> None:
        from ray._raylet import GcsClient  # type: ignore[attr-defined]
        from ray.core.generated.autoscaler_pb2 import DRAIN_NODE_REASON_PREEMPTION

        node, _ = self._victim()
        moving = {part.parts[-1] for part in self._parts() if self._is_at(part, node)}
        # As `ray drain-node` does it, and `ray start --block` when it gets SIGTERM.
        accepted, why = GcsClient(address=self.cluster.address).drain_node(
            node.node_id, DRAIN_NODE_REASON_PREEMPTION, "a spot notice", 0
        )
        assert accepted, why
        self.wait(lambda: moving <= {part.parts[-1] for part in self._parts() if not self._is_at(part, node)})
        for process in process_tree(node):
            _signal(process, signal.SIGKILL)
        self.cluster.remove_node(node, allow_graceful=False)
        self._forget(node)

    def _is_at(self, part: Path, node: Any) -> bool:
        return f"at-{node.node_id[:12]}" in part.parts

    def _forget(self, node: Any) -> None:
        """A node has gone, with its disk; another comes."""
        shutil.rmtree(self.job / f"at-{node.node_id[:12]}", ignore_errors=True)
        self.cluster.add_node(wait=False, **_NODE)

    def _resize(self) -> None:
        """The crawl ends at its first limit of pages; a node has joined when it goes on."""
        self.wait(self._has_ended)
        self.cluster.add_node(**_NODE)
        words = ["resize", str(self.job), "--processes", str(self.order["resize"]), "--json"]
        command = [sys.executable, "-m", "barkspider.cli", *words, "--ray", self.cluster.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        self.told["resized"] = json.loads(done.stdout)
        self._start("resume", str(self.job), "--pages", "0")
        self.order = {**self.order, "processes": self.order["resize"]}
        self.wait(lambda: len(self._parts()) == self.order["processes"])
        self.told["nodes_after"] = len({part.parents[2] for part in self._parts()})

    def _stop_it(self) -> None:
        self.told["stopped"] = self._ask("stop")["state"]
        self.wait(self._has_ended)

    def _kill(self) -> None:
        node, processes = self._victim()
        for process in processes:
            _signal(process, signal.SIGSTOP)  # so that all of it ends at one moment
        self.told["since_copy"] = self._since_copy(node)
        for process in processes:
            _signal(process, signal.SIGKILL)
        self.cluster.remove_node(node, allow_graceful=False)
        self._forget(node)

    def _since_copy(self, node: Any) -> int:
        """How many requests there were since the last checkpoint of the parts of a node that was copied had begun."""
        begun = []
        for part in self.job.glob(f"at-{node.node_id[:12]}/*/part-*"):
            last = [each for each in events(part) if each["event"] == "checkpoint"][-1]
            begun.append(last["time"] - last["written"] - last["seconds"])
        assert self.served.log_path is not None
        return sum(entry.time >= min(begun) - 0.05 for entry in read_log(self.served.log_path))

    def _freeze(self) -> None:
        node, processes = self._victim()
        for process in processes:
            _signal(process, signal.SIGSTOP)
        before = len(self._successions())
        try:
            self.wait(lambda: len(self._successions()) > before)
        finally:
            for process in processes:
                _signal(process, signal.SIGCONT)
        self.told["frozen"] = node.node_id[:12]

    def _successions(self) -> list[str]:
        """Who took over a part in the store."""
        return [path.name for path in Path(self.store).glob("part-*/claims/*")]


def compare(order: dict[str, Any], served: RunningWeb, crawl: Watched) -> dict[str, Any]:
    """What is in the store, or on the nodes, against the truth; what servers saw."""
    folder, truth = crawl.job, Counter(served.web.reachable_urls(crawl.seeds))
    if order["store"]:
        folder = crawl.job.parent / "back"
        restore_job(Env(), crawl.store, folder)
        problems = [str(problem) for problem in verify_job(folder) if problem.kind == "damage"]
        parts = archive_folders(folder)
    else:
        problems, parts = [], crawl._parts()
    pages = Counter(url for part in parts for url in archived(part, "pages"))
    assert served.log_path is not None
    last: dict[str, float] = {}
    too_soon, requests = 0, Counter[str]()
    for entry in read_log(served.log_path):
        too_soon += entry.time - last.get(entry.address, 0.0) < order["server_delay"]
        last[entry.address] = entry.time
        requests[f"{entry.host}{entry.path}"] += 1
    return {
        "truth": len(truth),
        "missing": (truth - pages).total(),
        "twice_or_wrong": (pages - truth).total(),
        "too_soon": too_soon,
        "fetched_again": sum(count - 1 for count in requests.values()),
        "pages_again": sum(count - 1 for url, count in requests.items() if not url.endswith("/robots.txt")),
        "problems": problems[:5],
    }


def process_tree(node: Any) -> list[int]:
    """The processes of a node: Ray's, actors, and what these have started."""
    started = [each.process.pid for infos in node.all_processes.values() for each in infos]
    return [each for process in started for each in _tree(process)]


def _tree(process: int) -> list[int]:
    return [process, *(each for child in children(process) for each in _tree(child))]


def _signal(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
