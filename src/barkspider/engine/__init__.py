"""The crawl as a whole: the one room that knows the order of the stages.

`loop` runs a crawl and `work` does what it says; `ledger` makes it survive with a journal of `outcomes` and
checkpoints, which `cookies` are a part of; `links` and `reading` turn responses into outcomes, `job` is the folder on
disk, `control` how a crawl is spoken to, `statistics` what people see, `preflight` what is done before anything starts,
`blocking` all of it in one call, `stored` a job read back and `redirecting` who in it only leads elsewhere; `recrawl`
gives a job its old pages to fetch again, `earlier` finds what is stored of them.
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
