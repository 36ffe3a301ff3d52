"""The settings of the frontier: those that a project gives by name, and what its own settings mean for the rest."""

from __future__ import annotations

import re
from typing import Any

from barkspider.core.load import load_settings

# Of a scheduler; everything else is Scrapy's, whose process it shares.
_MEMORY = "200MB"
_PRODUCT = re.compile(r"[A-Za-z_-]+")  # a product token, which robots.txt names


def options(project: Any) -> list[str]:
    """As `name=value`: `BARKSPIDER_SETTINGS` of the project wins, then what the project says to Scrapy."""
    chosen: dict[str, Any] = {
        "memory": _MEMORY,
        "fetch.in_flight": 2 * project.getint("CONCURRENT_REQUESTS"),  # some look for addresses
        "politeness.obey_robots": str(project.getbool("ROBOTSTXT_OBEY")).lower(),
    }
    agent = project["ROBOTSTXT_USER_AGENT"] or project["USER_AGENT"] or ""
    if product := _PRODUCT.match(agent):
        chosen["agent.name"] = product[0]
    if project.getpriority("DOWNLOAD_DELAY"):  # of the project, not the default of none
        chosen["politeness.host_delay"] = f"{project.getfloat('DOWNLOAD_DELAY')}s"
    chosen |= project.getdict("BARKSPIDER_SETTINGS")
    found = [f"{name}={value}" for name, value in chosen.items()]
    load_settings(options=found)  # what is wrong with them is said before there is a job
    return found
