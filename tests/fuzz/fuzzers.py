"""All fuzzers by name."""

from __future__ import annotations

from tests.fuzz import web
from tests.fuzz.fuzzing import Fuzzer
from tests.fuzz.jobs import JOBS
from tests.fuzz.links import LINKS

FUZZERS: dict[str, Fuzzer] = {
    fuzzer.name: fuzzer for fuzzer in (web.PAGES, web.TEXTS, web.HTTP, web.ROBOTS, web.DNS, LINKS, JOBS)
}
