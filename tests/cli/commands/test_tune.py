"""`setpoint tune`: the same rule as the library gives, and a sentence for every mistake."""

import json
import re

import numpy as np
import pytest

import setpoint as sp
from setpoint.cli.words import number

GOAL = "maximize recall subject to precision >= 0.8"


def strict(text):
    """JSON without NaN and Infinity, which Python's reader would take."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


# --- what it finds ------------------------------------------------------------------------------


def test_json_is_the_rule_of_the_library_and_of_brute_force(run, scores, table):
    result = run("tune", scores, "--goal", GOAL, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = strict(result.stdout)
    y, s = table["label"].to_numpy(), table["score"].to_numpy()
    assert data["rule"] == sp.tune(GOAL, y, s).to_json()

    best = (-1.0, None)
    for threshold in np.unique(s)[::-1]:
        decided = s >= threshold
        hits = int((decided & (y == 1)).sum())
        if hits / decided.sum() >= 0.8 and hits / y.sum() > best[0]:
            best = hits / y.sum(), threshold
    assert (data["rule"]["value"], data["rule"]["threshold"]) == best
    assert data["data"]["rows"] == len(y)
    assert data["data"]["positives"] == int(y.sum())


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_every_type_of_file(run, table, tmp_path, kind):
    path = tmp_path / f"scores.{kind}"
    writers = {
        "csv": lambda p: table.to_csv(p, index=False),
        "parquet": table.to_parquet,
        "feather": table.to_feather,
    }
    writers[kind](path)
    result = run("tune", path, "--goal", GOAL, "--json")
    expected = sp.tune(GOAL, table["label"], table["score"])
    assert strict(result.stdout)["rule"]["threshold"] == expected.threshold


def test_screen_says_goal_data_point_constraints_and_use(run, scores, table):
    result = run("tune", scores, "--goal", GOAL)
    rule = sp.tune(GOAL, table["label"], table["score"])
    assert result.exit_code == 0
    flat = " ".join(result.stdout.split())
    for said in (
        f"Goal {GOAL}",
        f"200 rows; {int(table['label'].sum())} positive",
        f"Operating point {rule.operating_point()}",
        f"Reached {rule.sentence()}",
        "precision 0.8",
        ">= 0.8",
        "holds",
        "● the rule",
        "┊ precision >= 0.8",
        'sp.DecisionRule.load("rule.json")',
    ):
        assert said in flat


def test_rule_is_written_and_read_back(run, scores, table, tmp_path):
    out = tmp_path / "rule.json"
    result = run("tune", scores, "--goal", GOAL, "--out", out)
    assert result.exit_code == 0
    rule = sp.DecisionRule.load(out)
    assert rule == sp.tune(GOAL, table["label"], table["score"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rule.json", "scores.csv"]


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_plot_is_written(run, scores, tmp_path, kind, start):
    plot = tmp_path / f"frontier.{kind}"
    result = run("tune", scores, "--goal", GOAL, "--plot", plot, "--json")
    assert result.exit_code == 0
    assert strict(result.stdout)["written"] == {"plot": str(plot)}
    assert plot.read_bytes().startswith(start)


def test_plot_is_the_same_twice(run, scores, tmp_path):
    plots = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for plot in plots:
        run("tune", scores, "--goal", GOAL, "--plot", plot)
    assert plots[0].read_bytes() == plots[1].read_bytes()


# --- declared roles -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "said", "flips"), [("answer", "yes", False), ("answer", "no", True)]
)
def test_positive_label_is_as_declared_and_kept_in_the_rule(
    run, scores, table, tmp_path, column, said, flips
):
    out = tmp_path / "rule.json"
    goal = ("--goal", "maximize f1")
    run("tune", scores, "--label", column, "--positive", said, *goal, "--out", out)
    rule = sp.DecisionRule.load(out)
    y = 1 - table["label"] if flips else table["label"]
    assert rule.threshold == sp.tune("maximize f1", y, table["score"]).threshold
    assert rule.task.positive == said


def test_truth_values_with_false_as_positive(run, scores, table):
    result = run(
        "tune", scores, "--label", "truth", "--positive", "false", "-g", "maximize f1", "--json"
    )
    expected = sp.tune("maximize f1", 1 - table["label"], table["score"])
    data = strict(result.stdout)
    assert data["rule"]["threshold"] == expected.threshold
    assert data["data"]["positive"] is False


def test_weight_and_groups(run, scores, table):
    goal = 'maximize accuracy subject to gap(recall, by="sex") <= 0.05'
    result = run(
        "tune",
        scores,
        "--goal",
        goal,
        "--group",
        "sex",
        "--group",
        "age",
        "--by",
        "sex",
        "--kind",
        "per-group",
        "--weight",
        "weight",
        "--json",
    )
    expected = sp.tune(
        goal,
        table["label"],
        table["score"],
        sample_weight=table["weight"],
        group={"sex": table["sex"].to_numpy(), "age": table["age"].to_numpy()},
        by="sex",
        kind="per-group",
    )
    assert strict(result.stdout)["rule"] == expected.to_json()


def test_numbers_as_groups_go_to_json(run, scores, table, tmp_path):
    out = tmp_path / "rule.json"
    result = run(
        "tune", scores, "-g", "maximize f1", "--group", "age", "--kind", "per-group", "--out", out
    )
    assert result.exit_code == 0
    rule = sp.DecisionRule.load(out)
    assert rule.decide(table["score"], group={"age": table["age"].to_numpy()}).shape == (200,)


@pytest.mark.parametrize(
    "constraint", ['gap(recall, by="sex") <= 0.2', 'recall.on(sex="f") >= 0.2']
)
def test_columns_of_the_goal_are_found(run, scores, table, constraint):
    goal = f"maximize accuracy subject to {constraint}"
    data = strict(run("tune", scores, "-g", goal, "--json").stdout)
    expected = sp.tune(goal, table["label"], table["score"], group={"sex": table["sex"].to_numpy()})
    assert data["rule"] == expected.to_json()
    assert data["data"]["groups"] == ["sex"]
    assert "groups: sex" in run("tune", scores, "-g", goal).stdout


def test_weight_is_named(run, scores):
    args = ("tune", scores, "-g", "maximize f1", "--weight", "weight")
    assert "weighted by weight" in " ".join(run(*args).stdout.split())
    assert strict(run(*args, "--json").stdout)["data"]["weight"] == "weight"


def test_counts_of_the_decided(run, scores, table):
    args = ("tune", scores, "-g", "maximize precision subject to recall >= 0.1")
    data = strict(run(*args, "--json").stdout)
    decided = table["score"] >= data["rule"]["threshold"]
    right = int((decided & (table["label"] == 1)).sum())
    positives = int(table["label"].sum())
    assert data["decided"] == {
        "rows": int(decided.sum()),
        "of": 200,
        "right": right,
        "wrong": int(decided.sum()) - right,
        "positives": positives,
        "missed": positives - right,
        "few": True,
    }
    flat = " ".join(run(*args).stdout.split())
    assert f"Decided {decided.sum()} of 200 rows: {right} right," in flat
    assert f"{positives - right} of {positives} positives missed few rows carry" in flat
    assert "on the rows it was chosen on; check it on others: " in flat


def test_more_than_two_labels_are_all_named(run, tmp_path):
    path = tmp_path / "scores.csv"
    labels = ["ok"] * 5 + ["fraud"] * 3 + ["Fraud", "unknown"]
    path.write_text("label,score\n" + "".join(f"{x},{i}\n" for i, x in enumerate(labels)))
    result = run("tune", path, "-g", "maximize f1", "--positive", "fraud")
    flat = " ".join(result.stdout.split())
    assert "label = fraud against ok 5, Fraud 1, unknown 1" in flat
    assert 'the labels "Fraud" and "fraud" differ only by case' in flat
    assert result.stderr == ""


def test_two_labels_that_differ_by_case_only(run, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score\nyes,0.9\nYes,0.1\nYes,0.2\n")
    result = run("tune", path, "-g", "maximize f1", "--positive", "yes", "--json")
    about = strict(result.stdout)["data"]
    assert about["differ_only_by_case"] == [["Yes", "yes"]]
    assert "against" not in about


@pytest.mark.parametrize("role", ["label", "score"])
def test_usual_column_that_is_missing_names_its_option(run, table, tmp_path, role):
    path = tmp_path / "scores.csv"
    table.drop(columns=role).to_csv(path, index=False)
    result = run("tune", path, "-g", "maximize f1")
    assert f'there is no column "{role}" ({role}): say --{role} COL.' in result.stderr


def test_top_k_by_query(run, scores, table):
    goal = 'maximize precision_at_k(3, by="query")'
    for task in ("binary", "ranking"):
        result = run("tune", scores, "-g", goal, "--query", "query", "--task", task)
        assert result.exit_code == 0, result.stderr
        assert "the 3 highest scores of each query" in result.stdout


@pytest.mark.parametrize(
    "columns",
    [
        ("--label", "animal", "--scores", "cat,dog,owl"),
        ("--label", "animal", "--score", "cat", "--score", "dog", "--score", "owl"),
        ("--label", "code", "--scores", "cat, dog, owl", "--classes", "0,1,2"),
    ],
)
def test_multiclass(run, scores, table, columns):
    result = run(
        "tune", scores, "--task", "multiclass", *columns, "-g", "maximize macro(f1)", "--json"
    )
    assert result.exit_code == 0, result.stderr
    data = strict(result.stdout)
    label = columns[1]
    names = [0, 1, 2] if label == "code" else ["cat", "dog", "owl"]
    expected = sp.tune(
        "maximize macro(f1)",
        table[label].to_numpy(),
        table[["cat", "dog", "owl"]].to_numpy(),
        task=sp.Task.multiclass(names),
    )
    assert data["rule"] == expected.to_json()
    assert sum(data["data"]["classes"].values()) == 200


@pytest.mark.parametrize(
    "labels", [("--label", "label", "--label", "other"), ("--label", "label,other")]
)
def test_multilabel(run, scores, table, labels):
    result = run(
        "tune",
        scores,
        "--task",
        "multilabel",
        *labels,
        "--score",
        "score",
        "--score",
        "other_score",
        "-g",
        "maximize macro(f1)",
        "--json",
    )
    expected = sp.tune(
        "maximize macro(f1)",
        table[["label", "other"]].to_numpy(),
        table[["score", "other_score"]].to_numpy(),
        task=sp.Task.multilabel(["label", "other"]),
    )
    assert strict(result.stdout)["rule"] == expected.to_json()


# --- what cannot be had -------------------------------------------------------------------------


def test_infeasible_is_told_written_and_exits_with_3(run, scores, tmp_path):
    goal = "maximize recall subject to precision >= 0.99, recall >= 0.9"
    out = tmp_path / "rule.json"
    result = run("tune", scores, "--goal", goal, "--out", out)
    assert (result.exit_code, result.stderr) == (3, "")
    rule = sp.DecisionRule.load(out)
    assert not rule.feasible
    flat = " ".join(result.stdout.split())
    assert "NOT FEASIBLE precision >= 0.99, recall >= 0.9 can each be met, not together." in flat
    assert f"where {rule.operating_point()}" in flat
    assert "broken" in flat
    assert "✕ the nearest" in flat


def test_infeasible_json_exits_with_3(run, scores):
    result = run("tune", scores, "-g", "maximize recall subject to fpr <= 0, recall >= 1", "--json")
    assert result.exit_code == 3
    assert strict(result.stdout)["feasible"] is False


def test_infinite_threshold_is_a_string_in_json(run, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("label,score\n1,0.1\n0,0.9\n0,0.8\n")
    result = run("tune", path, "-g", "minimize fp", "--json")
    assert strict(result.stdout)["rule"]["threshold"] == "inf"


# --- mistakes -----------------------------------------------------------------------------------

MISTAKES = {
    "unknown metric": (
        ["--goal", "maximize recal subject to precision >= 0.9"],
        'unknown metric "recal": did you mean recall?\n'
        "  maximize recal subject to precision >= 0.9\n"
        "           ^^^^^",
    ),
    "impossible bound": (
        ["--goal", "maximize recall subject to precision >= 1.2"],
        '"precision >= 1.2" can never hold: precision lies in [0, 1]',
    ),
    "curve": (["--goal", "maximize auroc"], '"auroc" judges scores, and no operating point'),
    "label column": (
        ["--label", "lable", "--goal", GOAL],
        'there is no column "lable" (label). Did you mean "label"?',
    ),
    "score column": (
        ["--score", "scroe", "--goal", GOAL],
        'there is no column "scroe" (score). Did you mean "score"?',
    ),
    "group column": (["--group", "sx", "--goal", GOAL], 'there is no column "sx" (group).'),
    "three values": (
        ["--label", "code", "--goal", GOAL],
        'column "code" has 3 values (0, 1, 2); a binary task needs two. '
        "Say --positive 1 to set it against the rest.",  # the rarest
    ),
    "text label": (
        ["--label", "answer", "--goal", GOAL],
        'column "answer" holds "no", "yes": say which one is positive, for example --positive yes.',
    ),
    "positive": (
        ["--label", "answer", "--positive", "ja", "--goal", GOAL],
        '--positive ja does not occur in column "answer"',
    ),
    "text score": (["--score", "sex", "--goal", GOAL], 'column "sex" (score) has 200 values'),
    "weight": (
        ["--weight", "score", "--goal", GOAL],
        "the weight is -",
    ),
    "kind": (["--kind", "treshold", "--goal", GOAL], "--kind treshold: did you mean threshold?"),
    "per-group without group": (
        ["--kind", "per-group", "--goal", GOAL],
        "--kind per-group needs to know the group of each row: say --group",
    ),
    "by without kind": (
        ["--group", "sex", "--by", "sex", "--goal", GOAL],
        "--by sex belongs to --kind per-group",
    ),
    "probability": (
        ["--score-kind", "probability", "--goal", GOAL],
        "which is not a probability; say --score-kind logit or raw",
    ),
    "two scores": (
        ["--score", "score", "--score", "cat", "--goal", GOAL],
        "a binary task has one --score; 2 are given.",
    ),
    "one score for classes": (
        ["--task", "multiclass", "--goal", "maximize macro(f1)"],
        "a multiclass task has one score per class",
    ),
    "classes": (
        ["--task", "multiclass", "--scores", "cat,dog", "--classes", "a", "-g", "maximize f1"],
        "--classes names 1 class for 2 columns of scores",
    ),
    "by": (
        ["--kind", "per-group", "--group", "sex", "--by", "age", "--goal", GOAL],
        "--by age is not among --group sex",
    ),
    "column of the goal": (
        ["--goal", 'maximize f1 subject to gap(recall, by="sxe") <= 0.1'],
        'there is no column "sxe" (group). Did you mean "sex"?',
    ),
    "swapped": (
        ["--label", "other_score", "--score", "label", "--goal", GOAL],
        "are --label and --score swapped?",
    ),
    "task": (["--task", "multi-label", "--goal", GOAL], "did you mean multilabel?"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_mistakes_are_answered_by_a_sentence(run, scores, tmp_path, mistake):
    options, sentence = MISTAKES[mistake]
    out = tmp_path / "rule.json"
    result = run("tune", scores, *options, "--out", out)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("setpoint: ")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_row_of_a_bad_weight_is_counted_from_one(run, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score,w\n1,0.9,1\n0,0.1,-2\n")
    result = run("tune", path, "-g", "maximize f1", "--weight", "w")
    assert "the weight is -2 in data row 2;" in result.stderr


def test_missing_score(run, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score\n1,0.9\n0,nan\n1,0.8\n")
    result = run("tune", path, "-g", "maximize f1", "--json")
    assert result.exit_code == 2
    told = strict(result.stdout)
    assert told["kind"] == "DataError"
    assert f"setpoint: {told['error']}\n" == result.stderr
    assert 'column "score" (score) has 1 missing value, the first in data row 2' in result.stderr


def test_missing_file_names_the_near_one(run, scores):
    result = run("tune", scores.with_name("score.csv"), "-g", "maximize f1")
    assert result.exit_code == 2
    assert result.stderr.startswith("setpoint: there is no file")
    assert f'Did you mean "{scores}"?' in result.stderr


def test_one_class_only(run, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score\n1,0.9\n1,0.1\n")
    result = run("tune", path, "-g", "maximize f1")
    assert result.exit_code == 2
    assert "holds only 1" in result.stderr


# --- files --------------------------------------------------------------------------------------


def test_an_existing_file_is_kept_unless_forced(run, scores, tmp_path):
    out = tmp_path / "rule.json"
    out.write_text("mine")
    result = run("tune", scores, "--goal", GOAL, "--out", out)
    assert result.exit_code == 2
    assert f'"{out}" exists; say --force' in result.stderr
    assert out.read_text() == "mine"
    assert run("tune", scores, "--goal", GOAL, "--out", out, "--force").exit_code == 0
    assert sp.DecisionRule.load(out).feasible


def test_the_rows_are_never_overwritten(run, scores):
    before = scores.read_bytes()
    result = run("tune", scores, "--goal", GOAL, "--out", scores, "--force")
    assert result.exit_code == 2
    assert "is the file the rows come from" in result.stderr
    assert scores.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--out", "no/rule.json"], "there is no folder"),
        (["--out", "."], "is a folder"),
        (["--plot", "plot.jpg"], "must end in .svg, .png or .pdf"),
        (["--plot", "a.svg", "--out", "a.svg"], "is named for two files"),
    ],
)
def test_files_that_cannot_be_written(run, scores, tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    result = run("tune", scores, "--goal", "maximize f1", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_a_rule_without_a_trade_off_is_written_and_not_drawn(run, scores, tmp_path):
    out, plot = tmp_path / "rule.json", tmp_path / "a.svg"
    options = ("--kind", "per-group", "--group", "sex", "--out", out, "--plot", plot)
    result = run("tune", scores, "--goal", "maximize f1", *options, "--json")
    assert result.exit_code == 0
    assert strict(result.stdout)["written"] == {"rule": str(out)}
    assert result.stderr.count("\n") == 1
    assert "has no trade-off to draw" in result.stderr
    assert out.exists()
    assert not plot.exists()


def test_a_plot_that_cannot_be_written_leaves_nothing(run, scores, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("setpoint._core.files.os.replace", fail)
    result = run("tune", scores, "--goal", GOAL, "--plot", tmp_path / "a.svg")
    assert result.exit_code == 2
    assert "No space left on device. Nothing was written." in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


# --- the screen ---------------------------------------------------------------------------------

LONG = (
    'maximize recall subject to gap(positive_rate, by="sex") <= 0.3, precision >= 0.5, '
    'worst(recall, by="sex") >= 0.2, fpr <= 0.25'
)


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("goal", [GOAL, LONG, "maximize mcc"])
def test_nothing_overflows(run, scores, columns, goal):
    result = run("tune", scores, "--goal", goal, "--group", "sex", columns=columns)
    assert result.exit_code in (0, 3), result.stderr
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert not re.search(r"\x1b", result.stdout)
    assert not re.search(r"[ \t]+$", result.stdout, re.MULTILINE)


def test_tables_cut_no_letter_and_break_no_number(run, scores):
    for columns in (60, 80, 120):
        for goal in (LONG, "maximize recall subject to tp >= 1000, fpr <= 0.01"):
            result = run("tune", scores, "--goal", goal, columns=columns)
            rule = strict(run("tune", scores, "--goal", goal, "--json").stdout)["rule"]
            words = result.stdout.split()
            for held in rule["held"]:
                assert number(held["value"]) in words
                assert held["constraint"].split()[-1] in words
            assert ("reachable" in words) or columns == 60
            assert not any(
                "reachable".startswith(w) and len(w) > 3 for w in words if w != "reachable"
            )


def test_short_by_is_in_the_units_of_the_metric(run, scores):
    goal = "maximize precision subject to tp >= 150, fp <= 0"
    flat = run("tune", scores, "--goal", goal)
    assert flat.exit_code == 3
    row = next(line for line in flat.stdout.splitlines() if line.startswith(" tp "))
    value = float(row.split()[1])
    assert float(row.split()[5]) == 150 - value
    assert "costs" not in flat.stdout


def test_what_a_constraint_costs_is_explained(run, scores):
    shown = run("tune", scores, "--goal", GOAL).stdout
    assert "costs: without this constraint the objective would be better" in shown
    assert "short by" not in shown


# --- with proof ---------------------------------------------------------------------------------

PROVABLE = "maximize recall subject to precision >= 0.7"


@pytest.fixture
def parts(draw):
    """Reference rows and rows that nothing has seen, each as a file and a frame."""
    return draw("tune.csv", 300, 0), draw("fresh.csv", 600, 1)


def test_a_proof_is_that_of_the_library(run, parts, tmp_path):
    (tune, known), (fresh, rows) = parts
    out, cert = tmp_path / "rule.json", tmp_path / "cert.json"
    files = ("--out", out, "--certificate", cert)
    options = ("-g", PROVABLE, "--prove", 0.9, "--reference", tune)
    result = run("tune", fresh, *options, *files, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = strict(result.stdout)
    reference = (known["label"], known["score"])
    expected = sp.tune(PROVABLE, rows["label"], rows["score"], prove=0.9, reference=reference)
    assert data["rule"] == expected.to_json()
    assert data["verdict"] == "PROVEN"
    assert data["sentence"] == str(expected.certificate)
    assert data["reference"]["rows"] == 300
    assert "caution" not in data
    assert data["written"] == {"rule": str(out), "certificate": str(cert)}
    assert sp.DecisionRule.load(out).proven
    assert sp.Certificate.load(cert).to_json() == expected.certificate.to_json()
    result = run("certify", out, fresh)
    assert result.exit_code == 2
    assert "already used to choose the rule (tune)" in result.stderr


def test_screen_of_a_proof(run, parts, flat):
    (tune, _), (fresh, _) = parts
    result = run("tune", fresh, "-g", PROVABLE, "--prove", 0.95, "--reference", tune)
    assert result.exit_code == 0, result.stderr
    for words in (
        f"Goal {PROVABLE}",
        "Data 600 rows;",
        "Reference 300 rows;",
        "(search: fixed sequence:",
        "PROVEN at 95% confidence: precision >= 0.7",
        "Assumption",
        "Watch it",
        "monitor rule.json new.csv --label label --score score",
        "decide rule.json new.csv",
    ):
        assert words in flat(result)
    assert "check it on others" not in flat(result)
    assert "Check it" not in result.stdout


def test_what_is_not_proven_exits_with_3_and_is_written(run, draw, tmp_path, flat):
    tune, _ = draw("tune.csv", 300, 0)
    fresh, _ = draw("few.csv", 30, 2)  # fewer decided rows than any proof takes
    out = tmp_path / "rule.json"
    goal = "maximize recall subject to precision >= 0.9"
    options = ("--prove", 0.95, "--reference", tune, "--out", out)
    result = run("tune", fresh, "-g", goal, *options, columns=200)
    assert (result.exit_code, result.stderr) == (3, "")
    rule = sp.DecisionRule.load(out)
    assert rule.certificate is not None
    assert not rule.proven
    verdict = rule.certificate.verdict
    assert f"{verdict} at 95% confidence: precision >= 0.9" in flat(result)
    assert ("Labels needed" in flat(result)) is (verdict == "NOT PROVEN")
    assert f"plan {tune} --label label --score score --goal '{goal}'" in flat(result)


def test_groups_classes_and_labels_of_the_reference(run, parts, tmp_path):
    (tune, known), (fresh, rows) = parts
    goal = 'maximize accuracy subject to worst(recall, by="sex") >= 0.6'
    options = ("--prove", 0.95, "--reference", tune, "--json")
    data = strict(run("tune", fresh, "-g", goal, "--kind", "per-group", "--group", "sex",
                      *options).stdout)  # fmt: skip
    expected = sp.tune(
        goal,
        rows["label"],
        rows["score"],
        group={"sex": rows["sex"].to_numpy()},
        kind="per-group",
        prove=0.95,
        reference=(known["label"], known["score"], {"sex": known["sex"].to_numpy()}),
    )
    assert data["rule"]["thresholds"] == expected.to_json()["thresholds"]
    assert data["verdict"] == expected.certificate.verdict

    columns = ("--task", "multiclass", "--label", "animal", "--scores", "cat,dog,owl")
    goal = "maximize coverage subject to selective_risk <= 0.1"
    result = run("tune", fresh, *columns, "-g", goal, "--by", "rl_max", *options)
    data = strict(result.stdout)
    names = ["cat", "dog", "owl"]
    expected = sp.tune(
        goal,
        rows["animal"].to_numpy(),
        rows[names].to_numpy(),
        task=sp.Task.multiclass(names),
        by="rl_max",
        prove=0.95,
        reference=(known["animal"].to_numpy(), known[names].to_numpy()),
    )
    assert data["rule"] == expected.to_json()

    out = tmp_path / "rule.json"
    named = ("--label", "answer", "--positive", "yes", "--out", out)
    assert run("tune", fresh, "-g", PROVABLE, *named, *options).exit_code == 0
    rule = sp.DecisionRule.load(out)
    assert rule.task.positive == rule.certificate.point.task.positive == "yes"


def test_weights_of_a_proof(run, parts):
    (tune, _), (fresh, _) = parts
    options = ("-g", PROVABLE, "--prove", 0.95, "--reference", tune, "--weight", "weight")
    result = run("tune", fresh, *options)
    assert result.exit_code == 2
    assert "say --weight-bound X" in result.stderr
    assert run("tune", fresh, *options, "--weight-bound", 1).exit_code == 0


PROOF_MISTAKES = {
    "no reference": (["--prove", "0.95"], "--prove needs --reference FILE: other rows"),
    "percent": (["--prove", "95", "--reference", "tune.csv"], "did you mean 0.95?"),
    "no prove": (["--reference", "tune.csv"], "--reference belongs to --prove"),
    "no prove for weights": (["--weight-bound", "1"], "--weight-bound belongs to --prove"),
    "no prove for seen": (["--seen", "tune.csv"], "--seen belongs to --prove"),
    "no prove for a file": (["--certificate", "c.json"], "--certificate belongs to --prove"),
    "same rows": (
        ["--prove", "0.95", "--reference", "fresh.csv"],
        "the certify rows were already used as reference",
    ),
    "no file": (["--prove", "0.95", "--reference", "no.csv"], "there is no file"),
    "column": (
        ["--prove", "0.95", "--reference", "tune.csv", "--label", "lable"],
        'there is no column "lable"',
    ),
    "over the reference": (
        ["--prove", "0.95", "--reference", "tune.csv", "--certificate", "tune.csv", "--force"],
        "is the file the rows come from",
    ),
    "a confidence for a band": (
        ["--kind", "abstain", "--by", "sr_max"],
        "--by sr_max: a binary rule abstains in a band of scores; leave --by out",
    ),
}


@pytest.mark.parametrize("mistake", PROOF_MISTAKES, ids=str)
def test_mistakes_in_a_proof(run, parts, tmp_path, monkeypatch, mistake):
    options, sentence = PROOF_MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    result = run("tune", "fresh.csv", "-g", PROVABLE, "--out", "rule.json", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fresh.csv", "tune.csv"]


def test_a_proof_needs_a_promise_and_rows_that_are_not_used_up(run, parts, tmp_path):
    (tune, _), (fresh, _) = parts
    options = ("--prove", 0.95, "--reference", tune)
    result = run("tune", fresh, "-g", "maximize f1", *options)
    assert result.exit_code == 2
    assert "has no constraint to prove; add one, or leave --prove out" in result.stderr
    out = tmp_path / "rule.json"
    assert run("tune", fresh, "-g", PROVABLE, *options, "--out", out).exit_code == 0
    result = run("tune", fresh, "-g", PROVABLE, *options, "--seen", out)
    assert result.exit_code == 2
    assert "were already used before (--seen)" in result.stderr


def test_a_proof_has_no_trade_off_to_draw(run, parts, tmp_path):
    (tune, _), (fresh, _) = parts
    plot = tmp_path / "a.svg"
    options = ("--prove", 0.95, "--reference", tune, "--plot", plot)
    result = run("tune", fresh, "-g", PROVABLE, *options)
    assert result.exit_code == 0
    assert "a rule chosen with proof has no trade-off to draw" in result.stderr
    assert not plot.exists()


# --- abstaining ---------------------------------------------------------------------------------


def test_abstaining_rules(run, scores, table, flat):
    goal = "maximize coverage subject to selective_risk <= 0.1"
    data = strict(run("tune", scores, "-g", goal, "--json").stdout)
    assert data["rule"] == sp.tune(goal, table["label"], table["score"]).to_json()
    assert data["decided"]["rows"] + data["decided"]["undecided"] == 200
    assert "left undecided" in flat(run("tune", scores, "-g", goal))
    columns = ("--task", "multiclass", "--label", "animal", "--scores", "cat,dog,owl")
    more = ("--kind", "abstain", "--by", "sr_doctor", "--score-kind", "logit")
    data = strict(run("tune", scores, *columns, "-g", goal, *more, "--json").stdout)
    assert data["rule"]["confidence"] == "sr_doctor"
    result = run("tune", scores, *columns, "-g", goal, "--by", "sr_max")
    assert "--by sr_max takes a softmax" in result.stderr
    assert "say --score-kind logit, or go by" in result.stderr
    result = run("tune", scores, *columns, "-g", goal, "--by", "rl_geo_m")
    assert "go by rl_conf_m" in result.stderr
    result = run("tune", scores, *columns, "-g", goal, "--by", "rl_conf")
    assert "did you mean rl_conf_m?" in result.stderr


def test_ways_to_check_and_to_prove_are_named(run, scores, flat):
    said = flat(run("tune", scores, "-g", GOAL, columns=200))
    assert "Check it" in said
    assert "certify rule.json fresh.csv --label label --score score on rows that nothing" in said
    said = flat(run("tune", scores, "-g", GOAL, "--weight", "weight", columns=200))
    assert "--weight weight --weight-bound X" in said
    assert "certify" not in flat(run("tune", scores, "-g", "maximize f1", columns=200))
