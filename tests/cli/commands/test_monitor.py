"""`setpoint monitor`: the library's monitor, carried on from call to call in a file."""

import json

import pytest

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.7"


@pytest.fixture
def certified(run, draw, tmp_path):
    """Tune and certify with some options; the file of the certificate."""

    def call(*options, goal=GOAL, certify=(), label=()):
        rule, out = tmp_path / "rule.json", tmp_path / "cert.json"
        tune, fresh = draw("tune.csv", 300, 0)[0], draw("fresh.csv", 800, 1)[0]
        result = run("tune", tune, "-g", goal, *label, *options, "--out", rule, "--force")
        assert result.exit_code == 0, result.stderr
        result = run("certify", rule, fresh, *label, *certify, "--out", out, "--force")
        assert result.exit_code in (0, 3), result.stderr
        return out

    return call


@pytest.fixture
def good(draw):
    """600 rows on which the promise holds."""
    return draw("good.csv", 600, 2)


@pytest.fixture
def bad(draw):
    """600 rows on which it does not."""
    return draw("bad.csv", 600, 3, shift=0.0)


def test_json_is_the_report_of_the_library(run, certified, good, bad):
    cert = certified()
    for (path, rows), code in ((good, 0), (bad, 3)):
        result = run("monitor", cert, path, "--json")
        assert (result.exit_code, result.stderr) == (code, "")
        data = json.loads(result.stdout)
        watching = sp.Monitor(sp.Certificate.load(cert))
        report = watching.update(rows["label"], rows["score"])
        assert data["sentence"] == str(report)
        assert (data["status"], data["rows"], data["alarm"]) == (report.status, 600, report.alarm)
        assert data["constraints"][0]["evidence"] == report.watched[0].evidence
        assert data["broken_at"] == pytest.approx(20)
        assert data["written"] == {}


def test_screens(run, certified, good, bad, flat):
    cert = certified()
    said = flat(run("monitor", cert, good[0]))
    for words in (
        f"Goal {GOAL}",
        "Certificate PROVEN at 95% on 800 rows (fingerprint",
        "Data 600 rows;",
        "broken from 20 on",
        "after 600 rows",
        "--state monitor.json keeps the evidence",
    ):
        assert words in said
    result = run("monitor", cert, bad[0], columns=200)
    alarm = json.loads(run("monitor", cert, bad[0], "--json").stdout)["alarm"]
    assert result.exit_code == 3
    assert "precision >= 0.7" in flat(result)
    assert f"BROKEN since row {alarm} of 600 (data row {alarm} of {bad[0]})" in flat(result)


def test_the_state_is_carried_on(run, certified, good, bad, tmp_path, flat):
    cert, state = certified(), tmp_path / "monitor.json"
    first = run("monitor", cert, good[0], "--state", state)
    assert first.exit_code == 0, first.stderr
    assert f"{state}: 600 rows so far" in first.stdout.replace("\n" + " " * 18, "")
    kept = state.read_bytes()
    again = run("monitor", cert, good[0], "--state", state)
    assert again.exit_code == 2
    assert "already used by this monitor; feed each row once" in again.stderr
    assert state.read_bytes() == kept
    result = run("monitor", cert, bad[0], "--state", state, "--json")
    assert result.exit_code == 3
    data = json.loads(result.stdout)
    watching = sp.Monitor(sp.Certificate.load(cert))
    watching.update(good[1]["label"], good[1]["score"])
    report = watching.update(bad[1]["label"], bad[1]["score"])
    assert data["sentence"] == str(report)
    assert data["alarm"] > 600
    assert sp.Monitor.load(state).to_json() == watching.to_json()
    other = run("monitor", cert, tmp_path / "more.csv", "--state", state)
    assert "there is no file" in other.stderr


def test_a_broken_promise_stays_broken(run, certified, good, bad, draw, tmp_path, flat):
    cert, state = certified(), tmp_path / "monitor.json"
    assert run("monitor", cert, bad[0], "--state", state).exit_code == 3
    result = run("monitor", cert, good[0], "--state", state)
    assert result.exit_code == 3
    assert "BROKEN since row" in flat(result)
    assert "(data row" not in flat(result)


def test_a_rule_that_contains_its_certificate(run, draw, good, tmp_path):
    tune, fresh = draw("tune.csv", 300, 0)[0], draw("fresh.csv", 800, 1)[0]
    rule = tmp_path / "rule.json"
    options = ("-g", GOAL, "--prove", 0.95, "--reference", tune, "--out", rule)
    assert run("tune", fresh, *options).exit_code == 0
    assert run("monitor", rule, good[0]).exit_code == 0
    plain = tmp_path / "plain.json"
    run("tune", tune, "-g", GOAL, "--out", plain)
    result = run("monitor", plain, good[0])
    assert result.exit_code == 2
    assert f'"{plain}" is a rule without a certificate; make one' in result.stderr


def test_labels_of_flagged_rows_alone(run, certified, good, flat, tmp_path):
    goal = "maximize recall subject to precision >= 0.7, recall >= 0.5"
    cert = certified(goal=goal)
    rule = sp.DecisionRule.load(tmp_path / "rule.json")
    path, rows = good
    flagged = rows[rows["score"] >= rule.threshold]
    flagged.to_csv(path, index=False)
    result = run("monitor", cert, path, "--labels", "flagged")
    assert result.exit_code == 0, result.stderr
    said = flat(result)
    assert "recall >= 0.5 – – not monitorable" in said
    assert "Not watched recall >= 0.5: labels on flagged rows alone cannot show it" in said


def test_nothing_to_monitor_is_a_mistake(run, certified, good, tmp_path):
    cert = certified(goal="maximize precision subject to recall >= 0.5")
    state = tmp_path / "monitor.json"
    result = run("monitor", cert, good[0], "--labels", "flagged", "--state", state)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is nothing that could be monitored. recall >= 0.5: labels on" in result.stderr
    assert not state.exists()


@pytest.mark.parametrize("only", [0, 1])
def test_a_batch_of_one_label(run, certified, good, only):
    path, rows = good
    cert = certified()
    some = rows[rows["label"] == only].head(20)
    some.to_csv(path, index=False)
    result = run("monitor", cert, path, "--label", "answer")
    assert f'holds only "{"yes" if only else "no"}": say --positive LABEL' in result.stderr
    result = run("monitor", cert, path, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["data"]["positives"] == 20 * only


@pytest.mark.parametrize("only", ["yes", "no", "Yes"])
def test_a_batch_of_one_text_label(run, certified, good, only):
    path, rows = good
    cert = certified("--positive", "yes", label=("--label", "answer"))
    some = rows[rows["answer"] == only.lower()].head(20).assign(answer=only)
    some.to_csv(path, index=False)
    result = run("monitor", cert, path, "--label", "answer", "--json")
    if only == "Yes":  # a slip is not taken for the other label
        assert result.exit_code == 2
        assert 'holds only "Yes", and positive is "yes": spell them alike' in result.stderr
        return
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    expected = sp.Monitor(sp.Certificate.load(cert)).update(some["answer"], some["score"])
    assert data["sentence"] == str(expected)


def test_groups_weights_and_classes(run, certified, good, flat):
    path, rows = good
    goal = 'maximize recall subject to gap(recall, by="sex") <= 0.3'
    cert = certified(goal=goal)
    result = run("monitor", cert, path, "--json")
    report = sp.Monitor(sp.Certificate.load(cert)).update(
        rows["label"], rows["score"], group={"sex": rows["sex"].to_numpy()}
    )
    assert json.loads(result.stdout)["sentence"] == str(report)

    cert = certified(certify=("--weight", "weight", "--weight-bound", 1))
    result = run("monitor", cert, path)
    assert result.exit_code == 2
    assert "made with --weight; feed the monitor rows like those" in result.stderr
    assert run("monitor", cert, path, "--weight", "weight").exit_code == 0

    goal = 'maximize accuracy subject to worst(recall, by="class") >= 0.7'
    task = ("--task", "multiclass", "--scores", "cat,dog,owl")
    cert = certified(*task, goal=goal, label=("--label", "animal"))
    result = run("monitor", cert, path, "--label", "animal", "--json")
    assert result.exit_code == 0, result.stderr
    report = sp.Monitor(sp.Certificate.load(cert)).update(
        rows["animal"].to_numpy(), rows[["cat", "dog", "owl"]].to_numpy()
    )
    assert json.loads(result.stdout)["sentence"] == str(report)


def test_an_unproven_certificate_is_named_as_such(run, certified, good, flat):
    cert = certified(certify=("-g", "maximize recall subject to precision >= 0.995"))
    assert "nothing was promised, the goal itself is watched" in flat(run("monitor", cert, good[0]))


# --- files and mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_plot_is_written(run, certified, good, tmp_path, kind, start):
    plot, state = tmp_path / f"evidence.{kind}", tmp_path / "m.json"
    args = ("monitor", certified(), good[0], "--plot", plot, "--state", state, "--json")
    assert json.loads(run(*args).stdout)["written"] == {"state": str(state), "plot": str(plot)}
    assert plot.read_bytes().startswith(start)


def test_mistakes_leave_the_state_as_it_was(run, certified, good, bad, draw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cert = certified()
    assert run("monitor", cert, good[0], "--state", "m.json").exit_code == 0
    cert.rename("first.json")
    certified(goal="maximize recall subject to precision >= 0.6")
    wrong = (tmp_path / "damaged.json", "{}")
    wrong[0].write_text(wrong[1])
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    refused = [
        (("first.json", bad[0], "--state", "m.json", "--score", "scroe"), 'Did you mean "score"?'),
        (("first.json", "fresh.csv", "--state", "m.json"), "already used to certify the rule"),
        (("first.json", bad[0], "--state", "m.json", "--labels", "flagged"), "begun with --labels"),
        (("cert.json", bad[0], "--state", "m.json"), "watches another certificate"),
        (("first.json", bad[0], "--state", "damaged.json"), "this is not a monitor"),
        (("first.json", bad[0], "--state", "first.json"), "is read, and would be overwritten"),
        (("first.json", bad[0], "--state", bad[0]), "is the file the rows come from"),
        (("first.json", bad[0], "--labels", "al"), "labels is all, flagged; got 'al'"),
        (("m.json", bad[0]), "is the state of a monitor: name it as --state"),
        ((bad[0], good[0]), "is not a certificate"),
        (("no.json", good[0]), 'cannot read "no.json"'),
        (("first.json", bad[0], "--plot", "m.jpg"), "must end in .svg"),
    ]
    for args, sentence in refused:
        result = run("monitor", *args)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, certified, bad, columns):
    goal = "maximize recall subject to precision >= 0.7, fpr <= 0.5, recall == 0.9"
    result = run("monitor", certified(certify=("-g", goal)), bad[0], columns=columns)
    assert result.exit_code == 3
    assert max(map(len, result.stdout.splitlines())) <= columns
