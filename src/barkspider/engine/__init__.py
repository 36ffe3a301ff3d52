"""The crawl as a whole: the one room that knows the order of the stages.

`crawl` runs the loop, `links` and `reading` turn responses into outcomes, `job` is the folder on disk,
`statistics` what people see, `preflight` what is refused before anything starts, `stored` a job read back.
"""

from barkspider.engine.crawl import Crawl, crawl
from barkspider.engine.job import Job
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.statistics import Statistics
from barkspider.engine.stored import StoredJob, StoredPage, open_job

__all__ = [
    "Crawl",
    "Job",
    "Statistics",
    "StoredJob",
    "StoredPage",
    "canonical_seeds",
    "check_hosts",
    "crawl",
    "open_job",
]
