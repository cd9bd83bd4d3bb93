"""`setpoint plan`: the library's plan, what so many rows buy, and what none would."""

import json

import pytest

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.9"


@pytest.fixture
def rows(draw):
    """500 labelled rows."""
    return draw("tune.csv", 500, 0, shift=2.0)


def test_json_is_the_plan_of_the_library(run, rows):
    path, frame = rows
    options = ("--confidence", 0.9, "--power", 0.7, "--rows", 1000)
    result = run("plan", path, "--goal", GOAL, *options, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    expected = sp.plan(GOAL, frame["label"], frame["score"], confidence=0.9, power=0.7)
    assert {name: data[name] for name in expected.to_json()} == expected.to_json()
    best = expected.best_with(1000)
    assert best is not None
    assert (data["best"]["rows"], data["best"]["value"]) == (best.rows, best.value)
    assert data["sentence"] == str(expected)
    assert data["data"]["rows"] == 500


def test_screen(run, rows, flat):
    path, frame = rows
    result = run("plan", path, "--goal", GOAL, "--rows", 1000)
    assert result.exit_code == 0, result.stderr
    made = sp.plan(GOAL, frame["label"], frame["score"])
    need, best = made.needs[0], made.best_with(1000)
    assert best is not None
    said = flat(result)
    for words in (
        f"Goal {GOAL}",
        "Data 500 rows;",
        f"Operating point {made.point} (as tune chooses it on these rows)",
        f"precision >= 0.9 {need.value:.4g}",
        f"about {need.of_them:,} rows decided positive",
        "To prove it at 95% confidence with power 0.8",
        f"{made.options[0].rows:,} {made.options[0].value:.4g} {made.options[0].point}",
        f"With 1,000 recall {best.value:.4g}, where {best.point}",
        "or, with the rule above, precision >= 0.",
        "Caution",
    ):
        assert words in said


def test_a_rule_brings_its_goal_task_and_columns(run, rows, tmp_path, flat):
    path, frame = rows
    rule_file = tmp_path / "rule.json"
    named = ("--label", "answer")
    run("tune", path, *named, "--positive", "yes", "-g", GOAL, "--out", rule_file)
    result = run("plan", path, *named, "--rule", rule_file, "--json")
    assert result.exit_code == 0, result.stderr
    rule = sp.DecisionRule.load(rule_file)
    expected = sp.plan(GOAL, frame["answer"], frame["score"], rule=rule)
    assert json.loads(result.stdout)["needs"] == expected.to_json()["needs"]
    assert "(as tune chooses" not in flat(run("plan", path, *named, "--rule", rule_file))
    other = "maximize recall subject to fpr <= 0.2"
    told = json.loads(run("plan", path, *named, "--rule", rule_file, "-g", other, "--json").stdout)
    assert told["goal"] == other


def test_multiclass_groups_and_abstaining(run, rows, flat):
    path, frame = rows
    columns = ("--task", "multiclass", "--label", "animal", "--scores", "cat,dog,owl")
    goal = 'maximize accuracy subject to worst(recall, by="class") >= 0.6'
    result = run("plan", path, *columns, "--kind", "argmax", "-g", goal, "--json")
    assert result.exit_code == 0, result.stderr
    scores = frame[["cat", "dog", "owl"]].to_numpy()
    task = sp.Task.multiclass(["cat", "dog", "owl"])
    expected = sp.plan(goal, frame["animal"].to_numpy(), scores, task=task, kind="argmax")
    assert json.loads(result.stdout)["needed"] == expected.needed

    goal = 'maximize recall subject to gap(recall, by="sex") <= 0.2'
    told = json.loads(run("plan", path, "-g", goal, "--json").stdout)
    assert told["data"]["groups"] == ["sex"]
    goal = "maximize coverage subject to selective_risk <= 0.05"
    result = run("plan", path, "-g", goal)
    assert result.exit_code == 0, result.stderr
    assert "rows decided at all" in flat(result)


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_plot_is_written(run, rows, tmp_path, kind, start):
    plot = tmp_path / f"plan.{kind}"
    result = run("plan", rows[0], "-g", GOAL, "--plot", plot, "--json")
    assert json.loads(result.stdout)["written"] == {"plot": str(plot)}
    assert plot.read_bytes().startswith(start)
    result = run("plan", rows[0], "-g", GOAL, "--plot", plot)
    assert "exists; say --force" in result.stderr


def test_what_cannot_be_had_exits_with_3(run, rows, flat):
    path, _ = rows
    result = run("plan", path, "-g", GOAL, "--rows", 10)
    assert result.exit_code == 3
    assert "With 10 none of the rules could be proven" in flat(result)
    result = run("plan", path, "-g", "maximize recall subject to precision == 0.9")
    assert result.exit_code == 3
    assert "none an equality cannot be proven from a sample" in flat(result)
    assert json.loads(run("plan", path, "-g", GOAL, "--rows", 10, "--json").stdout)["best"] is None


MISTAKES = {
    "no goal": ([], "say what is wanted: --goal"),
    "no promise": (["-g", "maximize recall"], "has no constraint to prove; add one to plan for"),
    "percent": (["-g", GOAL, "--confidence", "95"], "did you mean 0.95?"),
    "power": (["-g", GOAL, "--power", "80"], "power is a number from 0.5 to below 1"),
    "rows": (["-g", GOAL, "--rows", "0"], "--rows is a number of fresh rows, 1 or more; got 0"),
    "column": (["-g", GOAL, "--score", "scroe"], 'Did you mean "score"?'),
    "task": (["-g", GOAL, "--task", "multi-label"], "did you mean multilabel?"),
    "top-k": (["-g", "maximize precision_at_k(5) subject to precision >= 0.5"], "proves nothing"),
    "plot": (["-g", GOAL, "--plot", "plan.jpg"], "must end in .svg, .png or .pdf"),
    "rule": (["--rule", "no.json"], 'cannot read "no.json"'),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_mistakes_are_answered_by_a_sentence(run, rows, tmp_path, monkeypatch, mistake):
    options, sentence = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    result = run("plan", rows[0], *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["tune.csv"]


def test_a_rule_says_what_it_is_itself(run, rows, tmp_path):
    rule_file = tmp_path / "rule.json"
    run("tune", rows[0], "-g", GOAL, "--out", rule_file)
    result = run("plan", rows[0], "--rule", rule_file, "--score-kind", "logit")
    assert result.exit_code == 2
    assert "--score-kind is as the rule has it; leave it out beside --rule" in result.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, rows, columns):
    goal = "maximize recall subject to precision >= 0.8, fpr <= 0.2, recall == 0.5"
    result = run("plan", rows[0], "-g", goal, columns=columns)
    assert result.exit_code in (0, 3), result.stderr
    assert max(map(len, result.stdout.splitlines())) <= columns
