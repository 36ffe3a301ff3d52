"""A project of Scrapy's whose requests wait in Barkspider's frontier: the first three settings make it so.

    pip install 'barkspider[scrapy]'
    scrapy crawl pages -a start=https://example.org/ -s BARKSPIDER_JOB=jobs/pages -O pages.jsonl

Stop it, or kill it, and call the same again: it goes on where it was.
"""

SCHEDULER = "barkspider.scrapy.Scheduler"
BARKSPIDER_JOB = "jobs/pages"
BARKSPIDER_SETTINGS = {"politeness.server_delay": "1s"}

BOT_NAME = "pages"
SPIDER_MODULES = ["pages.spiders"]
USER_AGENT = "pages (+https://example.org/about-our-crawl)"
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 2  # the pause of a host
TELNETCONSOLE_ENABLED = False
