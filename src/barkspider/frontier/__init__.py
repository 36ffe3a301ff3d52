"""Which URL is fetched next, and when: a machine without network, asyncio or clock.

The engine calls `step(now, outcomes)` and gets instructions and the time of its next call (see
`barkspider.core.events`). Inside, URLs move like this:

    links ─► seen? ─► sample: at most t ─► P (`ready`: queues by host, politeness, robots.txt) ─► FetchPage
                         └► the others ─► S (on disk) ─ when P runs dry ─┘

`sydney` is the limited-memory frontier; `ready` is the part about politeness that frontiers share;
`sampling` holds the decision kernels that simulations share.
"""

from barkspider.frontier.sydney import Sydney

__all__ = ["Sydney"]
