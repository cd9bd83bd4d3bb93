"""Imports point down, nothing is imported late, and light rooms stay light."""

import ast
import pathlib
import subprocess
import sys

import pytest

import setpoint

SRC = pathlib.Path(setpoint.__file__).parent

#: room -> the rooms it may import (DESIGN: imports point down only)
MAY = {
    "_core": set(),
    "expressions": {"_core"},
    "metrics": {"_core", "expressions"},
    "goals": {"_core", "expressions", "metrics"},
    "statistics": {"_core", "expressions"},
    "rules": {"_core", "expressions", "goals", "statistics"},
    "decisions": {"_core", "expressions", "metrics", "goals", "statistics", "rules"},
    "reports": {"_core", "expressions", "metrics", "goals", "statistics", "rules", "decisions"},
    "surrogates": {"_core"},
    "programs": {"_core"},
    "solvers": {"_core", "programs"},
    "methods": {"_core", "expressions", "metrics", "goals", "surrogates", "programs"},
    "training": {"_core", "expressions", "metrics", "goals", "programs", "solvers"},
    "losses": {"_core", "expressions", "goals", "methods", "training"},
    "datasets": {"_core"},
    "robustness": {"_core", "programs", "solvers", "statistics", "rules", "decisions"},
    "restoration": {"_core", "programs", "solvers", "statistics"},
    "fit": {
        "_core",
        "expressions",
        "goals",
        "rules",
        "decisions",
        "reports",
        "methods",
        "solvers",
        "training",
        "losses",
        "datasets",
    },
}
DOORS = {"estimators", "boosting", "lightning", "cli", "__init__"}


def room(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def ours(node):
    """The modules of the package that an import statement names."""
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "setpoint":
        if node.module == "setpoint":
            return [f"setpoint.{alias.name}" for alias in node.names]
        return [node.module]
    if isinstance(node, ast.Import):
        return [a.name for a in node.names if a.name.split(".")[0] == "setpoint"]
    return []


def type_checking_only(tree):
    """Import statements under ``if TYPE_CHECKING``: they never run."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            found |= set(map(id, ast.walk(node)))
    return found


TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SRC.rglob("*.py"))}


def test_imports_point_down():
    for path, tree in TREES.items():
        here = room(path)
        assert here in MAY or here in DOORS, f"{here} is not a room of the architecture"
        if here in DOORS:
            continue
        for module in (m for node in ast.walk(tree) for m in ours(node)):
            target = module.split(".")[1] if "." in module else "the package itself"
            assert target == here or target in MAY[here], f"{path} must not import {module}"


def private(node):
    """The private names that an import statement takes from a file of ours."""
    if not (isinstance(node, ast.ImportFrom) and ours(node)):
        return []
    names = {alias.name for alias in node.names if alias.name.startswith("_")}
    return sorted(names - {"_core", "__version__"})


def test_a_private_name_is_noticed():
    node = ast.parse("from setpoint._core.words import _near, nearest").body[0]
    assert private(node) == ["_near"]


def test_no_private_name_is_imported_from_another_file():
    for path, tree in TREES.items():
        assert [name for node in ast.walk(tree) for name in private(node)] == [], path


def test_nothing_of_ours_is_imported_late():
    for path, tree in TREES.items():
        if room(path) == "cli":  # a command loads its room when it is called: help stays quick
            continue
        top = {id(node) for node in tree.body} | type_checking_only(tree)
        late = [m for node in ast.walk(tree) if id(node) not in top for m in ours(node)]
        assert late == [], path


def test_no_two_rooms_import_each_other():
    edges = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            for module in ours(node):
                if "." in module:
                    edges.setdefault(room(path), set()).add(module.split(".")[1])
    both = [(a, b) for a in edges for b in edges[a] if a < b and a in edges.get(b, set())]
    assert both == []


@pytest.mark.parametrize("module", ["setpoint", "setpoint.decisions", "setpoint.metrics"])
def test_light_modules_load_nothing_heavy(module):
    heavy = ["setpoint.training", "setpoint.solvers", "torch", "sklearn", "pandas", "matplotlib"]
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_library_never_prints():
    for path, tree in TREES.items():
        if room(path) == "cli":
            continue
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


def test_every_public_name_is_documented():
    bare = [
        name
        for name in setpoint.__all__
        if callable(getattr(setpoint, name)) and not (getattr(setpoint, name).__doc__ or "").strip()
    ]
    assert bare == []
