"""Rules for labels and weights: on the host at once, on a device some calls later."""

import math
import pickle

import numpy as np
import pytest
import torch

from setpoint._core.errors import DataError
from setpoint.programs.column_rules import (
    BINARY,
    READ_EVERY,
    WEIGHT,
    ClassIndex,
    ColumnWatch,
    Finite,
    check_columns,
)

CODES = ClassIndex("codes must be 0…4", 5)
FINITE = Finite("numbers must be finite")
NAN, INF = math.nan, math.inf
FINE = {
    BINARY: [[0.0, 1.0], [1.0], [0.0], [-0.0, 1.0]],
    CODES: [[0, 4, 2], [3]],
    WEIGHT: [[0.0, 1e-30, 1e30], [2.5]],
    FINITE: [[-1e30, 1e30], [0.0]],
}
WRONG = {
    BINARY: [2.0, -1.0, 0.5, NAN, INF, -INF, 1e30, 1 + 1e-6],
    CODES: [-1, 5, -(2**40), 2**40],
    WEIGHT: [-1.0, -1e-30, NAN, INF, -INF],
    FINITE: [NAN, INF, -INF],
}


def column(rule, values):
    return torch.tensor(values, dtype=torch.long if rule is CODES else torch.float32)


@pytest.mark.parametrize("rule", FINE, ids=lambda r: r.words)
def test_what_may_stand(rule):
    for values in FINE[rule]:
        x = column(rule, values)
        check_columns([(rule, x), (rule, x.numpy())])
        assert rule.worst(x)[0] == 0


@pytest.mark.parametrize(
    ("rule", "odd"), [(rule, odd) for rule, several in WRONG.items() for odd in several]
)
@pytest.mark.parametrize("place", [0, 7, 19])
def test_one_wrong_number_is_named(rule, odd, place):
    x = column(rule, [0, 1] * 10)
    x[place] = odd
    for form in (x, x.numpy()):
        with pytest.raises(DataError, match=r"got") as error:
            rule.check(form)
        assert str(error.value) == f"{rule.words}; got {x[place].item():g}"
    size, value = rule.worst(x)
    assert size != 0
    torch.testing.assert_close(value.float(), x[place].float(), equal_nan=True)


@pytest.mark.parametrize("rule", FINE, ids=lambda r: r.words)
def test_the_quick_pass_and_the_excess_agree(rule):
    """On random columns with a few odd numbers: no quick pass lets one through."""
    rng = np.random.default_rng(0)
    pool = [0, 1, *WRONG[rule]]
    for _ in range(300):
        odd = rng.integers(len(pool), size=12)
        values = np.where(rng.random(12) < 0.9, rng.integers(2, size=12), odd)
        x = column(rule, [pool[i] for i in values])
        broken = bool((rule.excess(x) != 0).any())
        assert broken == bool((values > 1).any())
        assert rule.holds(x.numpy()) != broken


def test_a_fault_on_a_device_is_told_some_calls_later():
    watch, good = ColumnWatch(), torch.tensor([0.0, 1.0])
    bad = torch.tensor([0.0, 2.0])
    for call in range(1, 80):
        weight = torch.tensor([1.0, -3.0]) if call == 60 else torch.ones(2)
        watch.see([(BINARY, bad if call == 50 else good), (WEIGHT, weight)])
    with pytest.raises(DataError, match=r"0 and 1; a batch among .* call 64 held 2, and"):
        watch.see([(BINARY, good), (WEIGHT, torch.ones(2))])


def test_the_first_fault_is_the_one_that_is_told():
    watch = ColumnWatch()
    for odd in (3.0, 2.0, *[1.0] * (2 * READ_EVERY - 3)):
        watch.see([(BINARY, torch.tensor([odd]))])
    with pytest.raises(DataError, match="held 3"):
        watch.see([(BINARY, torch.tensor([1.0]))])
    for _ in range(3 * READ_EVERY):  # told once
        watch.see([(BINARY, torch.tensor([1.0]))])


def test_a_copy_of_a_watch_begins_anew():
    watch = ColumnWatch()
    for _ in range(READ_EVERY + 1):
        watch.see([(BINARY, torch.tensor([2.0]))])
    again = pickle.loads(pickle.dumps(watch))
    for _ in range(3 * READ_EVERY):
        again.see([(BINARY, torch.tensor([1.0]))])
