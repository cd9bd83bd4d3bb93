"""`setpoint decide`: every column as it came, and one more as the library decides."""

import json

import numpy as np
import pandas as pd
import pytest

import setpoint as sp


@pytest.fixture
def tuned(run, scores, tmp_path):
    """Tune with some options; the rule and its file."""

    def call(*options):
        out = tmp_path / "rule.json"
        result = run("tune", scores, *options, "--out", out)
        assert result.exit_code == 0, result.stderr
        return out, sp.DecisionRule.load(out)

    return call


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_kept_and_one_is_added(run, tuned, scores, table, tmp_path, kind):
    rule_file, rule = tuned("-g", "maximize f1")
    out = tmp_path / f"decided.{kind}"
    result = run("decide", rule_file, scores, "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    written = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
    expected = np.asarray(rule.decide(table["score"].to_numpy()))
    assert written["decided"].tolist() == expected.astype(int).tolist()
    assert written.columns.tolist() == [*table.columns, "decided"]
    assert f"{expected.sum()} of 200 rows" in result.stdout
    names = {"scores.csv", "rule.json", out.name}
    assert {p.name for p in tmp_path.iterdir()} == names


def test_text_goes_out_as_it_came(run, tuned, tmp_path):
    rule_file, _ = tuned("-g", "maximize f1")
    new, out = tmp_path / "new.csv", tmp_path / "decided.csv"
    new.write_text('id,score,note\n007,9.50,NA\n008,-9.0,"a, b"\n')
    assert run("decide", rule_file, new, "--out", out).exit_code == 0
    assert out.read_text() == 'id,score,note,decided\n007,9.50,NA,1\n008,-9.0,"a, b",0\n'


def test_json(run, tuned, scores, tmp_path):
    rule_file, rule = tuned("-g", "maximize f1")
    out = tmp_path / "decided.csv"
    data = json.loads(run("decide", rule_file, scores, "--out", out, "--json").stdout)
    assert data["written"] == {"rows": str(out)}
    assert sum(data["decided"]["decided"].values()) == 200
    assert data["operating_point"] == rule.operating_point()


@pytest.mark.parametrize("named", [False, True])
def test_per_group(run, tuned, table, tmp_path, named):
    rule_file, rule = tuned("-g", "maximize f1", "--kind", "per-group", "--group", "sex")
    new, out = tmp_path / "new.csv", tmp_path / "decided.csv"
    table.rename(columns={"sex": "gender"} if named else {}).to_csv(new, index=False)
    more = ["--group", "gender"] if named else []
    result = run("decide", rule_file, new, "--out", out, *more)
    assert result.exit_code == 0, result.stderr
    expected = rule.decide(table["score"].to_numpy(), group={"sex": table["sex"].to_numpy()})
    assert pd.read_csv(out)["decided"].tolist() == np.asarray(expected).astype(int).tolist()


def test_multiclass_and_multilabel(run, scores, table, tmp_path):
    rule_file, out = tmp_path / "rule.json", tmp_path / "decided.csv"
    columns = ("--label", "animal", "--scores", "cat,dog,owl")
    goal = ("-g", "maximize macro(f1)", "--out", rule_file, "--force")
    run("tune", scores, "--task", "multiclass", *columns, *goal)
    assert run("decide", rule_file, scores, "--out", out).exit_code == 0
    rule = sp.DecisionRule.load(rule_file)
    expected = rule.decide(table[["cat", "dog", "owl"]].to_numpy())
    assert pd.read_csv(out)["decided"].tolist() == np.asarray(expected).tolist()

    pair = ("--scores", "score,other_score")
    run("tune", scores, "--task", "multilabel", "--label", "label,other", *pair, *goal)
    assert run("decide", rule_file, scores, *pair, "--out", out, "--force").exit_code == 0
    rule = sp.DecisionRule.load(rule_file)
    expected = np.asarray(rule.decide(table[["score", "other_score"]].to_numpy()))
    written = pd.read_csv(out)[["decided_label", "decided_other"]].to_numpy()
    assert written.tolist() == expected.astype(int).tolist()


def test_top_k(run, tuned, scores, tmp_path):
    rule_file, _ = tuned("-g", 'maximize precision_at_k(3, by="query")', "--query", "query")
    out = tmp_path / "decided.csv"
    assert run("decide", rule_file, scores, "--query", "query", "--out", out).exit_code == 0
    assert pd.read_csv(out)["decided"].sum() == 30
    result = run("decide", rule_file, scores, "--out", out, "--force")
    assert result.exit_code == 2
    assert "say --query" in result.stderr


def test_refusals_leave_everything_as_it_was(run, tuned, scores, table, tmp_path):
    rule_file, _ = tuned("-g", "maximize f1")
    out, again = tmp_path / "decided.csv", tmp_path / "again.csv"
    out.write_text("mine")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    done = tmp_path / "done.csv"
    refused = [
        ((scores, "--out", out), "exists; say --force"),
        ((scores, "--out", tmp_path / "decided.txt"), "must end in .csv or .parquet"),
        ((scores, "--out", scores, "--force"), "is the file the rows come from"),
        ((scores, "--score", "scroe", "--out", again), 'Did you mean "score"?'),
        ((scores, "--score", "score", "--score", "cat", "--out", again), "takes one --score"),
    ]
    for args, sentence in refused:
        result = run("decide", rule_file, *args)
        assert result.exit_code == 2
        assert sentence in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before
    table.assign(decided=1).to_csv(done, index=False)
    result = run("decide", rule_file, done, "--out", again)
    assert result.exit_code == 2
    assert 'has a column "decided" already' in result.stderr
    assert not again.exists()


COVERAGE = "maximize coverage subject to selective_risk <= 0.1"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_where_nothing_is_decided_the_cell_is_empty(run, tuned, scores, table, tmp_path, kind):
    rule_file, rule = tuned("-g", COVERAGE)
    out = tmp_path / f"decided.{kind}"
    result = run("decide", rule_file, scores, "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    written = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
    expected = np.asarray(rule.decide(table["score"].to_numpy()))
    left = int((expected == -1).sum())
    assert 0 < left < 200
    assert written["decided"].isna().tolist() == (expected == -1).tolist()
    assert written["decided"].dropna().tolist() == expected[expected != -1].tolist()
    ones, zeros = (int((expected == side).sum()) for side in (1, 0))
    shown = " ".join(result.stdout.split())
    assert f"{200 - left} of 200 rows: 0 {zeros}, 1 {ones}; {left} left empty" in shown
    if kind == "csv":
        assert out.read_text().splitlines()[1 + int(np.argmax(expected == -1))].endswith(",")
    data = json.loads(run("decide", rule_file, scores, "--out", out, "--force", "--json").stdout)
    assert data["decided"] == {"decided": {"0": zeros, "1": ones}}
    assert data["undecided"] == left


@pytest.mark.parametrize(("label", "classes"), [("animal", ()), ("code", ("--classes", "0,1,2"))])
def test_classes_that_may_be_left_open(run, tuned, scores, table, tmp_path, label, classes):
    columns = ("--task", "multiclass", "--label", label, "--scores", "cat,dog,owl", *classes)
    rule_file, rule = tuned(*columns, "-g", COVERAGE)
    for kind in ("csv", "parquet"):
        out = tmp_path / f"decided.{kind}"
        result = run("decide", rule_file, scores, "--scores", "cat,dog,owl", "--out", out)
        assert result.exit_code == 0, result.stderr
        written = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
        expected = rule.decide(table[["cat", "dog", "owl"]].to_numpy())
        assert any(value is None for value in expected)
        found = [None if pd.isna(value) else value for value in written["decided"].tolist()]
        assert found == expected.tolist()


def test_a_rule_with_a_certificate(run, draw, tmp_path):
    tune, fresh = draw("tune.csv", 300, 0)[0], draw("fresh.csv", 600, 1)
    rule_file, out = tmp_path / "rule.json", tmp_path / "decided.csv"
    goal = ("-g", "maximize recall subject to precision >= 0.7", "--out", rule_file)
    run("tune", fresh[0], "--prove", 0.95, "--reference", tune, *goal)
    assert run("decide", rule_file, fresh[0], "--out", out).exit_code == 0
    expected = sp.DecisionRule.load(rule_file).decide(fresh[1]["score"].to_numpy())
    assert pd.read_csv(out)["decided"].tolist() == np.asarray(expected).astype(int).tolist()


def test_the_rule_is_never_overwritten(run, tuned, scores, tmp_path):
    rule_file, _ = tuned("-g", "maximize f1")
    copy = tmp_path / "rule.csv"
    rule_file.rename(copy)
    result = run("decide", copy, scores, "--out", copy, "--force")
    assert "is read, and would be overwritten" in result.stderr
