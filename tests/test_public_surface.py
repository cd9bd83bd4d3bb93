"""The public surface: every name documented, nothing internal, signatures that show all options."""

import inspect

import pytest
import torch

import setpoint as sp


def test_minimize_states_a_goal():
    assert sp.minimize(sp.fnr) == sp.Goal.parse("minimize fnr")
    assert sp.minimize("cost(fp=1, fn=2)") == sp.Goal.parse("minimize cost(fp=1, fn=2)")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((lambda x: x @ x,), {}),
        ((lambda x: x @ x, torch.ones(2)), {"bounds": (0.0, None)}),
        ((torch.nn.Linear(2, 1), torch.ones(2)), {}),
        ((sp.fnr, torch.ones(2)), {}),
        ((sp.fnr,), {"inequalities": abs}),
    ],
)
def test_minimize_of_a_function_names_the_solver(arguments, options):
    with pytest.raises(sp.KindError, match=r"sp\.solve\(f, x0, …\)") as caught:
        sp.minimize(*arguments, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("solver", [sp.solve, sp.solve_batched])
def test_a_solver_names_all_its_options(solver):
    parameters = inspect.signature(solver).parameters
    assert {"objective", "x0", "inequalities", "equalities", "bounds"} <= set(parameters)
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    assert all(name in inspect.getdoc(solver) for name in parameters)
