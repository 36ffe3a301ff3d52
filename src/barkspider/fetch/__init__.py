"""From an instruction to bytes: names to addresses, connections, one HTTP exchange, its limits.

    host ─► dns ─► addresses (rules) ─► connection ─► message (exact bytes) ─► decoding ─► Response
                                          ├─ intake: memory and bandwidth
                                          └─ deadlines

A fetch goes to exactly the address it is told, follows no redirect, retries nothing that was answered,
and ends in a `Response` with one named outcome whatever the server does. When to fetch is the frontier's
business.

`fetcher` is the whole. `dns` finds addresses by a `channel`, `addresses` says which may be contacted, `proxy` makes
tunnels; `headers` and `cookies`, also those of a `cookies_file`, are what is sent along. A `connection` to a `target`,
over TLS with a session of `tls`, waits in `poll`, within `deadlines` and what `intake` lets it read; `message` reads
one response, `repair` puts right what only browsers read, `decoding` takes encodings off. `exchange` is what it came
to.
"""

from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.cookies import CookieJar
from barkspider.fetch.dns import Resolution
from barkspider.fetch.exchange import OURS, REDIRECTS, STALE, TEMPORARY, HttpExchange, Timing
from barkspider.fetch.fetcher import Fetcher, Response
from barkspider.fetch.headers import Validators, retry_after, user_agent
from barkspider.fetch.message import read_whole

__all__ = [
    "OURS",
    "REDIRECTS",
    "STALE",
    "TEMPORARY",
    "AddressRules",
    "CookieJar",
    "Fetcher",
    "HttpExchange",
    "Resolution",
    "Response",
    "Timing",
    "Validators",
    "read_whole",
    "retry_after",
    "user_agent",
]
