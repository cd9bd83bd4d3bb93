"""Write ``v1/``: what version 1 saves, the rows it is fed, and what it says of them.

    PYTHONPATH=<checkout of version 1>/src python make_fixtures.py

Run with the code of version 1 alone; everything goes through public names, in a scratch folder with
relative names, so that nothing of the machine gets into a file. The figures of the second part are
read off by the very functions of ``test_saved_by_version_1.py``, after loading.
"""

import contextlib
import importlib.util
import io
import json
import math
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import setpoint as sp
from setpoint import restoration, robustness

HERE = Path(__file__).resolve().parent
V1 = HERE / "v1"


def reader():
    """The test module, whose functions read fixtures."""
    spec = importlib.util.spec_from_file_location("reader", HERE / "test_saved_by_version_1.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


READ = reader()


def put_inputs(name, **arrays):
    """Rows as an .npz."""
    np.savez_compressed(V1 / "inputs" / f"{name}.npz", **arrays)


def packed(folder, name, without=()):
    """A folder as an archive, the same bytes whenever it is made."""
    for picture in without:
        (Path(folder) / picture).unlink()
    with zipfile.ZipFile(V1 / "folders" / f"{name}.zip", "w") as archive:
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (2025, 1, 1, 0, 0, 0))
            about.compress_type = zipfile.ZIP_LZMA
            about.external_attr = 0o644 << 16
            archive.writestr(about, path.read_bytes())


def document(name, data):
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    (V1 / "documents" / f"{name}.json").write_text(text, encoding="utf-8")


def ran(*arguments, code=0):
    """A command of the command line, which ends with that code."""
    with contextlib.redirect_stderr(io.StringIO()) as wrong:
        found, said = READ.command(*arguments)
    assert found == code, (arguments, found, said, wrong.getvalue())


# --- rows ----------------------------------------------------------------------------------------


def rows(n, seed, noise=0.4):
    """Four columns of numbers; the label follows three of them, not quite linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    z = X[:, 0] + 0.6 * X[:, 1] + 0.5 * X[:, 1] * X[:, 2] + rng.normal(0, noise, n)
    return X, (z > 0.2).astype(np.int64), z


def mixed(n, seed):
    """Rows to which a line, trees and a network each have something to say."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    z = X[:, 0] + 0.6 * X[:, 1] + 0.1 * X[:, 1] * X[:, 2] + 0.8 * (X[:, 3] > 0.8)
    return X, (z + rng.normal(0, 0.6, n) > 0.2).astype(np.int64)


def people(n, seed):
    """Numbers, categories, dates and gaps."""
    rng = np.random.default_rng(seed)
    amount = rng.normal(size=n)
    city = rng.choice(["Bern", "Köln", "Lyon"], n).astype(object)
    z = amount + 0.8 * (city == "Lyon") + rng.normal(0, 0.3, n)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    city[rng.random(n) < 0.08] = None
    return pd.DataFrame(
        {
            "account": [f"k{i:05d}" for i in rng.permutation(n)],
            "amount": amount.round(3),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "city": city,
            "member": rng.random(n) < 0.5,
            "day": days.strftime("%Y-%m-%d"),
            "fraud": np.where(z > 0.5, "yes", "no"),
        }
    )


# --- run folders ---------------------------------------------------------------------------------


def fitted(name, clf, X, y, new, new_y=None, group=None, new_sex=None):
    """Fit, save, and note the rows that are decided."""
    clf.fit(X, y, group=group) if group is not None else clf.fit(X, y)
    clf.save(name)
    packed(name, name)
    more = {} if new_y is None else {"y": new_y}
    put_inputs(name, X=new, **more, **({} if new_sex is None else {"sex": new_sex}))
    report = clf.certificate_ and clf.certificate_.verdict
    stack = getattr(clf, "stack_", None)
    print(
        f"  {name}: {report}, {stack and dict(zip(stack.names, stack.weights, strict=True))}",
        flush=True,
    )
    return clf


def make_runs():
    X, y = mixed(320, 2)
    new, new_y = mixed(24, 1)
    goal = "maximize recall subject to precision >= 0.6"
    small = {"hidden": (4,), "epochs": 8, "certify_size": 0.25}
    lean = {"compare": False, **small}
    clf = sp.GoalClassifier(goal, effort="standard", folds=2, hidden=(8,), epochs=8)
    portfolio = fitted("binary_portfolio", clf, X, y, new, new_y)
    document("comparison", portfolio.comparison_.to_json())

    few = X[:160], y[:160]
    linear = sp.GoalClassifier(goal, "linear", **lean)
    fitted("linear", linear, *few, new, new_y)
    soft = sp.GoalClassifier(goal, "mlp", sp.methods.SoftSet(cross_entropy=0.25), folds=2)
    soft.set_params(hidden=(6,), epochs=25, learning_rate=0.03)
    fitted("mlp_soft_set", soft, *few, new, new_y)
    lagrangian = sp.GoalClassifier(goal, "linear", "lagrangian", **lean)
    fitted("linear_lagrangian", lagrangian, *few, new, new_y)
    exact = sp.methods.Exact(rounds=3, steps=5, walks=20)
    fitted("linear_exact", sp.GoalClassifier(goal, "linear", exact, **lean), *few, new, new_y)

    rng = np.random.default_rng(5)
    sex, new_sex = rng.choice(["f", "m"], 160), rng.choice(["f", "m"], 24)
    fair = 'maximize accuracy subject to gap(recall, by="sex") <= 0.3'
    clf = sp.GoalClassifier(fair, "linear", kind="per-group", **lean)
    fitted("per_group", clf, *few, new, new_y, {"sex": sex}, new_sex)

    def animals(X, z):
        return np.array(["ant", "bee", "cow"])[np.digitize(z + 0.4 * X[:, 3], [-0.9, 1.6])]

    X, y, z = rows(200, 2)
    new, new_y, new_z = rows(24, 3)
    clf = sp.GoalClassifier("maximize macro(f1)", effort="quick", folds=2, compare=False)
    fitted("multiclass_offsets", clf, X[:140], animals(X, z)[:140], new, animals(new, new_z))
    several = np.stack([y, (X[:, 3] > 0.2).astype(int), (X[:, 0] < X[:, 1]).astype(int)], 1)
    new_several = np.stack([new_y, (new[:, 3] > 0.2), (new[:, 0] < new[:, 1])], 1).astype(int)
    clf = sp.GoalClassifier("maximize macro(f1)", effort="quick", folds=2, compare=False)
    fitted("multilabel", clf, X[:100], several[:100], new, new_several)
    clf = sp.GoalClassifier("maximize precision_at_k(8)", "linear", **{**lean, "certify_size": 0})
    fitted("top_k", clf, X, y, new, new_y)
    careful = "maximize coverage subject to selective_risk <= 0.1"
    clf = sp.GoalClassifier(careful, LogisticRegression(), compare=False)
    names = np.array(["fine", "fraud"])
    clf.set_params(positive="fraud")
    fitted("abstain_binary", clf, X, names[y], new, names[new_y])
    clf = sp.GoalClassifier(careful.replace("0.1", "0.2"), LogisticRegression(), compare=False)
    fitted("abstain_multiclass", clf, X, animals(X, z), new, animals(new, new_z))
    clf = sp.GoalClassifier(goal, make_pipeline(StandardScaler(), LogisticRegression(C=0.5)))
    clf.set_params(compare=False, folds=2)
    fitted("scikit_pipeline", clf, X, y, new, new_y)
    trees = sp.boosting.GoalLGBMClassifier(goal, "costs", n_estimators=6)
    fitted("goal_boosting", sp.GoalClassifier(goal, trees, compare=False), X, y, new, new_y)
    clf = sp.GoalClassifier.from_scores(goal, y, z)
    clf.save("from_scores")
    packed("from_scores", "from_scores")
    put_inputs("from_scores", X=new_z[:, None], y=new_y)
    clf = sp.GoalClassifier("minimize cost(fp=1, fn=4)", "baseline", folds=2, positive="bad")
    words = np.array(["good", "bad"])
    fitted("baseline_text_labels", clf, X[:100], words[y[:100]], new, words[new_y])
    torch.manual_seed(0)
    clf = sp.GoalClassifier("maximize f1", READ.module(), "costs", **lean)
    fitted("own_module", clf, X[:120], y[:120], new, new_y)


def make_regressors():
    X, _, z = rows(200, 6)
    new, _, new_z = rows(24, 7)
    z, new_z = (10 + 3 * z).round(3), (10 + 3 * new_z).round(3)
    goal = 'minimize rmse subject to worst(mae, by="bin") <= 3'
    made = {
        "regressor_linear": sp.GoalRegressor(goal, "linear", epochs=6, edges=[8.0, 12.0]),
        "regressor_trees": sp.GoalRegressor("minimize balanced(mae)", "trees"),
        "regressor_scikit": sp.GoalRegressor("minimize mae", Ridge(), edges=[8.0, 12.0]),
        "regressor_mlp": sp.GoalRegressor(
            "minimize balanced(mae)", "mlp", "errors", compare=False, epochs=30, hidden=(4,)
        ),
    }
    for name, reg in made.items():
        reg.fit(X, z).save(name)
        packed(name, name)
        put_inputs(name, X=new, y=new_z)
        print(f"  {name}: {reg.comparison_.chosen}", flush=True)


def make_table():
    people(320, 8).to_csv("known.csv", index=False)
    people(100, 8).to_csv("few.csv", index=False)
    people(30, 9).to_csv(V1 / "inputs" / "table.csv", index=False)
    goal = "maximize recall subject to precision >= 0.6"
    given = ("known.csv", "--target", "fraud", "--positive", "yes", "--goal", goal)
    ran("fit", *given, "--effort", "quick", "--folds", 2, "--out", "table")
    packed("table", "command_line_table")
    goal = ("--target", "fraud", "--positive", "yes", "--goal", "maximize f1")
    more = ("--model", "trees", "--folds", 2, "--no-compare", "--drop", "day")
    ran("fit", "few.csv", *goal, *more, "--out", "trees")
    packed("trees", "command_line_trees")


# --- documents -----------------------------------------------------------------------------------


def scored(n, seed, shift=2.0):
    """Labels and scores; the greater the shift, the better they are."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(np.int64)
    return y, (rng.normal(size=n) + shift * y).round(4)


def several(n, seed, names=None):
    """Labels and scores of three classes."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 3, n)
    scores = rng.normal(size=(n, 3))
    scores[np.arange(n), c] += 1.5
    return (c if names is None else np.array(names)[c]), scores.round(4)


def saved_rule(name, made, y, scores, **more):
    """A rule, and the rows that it decides."""
    made.save(V1 / "documents" / f"{name}.json")
    put_inputs(name, y=y, scores=scores, **more)


GOAL = "maximize recall subject to precision >= 0.7"


def make_rules():
    y, s = scored(120, 20)
    new_y, new = scored(20, 21)
    rng = np.random.default_rng(22)
    rule = sp.tune(GOAL, y, s)
    saved_rule("rule_threshold", rule, new_y, new)
    document("frontier", rule.frontier.to_json())
    hard = "maximize recall subject to precision >= 0.95, recall >= 0.95"
    saved_rule("rule_infeasible", sp.tune(hard, y, s), new_y, new)
    weighted = sp.tune("minimize cost(fp=1, fn=5)", y, s, sample_weight=rng.random(120))
    saved_rule("rule_weighted", weighted, new_y, new)
    fresh = scored(200, 23)
    proven = sp.tune(GOAL, *fresh, prove=0.95, reference=(y, s))
    assert proven.proven
    saved_rule("rule_proven", proven, new_y, new)
    sex, new_sex = rng.choice(["f", "m"], 120), rng.choice(["f", "m"], 20)
    fair = 'maximize accuracy subject to gap(recall, by="sex") <= 0.1'
    made = sp.tune(fair, y, s, group={"sex": sex}, kind="per-group")
    saved_rule("rule_per_group", made, new_y, new, sex=new_sex)
    rows_, table = several(120, 24, ["cat", "dog", "owl"])
    new_c, new_table = several(20, 25, ["cat", "dog", "owl"])
    task = sp.Task.multiclass(["cat", "dog", "owl"])
    logits = sp.Task.multiclass(["cat", "dog", "owl"], score="logit")
    saved_rule("rule_offsets", sp.tune("maximize macro(f1)", rows_, table, task=task), new_c,
               new_table)  # fmt: skip
    argmax = sp.tune("maximize macro(f1)", rows_, table, task=task, kind="argmax")
    saved_rule("rule_argmax", argmax, new_c, new_table)
    marks, new_marks = (t > 0.7 for t in (table + rng.normal(0, 0.5, table.shape), new_table))
    labels = sp.Task.multilabel(["a", "b", "c"])
    made = sp.tune("maximize micro(f1)", marks.astype(int), table, task=labels)
    saved_rule("rule_per_label", made, new_marks.astype(int), new_table)
    saved_rule("rule_top_k", sp.tune("maximize precision_at_k(5)", y, s), new_y, new)
    query, new_query = rng.integers(0, 8, 120), np.arange(20) % 4
    made = sp.tune('maximize precision_at_k(2, by="query")', y, s, query=query)
    saved_rule("rule_top_k_by_query", made, new_y, new, query=new_query)
    careful = "maximize coverage subject to selective_risk <= 0.05"
    saved_rule("rule_band", sp.tune(careful, y, s), new_y, new)
    made = sp.tune(careful, rows_, table, task=logits)
    saved_rule("rule_confidence", made, new_c, new_table)
    head = rng.normal(size=(3, 4))
    made = sp.tune(careful, rows_, table, task=task, by="rl_geo_m", head=head)
    saved_rule("rule_confidence_geometric", made, new_c, new_table)

    touched, held, fresh = sp.tune(GOAL, y, s), scored(150, 26), scored(150, 27)
    sp.certify(GOAL, touched, *held)
    touched.save(V1 / "documents" / "rule_touched.json")
    put_inputs("rule_touched", y_chosen=y, scores_chosen=s, y_certified=held[0],
               scores_certified=held[1], y=fresh[0], scores=fresh[1])  # fmt: skip


def make_certificates():
    y, s = scored(120, 30)

    def proof(name, verdict, goal, n, seed, shift=2.0, rule=None, **more):
        rule = rule or sp.tune(GOAL, y, s)
        made = sp.certify(goal, rule, *scored(n, seed, shift), **more)
        assert made.verdict == verdict, (name, made.verdict)
        made.save(V1 / "documents" / f"{name}.json")
        return made

    rng = np.random.default_rng(31)
    safe = "maximize recall subject to precision >= 0.5"
    proven = proof("certificate_proven", "PROVEN", safe, 200, 32)
    proof("certificate_not_proven", "NOT PROVEN", GOAL, 60, 33)
    proof("certificate_refuted", "REFUTED", "maximize recall subject to precision >= 0.95, "
          "recall >= 0.2", 200, 34, 1.0)  # fmt: skip
    proof("certificate_weighted", "PROVEN", "maximize recall subject to precision >= 0.3", 200, 35,
          sample_weight=0.5 + rng.random(200) / 2, weight_bound=1.0)  # fmt: skip
    proof("certificate_prevalence", "PROVEN", "maximize recall subject to precision >= 0.2", 200,
          36, prevalence=(0.2, 0.5))  # fmt: skip
    fair = 'maximize accuracy subject to worst(recall, by="sex") >= 0.3'
    rule = sp.tune(fair, y, s, group={"sex": rng.choice(["f", "m"], 120)})
    proof("certificate_groups", "PROVEN", fair, 200, 37, rule=rule,
          group={"sex": rng.choice(["f", "m"], 200)})  # fmt: skip
    top = "maximize precision_at_k(20) subject to recall >= 0.05"
    rule = sp.tune(top, y, s)
    proof("certificate_top_k", "NOT PROVEN", top, 100, 38, rule=rule)

    def watched(name, status, fed, rest, certificate=proven, **more):
        monitor = sp.Monitor(certificate, **more)
        for at in range(0, len(fed[0]), 50):
            monitor.update(fed[0][at : at + 50], fed[1][at : at + 50])
        assert monitor.status == status, (name, monitor.status)
        monitor.save(V1 / "documents" / f"{name}.json")
        put_inputs(name, y_fed=fed[0], scores_fed=fed[1], y=rest[0], scores=rest[1])

    bad = scored(300, 40, -1.0)
    watched("monitor_holds", "holds", scored(50, 41), scored(300, 42, -1.0))
    watched("monitor_broken", "broken", bad, scored(40, 43))
    fed, rest = scored(150, 44), scored(80, 45)
    cut = proven.point.threshold
    fed, rest = ((y[s >= cut], s[s >= cut]) for y, s in (fed, rest))
    watched("monitor_flagged", "holds", fed, rest, labels="flagged")


def make_command_line():
    for name, n, seed in (("tune", 120, 50), ("fresh", 200, 51), ("may", 60, 52), ("new", 80, 53)):
        y, s = scored(n, seed)
        pd.DataFrame({"label": y, "score": s}).to_csv(f"{name}.csv", index=False)
        if name == "new":
            put_inputs("rule_command_line", y=y, scores=s)
        if name == "may":
            fed = y, s
    y, s = scored(60, 54)
    put_inputs("monitor_command_line", y_fed=fed[0], scores_fed=fed[1], y=y, scores=s)
    goal = "maximize recall subject to precision >= 0.7"
    ran("tune", "tune.csv", "--goal", goal, "--out", "rule.json")
    safe = "maximize recall subject to precision >= 0.5"
    ran("certify", "rule.json", "fresh.csv", "--goal", safe, "--out", "certificate.json")
    ran("monitor", "certificate.json", "may.csv", "--state", "monitor.json")
    for name in ("rule", "certificate", "monitor"):
        shutil.copy(f"{name}.json", V1 / "documents" / f"{name}_command_line.json")


def make_diagnoses():
    y, s = scored(200, 60)
    document("diagnosis_feasible", sp.diagnose(GOAL, y, s).to_json())
    hard = "maximize recall subject to precision >= 0.97, recall >= 0.9"
    document("diagnosis_not_feasible", sp.diagnose(hard, y, s).to_json())


GOALS = {
    "maximize recall subject to precision >= 0.9": sp.Task.binary(positive="yes"),
    "minimize fnr subject to fpr <= 0.001": sp.Task.binary(score="probability"),
    "minimize cost(fp=1, fn=20) + 0.5 * error_rate": sp.Task.binary(),
    'maximize f1 subject to gap(recall, by="sex") <= 0.05 and worst(precision, by="sex") >= 0.6':
        sp.Task.binary(groups={"sex": ["f", "m"]}),
    'maximize macro(f1) subject to worst(recall, by="class") >= 0.2':
        sp.Task.multiclass(["a", "b", 3]),
    "maximize micro(f_beta(2))": sp.Task.multilabel(["x", "y"], score="logit"),
    "maximize auroc(max_fpr=0.1)": sp.Task.binary(),
    "maximize recall_at_precision(0.9)": sp.Task.binary(),
    "maximize ndcg(5)": sp.Task.ranking(),
    'minimize rmse subject to worst(mae, by="bin") <= 2': sp.Task.regression(edges=[0.0, 1.5]),
    "maximize coverage subject to selective_risk <= 0.02": sp.Task.binary(),
    "maximize mcc subject to positive_rate == 0.3": sp.Task.binary(),
}  # fmt: skip


def make_goals():
    told = []
    for text, task in GOALS.items():
        goal = sp.Goal.parse(text)
        sp.check(goal, task)
        told.append({"text": text, "goal": goal.to_json(), "task": task.to_json()})
    document("goals", told)


# --- boosted trees, losses -----------------------------------------------------------------------


def make_boosted():
    X, y, _ = rows(160, 70)
    new, _, _ = rows(16, 71)
    words = np.array(["no", "yes"])
    kinds = sp.boosting
    made = {
        "boosted_lightgbm": (kinds.GoalLGBMClassifier(GOAL, "costs", n_estimators=6), y),
        "boosted_xgboost": (kinds.GoalXGBClassifier(GOAL, "soft-set", n_estimators=6), y),
        "boosted_catboost": (
            kinds.GoalCatBoostClassifier(
                "maximize f1",
                "costs",
                n_estimators=8,
                learning_rate=0.5,
                positive="yes",
                params={"depth": 3},
            ),
            words[y],
        ),
    }
    for name, (clf, labels) in made.items():
        text = clf.fit(X, labels).to_text()
        (V1 / "documents" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        put_inputs(name, X=new)


def make_losses():
    X, y, z = rows(240, 80)
    c = np.digitize(z, [-0.6, 0.9]).astype(np.int64)
    code = np.random.default_rng(81).integers(0, 2, 240)
    put_inputs("losses", X=X, y=y, z=z.round(4), c=c, code=code)
    held = READ.inputs(V1, "losses")
    for name in READ.LOSSES:
        state = READ.in_training(name)
        READ.stepped(name, state, held, range(READ.STEPS))
        parts = ("model", "loss", "optimiser")
        saved = {key: part.state_dict() for key, part in zip(parts, state, strict=True)}
        torch.save(saved, V1 / "losses" / f"{name}.pt")


# --- images --------------------------------------------------------------------------------------


def waves(side=12, count=3):
    """A prior of smooth images: the lowest cosine waves of both directions."""
    at = (np.arange(side) + 0.5) * np.pi / side
    lines = [np.cos(k * at) for k in range(count)]
    columns = [0.1 * np.outer(a, b).ravel() for a in lines for b in lines]
    matrix = torch.tensor(np.stack(columns, 1), dtype=torch.float32)
    middle = torch.full((side * side,), 0.5)
    return restoration.LinearPrior(matrix, middle, (1, side, side), (0.0, 1.0))


def make_images():
    draw = torch.Generator().manual_seed(90)
    network = restoration.UNet(1, 4, (1, 2), 1, (4,), 8)
    for weights in network.parameters():
        nn.init.normal_(weights, 0.0, 0.15, generator=draw)
    levels = torch.linspace(0.99, 0.01, 20, dtype=torch.float64)
    shape = (1, 8, 8)
    diffusion = restoration.DiffusionPrior(network, shape=shape, alpha_bar=levels, steps=2)
    flow = restoration.FlowPrior(network, shape=shape, range=(-1.0, 1.0), steps=2)
    card = {"data": "none", "steps": 0}
    restoration.save_prior(diffusion, V1 / "priors" / "prior_diffusion.safetensors", card)
    restoration.save_prior(flow, V1 / "priors" / "prior_flow.safetensors", card)
    seeds = torch.randn(2, *shape, generator=draw, dtype=torch.float64)
    put_inputs("priors", seeds=seeds.numpy())

    prior = waves()
    z = torch.randn(2, *prior.seed_shape, generator=draw)
    truth = prior(z).clamp(0.0, 1.0)
    operator = restoration.as_operator("inpaint:0.5", shape=(1, 12, 12), batch=2)
    y = operator(truth + 0.02 * torch.randn(truth.shape, generator=draw))
    found = restoration.compare(
        y, operator, prior, ("dmplug", "tv"), truth, noise="gaussian:0.02", iterations=20
    )
    found.save("restored")
    packed("restored", "restored", ("sheet.png",))

    weights = torch.randn(4, 6, generator=draw, dtype=torch.float64)
    bias = 0.1 * torch.randn(4, generator=draw, dtype=torch.float64)
    layer = nn.Linear(6, 4, dtype=torch.float64)
    layer.load_state_dict({"weight": weights, "bias": bias})
    images = 0.4 + 0.2 * torch.rand(20, 6, generator=draw, dtype=torch.float64)
    labels = layer(images).argmax(1)
    labels[::10] = (labels[::10] + 1) % 4
    images = images.reshape(20, 1, 2, 3)
    model = nn.Sequential(nn.Flatten(), layer)
    told = robustness.evaluate(model, images, labels, "l2", [0.03, 0.08], iterations=30)
    told.save("robustness")
    packed("robustness", "robustness", ("accuracy.png", "radii.png", "examples.png"))
    put_inputs("robustness", weight=weights.numpy(), bias=bias.numpy())


# --- all of it -----------------------------------------------------------------------------------


def rounded(x):
    """Ten figures are enough for a comparison at 1e-6."""
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.10g}") if isinstance(x, float) and math.isfinite(x) else x


def expect(names):
    """What today's code says of every fixture after loading it."""
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            found = READ.plain(READ.READERS[name](V1, Path(scratch)))
        text = json.dumps(rounded(found), allow_nan=False, ensure_ascii=False)
        (V1 / "expected" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def refuse_places():
    """Nothing of this machine is in a file: no folder of its own, not even in an archive."""
    own = {str(HERE), str(Path(sp.__file__).parent), str(Path.home()), sys.prefix}
    marks = [f"{place}/".encode() for place in (*own, tempfile.gettempdir())]

    def contents(name, data):
        yield name, data
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for inner in archive.namelist():
                    yield from contents(f"{name}/{inner}", archive.read(inner))

    for path in V1.rglob("*"):
        for name, data in contents(path.name, path.read_bytes()) if path.is_file() else ():
            assert not any(mark in data for mark in marks), f"{name} names a folder"


def made_with():
    names = ("torch", "numpy", "sklearn", "lightgbm", "skops", "safetensors", "pandas")
    versions = {name: importlib.import_module(name).__version__ for name in names}
    about = {"setpoint": sp.__version__, "python": platform.python_version(), **versions}
    (V1 / "made_with.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


MAKERS = (
    make_runs,
    make_regressors,
    make_table,
    make_rules,
    make_certificates,
    make_command_line,
    make_diagnoses,
    make_goals,
    make_boosted,
    make_losses,
    make_images,
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ["COLUMNS"] = "80"
    only = sys.argv[1:]
    if not only:
        shutil.rmtree(V1, ignore_errors=True)
    for part in ("folders", "documents", "inputs", "losses", "priors", "expected"):
        (V1 / part).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for make in MAKERS:
            if not only or make.__name__ in only:
                print(make.__name__, flush=True)
                torch.manual_seed(0)
                make()
    made_with()
    expect(READ.READERS)
    refuse_places()
