"""The house itself: what can be said of all modules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import barkspider
from barkspider.core import settings
from barkspider.fetch import decoding, dns
from barkspider.frontier import modes

ROOT = Path(barkspider.__file__).parent
PACKAGES = sorted(path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_docstring_of_a_package_names_everything_in_it(package: Path) -> None:
    told = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    inside = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    named = set(re.findall(r"`(\w+)`", told))
    assert inside - {"__init__", "__main__"} <= named


def test_the_table_of_changes_names_files_and_names_that_are_there() -> None:
    told = (ROOT.parents[1] / "docs" / "architecture.md").read_text()
    rows = [line for line in told.partition("## Where do I change")[2].splitlines() if line.startswith("| ")]
    assert len(rows) > 30
    for row in rows:
        folder = ROOT
        for name, inside in re.findall(r"`([\w/]+\.py)`(?: \(((?:`\w+`(?:, )?)+)\))?", row):
            # One without a folder is beside the one before.
            path = ROOT / name if "/" in name else folder / name
            assert path.is_file(), row
            for each in re.findall(r"\w+", inside):
                assert re.search(rf"\b{each}\b", path.read_text()), row
            folder = path.parent


def test_the_glossary_names_what_is_there() -> None:
    told = (ROOT.parents[1] / "docs" / "glossary.md").read_text()
    source = "".join(path.read_text() for path in ROOT.rglob("*.py"))
    names = {part for name in re.findall(r"`([^`]+)`", told) for part in re.findall(r"\w+", name)}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)] == []


def test_every_attack_of_the_page_on_security_is_held_by_a_test_that_is_there() -> None:
    project = ROOT.parents[1]
    told = (project / "docs" / "security.md").read_text().partition("## Attacks")[2]
    rows = [line for line in told.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for file, name in named:
            assert (project / file).is_file(), row
            assert not name or f"\ndef {name}(" in (project / file).read_text(), row


def test_a_crawl_needs_no_package_of_the_laboratory() -> None:
    """matplotlib and cryptography come with an extra: without them everything can be imported and a picture is refused."""
    tried = """
import sys
from collections.abc import Iterator
sys.modules["matplotlib"] = sys.modules["cryptography"] = None
import barkspider.cli.app, barkspider.engine.loop, barkspider.lab.synthweb
from pathlib import Path
from barkspider.cli.pictures import save
try:
    save([print], Path("x.svg"))
except barkspider.UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", tried], capture_output=True, text=True, timeout=60)
    assert done.stdout == "this needs the package matplotlib: pip install 'barkspider[lab]'\n", done.stderr


def test_choices_of_settings_are_those_of_the_tables_behind_them() -> None:
    def choices(group: type, name: str) -> set[str]:
        return set(next(field for field in fields(group) if field.name == name).metadata["choices"])

    assert choices(settings.Dns, "family") == set(dns._KINDS)
    assert choices(settings.Fetch, "encodings") == set(decoding._DECODERS) - {"x-gzip"}  # an old name of gzip
    assert choices(settings.Parallel, "mode") <= set(modes.MODES)


def _functions(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """The functions of a module, and whether they are kernels: compiled as a whole, so that they are long."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            compiled = any(re.search("njit|kernel", ast.unparse(each)) for each in node.decorator_list)
            yield node, compiled


def _lines(node: ast.AST) -> int:
    assert isinstance(node, ast.stmt)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_no_function_but_a_kernel_has_more_than_eighty_lines() -> None:
    for path in ROOT.rglob("*.py"):
        found = list(_functions(path))
        kernels = {node for node, compiled in found if compiled}
        for node, compiled in found:
            inside = sum(_lines(each) for each in ast.walk(node) if each in kernels)
            assert compiled or _lines(node) - inside <= 80, f"{path}: {node.name}"
