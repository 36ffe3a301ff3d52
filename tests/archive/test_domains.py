"""The table of domains, made in bounded memory, against SQL and against a dict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.archive import open_table
from barkspider.archive.domains import domain_rows
from barkspider.archive.grouping import Grouping
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.views import ask
from barkspider.storage.env import Env
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=30), max_size=12), st.data()
)
def test_sums_are_those_of_a_dict_however_little_memory_there_is(
    batches: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    memory = data.draw(st.sampled_from([64, 500, 10_000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barkspider.archive.grouping._FEWEST_ROWS", 3)
        patch.setattr("barkspider.archive.grouping._MOST", 2)
        env = FaultyEnv()
        env.make_folder(FOLDER)
        grouping = Grouping(env, FOLDER, "test", {"n": "sum", "least": "min"}, memory)
        for rows in batches:
            keys, values = [f"k{key}" for key, _ in rows], pa.array([value for _, value in rows], pa.uint64())
            grouping.add(pa.table([pa.array(keys, pa.string()), values, values], names=["key", "n", "least"]))
        found = [row for table in grouping.results() for row in table.to_pylist()]
        assert env.list(FOLDER) == []
    sums: Counter[str] = Counter()
    least: dict[str, int] = {}
    for key, value in (row for rows in batches for row in rows):
        sums[f"k{key}"] += value
        least[f"k{key}"] = min(value, least.get(f"k{key}", 9))
    assert [(row["key"], row["n"], row["least"]) for row in found] == [
        (key, sums[key], least[key]) for key in sorted(least)
    ]


@pytest.mark.parametrize("memory", [20_000, 10_000_000])
def test_the_table_is_what_sql_says(tmp_path: Path, memory: int) -> None:
    random = Random(3)
    domains = [f"d{number}.example" for number in range(400)]
    for _ in range(3):
        picked = random.choices(domains, k=1500)
        pages = {
            "url_host_registered_domain": picked,
            "url_host_name": [f"{random.choice('ab')}.{name}" for name in picked],
            "fetch_status": random.choices([200, 204, 301, 404], k=1500),
            "content_length": random.choices([None, 0, 5, 10**12], k=1500),
            "fetch_time": random.choices(range(10**15, 10**15 + 10**9), k=1500),
        }
        links = {
            "source_domain": random.choices(domains[:60], k=6000),
            "target_domain": random.choices(domains, k=6000),
        }
        for name, columns in (("pages", pages), ("links", links)):
            table, count = open_table(Env(), tmp_path, name), len(next(iter(columns.values())))
            rows = [pa.array(columns.get(field.name, [None] * count), field.type) for field in table.schema]
            table.write(pa.table(rows, schema=table.schema))
    open_table(Env(), tmp_path, "domains").replace(domain_rows(Env(), tmp_path, memory))
    found = open_table(Env(), tmp_path, "domains").read()
    assert found.schema == SCHEMAS["domains"]
    assert found.to_pylist() == ask(Env(), [tmp_path], "SELECT * FROM domains ORDER BY domain").to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]  # what waited on disk is gone
