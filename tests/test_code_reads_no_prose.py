"""Code never searches, splits, replaces or compares a sentence: what it asks for travels as data.

Two things are found in the syntax tree of every file. Words of prose that a text is searched for:
``note.startswith("the rule has ")``, ``"left out" in note``, ``re.sub("say positive=.*", …)``. And
one of our own sentences that is searched, split or compared, with whatever words:
``str(error).split(mark)``, ``finding.limit() == nothing``. A sentence is what an error says, and
what the names in SENTENCES hold. Folding white space and taking the first line or the closing
full stop away is layout, not reading.
"""

import ast
import re
from pathlib import Path

import pytest

from setpoint.expressions.reductions import HOWS

SRC = Path(__file__).parents[1] / "src" / "setpoint"

#: Other people's sentences, in which alone they say what we have to know. File, words, reason.
FOREIGN = {
    ("datasets/text_files.py", "EOF inside string starting at row"): "pandas: no field has it",
    ("datasets/text_files.py", "Error tokenizing data. C error:"): "pandas: a heading before it",
    ("datasets/arrow_files.py", "."): "pyarrow: only its first sentence is for people",
}

#: Methods of a text that ask what it says or cut it there.
ASKING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit", "partition"),
    *("rpartition", "replace", "find", "rfind", "index", "rindex", "count"),
}
#: And those that leave the text what it is.
LAYOUT = {"strip", "rstrip", "lower", "splitlines"}
#: Functions of :mod:`re` whose first argument is a pattern.
PATTERNS = {
    *("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer", "compile"),
}

#: Attributes, keys, methods and variables whose value is a sentence of ours.
SENTENCES = {
    *("sentence", "sentences", "account", "limit", "way_out", "obstacle", "refusal", "objection"),
    *("headline", "detail", "how", "reason", "caution", "assumption", "message", "render"),
    *("worded", "summary", "brief", "why"),
}
#: And these as attributes and keys; a variable of that name is any text, or a record.
FIELDS = SENTENCES | {"text", "note"}
#: A note that is cut is no record.
CUT = SENTENCES | {"note"}
#: The same names where they stand for something else, by file: what it is.
NO_SENTENCE = {
    ("cli/errors.py", "text"): "a goal, around whose mistake a long line is cut",
    ("cli/commands/explain.py", "why"): "a role of a member, which run folders name",
    ("fit/plan.py", "why"): "a role of a member, which run folders name",
    ("fit/conclusion/stack.py", "why"): "a role of a member, which run folders name",
}
#: What ``how`` is compared with where it is a code: how a metric is reduced.
HOW_CODES = {*HOWS, "mean", "min", "max"}

WORDS = re.compile(r"[^\W\d_]{2,}[,.;:]? +[^\W\d_]")


def prose(text):
    """Whether a text has words next to each other, as sentences have and codes do not."""
    return isinstance(text, str) and WORDS.search(text.replace("\\b", "").replace("\\s", " "))


def literals(node):
    """The texts that an expression is made of; not what it computes them from."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.Set):
        parts = node.values if isinstance(node, ast.JoinedStr) else node.elts
        return [text for part in parts for text in literals(part)]
    if isinstance(node, ast.BinOp):
        return literals(node.left) + literals(node.right)
    return []


def errors_in(tree):
    """Names that ``except … as name`` gives to an error."""
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}


def sentence(node, errors, place, variables):
    """The name of a sentence that an expression is, or None."""
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name):
            told = called.id == "str" and len(node.args) == 1 and isinstance(node.args[0], ast.Name)
            if told and node.args[0].id in errors:
                return f"str({node.args[0].id})"
            return sentence(called, errors, place, variables) if called.id in SENTENCES else None
        if isinstance(called, ast.Attribute) and called.attr in ASKING | LAYOUT:
            return sentence(called.value, errors, place, variables)  # still the same sentence
        return sentence(called, errors, place, variables)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if key in FIELDS and (place, key) not in NO_SENTENCE:
            return str(key)
        return sentence(node.value, errors, place, variables) if not isinstance(key, str) else None
    if isinstance(node, ast.Attribute):
        known, name = FIELDS, node.attr
    else:
        known, name = variables, getattr(node, "id", None)
    return name if name in known and (place, name) not in NO_SENTENCE else None


def asked(node):
    """Of a node that asks a text: the expressions asked, the words, and whether any word counts."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, method = node.func.value, node.func.attr
        if isinstance(owner, ast.Name) and owner.id == "re" and method in PATTERNS:
            subjects = node.args[-1:] if len(node.args) > 1 else []
            return subjects, [t for a in node.args[:1] for t in literals(a)]
        if method in ASKING and node.args:
            return [owner], [t for a in node.args[:1] for t in literals(a)]
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops):
            return sides, [t for side in sides for t in literals(side)]
    return [], []


def compares_codes(node):
    """Whether a comparison is with ``None``, a number or an empty text."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    constants = [side.value for side in sides if isinstance(side, ast.Constant)]
    return any(not value or isinstance(value, int) for value in constants)


def stops_only(node, words):
    """Whether nothing but the punctuation at the end is asked for, to close a sentence."""
    named = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"endswith", "rstrip"}
    return named and bool(words) and all(set(word) <= set(".?! ") for word in words)


def readings(source, place=""):
    """Where a file reads prose, as (line, words)."""
    tree = ast.parse(source)
    errors = errors_in(tree)
    found = []
    for node in ast.walk(tree):
        subjects, words = asked(node)
        said = [w for w in words if prose(w)]
        variables = CUT if isinstance(node, ast.Call) else SENTENCES
        names = (sentence(subject, errors, place, variables) for subject in subjects)
        told = [name for name in names if name is not None]
        harmless = compares_codes(node) or stops_only(node, words)
        harmless = harmless or (set(told) == {"how"} and set(words) <= HOW_CODES)
        if said or (told and not harmless):
            found.append((node.lineno, (said or words or told)[0]))
    return found


FILES = {p.relative_to(SRC).as_posix(): p.read_text("utf-8") for p in sorted(SRC.rglob("*.py"))}


@pytest.mark.parametrize("place", FILES)
def test_no_file_reads_prose(place):
    allowed = [words for name, words in FOREIGN if name == place]
    found = [
        f"{place}:{line}: {words!r}"
        for line, words in readings(FILES[place], place)
        if not any(words.strip().startswith(a) for a in allowed)
    ]
    assert not found, "a sentence is read; let it travel as a code, an enum or a field"


def test_every_exception_is_needed(monkeypatch):
    for place, words in FOREIGN:
        assert any(w.strip().startswith(words) for _, w in readings(FILES[place], place)), place
    for place, name in list(NO_SENTENCE):
        with monkeypatch.context() as patch:
            patch.delitem(NO_SENTENCE, (place, name))
            assert readings(FILES[place], place), (place, name)


READS = [
    'said = next((n for n in notes if name in n and "left out" in n), None)',
    'alone = next((s for s in chosen.split(". ") if "alone is better" in s), "")',
    'less = next((note for note in known if note.startswith("the rule has ")), None)',
    'f.sentence().removeprefix("NOT PROVEN: ")',
    'f"{signed(rule.sentence())}".removeprefix("NOT FEASIBLE: ")',
    'record["lowered"].split(" subject to ")',
    're.sub(r"\\bproof_price=([\\d.]+)", r"--proof-price \\1", note.rstrip("."))',
    're.sub(r"^together and time cannot", "--together", message)',
    'found.how == "exact binomial"',
    'finding.limit() == "no bound"',
    "finding.limit() == NO_BOUND",
    'found.note.replace(\'labels="flagged"\', "--labels flagged")',
    'solution.status.replace("the iterate judged best", "the last iterate")',
    'if "out-of-fold" in report.how: pass',
    "report.detail.partition(MARK)",
    'verdict["headline"].split(MARK)',
    'if run.status in ("broken on new rows", "holds"): pass',
    'try: f()\nexcept ValueError as error:\n    if "already used" not in str(error): raise',
    'try: f()\nexcept ValueError as error:\n    if "28, 28" in str(error): raise',
    "try: f()\nexcept ValueError as problem:\n    parts = str(problem).split(MARK)",
    'try: f()\nexcept E as e:\n    said = str(e).replace("the prior makes grey ones", "a mask")',
]
PASSES = [
    'name, _, level = noise.strip().partition(":")',
    'low, high = (float(part) for part in text.split(","))',
    'path.suffix.lower().removeprefix(".")',
    'if name.startswith("sr_"): pass',
    'words = re.split(r"[\\s,]+", typed)',
    'if kind == "per-group" or run.status is Outcome.NOT_FEASIBLE: pass',
    'if member.fate is MemberFate.LEFT_OUT: return f"left out, {member.reason}"',
    "if note.code is NoteCode.SMALL_MARGIN: pass",
    "if error.code is not ErrorCode.ROWS_USED: raise",
    'return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."',
    'return "" if self.caution is None else str(self.caution)',
    'if finding.note != "": pass',
    'first = "; ".join(note.text for note in notes)',
    'try: f()\nexcept OSError as error:\n    reason = " ".join(str(error).split())',
    "try: f()\nexcept OSError as error:\n    reason = str(error).splitlines()[0]",
    'raise DataError("{argument} must be a share", argument=Argument("margin", 2))',
    'header = "the first line" if several else "a line"',
]


@pytest.mark.parametrize("source", READS)
def test_what_reads_prose_is_found(source):
    assert readings(source), source


@pytest.mark.parametrize("source", PASSES)
def test_what_reads_data_is_not(source):
    source = f"def f():\n    {source}" if "return" in source else source
    assert not readings(source), source
