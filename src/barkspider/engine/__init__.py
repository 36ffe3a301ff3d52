"""The crawl as a whole: the one room that knows the order of the stages.

`crawl` runs the loop, `links` and `reading` turn responses into outcomes, `job` is the folder on disk,
`statistics` what people see.
"""

from barkspider.engine.crawl import Crawl
from barkspider.engine.job import Job
from barkspider.engine.statistics import Statistics

__all__ = ["Crawl", "Job", "Statistics"]
