"""`python -m benchmarks NAME [SIZE] [--against DIR] [--quick] [--json]`: run a named workload and print what it measured.

Each module here has `run(quick) -> {"figures": {...}, "targets": [...]}`. The last line printed is one
JSON object: the figures, and every target as {name, value, target, holds}; a target that a quick run
cannot measure has value and holds null. `all` runs every benchmark in turn. SIZE is for those that say so: a run that
is too large to be made each time. DIR is for `crawl`: another checkout to be measured against.
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
_RENAMED = {"disk_queue": "queue", "scrapy_scheduler": "scrapy"}
MODULES = {
    _RENAMED.get(module, module): module
    for _, module, _ in pkgutil.iter_modules([str(Path(benchmarks.__path__[0]))])
    if not module.startswith("_")
}
# What SIZE is, for those that take one.
_SIZES = {
    "drum": "drum: millions of keys, such as 1000",
    "crawl": "crawl: thousands of pages, such as 2000",
}


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Named workloads with fixed seeds."
    )
    parser.add_argument("name", choices=[*sorted(MODULES), "all"])
    parser.add_argument(
        "size", nargs="?", default="", help=", ".join(f"for {each}" for each in _SIZES.values())
    )
    parser.add_argument("--against", metavar="DIR", default="", help="for crawl: a checkout with its .venv")
    parser.add_argument("--quick", action="store_true", help="end within a minute each")
    parser.add_argument("--json", action="store_true", help="print the JSON object alone")
    options = parser.parse_args()
    if options.size and not (options.name in _SIZES and options.size.isdecimal()):
        parser.error(f"{options.name} takes no size {options.size!r}; {'; '.join(_SIZES.values())}")
    if options.against and options.name != "crawl":
        parser.error(f"{options.name} is measured against no other checkout; crawl is")
    if options.against and not Path(options.against, ".venv", "bin", "python").exists():
        parser.error(f"{options.against} has no .venv; run make setup there")
    size = [options.size] if options.size else []
    other = {"against": options.against} if options.against else {}
    results = {
        name: _run(name, options.quick, options.json, *size, **other)
        for name in sorted(MODULES)
        if options.name in (name, "all")
    }
    print(json.dumps(results if options.name == "all" else results[options.name]))


def _run(name: str, quick: bool, quiet: bool, *size: str, **other: str) -> dict[str, Any]:
    result: dict[str, Any] = importlib.import_module(f"benchmarks.{MODULES[name]}").run(quick, *size, **other)
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
