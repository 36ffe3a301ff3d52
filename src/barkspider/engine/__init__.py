"""The crawl as a whole: the one room that knows the order of the stages.

`crawl` runs the loop, `links` and `reading` turn responses into outcomes, `job` is the folder on disk,
`statistics` what people see, `preflight` what is refused before anything starts.
"""

from barkspider.engine.crawl import Crawl, crawl
from barkspider.engine.job import Job
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.statistics import Statistics

__all__ = ["Crawl", "Job", "Statistics", "canonical_seeds", "check_hosts", "crawl"]
