"""Which URL is fetched next, and when: a machine without network, asyncio or clock.

The engine calls `step(now, outcomes)` and gets instructions and the time of its next call (see
`barkspider.core.events`). Inside, URLs move like this:

    links ─► seen? ─► sample: at most t ─► P (`ready`: queues by host, politeness, robots.txt) ─► FetchPage
                         └► the others ─► S (on disk) ─ when P runs dry ─┘

`sydney` is the limited-memory frontier. What frontiers share: `ready` queues URLs by host and counts what becomes of
them, `roster` moves `hosts` from state to state, `politeness` says how long they are left alone, `origins` asks for
each robots.txt and `robots` says for how long it counts. `sampling` holds the decision kernels that simulations share.
"""

from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.sydney import Sydney

__all__ = ["Irlbot", "Sydney", "open_frontier"]


def open_frontier(settings, env, folder, *, state, resumed):  # type: ignore
    chosen = Irlbot if settings.frontier == "irlbot" else Sydney
    return chosen(settings, env, folder, state=state, resumed=resumed)
