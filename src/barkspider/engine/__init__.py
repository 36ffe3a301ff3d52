"""The crawl as a whole: the one room that knows the order of the stages.

`crawl` runs the loop, `ledger` makes it survive with a journal of `outcomes` and checkpoints, `links` and `reading` turn responses into outcomes, `job` is the folder on disk,
`statistics` what people see, `preflight` what is refused before anything starts, `stored` a job read back;
`recrawl` gives a job its old pages to fetch again, `earlier` finds what is stored of them.
"""

from barkspider.engine.control import ask
from barkspider.engine.crawl import Crawl, crawl, resume
from barkspider.engine.job import Job
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
