"""Bad input: each is answered by a sentence and exit code 2; nothing is written, no traceback."""

import errno
import json
import os

import numpy as np
import pytest
from tests.cli.tables import GOAL, QUICK, people

pytestmark = pytest.mark.usefixtures("undrawn")


def changed(**columns):
    return lambda: people(120).assign(**columns)


def three():
    table = people(120)
    table.loc[:9, "fraud"] = 2
    return table


def unlabelled():
    table = people(120).astype({"fraud": float})
    table.loc[[4, 7], "fraud"] = np.nan
    return table


def words():
    return people(120).assign(fraud=lambda t: t["fraud"].map({0: "no", 1: "yes"}))


MIXED = b"a,fraud\n" + b"1,0\n2,1\n" * 30 + b"3,maybe\n"
GROUPED = 'maximize recall subject to gap(recall, by="sx") <= 0.1'

#: A table (a function, or the bytes of a file), options, and what is said.
CASES = {
    "no target": (people, ["--target", "frau"], 'no column "frau" (target). Did you mean "fraud"?'),
    "constant target": (changed(fraud=1), [], "holds only 1, in all 120 rows"),
    "three classes": (
        three,
        [],
        'column "fraud" has 3 values (0, 1, 2); a goal on precision needs two. Say --positive 2 to '
        "set it against the rest.",
    ),
    "labels missing": (
        unlabelled,
        [],
        '2 rows of 120 have no label in "fraud" (target), the first is data row 5; say '
        "--drop-unlabelled",
    ),
    "all labels missing": (changed(fraud=None), ["--drop-unlabelled"], "no row has a label"),
    "words without a positive": (words, [], "say which one is positive, for example --positive"),
    "unknown positive": (words, ["--positive", "Yes"], "--positive Yes does not occur"),
    "a number for a label": (
        lambda: people(120).assign(fraud=lambda t: t["amount"]),
        [],
        "different numbers; a goal on precision needs two classes. Is it the right column?",
    ),
    "a name for a class": (
        lambda: people(120).assign(fraud=lambda t: t["account"].map("c{}".format)),
        ["--goal", "maximize macro(f1)"],
        "120 values in 120 rows, too few of each",
    ),
    "mixed target": (MIXED, [], 'column "fraud" has 3 values ("0", "1", "maybe")'),
    "nothing of use": (
        lambda: people(120)[["fraud"]].assign(empty=None, same=1),
        [],
        'no column is of use. column "empty" is ignored: all its values are missing.',
    ),
    "no features": (lambda: people(120)[["fraud"]], [], "no column is left to learn from"),
    "repeated names": (b"a,a,fraud\n1,2,0\n2,3,1\n", [], '2 columns named "a"'),
    "latin-1": ("a,fraud\nä,0\nö,1\n".encode("latin-1"), [], "is not UTF-8"),
    "utf-16": ("a,fraud\n1,0\n2,1\n".encode("utf-16"), [], "UTF-16; save it as UTF-8"),
    "semicolons": (b"a;fraud\n1;0\n2;1\n", [], "separated by semicolons"),
    "empty": (b"", [], "is empty"),
    "header only": (b"a,fraud\n", [], "has a header but no rows"),
    "infinite": (changed(amount=np.inf), [], 'column "amount" is infinite in data row 1'),
    "unknown group column": (people, ["--goal", GROUPED], 'no column "sx" (group). Did you mean'),
    "unknown group": (
        people,
        ["--goal", 'maximize f1 subject to recall.on(sex="x") >= 0.1'],
        "no row has sex='x'",
    ),
    "unknown class": (people, ["--goal", 'maximize recall.of("dog")'], "there is no class 'dog'"),
    "the word group": (
        people,
        ["--goal", 'maximize f1 subject to gap(recall, by="group") <= 1', "--group", "sex"],
        'name the column itself, for example by="sex"',
    ),
    "another task": (people, ["--goal", "minimize mae"], "mae is for regression tasks"),
    "never holds": (people, ["--goal", "maximize f1 subject to fpr <= -1"], "can never hold"),
    "unknown model": (people, ["--model", "tree"], "--model tree: did you mean trees?"),
    "unknown effort": (people, ["--effort", "slow"], "--effort slow: choose from quick"),
    "unknown method": (people, ["--model", "auto", "--method", "magic"], "--method magic: choose"),
    "unknown task": (people, ["--task", "ranking"], 'unknown task "ranking"'),
    "unknown kind": (people, ["--kind", "round"], "--kind round: a binary task takes"),
    "confidence": (people, ["--confidence", "2"], "--confidence 2.0: a number between 0.5 and 1"),
    "folds": (people, ["--folds", "0"], "--folds 0: a whole number, 1 or more"),
    "certify size": (people, ["--certify-size", "1.5"], "--certify-size 1.5: a number between"),
    "time limit": (people, ["--time-limit", "soon"], "--time-limit is a time such as 300"),
    "seed": (people, ["--seed", "-1"], "--seed -1: a whole number"),
    "negative weights": (changed(w=-1.0), ["--weight", "w"], "weights are not negative"),
    "weights that are none": (changed(w="a"), ["--weight", "w"], "values that are not numbers"),
    "target as weight": (people, ["--weight", "fraud"], "is named as --target and as --weight"),
    "parts": (changed(part="a"), ["--split", "part"], '--split is "a" in data row 1; the words'),
    "together and time": (
        people,
        ["--together", "account", "--time", "day"],
        "--together and --time cannot be combined",
    ),
    "time that is none": (people, ["--time", "sex"], "which is no date"),
    "drop what is not there": (people, ["--drop", "ages"], 'no column "ages" (--drop). Did you'),
    "drop and keep": (people, ["--drop", "age", "--keep", "age"], "named as --keep and as --drop"),
    "keep what says nothing": (changed(one="x"), ["--keep", "one"], "cannot be kept: it holds one"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_and_nothing_written(run, tmp_path, name):
    table, options, said = CASES[name]
    path, out = tmp_path / "t.csv", tmp_path / "deep" / "run"
    if isinstance(table, bytes):
        path.write_bytes(table)
    else:
        table().to_csv(path, index=False)
    given = {"--target": "fraud", "--goal": GOAL}
    asked = [x for key, value in given.items() if key not in options for x in (key, value)]
    model = () if "--model" in options else QUICK
    result = run("fit", path, *asked, *model, "--out", out, *options)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr, result.stderr
    assert result.stderr.startswith("setpoint: ")
    assert "Traceback" not in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_debug_shows_the_traceback_and_json_the_sentence(run, tmp_path):
    path = tmp_path / "t.csv"
    people(120).to_csv(path, index=False)
    args = ("fit", path, "--target", "frau", "--goal", GOAL, "--out", tmp_path / "run")
    assert "Traceback" in run(*args, "--debug").stderr
    told = json.loads(run(*args, "--json").stdout)
    assert told["kind"] == "DataError"
    assert told["error"].startswith('there is no column "frau"')


#: Tables that can be fitted, and what is said of them.
POOR = {
    "20 rows": (lambda: people(20), "Enough positives"),
    "3 positives": (
        lambda: people(120).assign(fraud=np.isin(np.arange(120), (5, 50, 90)).astype(int)),
        "Enough positives",
    ),
    "an id": (people, 'column "account" is ignored'),
    "a column that is all missing": (changed(empty=np.nan), 'column "empty" is ignored'),
    "a column that knows the label": (
        lambda: people(120).assign(leak=lambda t: t["fraud"] * 2.5),
        "Columns that know the label",
    ),
    "mixed types": (
        lambda: people(120).assign(age=lambda t: t["age"].map(str).where(t.index > 2, "old")),
        'column "age" is written as text and read as numbers; "old" is taken as missing',
    ),
    "labels left out": (unlabelled, "2 rows without a label left out"),
}


@pytest.mark.parametrize("name", POOR)
def test_poor_tables_are_fitted_and_told(run, tmp_path, name):
    make, said = POOR[name]
    path = tmp_path / "t.csv"
    make().to_csv(path, index=False)
    options = ("--target", "fraud", "--goal", GOAL, *QUICK, "--no-compare", "--drop-unlabelled")
    result = run("fit", path, *options, "--out", tmp_path / "run")
    assert result.exit_code in (0, 3), result.stderr
    assert said in " ".join(result.stdout.split())
    assert result.stderr == ""


# --- places ---------------------------------------------------------------------------------------


def fitting(run, path, out, *options):
    return run("fit", path, "--target", "fraud", "--goal", GOAL, "--out", out, *QUICK, *options)


def test_out_is_a_file_or_lies_in_one(run, tmp_path):
    path = tmp_path / "t.csv"
    people(120).to_csv(path, index=False)
    for out, said in ((path, "is a file; name a folder"), (path / "run", "is a file")):
        result = fitting(run, path, out)
        assert result.exit_code == 2
        assert said in result.stderr


def test_the_table_lies_in_the_folder(run, tmp_path):
    path = tmp_path / "run" / "t.csv"
    path.parent.mkdir()
    people(120).to_csv(path, index=False)
    result = fitting(run, path, tmp_path / "run", "--force")
    assert result.exit_code == 2
    assert "where the run is to go" in result.stderr


def test_a_folder_that_cannot_be_written(run, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    people(120).to_csv(path, index=False)
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)  # root may write anywhere
    result = fitting(run, path, tmp_path / "run")
    assert result.exit_code == 2
    assert "cannot write to the folder" in result.stderr


def full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_from_the_start_leaves_nothing(run, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    people(120).to_csv(path, index=False)
    monkeypatch.setattr(os, "fsync", full)
    result = fitting(run, path, tmp_path / "run", "--no-compare")
    assert result.exit_code == 2, result.stderr
    assert "No space left on device" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_a_full_disk_at_the_end_keeps_what_was_fitted(run, tmp_path, monkeypatch):
    path, out = tmp_path / "t.csv", tmp_path / "run"
    people(120).to_csv(path, index=False)
    with monkeypatch.context() as patch:
        patch.setattr("setpoint.fit.storage.write_json", lambda *_: full(0))
        result = fitting(run, path, out, "--no-compare")
    assert result.exit_code == 2, result.stderr
    assert "No space left on device" in result.stderr
    assert "run the same command to go on" in result.stderr
    assert [p.name for p in out.iterdir()] == ["work"]
    again = fitting(run, path, out, "--no-compare", "--json")
    assert again.exit_code in (0, 3), again.stderr
    assert json.loads(again.stdout)["resumed"] is True


# --- runs that are not whole ----------------------------------------------------------------------


def cut(folder):
    path = folder / "models" / sorted(p.name for p in (folder / "models").iterdir())[0]
    path.write_bytes(path.read_bytes()[:-20])


def turned(folder):
    rule = json.loads((folder / "rule.json").read_text())
    (folder / "rule.json").write_text(json.dumps({**rule, "threshold": 0.0}))


def halved(folder):
    (folder / "manifest.json").unlink()


def begun(folder):
    halved(folder)
    (folder / "work").mkdir()


def emptied(folder):
    (folder / "certificate.json").unlink()


def scrambled(folder):
    (folder / "manifest.json").write_text('{"format": ')


BROKEN = {
    "a model cut short": (cut, "was changed after it was written"),
    "a rule tampered with": (turned, "its checksum is not that of the manifest"),
    "no manifest": (halved, "it is no run of Setpoint, or was not written to the end"),
    "not finished": (begun, "the fit was not finished; run the same command again"),
    "a file missing": (emptied, 'lacks "certificate.json"'),
    "a manifest cut short": (scrambled, "cannot read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_is_not_whole_is_refused(run, run_folder, new_rows, tmp_path, name):
    import shutil

    damage, said = BROKEN[name]
    folder = tmp_path / "broken"
    shutil.copytree(run_folder[0], folder)
    damage(folder)
    new = new_rows(60)[0]
    out = tmp_path / "decisions.csv"
    for args in (
        ("predict", folder, new, "--out", out),
        ("evaluate", folder, new),
        ("monitor", folder, new),
        ("explain", folder),
        ("compare", folder, run_folder[0]),
    ):
        result = run(*args)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert said in result.stderr, result.stderr
    assert not out.exists()


@pytest.mark.parametrize("verb", ["predict", "evaluate", "explain"])
def test_no_run_at_all(run, new_rows, tmp_path, verb):
    new, more = new_rows(60)[0], {"predict": ("--out", tmp_path / "d.csv")}
    rows = () if verb == "explain" else (new,)
    result = run(verb, tmp_path / "nothing", *rows, *more.get(verb, ()))
    assert result.exit_code == 2
    assert "nothing" in result.stderr


def test_a_planted_pickle_is_not_run(run, run_folder, new_rows, tmp_path):
    import pickle
    import shutil

    class Planted:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    folder = tmp_path / "planted"
    shutil.copytree(run_folder[0], folder)
    model = next(iter((folder / "models").iterdir()))
    model.write_bytes(pickle.dumps(Planted()))
    from setpoint._core.files import digest

    seal = json.loads((folder / "manifest.json").read_text())
    seal["files"][f"models/{model.name}"] = digest(model)
    (folder / "manifest.json").write_text(json.dumps(seal))
    result = run("predict", folder, new_rows(60)[0], "--out", tmp_path / "d.csv")
    assert result.exit_code == 2, result.output
    assert not (tmp_path / "executed").exists()
