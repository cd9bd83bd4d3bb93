"""Functions to minimise, and how answers are compared."""

import math

import numpy as np


def square(x):
    return (x * x).sum()


def close(x, y, atol=1e-6):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=atol)


class Counted:
    """A function that remembers where it was called, and spoils its answer after a while."""

    def __init__(self, function, after=math.inf, with_=math.nan):
        self.function, self.after, self.with_, self.points = function, after, with_, []

    def __call__(self, x):
        self.points.append(x.detach().clone())
        value = self.function(x)
        return value if len(self.points) <= self.after else value * self.with_
