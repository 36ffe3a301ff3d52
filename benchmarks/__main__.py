"""`python -m benchmarks NAME [SIZE] [--quick] [--json]`: run a named workload and print what it measured.

Each module here has `run(quick) -> {"figures": {...}, "targets": [...]}`. The last line printed is one
JSON object: the figures, and every target as {name, value, target, holds}; a target that a quick run
cannot measure has value and holds null. `all` runs every benchmark in turn. SIZE is for those that say so: a run that
is too large to be made each time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import benchmarks

# Named `queue`, this module would take the place of the standard one for a benchmark that is run as a script.
_RENAMED = {"disk_queue": "queue"}
MODULES = {
    _RENAMED.get(module, module): module
    for _, module, _ in pkgutil.iter_modules([str(Path(benchmarks.__path__[0]))])
    if not module.startswith("_")
}


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Named workloads with fixed seeds."
    )
    parser.add_argument("name", choices=[*sorted(MODULES), "all"])
    parser.add_argument("size", nargs="?", default="", help="for drum: millions of keys, such as 1000")
    parser.add_argument("--quick", action="store_true", help="end within a minute each")
    parser.add_argument("--json", action="store_true", help="print the JSON object alone")
    options = parser.parse_args()
    if options.size and not (options.name == "drum" and options.size.isdecimal()):
        parser.error(
            f"{options.name} takes no size {options.size!r}; drum takes millions of keys, such as 1000"
        )
    results = {
        name: _run(name, options.quick, options.json, *([options.size] if options.size else []))
        for name in sorted(MODULES)
        if options.name in (name, "all")
    }
    print(json.dumps(results if options.name == "all" else results[options.name]))


def _run(name: str, quick: bool, quiet: bool, *size: str) -> dict[str, Any]:
    result: dict[str, Any] = importlib.import_module(f"benchmarks.{MODULES[name]}").run(quick, *size)
    if not quiet:
        print(f"── {name}{' (quick)' if quick else ''}")
        for figure, value in result["figures"].items():
            print(f"   {figure:40} {value}")
        for target in result["targets"]:
            verdict = {True: "holds", False: "MISSED", None: "not measured"}[target["holds"]]
            print(f"   {target['name']:40} {target['value']} (target {target['target']}): {verdict}")
        sys.stdout.flush()
    return {"benchmark": name, "quick": quick, **result["figures"], "targets": result["targets"]}


if __name__ == "__main__":
    main()
