"""Splits: every class has its share on both sides, nothing is in both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.datasets import split


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=200), st.floats(0.1, 0.5), st.integers(0, 9)
)
def test_parts_are_apart_or_shared(labels, share, seed):
    y = np.array(labels)
    parts = split(y, share, seed)
    if parts.shared:
        assert np.array_equal(parts.train, np.arange(len(y)))
        assert np.array_equal(parts.tune, parts.train)
        return
    assert np.array_equal(np.sort(np.r_[parts.train, parts.tune]), np.arange(len(y)))
    for label in np.unique(y):
        n = np.count_nonzero(y == label)
        tuned = np.count_nonzero(y[parts.tune] == label)
        assert abs(tuned - share * n) <= 0.5 + 1e-9 or tuned == min(2, n // 2)
        assert np.count_nonzero(y[parts.train] == label) >= min(1, n)


def test_several_labels_are_parted_by_the_rarest():
    rng = np.random.default_rng(0)
    y = (rng.random((400, 3)) < [0.5, 0.05, 0.3]).astype(int)
    parts = split(y, 0.25, 0)
    assert not parts.shared
    assert abs(y[parts.tune, 1].mean() - y[:, 1].mean()) < 0.01


def test_a_rare_class_does_not_spoil_the_others():
    parts = split(np.r_[np.zeros(50), np.ones(50), [2, 2, 2], [3]].astype(int), 0.25, 0)
    assert not parts.shared
    assert len(parts.tune) == 12 + 12 + 1 + 0


def test_the_seed_decides():
    y = np.arange(100) % 2
    assert np.array_equal(split(y, 0.3, 1).tune, split(y, 0.3, 1).tune)
    assert not np.array_equal(split(y, 0.3, 1).tune, split(y, 0.3, 2).tune)


@pytest.mark.parametrize("size", [0, 1, -0.2, "a", None])
def test_odd_shares(size):
    with pytest.raises(sp.KindError, match=r"tune_size=.* must be a number above 0 and below 1"):
        split(np.arange(10) % 2, size, 0)
