"""ES-WMV says of each image what its definition, written out in numpy, says."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.restoration.oracles import es_wmv

from setpoint.restoration.measurement.windowed_variance import WindowedVariance


def walks(images: int, steps: int, pixels: int, seed: int) -> np.ndarray:
    """Iterates (K, B, 1, 1, pixels) whose steps shrink, then grow, at each image's own time."""
    rng = np.random.default_rng(seed)
    turn = rng.integers(0, steps, size=images)
    k = np.arange(steps)[:, None]
    size = 0.05 + np.abs(k - turn) / steps
    return np.cumsum(size[:, :, None] * rng.normal(size=(steps, images, pixels)), axis=0)[
        :, :, None, None, :
    ]


def fed(iterates: np.ndarray, window: int, patience: int, dtype=torch.float64) -> WindowedVariance:
    rule = WindowedVariance(window=window, patience=patience)
    for step, image in enumerate(torch.tensor(iterates, dtype=dtype)):
        rule.update(step, image)
    return rule


@given(
    window=st.integers(2, 6),
    patience=st.integers(1, 12),
    images=st.integers(1, 4),
    steps=st.integers(8, 40),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=25, deadline=None)
def test_each_image_stops_where_the_definition_says(window, patience, images, steps, seed):
    iterates = walks(images, steps, 5, seed)
    rule = fed(iterates, window, patience)
    expected = [es_wmv(iterates[:, i], window, patience) for i in range(images)]
    assert rule.best_step.tolist() == [e.best for e in expected]
    assert rule.done.tolist() == [e.step is not None for e in expected]


def test_the_variance_is_the_mean_squared_distance_to_the_mean_of_the_window():
    iterates = walks(3, 25, 7, 1)
    rule = WindowedVariance(window=4, patience=1000)
    expected = [es_wmv(iterates[:, i], 4, 1000).variances for i in range(3)]
    for step, image in enumerate(torch.tensor(iterates)):
        rule.update(step, image)
        if step >= 3:
            np.testing.assert_allclose(rule.variance, [e[step] for e in expected], rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_large_mean_does_not_drown_a_small_variance(dtype):
    """E[x²] - E[x]² loses all digits here; the definition does not."""
    iterates = 1000.0 + 1e-2 * walks(1, 20, 6, 2)
    held = np.asarray(torch.tensor(iterates, dtype=dtype), dtype=np.float64)
    rule = fed(iterates, 5, 1000, dtype)
    expected = es_wmv(held[:, 0], 5, 1000).variances[19]
    assert float(rule.variance[0]) == pytest.approx(expected, rel=1e-2)


def test_the_first_image_done_does_not_end_the_others():
    still = np.zeros((30, 1, 1, 4))
    rng = np.random.default_rng(3)
    moving = np.cumsum(
        rng.normal(size=(30, 1, 1, 4)) / (1 + np.arange(30))[:, None, None, None] ** 2, 0
    )
    both = np.stack([still, moving], axis=1)
    rule = WindowedVariance(window=3, patience=4)
    ends: dict[int, int] = {}
    for step, image in enumerate(torch.tensor(both)):
        rule.update(step, image)
        for i in range(2):
            if bool(rule.done[i]):
                ends.setdefault(i, step)
    first = es_wmv(both[:, 0], 3, 4)
    assert ends[0] == first.step == 6
    assert ends.get(1) == es_wmv(both[:, 1], 3, 4).step
    assert int(rule.best_step[0]) == first.best == 2


def test_a_done_image_keeps_its_choice_whatever_comes_later():
    rng = np.random.default_rng(4)
    louder = np.arange(1, 13).reshape(12, 1, 1, 1, 1)
    loud = np.cumsum(louder * rng.normal(size=(12, 1, 1, 1, 4)), axis=0)
    quiet = np.repeat(loud[-1:], 10, axis=0)
    iterates = np.concatenate([loud, quiet])
    expected = es_wmv(iterates[:, 0], 3, 3)
    assert expected.step is not None
    assert expected.step < 12
    assert int(fed(iterates, 3, 3).best_step[0]) == expected.best


def test_too_short_a_run_is_never_done():
    rule = fed(walks(2, 3, 4, 5), window=4, patience=1)
    assert not rule.done.any()


def test_a_nan_iterate_is_never_the_quietest_one():
    iterates = walks(2, 30, 4, 6)
    iterates[10:14, 0] = np.nan
    rule = fed(iterates, 3, 1000)
    clean = es_wmv(iterates[:, 1], 3, 1000)
    assert int(rule.best_step[1]) == clean.best
    best = int(rule.best_step[0])
    assert not 10 <= best <= 15
    assert best >= 2


@pytest.mark.parametrize(("window", "patience"), [(1, 5), (0, 5), (-2, 5), (5, 0), (5, -1)])
def test_a_window_or_patience_that_means_nothing_is_refused(window, patience):
    with pytest.raises(ValueError, match=r"window|patience"):
        WindowedVariance(window=window, patience=patience)
