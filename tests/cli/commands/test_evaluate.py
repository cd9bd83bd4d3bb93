"""`setpoint evaluate`: the figures of the library on other rows, and an exit code for a break."""

import json
from dataclasses import replace

import pytest

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.8"


@pytest.fixture
def tuned(run, scores, tmp_path):
    """Tune with some options; the file of the rule."""

    def call(*options):
        out = tmp_path / "rule.json"
        result = run("tune", scores, *options, "--out", out, "--force")
        assert result.exit_code == 0, result.stderr
        return out

    return call


@pytest.fixture
def held(table, tmp_path):
    """Other rows: half of the table, the labels of some of them turned."""
    other = table.iloc[100:].reset_index(drop=True)
    other.loc[:30, "label"] = 1 - other.loc[:30, "label"]
    other["answer"] = other["label"].map({1: "yes", 0: "no"})
    path = tmp_path / "held.csv"
    other.to_csv(path, index=False)
    return path, other


def test_json_is_the_evaluation_of_the_library(run, tuned, held):
    rule_file, (path, rows) = tuned("-g", GOAL), held
    result = run("evaluate", rule_file, path, "--json")
    found = sp.evaluate(sp.DecisionRule.load(rule_file), rows["label"], rows["score"])
    data = json.loads(result.stdout)
    assert data["sentence"] == str(found)
    assert (data["value"], data["holds"]) == (found.value, found.holds)
    assert data["constraints"][0]["value"] == found.kept[0].value
    assert data["decided"]["of"] == 100
    assert result.exit_code == 3
    assert not found.holds


def test_screen_of_a_broken_constraint(run, tuned, held):
    result = run("evaluate", tuned("-g", GOAL), held[0])
    assert result.exit_code == 3
    flat = " ".join(result.stdout.split())
    for said in (f"Goal {GOAL}", "100 rows;", "Operating point score >=", ">= 0.8 BROKEN"):
        assert said in flat
    assert "Decided" in flat
    assert "precision >= 0.8 BROKEN (" in flat


def test_all_holds_on_the_same_rows(run, tuned, scores):
    result = run("evaluate", tuned("-g", GOAL), scores)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "BROKEN" not in result.stdout


def test_the_rule_knows_its_positive_label(run, tuned, held):
    path, _ = held
    plain = json.loads(run("evaluate", tuned("-g", GOAL), path, "--json").stdout)
    rule_file = tuned("-g", GOAL, "--label", "answer", "--positive", "yes")
    named = json.loads(run("evaluate", rule_file, path, "--label", "answer", "--json").stdout)
    assert named["sentence"] == plain["sentence"]
    assert named["data"]["positive"] == "yes"
    result = run("evaluate", rule_file, path, "--label", "answer", "--positive", "no")
    assert result.exit_code == 2
    assert "--positive no contradicts the rule" in result.stderr


def test_labels_of_every_kind_are_read_as_the_rule_has_them(run, tuned, held, scores, table):
    path, rows = held
    for file, frame in ((path, rows), (scores, table)):
        ones = frame["label"] == 1
        frame.assign(truth=ones, two=frame["label"] + 1).to_csv(file, index=False)
    for column, positive in (("truth", "false"), ("two", "2"), ("answer", "no")):
        named = ("--label", column)
        rule_file = tuned("-g", "maximize f1", *named, "--positive", positive)
        told = json.loads(run("evaluate", rule_file, path, *named, "--json").stdout)
        y = rows["label"] if column == "two" else 1 - rows["label"]
        rule = sp.DecisionRule.load(rule_file)
        plain = replace(rule, point=replace(rule.point, task=replace(rule.task, positive=None)))
        assert told["value"] == sp.evaluate(plain, y, rows["score"]).value


def test_groups_of_the_goal_and_of_the_rule_are_found(run, tuned, held):
    goal = 'maximize accuracy subject to gap(recall, by="sex") <= 0.9'
    rule_file = tuned("-g", goal, "--kind", "per-group", "--group", "age")
    path, rows = held
    data = json.loads(run("evaluate", rule_file, path, "--weight", "weight", "--json").stdout)
    found = sp.evaluate(
        sp.DecisionRule.load(rule_file),
        rows["label"],
        rows["score"],
        sample_weight=rows["weight"],
        group={"sex": rows["sex"].to_numpy(), "age": rows["age"].to_numpy()},
    )
    assert data["sentence"] == str(found)
    assert data["data"]["weight"] == "weight"


@pytest.mark.parametrize(("label", "classes"), [("animal", ()), ("code", ("--classes", "0,1,2"))])
def test_multiclass(run, tuned, held, label, classes):
    columns = ("--label", label, "--scores", "cat,dog,owl")
    rule_file = tuned("--task", "multiclass", *columns, *classes, "-g", "maximize macro(f1)")
    path, rows = held
    result = run("evaluate", rule_file, path, *columns, "--json")
    assert result.exit_code == 0, result.stderr
    scores = rows[["cat", "dog", "owl"]].to_numpy()
    found = sp.evaluate(sp.DecisionRule.load(rule_file), rows[label].to_numpy(), scores)
    assert json.loads(result.stdout)["sentence"] == str(found)


def test_multilabel_and_top_k(run, tuned, held):
    path, rows = held
    columns = ("--label", "label,other", "--scores", "score,other_score")
    rule_file = tuned("--task", "multilabel", *columns, "-g", "maximize macro(f1)")
    result = run("evaluate", rule_file, path, "--scores", "score,other_score", "--json")
    y, scores = rows[["label", "other"]].to_numpy(), rows[["score", "other_score"]].to_numpy()
    found = sp.evaluate(sp.DecisionRule.load(rule_file), y, scores)
    assert json.loads(result.stdout)["sentence"] == str(found)
    rule_file = tuned("-g", 'maximize precision_at_k(3, by="query")', "--query", "query")
    result = run("evaluate", rule_file, path, "--query", "query")
    assert result.exit_code == 0, result.stderr
    assert "the 3 highest scores of each query" in result.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--scores", "dog,cat,owl"], "say --scores cat,dog,owl"),
        (["--scores", "dog,cat"], "this rule needs one score per class (cat, dog, owl)"),
    ],
)
def test_scores_that_do_not_fit_the_rule(run, tuned, held, options, sentence):
    columns = ("--label", "animal", "--scores", "cat,dog,owl")
    rule_file = tuned("--task", "multiclass", *columns, "-g", "maximize macro(f1)")
    result = run("evaluate", rule_file, held[0], "--label", "animal", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_what_is_no_rule(run, scores):
    result = run("evaluate", scores, scores)
    assert result.exit_code == 2
    assert "is not a rule" in result.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, tuned, held, columns):
    result = run("evaluate", tuned("-g", GOAL), held[0], columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_the_way_tune_names_works(run, scores, tmp_path, held):
    shown = run("tune", scores, "-g", GOAL, "--out", tmp_path / "rule.json", columns=200).stdout
    line = next(line for line in shown.splitlines() if "Check it" in line)
    _, args = line.split(" evaluate ")
    args = [str(held[0]) if a == "held.csv" else a for a in args.split()]
    assert run("evaluate", *args).exit_code == 3


def test_the_way_tune_names_to_decide_works(run, scores, tmp_path):
    shown = run("tune", scores, "-g", GOAL, "--out", tmp_path / "rule.json", columns=200).stdout
    line = next(line for line in shown.splitlines() if "Use it" in line)
    args = line.split(" decide ")[1].split()
    places = {"new.csv": scores, "decided.csv": tmp_path / "decided.csv"}
    assert run("decide", *(places.get(a, a) for a in args)).exit_code == 0


def test_abstaining_rules(run, tuned, held, flat):
    path, rows = held
    goal = "maximize coverage subject to selective_risk <= 0.1"
    rule_file = tuned("-g", goal)
    rule = sp.DecisionRule.load(rule_file)
    result = run("evaluate", rule_file, path, "--json")
    data = json.loads(result.stdout)
    assert data["sentence"] == str(sp.evaluate(rule, rows["label"], rows["score"]))
    decided = rule.decide(rows["score"].to_numpy())
    right = int((decided == rows["label"]).sum())
    many = int((decided != -1).sum())
    assert data["decided"] == {
        "rows": many,
        "of": 100,
        "right": right,
        "wrong": many - right,
        "undecided": 100 - many,
        "few": many < 30,
    }
    assert data["certificate"] is None
    said = flat(run("evaluate", rule_file, path))
    assert f"Decided {many} of 100 rows: {right} right," in said
    assert f"{100 - many} left undecided" in said

    columns = ("--label", "animal", "--scores", "cat,dog,owl")
    rule_file = tuned("--task", "multiclass", *columns, "--kind", "abstain", "-g", goal)
    rule = sp.DecisionRule.load(rule_file)
    data = json.loads(run("evaluate", rule_file, path, "--label", "animal", "--json").stdout)
    scores = rows[["cat", "dog", "owl"]].to_numpy()
    assert data["sentence"] == str(sp.evaluate(rule, rows["animal"].to_numpy(), scores))
    assert data["decided"]["undecided"] == int(rule.abstains(scores).sum())


def test_a_rule_with_a_certificate_names_the_monitor(run, draw, tmp_path, flat):
    tune, fresh = draw("tune.csv", 300, 0)[0], draw("fresh.csv", 600, 1)[0]
    new, rule_file = draw("new.csv", 300, 2)[0], tmp_path / "rule.json"
    goal = ("-g", "maximize recall subject to precision >= 0.7", "--out", rule_file)
    run("tune", fresh, "--prove", 0.95, "--reference", tune, *goal)
    result = run("evaluate", rule_file, new, columns=200)
    assert result.exit_code == 0, result.stderr
    assert "Certificate PROVEN at 95% on 600 rows (fingerprint" in flat(result)
    assert "what stands here is a figure, and no proof" in flat(result)
    line = next(line for line in result.stdout.splitlines() if "Watch it" in line)
    args = line.split(" monitor ")[1].split()[:-2]
    assert run("monitor", *(new if a == "labelled.csv" else a for a in args)).exit_code == 0
    assert json.loads(run("evaluate", rule_file, new, "--json").stdout)["certificate"] == "PROVEN"


def test_a_certificate_is_no_rule(run, tuned, held, draw, tmp_path):
    rule_file, out = tuned("-g", GOAL), tmp_path / "cert.json"
    run("certify", rule_file, draw("fresh.csv", 300, 1)[0], "--out", out)
    result = run("evaluate", out, held[0])
    assert result.exit_code == 2
    assert f'"{out}" is a certificate, and a rule is needed' in result.stderr
