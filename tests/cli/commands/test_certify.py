"""`setpoint certify`: the library's certificate, one touch of the rows, and an exit code."""

import json
import os

import pandas as pd
import pytest

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.8"


@pytest.fixture
def tuned(run, draw, tmp_path):
    """Tune on 400 rows with some options; the file of the rule."""

    def call(*options, goal=GOAL):
        out = tmp_path / "rule.json"
        if not (tmp_path / "tune.csv").exists():
            draw("tune.csv", 400, 0)
        result = run("tune", tmp_path / "tune.csv", "-g", goal, *options, "--out", out, "--force")
        assert result.exit_code == 0, result.stderr
        return out

    return call


@pytest.fixture
def fresh(draw):
    """1,000 rows that nothing has seen."""
    return draw("fresh.csv", 1000, 1)


EASY = "maximize recall subject to precision >= 0.7"
BOLD = "maximize recall subject to precision >= 0.99"


def test_json_is_the_certificate_of_the_library(run, tuned, fresh, tmp_path):
    path, rows = fresh
    rule_file = tuned()
    rule = sp.DecisionRule.load(rule_file)
    result = run("certify", rule_file, path, "--goal", EASY, "--confidence", 0.9, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    expected = sp.certify(EASY, rule, rows["label"], rows["score"], confidence=0.9)
    assert data["certificate"] == expected.to_json()
    assert data["sentence"] == str(expected)
    assert data["verdict"] == "PROVEN"
    assert data["data"]["rows"] == 1000
    out = tmp_path / "rule.certificate.json"
    assert data["written"] == {"certificate": str(out), "rule": str(rule_file)}
    assert sp.Certificate.load(out).to_json() == expected.to_json()


def test_screen_of_a_proof(run, tuned, fresh, flat, tmp_path):
    rule_file = tuned()
    goal = "maximize recall subject to precision >= 0.7, fpr <= 0.3"
    out = ("--out", tmp_path / "cert.json")
    result = run("certify", rule_file, fresh[0], "-g", goal, *out, columns=200)
    assert result.exit_code == 0, result.stderr
    proof = sp.Certificate.load(tmp_path / "cert.json")
    said = flat(result)
    low, high = proof.interval
    for words in (
        f"Goal {goal}",
        "Data 1,000 rows;",
        f"Operating point {proof.point.describe()}",
        f"maximize recall {proof.value:.4g} – {low:.4g} to {high:.4g} – –",
        f"{proof.findings[0].evidence[0]} PROVEN",
        f">= 0.7 at least {proof.findings[0].bound:.4g}",
        f"<= 0.3 at most {proof.findings[1].bound:.4g}",
        "PROVEN at 95% confidence: precision >= 0.7, fpr <= 0.3",
        "Bounds by exact binomial",
        f"Assumption {proof.assumption}",
        "now remembers these rows",
        "Decided",
        f"monitor {tmp_path / 'cert.json'} labelled.csv --label label --score score",
    ):
        assert words in said
    assert "Labels needed" not in said


def test_not_proven_says_what_is_needed(run, tuned, draw, flat):
    path, _ = draw("few.csv", 60, 5)
    rule_file = tuned(goal="maximize recall subject to precision >= 0.9")
    result = run("certify", rule_file, path, columns=200)
    assert (result.exit_code, result.stderr) == (3, "")
    proof = sp.Certificate.load(rule_file.with_suffix(".certificate.json"))
    assert proof.verdict == "NOT PROVEN"
    said = flat(result)
    assert f"Labels needed {proof.findings[0].way_out()}" in said
    assert f"plan tune.csv --label label --score score --rule {rule_file}" in said


def test_refuted(run, tuned, draw, flat):
    path, _ = draw("bad.csv", 1000, 6, shift=0.5)
    rule_file = tuned()
    result = run("certify", rule_file, path)
    assert result.exit_code == 3
    assert "REFUTED at 95% confidence: precision >= 0.8" in flat(result)
    assert f"tune fresh.csv --label label --score score --goal '{GOAL}' --prove" in flat(result)
    told = json.loads(run("certify", tuned(), path, "--json", "--force").stdout)
    assert told["verdict"] == "REFUTED"
    assert told["needed"] is None


# --- one touch ----------------------------------------------------------------------------------


def test_the_rule_remembers_the_rows(run, tuned, fresh, draw, tmp_path):
    path, rows = fresh
    rule_file = tuned()
    before = sp.DecisionRule.load(rule_file)
    assert run("certify", rule_file, path, "-g", EASY).exit_code == 0
    after = sp.DecisionRule.load(rule_file)
    assert after == before
    assert len(after.touched) == 1
    more, shuffled = tmp_path / "more.csv", tmp_path / "shuffled.csv"
    pd.concat([rows, draw("x.csv", 500, 9)[1]]).to_csv(more, index=False)
    rows.sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    kept = {p: p.read_bytes() for p in tmp_path.iterdir()}
    for again in (path, shuffled, more):
        result = run("certify", rule_file, again, "-g", EASY, "--out", tmp_path / "second.json")
        assert result.exit_code == 2
        assert "were already used to certify this rule" in result.stderr
        assert "tune --prove 0.95 --reference FILE" in result.stderr
        assert "prove=" not in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == kept
    other = draw("other.csv", 1000, 10)[0]
    assert run("certify", rule_file, other, "-g", EASY, "--force").exit_code == 0
    assert len(sp.DecisionRule.load(rule_file).touched) == 2


def test_rows_of_another_process_are_remembered(run, process, tuned, fresh):
    rule_file, (path, _) = tuned(), fresh
    assert run("certify", rule_file, path, "-g", EASY).exit_code == 0
    result = process("certify", rule_file, path, "-g", EASY, "--force")
    assert result.returncode == 2
    assert "already used" in result.stderr


def test_rows_the_rule_was_chosen_on(run, tuned, tmp_path):
    result = run("certify", tuned(), tmp_path / "tune.csv")
    assert result.exit_code == 2
    assert "were already used to choose the rule (tune)" in result.stderr
    assert not (tmp_path / "rule.certificate.json").exists()


def test_rows_that_others_have_seen(run, tuned, fresh, tmp_path):
    path, _ = fresh
    rule_file = tuned()
    first = tmp_path / "first.json"
    assert run("certify", rule_file, path, "-g", EASY, "--out", first).exit_code == 0
    used = tmp_path / "used.json"
    rule_file.rename(used)
    again = tuned()
    for seen in (first, used):
        result = run("certify", again, path, "-g", EASY, "--seen", seen)
        assert result.exit_code == 2
        assert "were already used before (--seen)" in result.stderr
    result = run("certify", again, path, "-g", EASY, "--seen", tmp_path / "tune.csv")
    assert "is not a certificate or a rule" in result.stderr


# --- files --------------------------------------------------------------------------------------


def test_a_rule_that_cannot_be_written_fails_before_the_rows_are_read(
    run, tuned, tmp_path, monkeypatch
):
    rule_file = tuned()
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    result = run("certify", rule_file, tmp_path / "no.csv")
    assert result.exit_code == 2
    assert f'cannot write "{rule_file}", which has to remember the rows' in result.stderr


@pytest.mark.parametrize("fails_at", [1, 2])
def test_both_files_are_written_or_none(run, tuned, fresh, tmp_path, monkeypatch, fails_at):
    rule_file = tuned()
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    calls, replace = [], os.replace

    def fail(*args):
        calls.append(args)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        replace(*args)

    monkeypatch.setattr("setpoint._core.files.os.replace", fail)
    result = run("certify", rule_file, fresh[0], "-g", EASY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No space left on device" in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_existing_certificate_is_kept_unless_forced(run, tuned, fresh, tmp_path):
    rule_file, out = tuned(), tmp_path / "rule.certificate.json"
    out.write_text("mine")
    result = run("certify", rule_file, fresh[0], "-g", EASY)
    assert result.exit_code == 2
    assert "exists; say --force" in result.stderr
    assert out.read_text() == "mine"
    assert sp.DecisionRule.load(rule_file).touched == []
    assert run("certify", rule_file, fresh[0], "-g", EASY, "--force").exit_code == 0


def test_a_link_to_a_rule_stays_a_link(run, tuned, fresh, tmp_path):
    rule_file = tuned()
    link = tmp_path / "link.json"
    link.symlink_to(rule_file)
    assert run("certify", link, fresh[0], "-g", EASY).exit_code == 0
    assert link.is_symlink()
    assert len(sp.DecisionRule.load(rule_file).touched) == 1


# --- other tasks --------------------------------------------------------------------------------


def test_the_positive_label_goes_into_the_certificate(run, tuned, fresh, tmp_path):
    path, rows = fresh
    rule_file = tuned("--label", "answer", "--positive", "yes")
    rule = sp.DecisionRule.load(rule_file)
    result = run("certify", rule_file, path, "--label", "answer", "-g", EASY, "--json")
    assert result.exit_code == 0, result.stderr
    proof = sp.Certificate.load(tmp_path / "rule.certificate.json")
    assert proof.point.task.positive == "yes"
    expected = sp.certify(EASY, rule, rows["answer"], rows["score"])
    assert proof.to_json() == expected.to_json()


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_a_rule_of_zeros_and_ones_on_rows_of_text(run, fresh, draw, tmp_path, positive):
    rule_file, (_, known) = tmp_path / "rule.json", draw("tune.csv", 400, 0)
    side = 1 if positive == "yes" else -1
    sp.tune(GOAL, known["answer"] == positive, side * known["score"]).save(rule_file)
    path, rows = fresh
    rows.assign(score=side * rows["score"]).to_csv(path, index=False)
    options = ("--label", "answer", "--positive", positive, "-g", EASY)
    assert run("certify", rule_file, path, *options).exit_code == 0
    cert = tmp_path / "rule.certificate.json"
    assert sp.Certificate.load(cert).point.task.positive == positive
    new, more = draw("new.csv", 300, 12)
    more.assign(score=side * more["score"]).to_csv(new, index=False)
    result = run("monitor", cert, new, "--label", "answer")
    assert result.exit_code == 0, result.stderr


def test_groups_weights_and_prevalence(run, tuned, fresh, flat):
    path, rows = fresh
    goal = 'maximize recall subject to gap(recall, by="sex") <= 0.2'
    result = run("certify", tuned(), path, "-g", goal, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["data"]["groups"] == ["sex"]
    shown = flat(run("certify", tuned(), path, "-g", goal, "--force"))
    assert 'gap(recall, by="sex"): exact binomial on two groups of rows' in shown

    rule_file = tuned()
    rule = sp.DecisionRule.load(rule_file)
    weighted = ("--weight", "weight", "--weight-bound", "1", "-g", EASY, "--json", "--force")
    told = json.loads(run("certify", rule_file, path, *weighted).stdout)
    expected = sp.certify(
        EASY, rule, rows["label"], rows["score"], sample_weight=rows["weight"], weight_bound=1
    )
    assert told["certificate"] == expected.to_json()

    more = ("--prevalence", "0.3,0.5", "-g", EASY, "--force")
    result = run("certify", tuned(), path, *more)
    assert result.exit_code == 0, result.stderr
    assert "any share of positives from 30% to 50%" in flat(result)
    told = json.loads(run("certify", tuned(), path, *more, "--json").stdout)
    assert told["certificate"]["prevalence"] == [0.3, 0.5]


def test_multiclass(run, tuned, fresh, flat):
    path, rows = fresh
    columns = ("--label", "animal", "--scores", "cat,dog,owl")
    goal = 'maximize accuracy subject to worst(recall, by="class") >= 0.8'
    rule_file = tuned("--task", "multiclass", *columns, goal=goal)
    rule = sp.DecisionRule.load(rule_file)
    result = run("certify", rule_file, path, "--label", "animal", "--json")
    assert result.exit_code == 0, result.stderr
    scores = rows[["cat", "dog", "owl"]].to_numpy()
    expected = sp.certify(goal, rule, rows["animal"].to_numpy(), scores)
    assert json.loads(result.stdout)["certificate"] == expected.to_json()
    shown = run("certify", tuned("--task", "multiclass", *columns, goal=goal), path, *columns[:2],
                "--force")  # fmt: skip
    assert all(str(e) in flat(shown) for e in expected.findings[0].evidence)
    assert "--scores cat,dog,owl" in flat(shown)


def test_multilabel(run, tuned, fresh):
    columns = ("--label", "label,other", "--scores", "score,other_score")
    goal = "maximize macro(f1) subject to macro(recall) >= 0.6"
    rule_file = tuned("--task", "multilabel", *columns, goal=goal)
    result = run("certify", rule_file, fresh[0], "--scores", "score,other_score")
    assert result.exit_code in (0, 3), result.stderr
    assert "macro(recall)" in result.stdout


def test_an_abstaining_rule(run, tuned, fresh, flat):
    rule_file = tuned(goal="maximize coverage subject to selective_risk <= 0.02")
    result = run("certify", rule_file, fresh[0], "-g", "maximize coverage subject to "
                 "selective_risk <= 0.1")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "left undecided" in flat(result)


# --- mistakes -----------------------------------------------------------------------------------

MISTAKES = {
    "no column": (["--label", "lable"], 'there is no column "lable" (label). Did you mean "label"'),
    "percent": (["--confidence", "95"], "did you mean 0.95?"),
    "prevalence": (
        ["--prevalence", "2"],
        "--prevalence is a share of positives, or two of them (LOW,HIGH), between 0 and 1; got 2",
    ),
    "prevalences": (["--prevalence", "0.5,0.1"], "--prevalence is a share of positives"),
    "no prevalence": (["--prevalence", "low"], "--prevalence is a share of positives, or two,"),
    "no promise": (["-g", "maximize recall"], "promises nothing that could be proven"),
    "weight": (["--weight", "weight"], "say --weight-bound X"),
    "weight bound alone": (["--weight-bound", "2"], "--weight-bound belongs to --weight; leave it"),
    "heavy": (
        ["--weight", "weight", "--weight-bound", "0.1"],
        "more than --weight-bound 0.1",
    ),
    "both shifts": (
        ["--weight", "weight", "--weight-bound", "1", "--prevalence", "0.2"],
        "--prevalence and --weight do not go together",
    ),
    "goal": (["-g", "maximize recal"], 'unknown metric "recal": did you mean recall?'),
    "two scores": (["--scores", "cat,dog"], "takes one --score"),
    "seen": (["--seen", "no.json"], 'cannot read "no.json"'),
    "over the rule": (["--out", "rule.json", "--force"], "is read, and would be overwritten"),
    "over the rows": (["--out", "fresh.csv", "--force"], "is the file the rows come from"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_mistakes_use_up_nothing(run, tuned, fresh, tmp_path, monkeypatch, mistake):
    options, sentence = MISTAKES[mistake]
    rule_file = tuned()
    monkeypatch.chdir(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    result = run("certify", rule_file, fresh[0], *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_what_is_no_rule_and_no_file(run, tuned, fresh, tmp_path):
    rule_file = tuned()
    cert = tmp_path / "rule.certificate.json"
    assert run("certify", rule_file, fresh[0], "-g", EASY).exit_code == 0
    result = run("certify", cert, fresh[0])
    assert result.exit_code == 2
    assert f'"{cert}" is a certificate, and a rule is needed' in result.stderr
    assert "there is no file" in run("certify", rule_file, "no.csv", "--force").stderr
    result = run("certify", "no.json", fresh[0], "--json")
    assert json.loads(result.stdout)["kind"] == "FileError"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, tuned, fresh, columns):
    goal = 'maximize recall subject to precision >= 0.7, gap(positive_rate, by="sex") <= 0.3'
    result = run("certify", tuned(), fresh[0], "-g", goal, columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert "PROVEN" in result.stdout


def test_the_ways_that_are_named_work(run, tuned, fresh, draw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw("labelled.csv", 300, 12)
    tuned()
    shown = run("tune", "tune.csv", "-g", GOAL, "--out", "again.json", columns=200).stdout
    line = next(line for line in shown.splitlines() if "Prove it" in line)
    args = line.split(" certify ")[1].split()
    shown = run("certify", *args, "-g", EASY, columns=200)
    assert shown.exit_code == 0
    line = next(line for line in shown.stdout.splitlines() if "Watch it" in line)
    assert run("monitor", *line.split(" monitor ")[1].split()).exit_code == 0
