"""Tests of bare methods: the guard of a loss is tested in tests/methods/guard."""

import pytest

from setpoint.losses import GoalLoss


@pytest.fixture(autouse=True)
def bare(request, monkeypatch):
    """Losses without their guard."""
    if "guard" not in request.path.parts:
        defaults = {**GoalLoss.__init__.__kwdefaults__, "guard": False}
        monkeypatch.setattr(GoalLoss.__init__, "__kwdefaults__", defaults)
