"""What is known of each origin's robots.txt, and for how long (RFC 9309, 2.3 and 2.4).

unknown ── asked ──► rules, in force until they expire ── asked again ──► …
              └ no answer, 429 or 5xx: the old rules are used for a while if there are any; else URLs
                wait and it is asked again after growing pauses, then all is forbidden for a while
"""

from __future__ import annotations

import math

from barkspider.core.events import is_temporary
from barkspider.core.settings import Politeness
from barkspider.frontier.politeness.hosts import Origin
from barkspider.frontier.politeness.pauses import retry_pause
from barkspider.url import ALLOW_ALL, DISALLOW_ALL, RobotsRules

MOST_REDIRECTS = 5  # RFC 9309, 2.3.1.2
ROBOTS, UNREACHABLE = "robots", "robots_unreachable"  # the reasons that counters give
TOO_MANY = "too_many_origins"  # of one host: no robots.txt is asked for
CRAWL_DELAY = "crawl_delay"  # longer than we wait


def is_unreachable(status: int) -> bool:
    """Whether an answer says nothing about robots.txt, so that everything is forbidden (2.3.1.4).

    429 is a 4xx, which would allow everything (2.3.1.3): but who asks us to slow down does not invite us.

    >>> [is_unreachable(status) for status in (0, 200, 404, 429, 503)]
    [True, False, False, True, True]
    """
    return status == 0 or is_temporary(status)


def rules_of(status: int, body: bytes, agent: str, origin: str) -> RobotsRules | None:
    """The rules in an answer that is no redirect to be followed; None for one that has none to give.

    >>> rules_of(404, b"", "barkspider", "http://a.example") is ALLOW_ALL
    True
    """
    if is_unreachable(status):
        return None
    if not 200 <= status < 300:
        return ALLOW_ALL
    return RobotsRules.parse(body, agent, origin)


def refusal_of(url: str, rules: RobotsRules, refusal: str, crawl_delay: float, most: float) -> str:
    """Why a canonical URL must not be fetched by rules that are in force; "" when it may.

    The `crawl_delay` is that of its host, of which `most` seconds are honoured. `refusal` is what to call it when the rules
    forbid it: those of an origin whose robots.txt cannot be had were not given by anybody.

    >>> rules = RobotsRules([(False, "/x")])
    >>> [refusal_of(f"http://a.example{path}", rules, ROBOTS, delay, 60.0) for path, delay in (("/", 5), ("/x", 5), ("/", 90))]
    ['', 'robots', 'crawl_delay']
    """
    if crawl_delay > most:
        return CRAWL_DELAY
    if rules is ALLOW_ALL:
        return ""
    target = url[url.index("/", 8) :].partition("#")[0]  # as `split`, at a fifth of the cost
    return "" if rules.allows(target) else refusal


def learn(
    known: Origin, rules: RobotsRules, max_age: float | None, politeness: Politeness, now: float
) -> None:
    """The site of an origin gave its rules, to be kept for `max_age` seconds if it said so.

    >>> known = Origin("http://a.example")
    >>> learn(known, ALLOW_ALL, 7200.0, Politeness(), now=5.0); known.refusal, known.until
    ('robots', 7205.0)
    """
    most = politeness.robots_expiry
    age = most if max_age is None else min(max(max_age, politeness.robots_min_expiry), most)
    known.rules, known.refusal, known.failures = rules, ROBOTS, 0
    known.learned, known.until = now, now + age


def miss(known: Origin, politeness: Politeness, now: float, turn: float) -> float:
    """The rules of an origin could not be had; `turn` is when its host may be asked for anything again.

    Returns how long to wait before asking again; 0 when there is something to go by meanwhile: the old
    rules, which RFC 9309 lets us use beyond their time when there are no newer ones to be had (2.4), or,
    after the last try, that all is forbidden. Both hold at the host's next turn, whenever that is.

    >>> known, politeness = Origin("http://a.example"), Politeness(retries=1, retry_delay=10.0)
    >>> miss(known, politeness, 0.0, 0.0), miss(known, politeness, 10.0, 10.0), known.refusal
    (10.0, 0.0, 'robots_unreachable')
    """
    known.failures += 1
    is_old = known.learned + politeness.robots_stale > now
    if not is_old and known.failures <= politeness.retries:
        return retry_pause(politeness, known.failures - 1)
    if not is_old:
        known.rules, known.refusal, known.learned = DISALLOW_ALL, UNREACHABLE, -math.inf
    known.failures, known.until = 0, max(now, turn) + politeness.park_time
    return 0.0
