"""`python -m tests.fuzz NAME NUMBER`: one round of a fuzzer again, with its traceback.

Of `jobs`, NUMBER is the folder of a job that was kept. `python -m tests.fuzz NAME --seconds N` runs rounds for that long
and prints what they came to as JSON; the number of the round under way is in the file named by --progress, for whoever
wants to know which one ended the process.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

from tests.fuzz.fuzzers import FUZZERS
from tests.fuzz.fuzzing import Found, numbers, play
from tests.fuzz.jobs import open_everyhow


def main() -> None:
    """See the module."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("name", choices=sorted(FUZZERS))
    parser.add_argument("round", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--progress", type=Path)
    options = parser.parse_args()
    fuzzer = FUZZERS[options.name]
    if options.seconds:
        found = Found()
        play(fuzzer, 0, Found())  # the first one loads and compiles
        end = time.monotonic() + options.seconds
        for number in numbers():
            if time.monotonic() >= end:
                break
            if options.progress:
                options.progress.write_text(str(number))
            play(fuzzer, number, found)
        print(json.dumps(asdict(found)))
    elif options.round.isdecimal():
        fuzzer.run(fuzzer.make(Random(f"{fuzzer.name} {options.round}"))[0])
    else:
        open_everyhow(Path(options.round))


main()
