"""The public surface: every name documented, nothing internal, signatures that show all options."""

import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import setpoint as sp
from setpoint.expressions import Expression

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PACKAGES = ["boosting", "datasets", "methods", "metrics", "restoration", "robustness", "solvers"]
PACKAGES += ["surrogates"]
PUBLIC = [sp, *(getattr(sp, name) for name in PACKAGES)]
TABLES = (dict, tuple)  # METRICS and its like: data, described in the documents


def own_docstring(what):
    """The docstring of a name, not that of its type, and not the one a dataclass makes up."""
    text = inspect.getdoc(what) or ""
    made_up = inspect.isclass(what) and text.startswith(f"{what.__name__}(")
    inherited = isinstance(what, Expression) and text == inspect.getdoc(type(what))
    return "" if made_up or inherited else text


def undocumented(module):
    """Public names without a docstring, and public methods of public classes without one."""
    bare = []
    for name in dir(module):
        what = getattr(module, name)
        if name.startswith("_") or isinstance(what, TABLES):
            continue
        if not own_docstring(what):
            bare.append(name)
        if inspect.isclass(what):
            bare += [
                f"{name}.{part}"
                for part in vars(what)
                if not part.startswith("_")
                and (callable(getattr(what, part)) or isinstance(vars(what)[part], property))
                and not inspect.getdoc(getattr(what, part))
            ]
    return bare


def test_a_bare_name_is_noticed():
    class Bare:
        def of(self):
            pass

    assert undocumented(Bare) == ["of"]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_every_public_name_is_documented(module):
    assert undocumented(module) == []


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_a_package_shows_what_it_exports_and_nothing_else(module):
    assert {name for name in dir(module) if not name.startswith("_")} == set(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        home = getattr(getattr(module, name), "__module__", None) or "setpoint"
        assert home.split(".")[0] == "setpoint", f"{name} comes from {home}"
        assert "._core" not in home, f"{name} is internal"


def test_the_public_names_stand_in_the_documents():
    """The contract list of the architecture and the metrics of the goal language, both ways."""
    text = (DOCS / "architecture.md").read_text("utf-8")
    section = text.split("## The public names")[1].split("\n## ")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("|"))
    listed = set(re.findall(r"`(\w+)`", table))
    language = (DOCS / "guide" / "language.md").read_text("utf-8")
    said = set(re.findall(r"\w+", language.split("## Constraints")[0]))
    names = {name for name in dir(sp) if not name.startswith("_")}
    metrics = set(sp.metrics.__all__) - {"METRICS", "NAMES", "metric"}
    assert metrics - said == set()
    assert listed == names - metrics


def test_names_are_there_before_and_after_they_are_loaded():
    code = (
        "import sys, setpoint as sp; names = dir(sp); assert 'torch' not in sys.modules; "
        "[getattr(sp, name) for name in names]; assert dir(sp) == names; "
        "assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", sorted(sp.NAMES))
def test_help_of_a_metric(name):
    """Formula, range, reference and an example that is true."""
    metric = sp.NAMES[name]
    row = next(r for r in sp.METRICS.values() if name in (r.name, *r.aliases))
    text = own_docstring(metric)
    assert row.formula in text
    assert row.reference in text
    example = metric if isinstance(metric, Expression) else sp.metric(row.usage)
    low, high = (f"{end:g}" for end in example.interval())
    assert re.search(rf"[\[(]{low}, {high}[\])]", text), text
    tests = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert tests.examples, text
    report: list[str] = []
    doctest.DocTestRunner().run(tests, out=report.append)
    assert report == []


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
