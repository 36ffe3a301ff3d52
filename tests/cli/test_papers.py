"""`barkspider papers` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from barkspider.cli.app import app
from barkspider.core.errors import UsageError


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["papers", *map(str, arguments)])
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_tables_are_printed_as_markdown() -> None:
    text = run()
    assert "### IRLbot, Table 2: Overhead α of URL checks" in text
    assert "| 8T | 91,541 | 91,541.9 | +0.00% | 660,802 | 660,802.6 | +0.00% | 104 | 104.8 | +0.75% |" in text
    assert "### Spam Avoidance, Table III" in text
    assert "### Parallel Crawlers, Examples 1 to 3" in text


def test_every_figure_as_json() -> None:
    found = json.loads(run("--json"))
    figures = [figure for table in found["tables"] for figure in table["figures"]]
    assert len(figures) == found["figures"] > 100
    assert sum(figure["to_the_printed_digits"] for figure in figures) == found["to_the_printed_digits"]
    (rate,) = [figure for figure in figures if figure["printed"] == "4,192 pages/s"]
    assert rate["ours"] == pytest.approx(4192, rel=0.01)
    assert rate["difference"] == pytest.approx(rate["ours"] / 4192 - 1)


def test_a_folder_gets_markdown_json_and_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "papers"
    assert "figures agree to the printed digits" in run("--output", folder)
    pictures = sorted(path.name for path in folder.glob("*.svg"))
    assert pictures == [
        "irlbot-section-6.svg",
        "irlbot-table-2.svg",
        "irlbot-table-3.svg",
        "spam-avoidance-table-iii.svg",
    ]
    page = (folder / "papers.md").read_text("utf-8")
    for name in pictures:
        assert f"]({name})" in page
        assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")
    assert json.loads((folder / "papers.json").read_text("utf-8")) == json.loads(run("--json"))
    before = (folder / "irlbot-table-2.svg").read_bytes()
    run("--output", folder)
    assert (folder / "irlbot-table-2.svg").read_bytes() == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "papers").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        run("--output", tmp_path / "papers")
