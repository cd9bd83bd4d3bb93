"""The tree stays walkable: unique class names, small folders, one idea a file, a true map."""

import ast
import builtins
import collections
import itertools
import pathlib
import re

import setpoint

SRC = pathlib.Path(setpoint.__file__).parent
ROOT = pathlib.Path(__file__).parents[1]
FILES = sorted(SRC.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES if path.parent != SRC})


def public_classes(source):
    """Names of the public classes of a module."""
    nodes = ast.walk(ast.parse(source))
    return [n.name for n in nodes if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]


def repeated(names_of_modules):
    """Class names that several modules define, with those modules."""
    homes = collections.defaultdict(list)
    for module, names in names_of_modules.items():
        for name in names:
            homes[name].append(module)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_a_repeated_name_is_noticed():
    assert repeated({"a": public_classes("class Rows: ..."), "b": ["Rows", "Run"]}) == {
        "Rows": ["a", "b"]
    }


def test_public_class_names_are_unique():
    names = {str(p.relative_to(SRC)): public_classes(p.read_text("utf-8")) for p in FILES}
    assert repeated(names) == {}


def test_a_folder_fits_on_one_screen():
    """16 is what one screen holds; a folder that outgrows it holds two subjects."""
    counts = collections.Counter(p.parent for p in FILES if p.name != "__init__.py")
    large = {str(k.relative_to(SRC)): n for k, n in counts.items() if n > 16}
    assert large == {}


def test_a_file_holds_one_idea():
    lines = {str(p.relative_to(SRC)): len(p.read_text("utf-8").splitlines()) for p in FILES}
    assert {name: n for name, n in lines.items() if n > 600} == {}


def misplaced(tests, sources):
    """Files of tests that bear the name of a source file and lie in another folder than it."""
    homes = collections.defaultdict(set)
    for path in sources:
        homes[path.stem].add(path.parent)
    named = ((path, homes.get(path.stem.removeprefix("test_"))) for path in tests)
    return [str(path) for path, folders in named if folders and path.parent not in folders]


def test_tests_lie_where_the_file_of_their_name_lies():
    sources = [p.relative_to(SRC) for p in FILES]
    tests = [p.relative_to(ROOT / "tests") for p in (ROOT / "tests").rglob("test_*.py")]
    tests = [p for p in tests if p.parts[0] not in ("slow", "oracles", "compatibility")]
    assert misplaced([pathlib.Path("goals/test_parse.py")], sources) == ["goals/test_parse.py"]
    assert misplaced(tests, sources) == []


def test_every_folder_says_what_lives_in_it():
    for folder in FOLDERS:
        doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
        assert doc, folder
        assert len(doc.split()) > 4, f"{folder.relative_to(SRC)}: {doc!r} says too little"


def test_the_map_names_every_file():
    """docs/architecture.md lists each folder and each file in it by its name."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    absent = [
        str(p.relative_to(SRC))
        for p in FILES
        if p.stem not in ("__init__", "__main__") and f"`{p.stem}`" not in text
    ]
    templates = sorted(SRC.glob("reports/render/templates/*"))
    absent += [p.name for p in templates if f"`{p.name}`" not in text]
    absent += [str(f.relative_to(SRC)) for f in FOLDERS if f"{f.relative_to(SRC)}/" not in text]
    assert absent == []


#: classes of other projects that the package names in docstrings and never imports by name
OUTSIDE = {"DataFrame", "RandomState"}
TYPED_SECTIONS = {"Attributes", "Parameters", "Returns", "Yields"}
#: a class by its name alone; ``pandas.DataFrame`` and "Quoted" words are none
CAP_WORD = re.compile(r"(?<![\w.`'/-])[A-Z][a-z]\w*")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def stated_types(docstring):
    """The types that the sections of a docstring state: ``name : type``, or a type alone."""
    section = ""
    for line, following in itertools.pairwise([*docstring.splitlines(), ""]):
        underlined = bool(following.strip()) and not following.strip("-")
        section = line if underlined else section
        if underlined or section not in TYPED_SECTIONS or not line.strip("-") or line[0] == " ":
            continue
        _, colon, stated = line.partition(" : ")
        if colon or section in ("Returns", "Yields"):
            yield stated or line


def defined_names(tree):
    """Classes and names that a module defines or imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def unknown_types(tree, names):
    """Classes that docstrings of a module state as types, and that nothing defines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(tree) if isinstance(node, documented))
    stated = (line for node in nodes for line in stated_types(ast.get_docstring(node) or ""))
    words = (word for line in stated for word in CAP_WORD.findall(QUOTED.sub("", line)))
    return sorted(set(words) - names)


def test_classes_in_docstrings_exist():
    trees = {path: ast.parse(path.read_text("utf-8")) for path in FILES}
    names = {name for tree in trees.values() for name in defined_names(tree)}
    names |= set(dir(builtins)) | OUTSIDE
    sample = ast.parse(
        'def f(x):\n    """Do.\n\n    Parameters\n    ----------\n    x : Serach or FileError\n'
        '        An Option.\n\n    Returns\n    -------\n    tuple of Reslut\n    """\n'
    )
    assert unknown_types(sample, names) == ["Reslut", "Serach"]
    unknown = {path.relative_to(SRC): unknown_types(tree, names) for path, tree in trees.items()}
    assert {str(path): words for path, words in unknown.items() if words} == {}
