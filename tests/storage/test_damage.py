"""A subset of the damages in `python -m benchmarks crash`."""

from collections import Counter
from random import Random

import pytest

from tests.storage.faulty import FaultyEnv
from tests.storage.scenarios import Damage, content, damages, notices, work


@pytest.mark.parametrize("seed", [1, 2])
def test_a_damage_is_noticed_and_named_or_does_no_harm(seed: int) -> None:
    env = FaultyEnv()
    moments = work(env, seed, steps=16)
    disk = env.disk.copy()
    whole = content(FaultyEnv(disk.copy()))
    assert whole == moments[-1].content
    outcomes = {damage: notices(disk, damage, whole) for damage in damages(disk, 200, Random(seed))}
    assert not {d: outcome for d, outcome in outcomes.items() if outcome not in ("named", "harmless")}
    assert Counter(outcomes.values())["named"] > 150


def test_every_bit_of_the_manifest_counts() -> None:
    env = FaultyEnv()
    work(env, 3, steps=4)
    disk = env.disk.copy()
    whole = content(FaultyEnv(disk.copy()))
    (path,) = (path for path in disk.paths() if path.name == "manifest.json")
    size = len(disk.data(disk.paths()[path]))
    for bit in Random(3).sample(range(size * 8), 200):
        assert notices(disk, Damage(path, bit), whole) == "named"
    for cut in Random(3).sample(range(size), 30):
        assert notices(disk, Damage(path, size=cut), whole) == "named"
