"""Imports point down, nothing is imported late, and light rooms stay light.

``MAY`` holds the lines "May import" of docs/architecture.md, where each room is explained.
"""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

import setpoint

SRC = pathlib.Path(setpoint.__file__).parent

#: room -> the rooms whose modules it may name in an import of its own (docs/architecture.md)
MAY = {
    "_core": set(),
    "expressions": {"_core"},
    "metrics": {"_core", "expressions"},
    "goals": {"_core", "expressions", "metrics"},
    "statistics": {"_core", "expressions"},
    "rules": {"_core", "expressions", "goals"},
    "decisions": {"_core", "expressions", "metrics", "goals", "statistics", "rules"},
    "reports": {"_core", "expressions", "metrics", "goals", "statistics", "rules", "decisions"},
    "surrogates": {"_core"},
    "programs": {"_core"},
    "solvers": {"_core", "programs"},
    "methods": {"_core", "expressions", "metrics", "goals", "surrogates", "programs"},
    "training": {"_core", "expressions", "programs", "solvers"},
    "losses": {"_core", "decisions", "programs", "expressions", "goals", "methods", "training"},
    "validation": {
        "_core",
        "decisions",
        "expressions",
        "goals",
        "losses",
        "methods",
        "rules",
        "training",
    },
    "datasets": {"_core", "goals"},
    "boosting": {"_core", "expressions", "goals", "rules", "surrogates", "methods", "datasets"},
    "robustness": {"_core", "statistics", "solvers"},
    "restoration": {"_core", "solvers"},
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
        "validation",
        "datasets",
    },
}
DOORS = {"estimators", "lightning", "huggingface", "skorch", "cli", "__init__"}
#: Modules beside the rooms, which the map names without a line "May import".
BESIDE = {"losses", "validation"}
MAP = pathlib.Path(__file__).parents[1] / "docs" / "architecture.md"


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


def imported_rooms():
    """Room -> the other rooms that its modules import."""
    edges = {path_room: set() for path_room in map(room, TREES)}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            targets = {module.split(".")[1] for module in ours(node) if "." in module}
            edges[room(path)] |= targets - {room(path)}
    return edges


def test_every_import_that_is_allowed_is_used():
    """A room that nothing of this one needs is no neighbour: the list would mislead a reader."""
    edges = imported_rooms()
    assert {here: rooms - edges[here] for here, rooms in MAY.items() if rooms - edges[here]} == {}


def stated_imports(text):
    """Room -> what the line "May import" of a map says of it, ``_core`` left out."""
    lines = re.findall(r"^\*\*`(\w+)/`\*\*.*\*May import:\* ([^.]*)\.", text, re.M)
    return {here: set(re.findall(r"\w+", said)) & set(MAY) - {"_core"} for here, said in lines}


def test_the_map_states_what_may_be_imported():
    assert stated_imports("**`rules/`** Kinds. *May import:* goals, _core.  ") == {
        "rules": {"goals"}
    }
    stated = {h: r for h, r in stated_imports(MAP.read_text("utf-8")).items() if h not in DOORS}
    assert stated == {h: rooms - {"_core"} for h, rooms in MAY.items() if h not in BESIDE}


def test_the_files_of_the_journeys_exist():
    journeys = MAP.read_text("utf-8").partition("## Five journeys")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+(?:\.py|/))`", journeys)
    assert len(named) > 40
    stems = {path.name for path in TREES}
    absent = [n for n in named if not (SRC / n).exists() and ("/" in n or n not in stems)]
    assert absent == []


#: The parts of the command line: each may import those before it, and what lies below cli.
CLI = (
    "words",
    "exit_codes",
    "inputs",
    "files",
    "display",
    "errors",
    "jobs",
    "commands",
    "table",
    "app",
)


def crosses(path, module):
    """Whether a module of cli imports one that stands right of it, or a command a command."""
    here, target = (parts.split("/")[0] for parts in (path, module.replace(".", "/")))
    place = CLI.index(here.removesuffix(".py"))
    return CLI.index(target) > place or (here == target == "commands")


def test_the_command_line_has_walls():
    assert crosses("inputs/duration.py", "files.saved_run")
    assert crosses("commands/demo.py", "commands.fit")
    assert not crosses("table.py", "commands")
    paths = [p for p in TREES if room(p) == "cli" and p.stem not in ("__init__", "__main__")]
    crossed = [
        f"{path.relative_to(SRC)} imports {module}"
        for path in paths
        for node in ast.walk(TREES[path])
        for module in ours(node)
        if module.startswith("setpoint.cli")
        and crosses(path.relative_to(SRC / "cli").as_posix(), module.removeprefix("setpoint.cli."))
    ]
    assert crossed == []


def test_nothing_of_ours_is_imported_late():
    for path, tree in TREES.items():
        if room(path) == "cli":  # a command loads its room when it is called: help stays quick
            continue
        top = {id(node) for node in tree.body} | type_checking_only(tree)
        late = [m for node in ast.walk(tree) if id(node) not in top for m in ours(node)]
        assert late == [], path


def test_the_conclusion_sees_scores_and_no_class_of_models():
    """A new kind of model changes nothing in how rules are chosen and proven."""
    folder = SRC / "fit" / "conclusion"
    modules = {
        module
        for path, tree in TREES.items()
        if path.parent == folder
        for node in ast.walk(tree)
        for module in ours(node)
    }
    assert "setpoint.fit.cross_fitting" in modules  # fitted members come in by what they scored
    assert not modules & {f"setpoint.fit.{name}" for name in ("members", "fold_models")}
    assert not [m for m in modules if m.startswith(("setpoint.training", "setpoint.methods"))]


def test_no_two_rooms_import_each_other():
    edges = imported_rooms()
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
