"""The metrics: valid OpenMetrics, true to the counters, all of them documented; what is in docs asks for none that is not there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from barkspider.dashboard.metrics import exposition, registry
from barkspider.dashboard.watcher import View, Watcher
from barkspider.engine.folder import events
from tests.cli.small_job import make_small_job

DOCS = Path(__file__).parents[2] / "docs"
PROMTOOL = shutil.which("promtool")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("metrics") / "job")


@pytest.fixture(scope="module")
def view(job: Path) -> View:
    return Watcher(job).look()


@pytest.fixture(scope="module")
def values(view: View) -> dict[str, float]:
    """Every sample by its name and labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(exposition(view).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_they_are_the_counters_of_the_crawl(job: Path, values: dict[str, float]) -> None:
    ended = [event for event in events(job) if event["event"] == "ended"][-1]
    assert values["barkspider_pages_total"] == ended["pages"] == 25
    assert values["barkspider_received_bytes_total"] == ended["bytes"]
    assert values["barkspider_up"] == 0
    assert values["barkspider_drum_rows_total{drum=seen}"] == ended["drum"]["seen"]["rows"]
    for reason, count in ended["out_of_scope"].items():
        assert values[f"barkspider_out_of_scope_total{{reason={reason}}}"] == count
    fetched = values["barkspider_fetch_seconds_count{phase=first_byte}"]
    assert fetched >= 25
    assert values["barkspider_fetch_seconds_bucket{le=+Inf,phase=first_byte}"] == fetched
    assert 0 < values["barkspider_fetch_seconds_sum{phase=first_byte}"] < 60


def test_names_say_their_unit_and_no_label_grows_with_the_web(view: View) -> None:
    for family in text_string_to_metric_families(exposition(view).decode()):
        assert family.name.startswith("barkspider_")
        for sample in family.samples:
            assert set(sample.labels) <= {"reason", "queue", "stage", "phase", "drum", "le"}
            if family.type == "counter":
                assert sample.name.endswith("_total")


def test_every_metric_is_documented_and_no_other(view: View) -> None:
    told = set(re.findall(r"`(barkspider_\w+)`", (DOCS / "metrics.md").read_text()))
    there = set()
    for family in text_string_to_metric_families(exposition(view).decode()):
        there.add(f"{family.name}_total" if family.type == "counter" else family.name)
    assert told == there


def test_the_dashboard_and_the_alerts_ask_for_metrics_that_are_there(view: View) -> None:
    names = {
        sample.name
        for family in text_string_to_metric_families(exposition(view).decode())
        for sample in family.samples
    } | {"barkspider_failed_total", "barkspider_refused_total"}  # of which this crawl had none
    asked = [
        target["expr"]
        for panel in json.loads((DOCS / "grafana" / "barkspider.json").read_text())["panels"]
        for target in panel["targets"]
    ]
    asked += re.findall(r"expr: (.*)", (DOCS / "grafana" / "alerts.yml").read_text())
    assert len(asked) > 15
    for expression in asked:
        found = set(re.findall(r"barkspider_\w+", expression))
        assert found, expression
        assert found <= names, expression


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus")
def test_promtool_finds_no_fault(view: View) -> None:
    assert PROMTOOL is not None
    rules = subprocess.run(
        [PROMTOOL, "check", "rules", str(DOCS / "grafana" / "alerts.yml")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert rules.returncode == 0, rules.stderr
    assert "6 rules found" in rules.stdout
    text = generate_latest(registry(view))  # it reads the older format alone
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, b"")


# What a crawl says for half an hour, a sample a minute, and which alert it is.
TOLD = {
    "CrawlIsGone": {"barkspider_up": "0x60"},
    "CrawlStandsStill": {
        "barkspider_up": "1x60",
        "barkspider_paused": "0x60",
        "barkspider_pages_total": "70x60",
        "barkspider_queued_urls": "9x60",
    },
    "CrawlIsPaused": {"barkspider_up": "1x60", "barkspider_paused": "1x60"},
    "DiskIsSoonFull": {"barkspider_disk_free_bytes": "10e9-50e6x60"},
    "ManyFailures": {"barkspider_pages_total": "0+100x60", "barkspider_failed_total": "0+40x60"},
    "LoopIsHeld": {"barkspider_loop_held_seconds": "3x60"},
    "": {  # a crawl that is well
        "barkspider_up": "1x60",
        "barkspider_paused": "0x60",
        "barkspider_pages_total": "0+100x60",
        "barkspider_failed_total": "0+3x60",
        "barkspider_queued_urls": "9x60",
        "barkspider_disk_free_bytes": "900e9-1e6x60",
        "barkspider_loop_held_seconds": "0.1x60",
    },
}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus")
def test_each_alert_comes_when_it_should_and_no_other(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    cases = []
    for alert, told in TOLD.items():
        series = [{"series": f'{name}{{instance="a"}}', "values": values} for name, values in told.items()]
        firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
        wanted = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
        case = {"interval": "1m", "input_series": series}
        cases.append(
            case | {"promql_expr_test": [{"expr": firing, "eval_time": "55m", "exp_samples": wanted}]}
        )
    rules = str(DOCS / "grafana" / "alerts.yml")
    # JSON is YAML.
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [rules], "tests": cases}))
    tested = subprocess.run(
        [PROMTOOL, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, timeout=60
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
