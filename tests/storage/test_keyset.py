import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from barkspider.storage.keyset import KeySet

# Few distinct keys, with both ends of the range among them, so that most are repeated.
keys = st.lists(st.one_of(st.integers(0, 40), st.sampled_from([2**64 - 1, 2**63])))


@given(st.lists(st.tuples(st.booleans(), keys)))
def test_it_answers_like_a_python_set(calls: list[tuple[bool, list[int]]]) -> None:
    ours, model = KeySet(), set[int]()
    for add, given_keys in calls:
        column = np.array(given_keys, np.uint64)
        column.flags.writeable = False
        if add:
            expected = []
            for key in given_keys:
                expected.append(key not in model)
                model.add(key)
            assert ours.add(column).tolist() == expected
        else:
            assert ours.missing(column).tolist() == [key not in model for key in given_keys]
        assert len(ours) == len(model)


def test_it_grows() -> None:
    ours = KeySet()
    column = np.random.default_rng(1).integers(1, 2**63, 200_000).astype(np.uint64)
    for part in np.split(column, 100):
        assert ours.add(part).all()
    assert len(ours) == 200_000
    assert not ours.missing(column).any()
    assert ours.missing(column + np.uint64(1)).sum() > 199_990
