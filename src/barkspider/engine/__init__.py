"""The crawl as a whole: the one room that knows the order of the stages.

    job ─► recovery: parts of a crawl ─► loop ─► work: fetch ─► reading ─► harvest ─► ledger ─► frontier, tables

`loop` runs a crawl and `work` does what its frontier says; `arrivals` tells what is read next, `reaping` makes harvests of it, `contents` reads responses, large ones in a thread, `reading` and
`links` turn them into what a `harvest` takes in, `outcomes` are its rows in the journal. `ledger` makes the crawl survive with a journal of harvests and checkpoints;
`checkpointer` says when these are made, `checkpoint` what they hold, `recovery` is the way back from them; `cookies` are kept
with them, and `copying` keeps copies of all of it in a store. `job` is the folder on disk, `folder` how it is told from others and `trust` whose settings it has, `control` how a crawl is spoken to, `answers` what it says, `steering` what may be changed while it runs,
`neighbours` how it stands with other processes of the same crawl, `visits` how with the database of sites if it goes by these, `suspects` at which of them it looks, `statistics` what people see, `history` the same over time, whose `samples` `sampler` takes, `phases` where CPU goes, `timings` what fetches wait for, `outlook` when it will be over, `watch` what holds the loop, `reach` whom it could not reach, `preflight` what is done before anything starts, `spare` how files come before connections, `blocking` all of it in one call.

Jobs that no crawl runs on: `stored` reads one back, `verify` checks it, `adding` gives it URLs, `recrawl` its old pages to
fetch again, `dividing` hands on what a part of it holds to parts of another number of processes, `earlier` finds what is stored of these, `domain_aliases` the domains that only lead elsewhere, `duphosts` the hosts that are copies of others. `explain` is one
fetch in all its steps, `why` what became of a URL.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barkspider.engine.blocking import crawl, resume
    from barkspider.engine.control import ask
    from barkspider.engine.job import Job
    from barkspider.engine.loop import Crawl
    from barkspider.engine.preflight import canonical_seeds, check_hosts
    from barkspider.engine.recrawl import fetch_again
    from barkspider.engine.statistics import Statistics
    from barkspider.engine.stored import StoredJob, StoredPage, open_job
    from barkspider.engine.verify import verify_job

__all__ = [
    "Crawl",
    "Job",
    "Statistics",
    "StoredJob",
    "StoredPage",
    "ask",
    "canonical_seeds",
    "check_hosts",
    "crawl",
    "fetch_again",
    "open_job",
    "resume",
    "verify_job",
]

_MODULES = {
    "Crawl": "loop",
    "Job": "job",
    "Statistics": "statistics",
    "StoredJob": "stored",
    "StoredPage": "stored",
    "ask": "control",
    "canonical_seeds": "preflight",
    "check_hosts": "preflight",
    "crawl": "blocking",
    "fetch_again": "recrawl",
    "open_job": "stored",
    "resume": "blocking",
    "verify_job": "verify",
}


def __getattr__(name: str) -> Any:
    # The loop takes a second to import: whoever asks how a crawl is doing does not wait for it.
    if name in _MODULES:
        return getattr(import_module(f"barkspider.engine.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
