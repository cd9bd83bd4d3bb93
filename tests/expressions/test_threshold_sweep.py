"""A sweep with other weights, against one that is sorted for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.expressions import Columns, Sweep, Task, Total
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    CORRECT,
    DECIDED,
    Event,
    Literal,
)

LITERALS = [
    Literal(column, holds=holds) for column in (DECIDED, ACTUAL, CORRECT) for holds in (True, False)
]
LITERALS += [Literal("sex", "f"), Literal("sex", "f", holds=False)]
TOTALS = [Total(Event(frozenset([one, two]))) for one in LITERALS for two in LITERALS]


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.booleans(), st.integers(0, 6), st.booleans(), st.floats(0, 3), st.floats(0, 3)
        ),
        min_size=1,
        max_size=40,
    ),
    weighted_before=st.booleans(),
    weighted_after=st.booleans(),
)
def test_other_weights_read_as_if_sorted_for_them(rows, weighted_before, weighted_after):
    actual, score, women, first, second = (np.array(column) for column in zip(*rows, strict=True))
    columns = Columns(
        Task(),
        actual,
        scores=score / 6,
        weight=first if weighted_before else None,
        groups={"sex": np.where(women, "f", "m")},
    )
    sweep = Sweep(columns)
    before = [np.array(sweep.state(total, 0, sweep.size)) for total in TOTALS]
    weight = second if weighted_after else None
    shared, sorted_anew = sweep.weighted(weight), Sweep(replace(columns, weight=weight))
    assert np.array_equal(shared.thresholds, sorted_anew.thresholds)
    for total in TOTALS:  # to the last digit
        one, other = (s.state(total, 0, sweep.size) for s in (shared, sorted_anew))
        assert np.array_equal(one, other)
    after = [np.array(sweep.state(total, 0, sweep.size)) for total in TOTALS]
    assert all(map(np.array_equal, before, after))  # the sweep it came from reads as it did
