"""All attacks."""

from __future__ import annotations

from tests.hostile.attacks.attack import Attack
from tests.hostile.attacks.loads import LOADS
from tests.hostile.attacks.received import RECEIVED
from tests.hostile.attacks.slots import SLOTS
from tests.hostile.attacks.turns import TURNS

ATTACKS: list[Attack] = [*LOADS, *RECEIVED, *SLOTS, *TURNS]
