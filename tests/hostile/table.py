"""The table: hazards 1 to 12, 14 to 36, 38 to 42 and 51 to 55, one entry or more for each.

13 (silent hosts) and 37 (variables of the environment) have tests of their own. Of 31 (wildcard DNS) only what
exists is covered: a limit for each host; budgets for a domain are a frontier's to come.
"""

from __future__ import annotations

from tests.hostile.addresses import ADDRESSES
from tests.hostile.crawls import LINKS
from tests.hostile.credentials import CREDENTIALS
from tests.hostile.hazard import Hazard
from tests.hostile.replies import BROKEN_RULES
from tests.hostile.robots import ROBOTS
from tests.hostile.wire import WIRE

FETCHES: list[Hazard] = [*WIRE, *BROKEN_RULES, *ADDRESSES]
CRAWLS: list[Hazard] = [*LINKS, *CREDENTIALS, *ROBOTS]
