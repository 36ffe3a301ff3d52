"""From an instruction to bytes: names to addresses, connections, one HTTP exchange, its limits.

    host ─► dns ─► addresses (rules) ─► connection ─► exchange (exact bytes) ─► headers (unpack) ─► Response

A fetch goes to exactly the address it is told, follows no redirect, retries nothing that was answered,
and ends in a `Response` whatever the server does. When to fetch is the frontier's business.
"""

from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.connection import Exchange
from barkspider.fetch.dns import Resolution
from barkspider.fetch.fetcher import STALE, TEMPORARY, Fetcher, Response
from barkspider.fetch.headers import cookies, retry_after, user_agent

__all__ = [
    "STALE",
    "TEMPORARY",
    "AddressRules",
    "Exchange",
    "Fetcher",
    "Resolution",
    "Response",
    "cookies",
    "retry_after",
    "user_agent",
]
