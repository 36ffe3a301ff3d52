"""The Global Frontier of a crawl site by site (Gomes, Silva: The Viúva Negra crawler, sections 4.1 and 4.2): a database.

    seeds, links to other sites ─► to crawl ─ check-out ─► being crawled ─ check-in ─► crawled
                                      ▲                          │ its lease is over, or it failed
                                      └──────────────────────────┘

`schema` has its tables and how they came to be, `database` the two kinds of database that know them: SQLite for one machine,
PostgreSQL for several. `registry` is what a crawl says to it. One transaction is under way at a time, in either; all of them may be
repeated, since nobody knows whether one was kept whose answer was lost.
"""

from barkspider.sites.database import AwayError, open_database
from barkspider.sites.registry import Link, Registry, Row, State, Visit

__all__ = ["AwayError", "Link", "Registry", "Row", "State", "Visit", "open_database"]
