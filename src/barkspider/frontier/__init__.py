"""Which URL is fetched next, and when: a machine without network, asyncio or clock.

The engine calls `step(now, outcomes)` and gets instructions and the time of its next call (see
`barkspider.core.events`). Inside, URLs move like this:

    links ─► seen? ─► sample: at most t ─► P (`ready`: queues by host, politeness, robots.txt) ─► FetchPage
                         └► the others ─► S (on disk) ─ when P runs dry ─┘

`sydney` is the limited-memory frontier. What frontiers share: `ready` moves `hosts` from state to state,
`politeness` says how long they are left alone, `robots` what is known of each robots.txt. `sampling` holds
the decision kernels that simulations share.
"""

from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.sydney import Sydney

__all__ = ["Irlbot", "Sydney"]
