"""Monitors equal a plain loop over rows, however the rows are fed, and are seldom wrong."""

import json
import math

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.rules.abstention import ScoreBand
from setpoint.rules.class_offsets import ClassOffsets
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.threshold_blocks import GroupThresholds, LabelThresholds
from setpoint.statistics import betting_process as wealth

POINT = OneThreshold(task=sp.Task.binary(), threshold=0.5)
BAND = ScoreBand(task=sp.Task.binary(), band=(0.3, 0.7))
HOLDS, BROKEN, AGAIN, NEVER = "holds", "broken", "re-certified", "not monitorable"


def draw(random, n, recall=0.9, precision=0.85, digits=None):
    """Rows with these rates, half of them positive, and continuous scores."""
    y = (random.random(n) < 0.5).astype(int)
    fpr = recall * (1 - precision) / precision
    decided = random.random(n) < np.where(y == 1, recall, fpr)
    scores = np.where(decided, 0.5, 0.0) + 0.5 * random.random(n)
    return y, scores if digits is None else np.floor(scores * 10**digits) / 10**digits


def certificate(constraints, confidence=0.9, seed=100, point=POINT, n=60, **more):
    y, scores = draw(np.random.default_rng(seed), n)
    return sp.certify(
        f"maximize accuracy subject to {constraints}", point, y, scores, confidence, **more
    )


def by_group(constraints, confidence=0.9):
    return certificate(constraints, confidence, group=np.resize(["a", "b"], 60))


# --- a plain loop --------------------------------------------------------------------------------


def against(z, high):
    """Evidence after each row: the mean over stakes of M <- (M + w)(1 - stake z / high)."""
    m, out = [0.0] * wealth.STAKES.size, []
    for t, x in enumerate(z):
        w = wealth.start_weights(t, 1)[0]
        m = [(a + w) * (1 - s * x / high) for a, s in zip(m, wealth.STAKES, strict=True)]
        out.append(sum(m) / len(m))
    return np.array(out)


def first(mask):
    return int(np.argmax(mask)) if np.any(mask) else None


def plain_alarm(claims, delta):
    """The first row (counted from 1) at which one of (z, places, high) is broken."""
    limit = len(claims) / delta
    rows = [(first(against(z, high) >= limit), places) for z, places, high in claims]
    found = [int(places[i]) + 1 for i, places in rows if i is not None]
    return min(found, default=None)


def rate_claim(hit, say, floor):
    """Σ over rows that have a say of 1{hit} - floor."""
    return hit[say] - floor, np.flatnonzero(say), 1 - floor


def pair_claim(hit, one, two, most):
    """hit(one) - hit(two) <= most, over pairs in the order of arrival."""
    a, b = np.flatnonzero(one), np.flatnonzero(two)
    n = min(a.size, b.size)
    a, b = a[:n], b[:n]
    return most - (1.0 * hit[a] - hit[b]), np.maximum(a, b), 1 + most


def changed(seed, n=1500, change=700, **after):
    """Good rows, then worse ones."""
    random = np.random.default_rng(seed)
    parts = draw(random, change), draw(random, n - change, **after)
    y, scores = (np.concatenate(p) for p in zip(*parts, strict=True))
    return y, scores, random.choice(["a", "b"], n)


def test_the_alarm_of_a_rate_equals_a_plain_loop():
    alarms = []
    for seed in range(6):
        y, scores, _ = changed(seed, recall=0.6, precision=0.5)
        decided = scores >= 0.5
        monitor = sp.Monitor(certificate("precision >= 0.75, recall >= 0.7"))
        report = monitor.update(y, scores)
        claims = [rate_claim(y == 1, decided, 0.75), rate_claim(decided, y == 1, 0.7)]
        assert report.alarm == plain_alarm(claims, 0.1)
        assert report.status == BROKEN
        for watched, (z, _, high) in zip(report.watched, claims, strict=True):
            assert watched.evidence == pytest.approx(max(against(z, high).max(), 1), rel=1e-6)
            assert watched.rows == z.size
        alarms.append(report.alarm)
    assert 700 < min(alarms)
    assert max(alarms) < 950


def test_the_alarm_of_an_upper_bound_equals_a_plain_loop():
    y, scores, _ = changed(1, recall=0.9, precision=0.5)
    monitor = sp.Monitor(certificate("fpr <= 0.3"))
    report = monitor.update(y, scores)
    z = 0.3 - (scores >= 0.5)[y == 0]
    assert report.alarm == plain_alarm([(z, np.flatnonzero(y == 0), 0.3)], 0.1)
    assert report.alarm > 700


def test_the_alarm_of_f1_equals_a_plain_loop():
    """f1 >= c: a row that is no true negative has z = 2 - 2c where it is a hit, else -c."""
    y, scores, _ = changed(2, recall=0.5, precision=0.5)
    decided, c = scores >= 0.5, 0.75
    say = decided | (y == 1)
    z = np.where(decided & (y == 1), 2 - 2 * c, -c)[say]
    report = sp.Monitor(certificate(f"f1 >= {c}")).update(y, scores)
    assert report.alarm == plain_alarm([(z, np.flatnonzero(say), 2 - 2 * c)], 0.1)


def group_claims(y, scores, group, most):
    hit, positive = scores >= 0.5, y == 1
    a, b = positive & (group == "a"), positive & (group == "b")
    return [pair_claim(hit, a, b, most), pair_claim(hit, b, a, most)]


def unequal(seed, n=3000, change=1000):
    """Recall falls in group b alone, which is rarer and comes in bursts."""
    random = np.random.default_rng(seed)
    group = np.where(np.sin(np.arange(n) / 60) + random.normal(size=n) > 0.8, "b", "a")
    y, scores = draw(random, n)
    missed = (np.arange(n) >= change) & (group == "b") & (y == 1) & (random.random(n) < 0.7)
    return y, np.where(missed, 0.49 * random.random(n), scores), group


@pytest.mark.parametrize("batches", [1, 7])
def test_the_alarm_of_a_gap_equals_a_plain_loop(batches):
    """A pair is complete with its second row, and that is the row to name."""
    y, scores, group = unequal(3)
    monitor = sp.Monitor(by_group('gap(recall, by="group") <= 0.2'))
    for rows in np.array_split(np.arange(y.size), batches):
        report = monitor.update(y[rows], scores[rows], group=group[rows])
    assert report.status == BROKEN
    assert report.alarm == plain_alarm(group_claims(y, scores, group, 0.2), 0.1)


def test_the_evidence_of_a_gap_equals_a_plain_loop():
    y, scores, group = unequal(4)
    monitor = sp.Monitor(by_group('gap(recall, by="group") <= 0.2'))
    report = monitor.update(y, scores, group=group)
    claims = group_claims(y, scores, group, 0.2)
    highest = max(against(z, high).max() for z, _, high in claims)
    assert report.watched[0].evidence == pytest.approx(highest, rel=1e-6)
    assert report.watched[0].rows == sum(z.size for z, *_ in claims)


# --- one batch or many ---------------------------------------------------------------------------

WEIGHT = np.random.default_rng(5).choice([0.5, 1.0, 2.0], 1500)


def cases():
    weights = np.random.default_rng(6).choice([0.5, 1.0, 2.0], 60)
    task = sp.Task.multiclass(["x", "y", "z"])
    return {
        "a rate": (certificate("precision >= 0.75"), ()),
        "two rates": (certificate("precision >= 0.75, recall >= 0.6"), ()),
        "f1": (certificate("f1 >= 0.75"), ()),
        "bets": (certificate("f_beta(2) >= 0.75"), ()),
        "a cost": (certificate("cost(fp=1, fn=5) <= 0.6"), ()),
        "youden": (certificate("youden >= 0.5"), ()),
        "groups": (by_group('worst(recall, by="group") >= 0.75'), ("group",)),
        "a gap": (by_group('gap(recall, by="group") <= 0.15'), ("group",)),
        "weights": (
            certificate("recall >= 0.7", sample_weight=weights, weight_bound=2.5),
            ("sample_weight",),
        ),
        "flagged": (certificate("precision >= 0.75"), ("flagged",)),
        "abstaining": (certificate("selective_risk <= 0.3, coverage >= 0.2", point=BAND), ()),
        "something unwatched": (certificate("precision >= 0.75, mcc >= 0.01"), ()),
        "classes": (
            sp.certify(
                'maximize accuracy subject to recall.of("x") >= 0.6, accuracy >= 0.7',
                ClassOffsets(task=task, offsets=(0.0, 0.0, 0.0)),
                ["x", "y", "z"] * 5,
                np.random.default_rng(7).normal(size=(15, 3)),
                0.9,
            ),
            ("classes",),
        ),
    }


MONITORED = cases()


def stream(options):
    """Rows for a case: y, scores and the columns that go with them."""
    y, scores, group = changed(8, recall=0.45, precision=0.5)
    more = {}
    if "group" in options:
        scores = np.where((group == "b") & (np.arange(1500) > 700) & (y == 1), 0.2 * scores, scores)
        more["group"] = group
    if "sample_weight" in options:
        more["sample_weight"] = WEIGHT
    if "classes" in options:
        random = np.random.default_rng(9)
        index = random.integers(0, 3, 1500)
        scale = np.where(np.arange(1500) < 700, 4.0, 0.5)
        scores = random.normal(size=(1500, 3)) + scale[:, None] * np.eye(3)[index]
        y = np.array(["x", "y", "z"])[index]
    return y, scores, more


def start(name):
    made, options = MONITORED[name]
    return sp.Monitor(made, labels="flagged" if "flagged" in options else "all"), stream(options)


def feed(monitor, rows, y, scores, more):
    return monitor.update(y[rows], scores[rows], **{k: v[rows] for k, v in more.items()})


def same(a, b):
    """Plain data that is equal up to rounding."""
    if isinstance(a, float) or isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-7)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def state(monitor):
    """What the rows have left behind, without the trace of the calls."""
    data = json.loads(json.dumps(monitor.to_json(), allow_nan=False))
    return {k: v for k, v in data.items() if k not in ("trace", "fed")}


@pytest.mark.parametrize("name", MONITORED)
def test_one_batch_or_many_are_the_same(name, tmp_path):
    whole, (y, scores, more) = start(name)
    report = feed(whole, slice(None), y, scores, more)
    assert report.status == BROKEN
    assert 700 < report.alarm <= 1500
    for seed, count in ((0, 2), (1, 6), (2, 30)):
        monitor, _ = start(name)
        cuts = np.sort(np.random.default_rng(seed).choice(np.arange(1, 1500), count, replace=False))
        for i, rows in enumerate(np.split(np.arange(1500), cuts)):
            last = feed(monitor, rows, y, scores, more)
            if i % 3 == 1:
                monitor = sp.Monitor.load(monitor.save(tmp_path / "monitor.json"))
            assert last.rows == rows[-1] + 1
        assert (last.status, last.rows) == (report.status, report.rows)
        assert last.alarm == report.alarm
        for a, b in zip(last.watched, report.watched, strict=True):
            assert (a.constraint, a.status, a.rows, a.why) == (
                b.constraint,
                b.status,
                b.rows,
                b.why,
            )
            assert a.evidence == pytest.approx(b.evidence, rel=1e-6)
        assert same(state(monitor), state(whole))


def test_row_by_row(tmp_path):
    y, scores, _ = changed(10, n=300, change=100, recall=0.3, precision=0.4)
    whole = sp.Monitor(certificate("precision >= 0.75, recall >= 0.7"))
    report = whole.update(y, scores)
    monitor = sp.Monitor(certificate("precision >= 0.75, recall >= 0.7"))
    for i in range(300):
        last = monitor.update(y[i : i + 1], scores[i : i + 1])
        assert (last.alarm is not None) == (report.alarm is not None and i + 1 >= report.alarm)
    assert last.alarm == report.alarm
    assert same(state(monitor), state(whole))


def test_rows_that_look_alike_may_come_one_by_one():
    """Two cases with the same score and the same label are two rows, not one row twice."""
    y, scores = draw(np.random.default_rng(11), 200, digits=1)
    whole = sp.Monitor(certificate("precision >= 0.75"))
    whole.update(y, scores)
    monitor = sp.Monitor(certificate("precision >= 0.75"))
    for i in range(200):
        monitor.update(y[i : i + 1], scores[i : i + 1])
    assert same(state(monitor), state(whole))


def test_a_loaded_certificate_is_monitored_alike(tmp_path):
    made = by_group('worst(recall, by="group") >= 0.7, gap(precision, by="group") <= 0.3')
    read = sp.Certificate.load(made.save(tmp_path / "certificate.json"))
    y, scores, group = changed(12, recall=0.5)
    one, two = sp.Monitor(made), sp.Monitor(read)
    assert one.update(y, scores, group=group) == two.update(y, scores, group=group)
    assert one.to_json() == two.to_json()


def test_tensors_equal_arrays():
    y, scores, _ = changed(13, recall=0.5)
    one, two = (sp.Monitor(certificate("recall >= 0.7")) for _ in range(2))
    a = one.update(torch.as_tensor(y), torch.as_tensor(scores))
    assert a == two.update(y, scores)
    with pytest.raises(sp.DataError, match="feed each row once"):
        two.update(torch.as_tensor(y), torch.as_tensor(scores))


# --- what can be watched -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "labels", "can"),
    [
        ("precision >= 0.7", "all", True),
        ("precision >= 0.7", "flagged", True),
        ("fdr <= 0.3", "flagged", True),
        ("recall >= 0.5", "all", True),
        ("recall >= 0.5", "flagged", False),
        ("fpr <= 0.3", "flagged", False),
        ("accuracy >= 0.5", "flagged", False),
        ("f1 >= 0.5", "flagged", False),
        ("positive_rate <= 0.9", "flagged", False),
        ("npv >= 0.5", "flagged", False),
        ("npv >= 0.5", "all", True),
        ("min(precision, recall) >= 0.5", "all", True),
        ("max(fpr, fnr) <= 0.5", "all", True),
        ("youden >= 0.2", "all", True),
        ("balanced_accuracy >= 0.6", "all", True),
        ("recall >= fpr", "all", True),
        ("precision >= recall", "all", False),
        ("g_mean >= 0.5", "all", False),
        ("macro(f1) >= 0.5", "all", False),
        ("mcc >= 0.1", "all", False),
        ("kappa >= 0.1", "all", False),
        ("auroc >= 0.6", "all", False),
        ("average_precision >= 0.6", "all", False),
        ("accuracy == 0.5", "all", False),
        ("tp >= 3", "all", False),
    ],
)
def test_what_can_be_watched(text, labels, can):
    y, scores = draw(np.random.default_rng(14), 200)
    made = certificate(text, n=400)
    monitor = sp.Monitor(made, labels=labels)
    assert monitor.status == (HOLDS if can else NEVER)
    report = monitor.update(y, scores)
    (watched,) = report.watched
    if can:
        assert report.status in (HOLDS, AGAIN)
        assert watched.why == ""
    else:
        assert report.status == watched.status == NEVER
        assert len(watched.why.split()) > 4
        assert watched.why in str(report)
        assert report.alarm is None
    again = sp.Monitor.from_json(json.loads(json.dumps(monitor.to_json())))
    assert again.report() == report


@pytest.mark.parametrize(
    ("text", "can"),
    [
        ('worst(precision, by="group") >= 0.5', True),
        ('precision.on(group="a") >= 0.5', True),
        ('worst(recall, by="group") >= 0.5', False),
        ('recall.on(group="a") >= 0.5', False),
    ],
)
def test_flagged_rows_of_groups(text, can):
    monitor = sp.Monitor(by_group(text), labels="flagged")
    assert monitor.status == (HOLDS if can else NEVER)


def test_top_k_and_prevalences_cannot_be_watched():
    y, scores = draw(np.random.default_rng(15), 200)
    top = sp.tune("maximize precision_at_k(20) subject to recall >= 0.01", y, scores)
    fresh = draw(np.random.default_rng(16), 200)
    made = sp.certify(top.goal, top, *fresh)
    assert sp.Monitor(made).status == NEVER
    ranged = certificate("precision >= 0.3", prevalence=(0.1, 0.3))
    report = sp.Monitor(ranged).update(y, scores)
    assert report.status == NEVER
    assert "prevalence" in str(report)


def test_what_can_be_watched_is_watched_beside_what_cannot():
    monitor = sp.Monitor(certificate("precision >= 0.7, mcc >= 0.1", n=400))
    y, scores = draw(np.random.default_rng(17), 3000)
    report = monitor.update(y, scores)
    assert [w.status for w in report.watched][1] == NEVER
    assert report.status == HOLDS  # not all of it is certified again
    assert monitor.update(*draw(np.random.default_rng(18), 2000, precision=0.3)).status == BROKEN


def test_flagged_rows_are_enough_for_precision():
    """Rows that were not flagged have no say: with or without them the same is seen."""
    y, scores, _ = changed(19, precision=0.5)
    flagged = scores >= 0.5
    whole = sp.Monitor(certificate("precision >= 0.75"))
    part = sp.Monitor(certificate("precision >= 0.75"), labels="flagged")
    a, b = whole.update(y, scores), part.update(y[flagged], scores[flagged])
    assert a.watched == b.watched
    assert np.flatnonzero(flagged)[b.alarm - 1] == a.alarm - 1


# --- what is refused -----------------------------------------------------------------------------


def test_rows_of_the_certificate_are_refused():
    random = np.random.default_rng(20)
    y, scores = draw(random, 300)
    made = sp.certify("maximize recall subject to precision >= 0.7", POINT, y, scores)
    monitor = sp.Monitor(made)
    order = random.permutation(300)
    fresh = draw(random, 100)
    for rows in (
        (y, scores),
        (y[order], scores[order]),
        (y[:150], scores[:150]),
        (np.r_[y, fresh[0]], np.r_[scores, fresh[1]]),
    ):
        with pytest.raises(sp.DataError, match="already used to certify the rule"):
            monitor.update(*rows)
    assert monitor.rows == 0
    assert monitor.update(*fresh).rows == 100


def test_a_batch_that_comes_back_is_refused(tmp_path):
    random = np.random.default_rng(21)
    monitor = sp.Monitor(certificate("precision >= 0.7"))
    batches = [draw(random, 80) for _ in range(3)]
    for batch in batches:
        monitor.update(*batch)
    before = state(monitor)
    for m in (monitor, sp.Monitor.load(monitor.save(tmp_path / "m.json"))):
        for y, scores in batches:
            for again in ((y, scores), (y[::-1], scores[::-1])):
                with pytest.raises(sp.DataError, match="by this monitor; feed each row once"):
                    m.update(*again)
        assert same(state(m), before)
    assert monitor.update(*draw(random, 80)).rows == 320


def test_a_call_that_failed_has_fed_nothing():
    y, scores, group = unequal(22, n=400, change=200)
    goal = 'precision >= 0.5, gap(recall, by="group") <= 0.2'
    monitor = sp.Monitor(by_group(goal))
    before = monitor.to_json()
    for wrong in (
        {},
        {"group": {"sex": group}},
        {"group": np.where(group == "a", "a", "c")},
        {"group": group[1:]},
        {"group": group, "sample_weight": np.ones(400)},
    ):
        with pytest.raises(sp.DataError):
            monitor.update(y, scores, **wrong)
        assert monitor.to_json() == before
    other = sp.Monitor(by_group(goal))
    assert monitor.update(y, scores, group=group) == other.update(y, scores, group=group)


@pytest.mark.parametrize(
    ("call", "ours", "sentence"),
    [
        (lambda m: sp.Monitor(None), sp.KindError, "a Certificate is needed"),
        (lambda m: sp.Monitor("certificate.json"), sp.KindError, "a Certificate is needed"),
        (lambda m: sp.Monitor(m.certificate, labels="some"), sp.KindError, "labels is"),
        (lambda m: m.update([], []), sp.DataError, "empty"),
        (lambda m: m.update([1, 0], [0.5]), sp.DataError, "y_true has 2 rows"),
        (lambda m: m.update([1, 0], [0.5, float("nan")]), sp.DataError, "nan at row 1"),
        (lambda m: m.update([1, 2], [0.5, 0.6]), sp.DataError, "y_true holds 2"),
        (lambda m: m.update([1], None), sp.KindError, "scores must be an array"),
        (
            lambda m: m.update([1], [0.5], sample_weight=[1.0]),
            sp.DataError,
            "without sample_weight",
        ),
        (lambda m: sp.Monitor.from_json({}), sp.FileError, "not a monitor"),
        (lambda m: sp.Monitor.from_json([1]), sp.FileError, "not a monitor"),
        (lambda m: sp.Monitor.load("nowhere.json"), sp.FileError, "cannot read"),
        (lambda m: m.save("no/such/folder/m.json"), sp.FileError, "Nothing was written"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(call, ours, sentence):
    monitor = sp.Monitor(certificate("precision >= 0.7"))
    with pytest.raises(ours, match=sentence):
        call(monitor)
    assert monitor.rows == 0


def test_a_goal_that_promises_nothing():
    y, scores = draw(np.random.default_rng(23), 50)
    made = sp.certify("maximize recall", POINT, y, scores)
    with pytest.raises(sp.GoalError, match="promises nothing"):
        sp.Monitor(made)


def test_damaged_files_are_refused():
    monitor = sp.Monitor(by_group('worst(recall, by="group") >= 0.7, gap(fpr, by="group") <= 0.9'))
    y, scores, group = changed(24)
    monitor.update(y, scores, group=group)
    whole = json.loads(json.dumps(monitor.to_json()))
    assert same(sp.Monitor.from_json(whole).to_json(), whole)
    wrong = [{k: v for k, v in whole.items() if k != key} for key in whole]
    for key, values in {
        "rows": ("many", None),
        "alarm": ("soon", [3]),
        "labels": ("some", None),
        "trace": (3, [[1]], [["a", "b"]]),
        "fed": (3, [{}], [{"rows": 1}]),
        "watches": ([], None, [[]], whole["watches"][::-1]),
        "certificate": ({}, None),
    }.items():
        wrong += [whole | {key: value} for value in values]
    watch = whole["watches"][0][0]
    for change in (
        {"seen": "x"},
        {"against": [0.0]},
        {"favour": ["x"] * wealth.STAKES.size},
        {"worst": None},
        {"name": "recall >= 0"},
        {"waiting": [[1.0]]},
    ):
        rest = [[watch | change, *whole["watches"][0][1:]], *whole["watches"][1:]]
        wrong.append(whole | {"watches": rest})
    failed = []
    for data in wrong:
        changed_parts = [k for k in whole if k not in data or data[k] != whole[k]]
        try:
            sp.Monitor.from_json(data)
        except sp.SetpointError as error:
            if len(str(error).split()) < 5:
                failed.append((changed_parts, error))  # no sentence
        except Exception as error:
            failed.append((changed_parts, repr(error)))
        else:
            failed.append((changed_parts, "accepted"))
    assert failed == []


# --- weights, groups, abstaining -----------------------------------------------------------------


def test_weights():
    random = np.random.default_rng(25)
    weights = random.choice([0.5, 1.0, 2.0], 60)
    made = certificate("recall >= 0.7", sample_weight=weights, weight_bound=2)
    y, scores, _ = changed(26, recall=0.5)
    monitor = sp.Monitor(made)
    with pytest.raises(sp.DataError, match="with sample_weight"):
        monitor.update(y, scores)
    with pytest.raises(sp.DataError, match="weighs 3"):
        monitor.update(y, scores, sample_weight=np.full(1500, 3.0))
    report = monitor.update(y, scores, sample_weight=WEIGHT)
    positive = y == 1
    z = WEIGHT[positive] * ((scores >= 0.5)[positive] - 0.7)
    assert report.alarm == plain_alarm([(z, np.flatnonzero(positive), 2 * 0.3)], 0.1)
    assert report.alarm > 700


def test_weights_without_a_bound_cannot_be_watched():
    made = certificate("recall >= 0.7", sample_weight=np.ones(60))
    monitor = sp.Monitor(made)
    y, scores = draw(np.random.default_rng(27), 100)
    assert monitor.status == NEVER
    assert monitor.update(y, scores, sample_weight=np.ones(100)).status == NEVER


def test_a_batch_without_one_of_the_groups():
    y, scores, group = unequal(28, n=2000, change=2000)
    for goal in ('worst(recall, by="group") >= 0.6', 'gap(recall, by="group") <= 0.3'):
        monitor, whole = (sp.Monitor(by_group(goal)) for _ in range(2))
        a, b = np.flatnonzero(group == "a"), np.flatnonzero(group == "b")
        for rows in (a[:300], a[300:600], b[:100], np.sort(np.r_[a[600:], b[100:]])):
            report = monitor.update(y[rows], scores[rows], group=group[rows])
        order = np.r_[a[:600], b[:100], np.sort(np.r_[a[600:], b[100:]])]
        told = whole.update(y[order], scores[order], group=group[order])
        assert (report.status, report.rows) == (told.status, 2000)
        assert report.alarm is None
        assert same(state(monitor), state(whole))
        with pytest.raises(sp.DataError, match="declares"):
            monitor.update([1, 1], [0.3, 0.4], group=["a", "new"])


def test_one_group_long_before_the_other(tmp_path):
    """Nothing is known of a gap until both have come; the waiting rows survive a file."""
    random = np.random.default_rng(29)
    monitor = sp.Monitor(by_group('gap(recall, by="group") <= 0.2'))
    y, scores = draw(random, 500, recall=0.95)
    report = monitor.update(y, scores, group=["a"] * 500)
    assert report.watched[0].rows == 0
    assert report.watched[0].evidence == 1
    assert report.status == HOLDS
    monitor = sp.Monitor.load(monitor.save(tmp_path / "m.json"))
    y, scores = draw(random, 500, recall=0.2)
    report = monitor.update(y, scores, group=["b"] * 500)
    assert report.status == BROKEN
    assert report.alarm > 500


def test_a_rule_with_a_threshold_per_group():
    random = np.random.default_rng(30)
    point = GroupThresholds(task=sp.Task.binary(), by="group", thresholds=(("a", 0.5), ("b", 0.6)))
    group = random.choice(["a", "b"], 300)
    y, scores = draw(random, 300)
    made = sp.certify("maximize recall subject to precision >= 0.6", point, y, scores, group=group)
    monitor = sp.Monitor(made)
    y, scores = draw(random, 300)
    with pytest.raises(sp.DataError, match="pass group="):
        monitor.update(y, scores)
    report = monitor.update(y, scores, group=group)
    assert report.watched[0].rows == np.sum(scores >= np.where(group == "a", 0.5, 0.6))


def test_rules_that_abstain():
    made = certificate("selective_risk <= 0.3, coverage >= 0.3, precision >= 0.6", 0.9, point=BAND)
    random = np.random.default_rng(31)
    y = random.integers(0, 2, 1200)
    scores = np.clip(0.5 + 0.25 * (2 * y - 1) + 0.2 * random.normal(size=1200), 0, 1)
    scores[800:] = np.clip(0.5 + 0.2 * random.normal(size=400), 0, 1)
    high, low = scores >= 0.7, scores < 0.3
    kept, wrong = high | low, (high & (y == 0)) | (low & (y == 1))
    claims = [
        (0.3 - wrong[kept], np.flatnonzero(kept), 0.3),
        rate_claim(kept, np.ones(1200, bool), 0.3),
        rate_claim(y == 1, high, 0.6),
    ]
    report = sp.Monitor(made).update(y, scores)
    assert report.alarm == plain_alarm(claims, 0.1)
    assert [w.rows for w in report.watched] == [kept.sum(), 1200, high.sum()]
    flagged = sp.Monitor(made, labels="flagged").report()
    assert [w.status for w in flagged.watched] == [NEVER, NEVER, HOLDS]


def test_labels_of_a_multilabel_task():
    random = np.random.default_rng(32)
    task = sp.Task.multilabel(["cat", "dog"])
    point = LabelThresholds(task=task, thresholds=(("cat", 0.5), ("dog", 0.5)))

    def rows(n, right):
        y = random.integers(0, 2, (n, 2))
        wrong = random.random((n, 2)) > right
        return y, np.where((y == 1) ^ wrong, 0.5, 0.0) + 0.49 * random.random((n, 2))

    goal = 'maximize accuracy subject to recall.of("dog") >= 0.7, micro(f1) >= 0.7'
    made = sp.certify(goal, point, *rows(200, 0.9))
    monitor = sp.Monitor(made)
    assert monitor.update(*rows(1500, 0.9)).status in (HOLDS, AGAIN)
    report = monitor.update(*rows(600, 0.5))
    assert report.status == BROKEN
    assert 1500 < report.alarm < 2000


# --- what a monitor says -------------------------------------------------------------------------


def test_broken_is_for_ever(tmp_path):
    random = np.random.default_rng(33)
    monitor = sp.Monitor(certificate("precision >= 0.75"))
    monitor.update(*draw(random, 300))
    broken = monitor.update(*draw(random, 500, precision=0.4))
    assert broken.status == BROKEN
    for _ in range(3):
        later = monitor.update(*draw(random, 5000, precision=0.97))
        assert (later.status, later.alarm) == (BROKEN, broken.alarm)
        monitor = sp.Monitor.load(monitor.save(tmp_path / "m.json"))
        assert (monitor.status, monitor.alarm) == (BROKEN, broken.alarm)
    assert f"since row {broken.alarm:,}" in str(later)
    assert "BROKEN" in str(later)
    assert "error at most 0.1 for ever" in str(later)


def test_a_promise_that_holds_is_certified_again():
    random = np.random.default_rng(34)
    monitor = sp.Monitor(certificate("precision >= 0.75, recall >= 0.7"))
    assert monitor.update(*draw(random, 20)).status == HOLDS
    report = monitor.update(*draw(random, 3000))
    assert report.status == AGAIN
    assert report.alarm is None
    assert "RE-CERTIFIED" in str(report)
    assert report.rows == 3020


@pytest.mark.parametrize(
    ("text", "after", "within"),
    [
        ("precision >= 0.75", {"precision": 0.5}, 300),
        ("recall >= 0.75", {"recall": 0.5}, 400),
        ("fpr <= 0.3", {"precision": 0.5}, 400),
        ("f1 >= 0.75", {"recall": 0.5, "precision": 0.6}, 400),
        ("youden >= 0.5", {"recall": 0.5, "precision": 0.6}, 600),
    ],
)
def test_a_change_after_twenty_thousand_good_rows_is_seen_soon(text, after, within):
    random = np.random.default_rng(35)
    monitor = sp.Monitor(certificate(text, 0.95))
    assert monitor.update(*draw(random, 20_000)).status == AGAIN
    waited = 0
    while monitor.alarm is None and waited < 3000:
        monitor.update(*draw(random, 20, **after))
        waited += 20
    assert 20_000 < monitor.alarm <= 20_000 + within


def test_a_gap_after_twenty_thousand_good_rows_is_seen_soon():
    random = np.random.default_rng(36)
    made = by_group('gap(recall, by="group") <= 0.15', 0.95)
    monitor = sp.Monitor(made)
    group = random.choice(["a", "b"], 20_000)
    monitor.update(*draw(random, 20_000), group=group)
    assert monitor.alarm is None
    for _ in range(100):
        group = random.choice(["a", "b"], 20)
        y, scores = draw(random, 20)
        missed = (group == "b") & (random.random(20) < 0.6)
        monitor.update(y, np.where(missed, 0.4 * scores, scores), group=group)
    assert 20_000 < monitor.alarm <= 21_500


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("precision >= 0.75", {"precision": 0.75}),
        ("recall >= 0.75", {"recall": 0.75}),
        ("f1 >= 0.75", {"recall": 0.75, "precision": 0.75}),
    ],
)
def test_a_promise_on_its_bound_is_seldom_called_broken_or_proven(text, law):
    """Where it holds with nothing to spare, either is said with probability at most δ, for ever."""
    made, runs, delta = certificate(text, 0.8), 60, 0.2
    said = {BROKEN: 0, AGAIN: 0}
    for seed in range(runs):
        monitor = sp.Monitor(made)
        random = np.random.default_rng(seed)
        report = monitor.update(*draw(random, 3000, **law))
        said[BROKEN] += report.status == BROKEN
        said[AGAIN] += report.status == AGAIN
    for count in said.values():
        assert count <= runs * delta + 2.5 * math.sqrt(runs * delta * (1 - delta))


def test_words():
    monitor = sp.Monitor(certificate("precision >= 0.75, mcc >= 0.1", n=400), labels="flagged")
    report = monitor.update(*draw(np.random.default_rng(37), 1234))
    text = str(report)
    assert text.splitlines()[0] == f"{report.status.upper()} after 1,234 rows."
    assert "precision >= 0.75: " in text
    assert "mcc >= 0.1: not monitorable" in text
    assert report.confidence == 0.9
    assert monitor.trace[-1][0] == 1234
