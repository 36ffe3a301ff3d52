"""The crawl as a whole: the one room that knows the order of the stages.

    job ─► recovery: components of a crawl ─► loop ─► work: fetch ─► reading ─► harvest ─► ledger ─► frontier, tables

A crawl that runs: `loop` asks the frontier what to do and `work` does it. `arrivals` tells what is read next, `reaping` makes
harvests of it, and some things are done `every_second`; `contents` reads responses, large ones in a thread, `reading` and
`links` turn them into what a `harvest` takes in, and `outcomes` are its rows in the journal. `neighbours` is how it stands with other processes of the same crawl,
`visits` how with the database of sites if it goes by these, `suspects` notes at which of them it looks.

Before and after: `preflight` is what is done before anything starts, `list_files` are files of rules that are watched, `blocking` a whole crawl in one call; `running` is a
crawl in a thread of its own, whose pages go through a `feed` to a reader, or to `hooks`. `outlook` says when it will be over, `reach` whom it could not reach.

What survives: `ledger` is the journal and the checkpoints; `checkpointer` says when these are made, `checkpoint` what they
hold, `recovery` is the way back from them. `cookies` are kept with them, `copying` keeps copies of all of it in a store,
where `borrowing` reads them.

The folder on disk: `job` makes and opens it, `folder` tells it from others, `trust` whose settings it has.

What people see and say: `control` is the socket by which a crawl is spoken to, `answers` what it says there, `steering` what
may be changed while it runs. `statistics` is the present, `history` the same over time, whose `samples` the `sampler` takes;
`phases` counts where CPU goes, `timings` what fetches wait for. `watch` tells what holds the loop, and `spare` lets files
come before connections.

Jobs that no crawl runs on: `stored` reads one back, `corpus` its texts, `changes` the pages behind a cursor, each as `pages`
has it, `verify` checks it, `adding` gives it URLs, `rules` what people rule about URLs, `recrawl` its old pages to
fetch again, or by `choosing` those that change, of which `earlier` finds what is stored. `dividing` hands on what a part of a crawl holds to parts of another
number. `domain_aliases` finds the domains that only lead elsewhere, `duphosts` the hosts that are copies of others,
which `revisiting` visits once more, `cloaking` pages that show others something else, and `replicas` is the list of them that a later crawl goes by.
`explain` is one fetch in all its steps, `why` what became of a URL, `reputation` what its domain may spend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barkspider.engine.blocking import crawl, resume, start, stream
    from barkspider.engine.control import ask
    from barkspider.engine.job import Job
    from barkspider.engine.loop import Crawl
    from barkspider.engine.pages import CrawledPage
    from barkspider.engine.preflight import canonical_seeds, check_hosts
    from barkspider.engine.recrawl import fetch_again
    from barkspider.engine.running import Link, RunningCrawl
    from barkspider.engine.statistics import Statistics
    from barkspider.engine.stored import StoredJob, StoredPage, open_job
    from barkspider.engine.verify import verify_job

__all__ = [
    "Crawl",
    "CrawledPage",
    "Job",
    "Link",
    "RunningCrawl",
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
    "start",
    "stream",
    "verify_job",
]

_MODULES = {
    "Crawl": "loop",
    "CrawledPage": "pages",
    "Job": "job",
    "Link": "running",
    "RunningCrawl": "running",
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
    "start": "blocking",
    "stream": "blocking",
    "verify_job": "verify",
}


def __getattr__(name: str) -> Any:
    # The loop takes a second to import: whoever asks how a crawl is doing does not wait for it.
    if name in _MODULES:
        return getattr(import_module(f"barkspider.engine.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
