"""What version 1 saved is read by today's code, and decides, proves and goes on as it did.

``v1/`` was written by the code of version 1 (``make_fixtures.py``, through public names alone):
run folders as archives, so that no tool changes a byte that their manifests vouch for; documents as
they are; the rows that are fed (``inputs``) and what version 1 itself said after loading
(``expected``). Sentences are not compared, their wording may change: the data behind them is.
"""

import contextlib
import csv
import io
import json
import math
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint import restoration, robustness
from setpoint.cli import main
from setpoint.rules.rule import ABSENT

V1 = Path(__file__).parent / "v1"
READERS = {}  #: name of a fixture -> what reads it: (folder of all fixtures, scratch folder)


def reads(*names):
    """Note a function that reads fixtures, under their names."""

    def noted(function):
        for name in names:
            READERS[name] = lambda v1, scratch, name=name: function(v1, scratch, name)
        return function

    return noted


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks on several threads wait for each other where a machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", READERS)
def test_it_is_read_as_it_was(name, tmp_path):
    expected = json.loads((V1 / "expected" / f"{name}.json").read_text(encoding="utf-8"))
    same(plain(READERS[name](V1, tmp_path)), expected, name)


def test_every_fixture_has_a_reader():
    written = {p.stem for p in (V1 / "expected").iterdir()}
    assert written == set(READERS)


# --- comparing -----------------------------------------------------------------------------------


def plain(x):
    """Data as JSON has it: lists, numbers, text; what is not finite as text."""
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu().numpy()
    if isinstance(x, np.ndarray | np.generic):
        x = x.tolist()
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    assert x is None or isinstance(x, bool | int | float | str), repr(x)
    return x


def same(found, expected, where):
    """Equal; floats up to rounding."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        assert set(found) == set(expected), where
        for key, value in expected.items():
            same(found[key], value, f"{where}: {key}")
    elif isinstance(expected, list):
        assert isinstance(found, list), where
        assert len(found) == len(expected), where
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{where}[{at}]")
    elif isinstance(expected, float) and isinstance(found, int | float):
        assert math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9), (where, found, expected)
    else:
        assert found == expected, where
        assert type(found) is type(expected), where


# --- what is read off ----------------------------------------------------------------------------


def unpacked(v1, scratch, name):
    """The folder of an archive."""
    with zipfile.ZipFile(v1 / "folders" / f"{name}.zip") as archive:
        archive.extractall(scratch / name)
    return scratch / name


def inputs(v1, name):
    """Arrays by name."""
    with np.load(v1 / "inputs" / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def of_point(point):
    """An operating point as data."""
    names = "kind threshold thresholds by offsets k band confidence norms"
    return {name: getattr(point, name, ABSENT.get(name)) for name in names.split()} | {
        "task": [point.task.kind, point.task.positive, point.task.classes, point.task.score]
    }


def of_rule(rule):
    """A rule as data; its words are there as well."""
    assert str(rule)
    assert rule == sp.DecisionRule.from_json(rule.to_json())
    held = [[h.constraint, h.value, h.holds, h.binding, h.short, h.alone] for h in rule.held]
    frontier = rule.frontier
    return of_point(rule) | {
        "goal": str(rule.goal),
        "feasible": rule.feasible,
        "value": rule.value,
        "rows": rule.rows,
        "held": held,
        "groups": rule.groups,
        "proven": rule.proven,
        "seen": len(rule.seen),
        "frontier": None if frontier is None else of_frontier(frontier),
        "certificate": of_certificate(rule.certificate),
    }


def of_frontier(frontier):
    """Some of its points."""
    every = max(1, len(frontier.thresholds) // 8)
    return {
        "objective": frontier.objective,
        "constraints": frontier.constraints,
        "points": len(frontier.thresholds),
        "thresholds": frontier.thresholds[::every],
        "values": frontier.values[::every],
        "sides": [side[::every] for side in frontier.sides],
        "feasible": frontier.feasible[::every],
    }


def of_certificate(proof):
    """What was proven, as data."""
    if proof is None:
        return None
    assert str(proof)
    assert proof == sp.Certificate.from_json(proof.to_json())
    findings = [
        {
            "evidence": [[e.k, e.n] for e in f.evidence],
            **{
                name: getattr(f, name)
                for name in "constraint verdict value op asked bound other exact needed".split()
            },
        }
        for f in proof.findings
    ]
    names = "verdict proven confidence value interval rows weight_bound prevalence weighted flagged"
    return {name: getattr(proof, name) for name in names.split()} | {
        "goal": str(proof.goal),
        "findings": findings,
        "point": of_point(proof.point),
    }


def of_kept(kept):
    """Constraints on some rows."""
    return [[k.constraint, k.value, k.holds, k.short] for k in kept]


def of_comparison(found):
    """Who won, by how much."""
    if found is None:
        return None
    assert str(found)
    assert found == sp.Comparison.from_json(found.to_json())
    return {
        "goal": str(found.goal),
        "chosen": found.chosen,
        "rows": found.rows,
        "folds": found.folds,
        "contenders": [[c.name, c.value, of_kept(c.kept), c.verdict] for c in found.contenders],
        "differences": [
            [d.name, d.value, d.low, d.high, d.merit, d.merit_low, d.merit_high, d.separated]
            for d in found.differences
        ],
    }


def of_evaluation(found):
    """A goal on some rows."""
    assert str(found)
    return {"value": found.value, "kept": of_kept(found.kept), "rows": found.rows}


def of_report(report):
    """The status of a report, and its sections; that it can be read."""
    assert str(report)
    assert report.card()
    record = report.to_json()
    return {"status": report.verdict["status"], "goal": record["goal"], "rows": record["rows"]}


def of_monitor(monitor):
    """What a monitor says."""
    report = monitor.report()
    assert str(report)
    return {
        "status": report.status,
        "rows": report.rows,
        "alarm": report.alarm,
        "confidence": report.confidence,
        "watched": [[w.constraint, w.status, w.evidence, w.rows] for w in report.watched],
        "labels": monitor.labels,
        "limit": monitor.limit,
        "trace": monitor.trace,
        "certificate": of_certificate(monitor.certificate),
    }


def of_classifier(clf, X, y=None, group=None):
    """Everything a classifier decides and says of some rows."""
    kept = group if clf.rule_.kind == "per-group" else None
    found = {
        "predict": clf.predict(X, group=kept),
        "classes": clf.classes_,
        "task": clf.task_.to_json(),
        "finished": clf.finished_,
        "rule": of_rule(clf.rule_),
        "certificate": of_certificate(clf.certificate_),
        "comparison": of_comparison(clf.comparison_),
        "report": of_report(clf.report_),
        "members": {name: len(models) for name, models in clf.members_.items()},
        "weights": clf.stack_.weights,
        "epochs": len(clf.history_),
        "plan": [str(clf.plan_.goal), clf.plan_.rows, clf.plan_.folds],
        "goal": str(clf.goal),
        "settings": [clf.effort, clf.folds, clf.confidence, clf.hidden, clf.random_state],
        "features": [clf.n_features_in_, getattr(clf, "feature_names_in_", None)],
    }
    if hasattr(clf, "predict_proba"):
        found["predict_proba"] = clf.predict_proba(X)
    if clf.rule_.kind != "abstain":
        found["decision_function"] = clf.decision_function(X, group=kept)
    if y is not None:
        found["score"] = clf.score(X, y, group=group)
    return found


def command(*arguments):
    """The exit code of the command line, and what it printed."""
    before, said = sys.argv, io.StringIO()
    sys.argv = ["setpoint", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(said):
            main()
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    finally:
        sys.argv = before
    return 0, said.getvalue()


# --- run folders ---------------------------------------------------------------------------------

RUNS = (
    "binary_portfolio",
    "linear",
    "mlp_soft_set",
    "linear_lagrangian",
    "linear_exact",
    "per_group",
    "multiclass_offsets",
    "multilabel",
    "top_k",
    "abstain_binary",
    "abstain_multiclass",
    "scikit_pipeline",
    "goal_boosting",
    "from_scores",
    "baseline_text_labels",
)


@reads(*RUNS)
def run_folder(v1, scratch, name):
    rows = inputs(v1, name)
    group = {"sex": rows["sex"]} if "sex" in rows else None
    clf = sp.load(unpacked(v1, scratch, name))
    return of_classifier(clf, rows["X"], rows.get("y"), group)


@reads("own_module")
def own_module(v1, scratch, name):
    rows = inputs(v1, name)
    return of_classifier(sp.load(unpacked(v1, scratch, name), model=module()), rows["X"], rows["y"])


def module():
    """A network of the user's own."""
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


@reads("saved_again")
def saved_again(v1, scratch, name):
    """A run that is loaded, written by today's code and loaded once more."""
    rows = inputs(v1, "binary_portfolio")
    clf = sp.load(unpacked(v1, scratch, "binary_portfolio"))
    clf.save(scratch / "again")
    assert clf.report_.html()
    return of_classifier(sp.load(scratch / "again"), rows["X"], rows["y"])


@reads("regressor_linear", "regressor_trees", "regressor_scikit", "regressor_mlp")
def regressor(v1, scratch, name):
    rows = inputs(v1, name)
    reg = sp.load(unpacked(v1, scratch, name))
    assert str(reg.comparison_)
    gain = reg.comparison_.gain
    return {
        "predict": reg.predict(rows["X"]),
        "evaluate": of_evaluation(reg.evaluate(rows["X"], rows["y"])),
        "score": reg.score(rows["X"], rows["y"]),
        "chosen": reg.comparison_.chosen,
        "members": [[m.name, m.driven, m.value, m.holds] for m in reg.comparison_.members],
        "gain": None if gain is None else [gain.value, gain.low, gain.high, gain.separated],
        "task": reg.task_.to_json(),
        "goal": str(reg.goal),
        "epochs": len(reg.history_),
        "finished": reg.finished_,
    }


@reads("command_line_table", "command_line_trees")
def command_line_table(v1, scratch, name):
    """A table with categories, dates and gaps; the commands that take a run take this one."""
    run, table = unpacked(v1, scratch, name), v1 / "inputs" / "table.csv"
    clf, frame = sp.load(run), pd.read_csv(table)
    found = of_classifier(clf, frame[list(clf.feature_names_in_)])
    code, _ = command("predict", run, table, "--out", scratch / "out.csv", "--json")
    decided = pd.read_csv(scratch / "out.csv", keep_default_na=False)
    found["decided"] = [code, *(decided[column].tolist() for column in decided)]
    code, said = command("explain", run, "--json")
    found["explained"] = [code, isinstance(json.loads(said), dict)]
    code, said = command("evaluate", run, table, "--json")
    found["evaluated"] = [code, isinstance(json.loads(said), dict)]
    code, said = command("compare", run, run, table, "--json")
    found["compared"] = [code, isinstance(json.loads(said), dict)]
    if clf.certificate_ is not None:
        state = scratch / "state.json"
        code, said = command("monitor", run, table, "--state", state, "--json")
        found["monitored"] = [code, of_monitor(sp.Monitor.load(state))]
    return found


# --- documents -----------------------------------------------------------------------------------

RULES = (
    "rule_threshold",
    "rule_infeasible",
    "rule_weighted",
    "rule_proven",
    "rule_per_group",
    "rule_per_label",
    "rule_offsets",
    "rule_argmax",
    "rule_top_k",
    "rule_top_k_by_query",
    "rule_band",
    "rule_confidence",
    "rule_confidence_geometric",
    "rule_command_line",
)


@reads(*RULES)
def rule(v1, scratch, name):
    rows = inputs(v1, name)
    made = sp.DecisionRule.load(v1 / "documents" / f"{name}.json")
    more = {key: rows[key] for key in ("query",) if key in rows}
    group = {"sex": rows["sex"]} if "sex" in rows else None
    evaluated = sp.evaluate(made, rows["y"], rows["scores"], group=group, **more)
    if made.kind == "per-group":
        more["group"] = group
    found = of_rule(made) | {
        "decide": made.decide(rows["scores"], **more),
        "evaluate": of_evaluation(evaluated),
    }
    made.save(scratch / "rule.json")
    assert sp.DecisionRule.load(scratch / "rule.json") == made
    return found


@reads("rule_touched")
def rule_touched(v1, scratch, name):
    """A rule remembers the rows it was chosen and certified on; others it is certified on."""
    rows = inputs(v1, name)
    made = sp.DecisionRule.load(v1 / "documents" / f"{name}.json")
    for part in ("chosen", "certified"):
        with pytest.raises(sp.DataError):
            sp.certify(made.goal, made, rows[f"y_{part}"], rows[f"scores_{part}"])
    proof = sp.certify(made.goal, made, rows["y"], rows["scores"])
    return {"proof": of_certificate(proof), "seen": len(made.seen)}


CERTIFICATES = (
    "certificate_proven",
    "certificate_not_proven",
    "certificate_refuted",
    "certificate_weighted",
    "certificate_prevalence",
    "certificate_groups",
    "certificate_top_k",
    "certificate_command_line",
)


@reads(*CERTIFICATES)
def certificate(v1, scratch, name):
    proof = sp.Certificate.load(v1 / "documents" / f"{name}.json")
    proof.save(scratch / "proof.json")
    assert sp.Certificate.load(scratch / "proof.json") == proof
    return of_certificate(proof)


@reads("monitor_holds", "monitor_broken", "monitor_flagged", "monitor_command_line")
def monitor(v1, scratch, name):
    """A monitor goes on with further rows, and knows those that it was fed."""
    rows = inputs(v1, name)
    made = sp.Monitor.load(v1 / "documents" / f"{name}.json")
    before = of_monitor(made)
    with pytest.raises(sp.DataError):
        made.update(rows["y_fed"], rows["scores_fed"])
    made.update(rows["y"], rows["scores"])
    made.save(scratch / "monitor.json")
    again = sp.Monitor.load(scratch / "monitor.json")
    return {"before": before, "after": of_monitor(made), "again": of_monitor(again)}


@reads("command_line_documents")
def command_line_documents(v1, scratch, name):
    """The commands that take a rule or a certificate take these."""
    rows = inputs(v1, "rule_command_line")
    frame = pd.DataFrame({"label": rows["y"], "score": rows["scores"]})
    frame.to_csv(scratch / "new.csv", index=False)
    for part in ("rule", "certificate", "monitor"):
        text = (v1 / "documents" / f"{part}_command_line.json").read_text(encoding="utf-8")
        (scratch / f"{part}.json").write_text(text, encoding="utf-8")
    given = {part: scratch / f"{part}.json" for part in ("rule", "certificate", "monitor")}
    new, out = scratch / "new.csv", scratch / "decided.csv"
    found = {"decide": command("decide", given["rule"], new, "--out", out)[0]}
    found["decided"] = pd.read_csv(out)["decided"].tolist()
    found["evaluate"] = command("evaluate", given["rule"], new, "--json")[0]
    watched = ("monitor", given["certificate"], new, "--state", given["monitor"], "--json")
    found["monitor"] = command(*watched)[0]
    found["state"] = of_monitor(sp.Monitor.load(given["monitor"]))
    found["certify"] = command("certify", given["rule"], new, "--json")[0]
    found["certified"] = of_certificate(sp.Certificate.load(scratch / "rule.certificate.json"))
    found["certify again"] = command("certify", given["rule"], new, "--force", "--json")[0]
    return found


@reads("diagnosis_feasible", "diagnosis_not_feasible")
def diagnosis(v1, scratch, name):
    text = (v1 / "documents" / f"{name}.json").read_text(encoding="utf-8")
    made = sp.Diagnosis.from_json(json.loads(text))
    assert str(made)
    assert made == sp.Diagnosis.from_json(made.to_json())
    names = "kind rows fresh weighted confidence power feasible value sides behind binding"
    return {name: getattr(made, name) for name in names.split()} | {
        "goal": str(made.goal),
        "prices": [[p.constraint, p.bound, p.slope, p.low, p.high, p.binds] for p in made.prices],
        "moves": [[m.bound, m.value, m.gain] for p in made.prices for m in p.moves],
        "nearest": [[str(n.goal), n.how, n.share, n.value, n.sides] for n in made.nearest],
        "provable": None if made.provable is None else str(made.provable.goal),
        "labels": [str(n.goal) for n in made.labels],
        "frontier": None if made.frontier is None else of_frontier(made.frontier),
    }


@reads("comparison")
def comparison(v1, scratch, name):
    text = (v1 / "documents" / f"{name}.json").read_text(encoding="utf-8")
    return of_comparison(sp.Comparison.from_json(json.loads(text)))


@reads("frontier")
def frontier(v1, scratch, name):
    text = (v1 / "documents" / f"{name}.json").read_text(encoding="utf-8")
    made = sp.Frontier.from_json(json.loads(text))
    assert made == sp.Frontier.from_json(made.to_json())
    return of_frontier(made)


@reads("report")
def report(v1, scratch, name):
    made = sp.Report.load(unpacked(v1, scratch, "linear"))
    assert made.html()
    made.save(scratch / "report")
    assert sp.Report.load(scratch / "report") == made
    return of_report(made)


@reads("goals")
def goals(v1, scratch, name):
    """Goals as JSON and as text are the same, and print as they did."""
    found = []
    for data in json.loads((v1 / "documents" / "goals.json").read_text(encoding="utf-8")):
        made = sp.Goal.from_json(data["goal"])
        assert made == sp.Goal.parse(data["text"])
        assert made == sp.Goal.from_json(made.to_json())
        found.append([str(made), list(made.columns), sp.Task.from_json(data["task"]).to_json()])
    return found


# --- boosted trees -------------------------------------------------------------------------------


@reads("boosted_lightgbm", "boosted_xgboost", "boosted_catboost")
def boosted(v1, scratch, name):
    library = name.removeprefix("boosted_")
    pytest.importorskip(library)
    kinds = {
        "lightgbm": "GoalLGBMClassifier",
        "xgboost": "GoalXGBClassifier",
        "catboost": "GoalCatBoostClassifier",
    }
    rows = inputs(v1, name)
    text = (v1 / "documents" / f"{name}.json").read_text(encoding="utf-8")
    made = getattr(sp.boosting, kinds[library]).from_text(text)
    return {
        "predict": made.predict(rows["X"]),
        "predict_proba": made.predict_proba(rows["X"]),
        "decision_function": made.decision_function(rows["X"]),
        "classes": made.classes_,
        "rounds": made.n_iter_,
        "goal": str(made.goal),
        "history": made.history_,
    }


# --- losses --------------------------------------------------------------------------------------

FLOOR = "maximize recall subject to precision >= 0.8"
#: fixture -> goal, method, task, options
LOSSES = {
    "loss_soft_set": (FLOOR, "soft-set", {}, {}),
    "loss_soft_set_macro": ("maximize macro(f1)", "soft-set", {"classes": 3}, {}),
    "loss_lagrangian": (
        'maximize f1 subject to gap(recall, by="sex") <= 0.1',
        "lagrangian",
        {"groups": {"sex": ["f", "m"]}},
        {},
    ),
    "loss_lagrangian_curve": ("maximize auroc(max_fpr=0.3)", "lagrangian", {}, {"points": 4}),
    "loss_costs": (FLOOR, "costs", {}, {}),
    "loss_costs_in_parts": (FLOOR, "costs", {}, {"accumulate": 3}),
    "loss_implicit": (FLOOR, "implicit", {}, {"every": 3, "pool": 64}),
    "loss_implicit_curve": (
        "maximize auprc",
        "implicit",
        {},
        {"points": 4, "every": 3, "pool": 64},
    ),
    "loss_pairwise": ("maximize auroc", "pairwise", {}, {}),
    "loss_cross_entropy": ("maximize f1", "cross-entropy", {}, {}),
    "loss_exact": (FLOOR, "exact", {}, {}),
    "loss_exact_table": (FLOOR, "exact", {}, {"form": "table", "rows": 240}),
    "loss_errors": (
        'minimize rmse subject to worst(mae, by="bin") <= 0.5',
        "errors",
        {"edges": [-0.5, 0.5]},
        {},
    ),
}
STEPS, PARTS = 14, 24  #: steps before the checkpoint; batches that the rows are cut into


def in_training(name):
    """A model, its loss and its optimiser, at the start."""
    goal, method, given, options = LOSSES[name]
    task = None
    if "groups" in given:
        task = sp.Task.binary(groups=given["groups"])
    if "classes" in given:
        task = sp.Task.multiclass(range(given["classes"]))
    if "edges" in given:
        task = sp.Task.regression(edges=given["edges"])
    loss = sp.GoalLoss(goal, method, task=task, memory=100, warmup=2, **options).double()
    model = nn.Linear(4, given.get("classes", 1)).double()
    for at, weights in enumerate(model.parameters()):
        nn.init.constant_(weights, 0.1 * (at + 1))
    return model, loss, torch.optim.Adam(model.parameters(), 0.05)


def stepped(name, state, rows, steps):
    """The losses of some steps."""
    model, loss, optimiser = state
    given, said = LOSSES[name][2], []
    target = rows["z"] if "edges" in given else rows["c" if "classes" in given else "y"]
    for step in steps:
        part = np.arange(240).reshape(-1, PARTS)[:, step % PARTS]
        logits = model(torch.as_tensor(rows["X"][part]))
        more = {"group": {"sex": torch.as_tensor(rows["code"][part])}} if "groups" in given else {}
        if "table" in name:
            more["row"] = torch.as_tensor(part)
        logits = logits if "classes" in given else logits[:, 0]
        value = loss(logits, torch.as_tensor(target[part]), **more)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        said.append(value.item())
    return said


@reads(*LOSSES)
def goal_loss(v1, scratch, name):
    """A training that is taken up goes on where it was: its next losses, its weights."""
    state = in_training(name)
    saved = torch.load(v1 / "losses" / f"{name}.pt", weights_only=True)
    for part, whole in zip(state, ("model", "loss", "optimiser"), strict=True):
        part.load_state_dict(saved[whole])
    model, loss, _ = state
    before = of_recovered(loss)
    losses = stepped(name, state, inputs(v1, "losses"), range(STEPS, STEPS + 8))
    weights = [w.detach().clone() for w in model.parameters()]
    return {"before": before, "losses": losses, "weights": weights, "after": of_recovered(loss)}


def of_recovered(loss):
    """The goal at the running totals, where the method keeps any."""
    try:
        found = loss.recover()
    except sp.KindError:
        return None
    return [found.value, [[c.excess, c.multiplier] for c in found.constraints], found.thresholds]


# --- restoration ---------------------------------------------------------------------------------


@reads("prior_diffusion", "prior_flow")
def prior(v1, scratch, name):
    made = restoration.load_prior(v1 / "priors" / f"{name}.safetensors", dtype=torch.float64)
    seeds = torch.as_tensor(inputs(v1, "priors")["seeds"])
    with torch.no_grad():
        images, cleaned = made(seeds), made.denoise(seeds, 0.3)
    card = restoration.prior_card(v1 / "priors" / f"{name}.safetensors")
    restoration.save_prior(made, scratch / "prior.safetensors", card={"data": "none"})
    again = restoration.load_prior(scratch / "prior.safetensors", dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(again(seeds), images)
    return {
        "images": [float(images.mean()), float(images.std()), images[0, 0, :2]],
        "cleaned": [float(cleaned.mean()), float(cleaned.std()), cleaned[0, 0, :2]],
        "card": card,
        "shape": made.shape,
        "range": made.range,
    }


@reads("restored")
def restored(v1, scratch, name):
    """The scores in a record are those of its images, and its folder is known for what it is."""
    folder = unpacked(v1, scratch, name)
    record = json.loads((folder / "restoration.json").read_text(encoding="utf-8"))
    with np.load(folder / "restored.npz") as arrays:
        held = dict(arrays)
    truth = torch.as_tensor(held["truth"])
    operator = restoration.as_operator("inpaint:0.5", shape=tuple(truth.shape[1:]), batch=2)
    measured = torch.as_tensor(held["measurement"])
    assert not measured[~operator.observed].any()
    found = {"format": record["format"], "best": record["best"], "files": listed(folder)}
    for method in record["methods"]:
        images = torch.as_tensor(held[method["method"]])
        scores = restoration.psnr(images, truth)
        same(plain(scores), [i["psnr"] for i in method["images"]], name)
        ssim = restoration.ssim(images, truth)
        same(plain(ssim), [i["ssim"] for i in method["images"]], name)
        found[method["method"]] = [scores, ssim]
    given = (folder, "--operator", "inpaint:0.5", "--prior", "mnist", "--out", folder)
    found["not replaced unasked"] = command("restore", *given)[0]
    assert (folder / "restoration.json").exists()
    return found


def listed(folder):
    """The files of a folder, by name."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


# --- robustness ----------------------------------------------------------------------------------


@reads("robustness")
def robust(v1, scratch, name):
    """The table says what it said, and the points that were saved still beat the model."""
    folder, saved = unpacked(v1, scratch, name), inputs(v1, name)
    record = json.loads((folder / "robustness.json").read_text(encoding="utf-8"))
    with (folder / "images.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    columns = {
        "index": np.array([int(row["index"]) for row in table]),
        "correct": np.array([row["correct"] == "True" for row in table]),
        "radius": np.array([float(row["radius"]) for row in table]),
    }
    eps = tuple(record["eps"])
    made = robustness.Robustness(
        record["distance"], eps, record["confidence"], columns, (), record["asked"]
    )
    levels = [[v.eps, v.right, v.images, v.accuracy, v.interval, v.at_most] for v in made.levels]
    kept = [
        [v["eps"], v["right"], v["images"], v["accuracy"], v["interval"], v["at_most"]]
        for v in record["levels"]
    ]
    same(plain(levels), kept, name)
    layer = nn.Linear(6, 4, dtype=torch.float64)
    layer.load_state_dict({key: torch.as_tensor(saved[key]) for key in ("weight", "bias")})
    with np.load(folder / "points.npz") as arrays:
        X, points, y = (torch.as_tensor(arrays[key]) for key in ("X", "points", "y"))

    def again(model, x, labels):
        where = (x[:, None] == X[None]).flatten(2).all(2).to(torch.int64).argmax(1)
        return points[where]

    model = nn.Sequential(nn.Flatten(), layer)
    told = robustness.evaluate(
        model, X, y, record["distance"], eps[-1], attacks={"saved": again}, radius=False
    )
    attacked = [row["attacked"] == "True" for row in table]
    assert told.columns["attacked"].tolist() == attacked
    return {
        "levels": levels,
        "quantiles": list(made.radius_quantiles().items()),
        "promises": [made.promise(floor).verdict for floor in (0.05, 0.5, 0.99)],
        "clean": made.clean_accuracy,
        "attacked": attacked,
        "accuracy": told.robust_accuracy,
        "distance": told.columns["distance"],
        "files": listed(folder),
    }
