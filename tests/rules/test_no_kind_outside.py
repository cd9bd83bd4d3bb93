"""What a rule does is asked of the rule: nothing outside ``rules`` asks which kind it is."""

import ast
import pathlib

import pytest

import setpoint
from setpoint.rules.rule import Rule
from setpoint.rules.table import RULES

SRC = pathlib.Path(setpoint.__file__).parent
OUTSIDE = [p for p in sorted(SRC.rglob("*.py")) if SRC / "rules" not in p.parents]


def classes_below(cls):
    """Names of a class and of all that inherit from it."""
    return {cls.__name__}.union(*map(classes_below, cls.__subclasses__()))


CLASSES = {name for cls in (Rule, *RULES.values()) for name in classes_below(cls)}
RULE_WORDS = ("rule", "point", "search", "land")  #: names that rules and searches go by


def last(node):
    """The last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def rule_classes(tree):
    """Every name that a rule class has in a module: its own, and what it is imported as."""
    known = set(CLASSES)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("setpoint"):
            known |= {a.asname for a in node.names if a.asname and a.name in CLASSES}
    return known


def names_a_class(node, classes):
    """Whether an expression names a rule class: alone, in a tuple or union, or that of a rule."""
    if isinstance(node, ast.Tuple):
        return any(names_a_class(x, classes) for x in node.elts)
    if isinstance(node, ast.BinOp):
        return names_a_class(node.left, classes) or names_a_class(node.right, classes)
    if isinstance(node, ast.Call) and last(node.func) == "type" and node.args:
        return any(word in last(node.args[0]) for word in RULE_WORDS)
    return last(node) in classes


def is_kind(node):
    """``kind``, ``rule.kind``, ``certificate.point.kind``; a task's kind is another matter."""
    if isinstance(node, ast.Attribute) and node.attr == "kind":
        return any(word in last(node.value) for word in RULE_WORDS)
    return last(node) == "kind"


def compares_kinds(sides):
    """Whether a comparison is of a rule's kind with one or several of the names in ``RULES``."""
    words = {x.value for s in sides for x in ast.walk(s) if isinstance(x, ast.Constant)}
    direct = any(isinstance(s, ast.Attribute) and is_kind(s) for s in sides)
    return any(map(is_kind, sides)) and (direct or bool(words & set(RULES)))


def questions(source):
    """Lines that ask which kind a rule is."""
    tree = ast.parse(source)
    classes, lines = rule_classes(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in ("isinstance", "issubclass"):
            if names_a_class(node.args[1], classes):
                lines.add(node.lineno)
        elif isinstance(node, ast.MatchClass) and last(node.cls) in classes:
            lines.add(node.lineno)
        elif isinstance(node, ast.Match) and is_kind(node.subject):
            words = {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}
            if words & set(RULES):
                lines.add(node.lineno)
        elif isinstance(node, ast.Subscript | ast.Call):  # {"per-group": …}[rule.kind], .get(…)
            table = node.value if isinstance(node, ast.Subscript) else node.func
            table = table.value if isinstance(table, ast.Attribute) else table
            keys = [node.slice] if isinstance(node, ast.Subscript) else node.args
            if isinstance(table, ast.Dict) and any(map(is_kind, keys)):
                names = {k.value for k in table.keys if isinstance(k, ast.Constant)}
                if names & set(RULES):
                    lines.add(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(s, ast.Call) and last(s.func) == "type" for s in sides)
            asked = asked or any(last(s) in ("rule", "kind") for s in sides)
            if asked and any(names_a_class(s, classes) for s in sides):
                lines.add(node.lineno)
            if compares_kinds(sides):
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize(
    "snippet",
    [
        'plain = rule.kind == "threshold"',
        'plain = self.rule_.kind != "abstain"',
        'plain = certificate.point.kind in ("top-k", "abstain")',
        'plain = kind == "offsets"',
        "plain = rule.kind in KINDS",
        'plain = search.rule.kind == "top-k"',
        'if land.kind == "top-k": pass',
        '{"per-group": 1}[rule.kind]',
        '{"per-group": 1}.get(rule.kind, 0)',
        'match rule.kind:\n    case "top-k": pass',
        "isinstance(rule, OneThreshold)",
        "isinstance(x, (str, rules.TopK))",
        "isinstance(rule, GroupThresholds | LabelThresholds)",
        "isinstance(x, Rule)",
        "issubclass(kind, Abstention)",
        "isinstance(x, ScoreBand)",
        "from setpoint.rules.top_k import TopK as First\nisinstance(x, First)",
        "type(rule) is ClassOffsets",
        "search.rule is Argmax",
        "match x:\n    case TopK(k=1): pass",
    ],
)
def test_a_question_is_noticed(snippet):
    assert questions(snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        'plain = task.kind == "binary"',
        'plain = kind == "multiclass"',
        'plain = column.kind == "threshold"',
        "isinstance(rule, DecisionRule)",
        "rule = OneThreshold(task=task, threshold=0.5)",
        "def chosen(rule: OneThreshold) -> TopK: ...",
        'record = {"kind": rule.kind}',
        'words = f"of kind {rule.kind}"',
        "if rule.point.may_abstain: pass",
        "search = RuleSearch(rule=type(rule.point))",
        "kind is None",
        '{"png": 1}[kind]',
    ],
)
def test_what_is_no_question_passes(snippet):
    assert not questions(snippet)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_outside_asks_which_kind_it_is(path):
    assert questions(path.read_text("utf-8")) == []
