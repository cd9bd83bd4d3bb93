"""What a method wants is asked of the method: nothing outside ``methods`` asks which one it is."""

import ast
import pathlib

import pytest

import setpoint
from setpoint.methods import METHODS
from setpoint.methods.method import Method

SRC = pathlib.Path(setpoint.__file__).parent
OUTSIDE = [p for p in sorted(SRC.rglob("*.py")) if SRC / "methods" not in p.parents]
CLASSES = {Method.__name__, *(c.__name__ for c in METHODS.values())}


def last(node):
    """The last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def method_classes(tree):
    """Every name that a method class has in a module: its own, and what it is imported as."""
    known = set(CLASSES)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("setpoint"):
            known |= {a.asname for a in node.names if a.asname and a.name in CLASSES}
    return known


def names_a_class(node, classes):
    """Whether an expression names a method class: alone, in a tuple, in a union, or of a method."""
    if isinstance(node, ast.Tuple):
        return any(names_a_class(x, classes) for x in node.elts)
    if isinstance(node, ast.BinOp):
        return names_a_class(node.left, classes) or names_a_class(node.right, classes)
    if isinstance(node, ast.Call) and last(node.func) == "type" and node.args:
        return "method" in last(node.args[0])
    return last(node) in classes


def is_name_of_method(node):
    """``method.name``, ``self.method.name``, ``chosen_method.name``."""
    return isinstance(node, ast.Attribute) and node.attr == "name" and "method" in last(node.value)


def questions(source):
    """Lines that ask which method something is."""
    tree = ast.parse(source)
    classes, lines = method_classes(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in ("isinstance", "issubclass"):
            if names_a_class(node.args[1], classes):
                lines.add(node.lineno)
        elif isinstance(node, ast.MatchClass) and last(node.cls) in classes:
            lines.add(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(s, ast.Call) and last(s.func) == "type" for s in sides)
            if asked and any(names_a_class(s, classes) for s in sides):
                lines.add(node.lineno)
            said = [x.value for s in sides for x in ast.walk(s) if isinstance(x, ast.Constant)]
            if any(map(is_name_of_method, sides)) and set(METHODS) & {*map(str, said)}:
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize(
    "snippet",
    [
        "isinstance(x, Exact)",
        "isinstance(self.method, SoftSet | Lagrangian)",
        "isinstance(x, (str, methods.Costs))",
        "issubclass(kind, Method)",
        "from setpoint.methods import Exact as E\nisinstance(x, E)",
        "type(x) is Implicit",
        "type(x) in (Implicit, Costs)",
        "isinstance(by, type(method))",
        "match x:\n    case CrossEntropy(class_weight=None): pass",
        'plain = self.method.name == "cross-entropy"',
        'plain = method.name in ("cross-entropy", "costs")',
    ],
)
def test_a_question_is_noticed(snippet):
    assert questions(snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        "isinstance(x, Exact2 | str)",
        "isinstance(method, str)",
        "method = Exact()",
        "type(x) is int",
        'task.kind == "costs"',
        "plain = not method.hints.goal_driven",
        "def fit(method: Exact | None) -> Costs: ...",
    ],
)
def test_what_is_no_question_passes(snippet):
    assert not questions(snippet)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_outside_asks_which_method_it_is(path):
    assert questions(path.read_text("utf-8")) == []
