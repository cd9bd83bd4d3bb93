"""The augmented Lagrangian over batches on more draws than the quick tests look at."""

import pytest
from tests.solvers.augmented.test_augmented_lagrangian import PROBLEMS, accurate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(100, 1100, 100))
@pytest.mark.parametrize("name", PROBLEMS)
def test_noise_level_accuracy_on_more_draws(name, seed):
    accurate(name, seed, epochs=40)
