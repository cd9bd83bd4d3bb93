"""What every metric is held to: an outside truth, shard merging, soft readings, both libraries."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.oracles.data import CLASSES, EDGES, ROWS
from tests.oracles.metrics import ORACLES

import setpoint as sp
from setpoint.expressions import Curve, Domain, Over, take_in
from setpoint.expressions.rows.row_events import RESERVED

TASKS = {
    "binary": sp.Task.binary(groups={"group": ("a", "b")}),
    "multiclass": sp.Task.multiclass(CLASSES),
    "multilabel": sp.Task("multilabel"),
    "ranking": sp.Task.ranking(),
    "regression": sp.Task.regression(EDGES),
}
BY_ID = {f"{o.task}: {o.text}": o for o in ORACLES}

quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def arguments(oracle, rows):
    """The call of a metric on oracle rows."""
    second = rows.pred if oracle.uses == "decisions" else rows.scores
    more = {"sample_weight": rows.weight, "task": TASKS[oracle.task]}
    if rows.query is not None:
        more["query"] = rows.query
    if "group" in oracle.text:
        more["group"] = rows.group
        seen = tuple(np.unique(rows.group).tolist())
        more["task"] = sp.Task.binary(groups={"group": seen})
    if oracle.text in ("coverage", "selective_risk"):
        more["abstained"] = rows.abstained
    return rows.y, second, more


def asked_of(oracle, rows):
    """The outside truth, or None where the metric is not asked of such rows."""
    k = [x for x in sp.metric(oracle.text).leaves() if hasattr(x, "k") and x.need == "scores"]
    if oracle.task == "binary" and k and len(rows.y) < k[0].k:
        return None
    said = [c for x in sp.metric(oracle.text).walk() for c in getattr(x, "conditions", ())]
    if any(value not in rows.group for _, value in said):
        return None  # refused: no row of that group
    value = oracle.reference(rows)
    return None if math.isnan(value) else value


@pytest.mark.parametrize("task", TASKS)
@settings(quick, max_examples=60)
@given(data=st.data())
def test_every_metric_of_a_task(task, data):
    """One table of rows, every metric of its task on it, every property of each.

    The rows are drawn once for all metrics: drawing is what costs time here.
    """
    rows = data.draw(ROWS[task]())
    shard = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(rows.y), max_size=len(rows.y)))
    )
    for oracle in ORACLES:
        value = asked_of(oracle, rows) if oracle.task == task else None
        if value is None:
            continue
        metric = sp.metric(oracle.text)
        try:
            check_truth_and_interval(metric, oracle, rows, value)
            check_row_order(metric, oracle, rows, value)
            check_shards(metric, oracle, rows, shard)
            check_tensors(oracle, rows)
            if oracle.uses == "decisions" and task in ("binary", "multilabel"):
                check_soft_at_hard_memberships(metric, oracle, rows)
            if oracle.uses == "decisions" and task == "binary":
                check_soft_converges(metric, oracle, rows)
        except Exception as error:
            error.add_note(f"metric: {oracle.text}")
            raise


COLUMNS = ("sample_weight", "group", "query", "abstained")


def check_truth_and_interval(metric, oracle, rows, value):
    y, second, more = arguments(oracle, rows)
    assert metric(y, second, **more) == pytest.approx(value, rel=1e-12, abs=1e-12)
    low, high = metric.interval()
    assert low - 1e-9 <= value <= high + 1e-9


def check_row_order(metric, oracle, rows, value):
    y, second, more = arguments(oracle, rows)
    order = np.random.default_rng(0).permutation(len(y))
    more = {k: v[order] if k in COLUMNS and v is not None else v for k, v in more.items()}
    assert metric(y[order], second[order], **more) == pytest.approx(value, rel=1e-11, abs=1e-11)


def check_shards(metric, oracle, rows, shard):
    """Totals of shards merge."""
    if len(rows.y) < 2:
        return
    y, second, more = arguments(oracle, rows)

    def part(mask):
        cut = {k: v[mask] if k in COLUMNS and v is not None else v for k, v in more.items()}
        weight = cut["sample_weight"]
        if weight is not None and weight.sum() == 0:
            return None
        return metric.totals(y[mask], second[mask], **cut)

    parts = [part(shard == i) for i in np.unique(shard)]
    if any(p is None for p in parts):
        return  # a shard without weight is refused at the door
    whole = metric(y, second, **more)
    assert sum(parts).value() == pytest.approx(whole, rel=1e-11, abs=1e-11)


def check_tensors(oracle, rows):
    """Tensors give the same value."""
    y, second, more = arguments(oracle, rows)
    text = oracle.text
    if np.asarray(y).dtype.kind == "U":
        y, second = _coded(y), (_coded(second) if oracle.uses == "decisions" else second)
        more["task"] = sp.Task.multiclass(range(len(CLASSES)))
        text = _numbered(oracle.text)
    metric = sp.metric(text)
    expected = metric(y, second, **more)
    for key in ("sample_weight", "abstained"):
        if more.get(key) is not None:
            more[key] = torch.as_tensor(more[key])
    value = metric(torch.as_tensor(y), torch.as_tensor(second), **more)
    assert isinstance(value, torch.Tensor)
    assert float(value) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def _coded(labels):
    return np.array([CLASSES.index(label) for label in labels])


def _numbered(text):
    for index, label in enumerate(CLASSES):
        text = text.replace(f'of("{label}")', f"of({index})")
    return text


def check_soft_at_hard_memberships(metric, oracle, rows):
    """The limit of growing sharpness: memberships 0 and 1 give the exact value."""
    y, second, more = arguments(oracle, rows)
    if "abstained" in more:
        return
    soft = metric.soft(y, np.asarray(second, float), **more)
    assert soft == pytest.approx(metric(y, second, **more), rel=1e-12, abs=1e-12)


def check_soft_converges(metric, oracle, rows):
    """The soft reading converges with sharpness, and its gradients are finite."""
    y, _, more = arguments(oracle, rows)
    hard = rows.scores >= 0.55  # off the grid of tied scores
    margin = np.abs(rows.scores - 0.55).min()
    if "abstained" in more or margin < 1e-3:
        return
    z = torch.as_tensor(rows.scores - 0.55).requires_grad_()
    sharp = torch.sigmoid(z * (60 / margin))
    group = more.pop("group", None)
    weight = more.pop("sample_weight")
    weight = None if weight is None else torch.as_tensor(weight)
    value = metric.soft(torch.as_tensor(y), sharp, weight, group, **more)
    exact = metric.totals(y, hard, rows.weight, group, **more)
    if exact.defined():  # an empty rate has no limit
        assert float(value.detach()) == pytest.approx(exact.value(), rel=1e-6, abs=1e-6)
    soft = metric.soft(torch.as_tensor(y), torch.sigmoid(z), weight, group, **more)
    if soft.requires_grad:
        soft.backward()
        assert torch.isfinite(z.grad).all()


@quick
@given(rows=ROWS["binary"](), memberships=st.data())
def test_soft_counts_add_up_to_the_class_totals(rows, memberships):
    s = np.array(
        memberships.draw(st.lists(st.floats(0, 1), min_size=len(rows.y), max_size=len(rows.y)))
    )
    counts = {m: sp.metric(m).soft(rows.y, s, rows.weight) for m in ("tp", "fp", "fn", "tn")}
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    assert counts["tp"] + counts["fn"] == pytest.approx(weight @ (rows.y == 1), abs=1e-9)
    assert counts["fp"] + counts["tn"] == pytest.approx(weight @ (rows.y == 0), abs=1e-9)


def test_every_row_of_the_table_has_an_outside_truth():
    said = " ".join(o.text for o in ORACLES)
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in said).split())
    missing = [name for name in sp.METRICS if name not in words]
    assert missing == []


def test_at_least_sixty_forms_are_held():
    assert len(ORACLES) >= 60


def test_every_alias_equals_its_metric():
    for row in sp.METRICS.values():
        for alias in row.aliases:
            assert sp.NAMES[alias] == sp.NAMES[row.name]
            assert str(sp.NAMES[alias]) == alias
            assert getattr(sp, alias) == getattr(sp, row.name)


def test_every_metric_file_is_in_the_table():
    import pathlib

    import setpoint.metrics as room

    files = {p.stem for p in pathlib.Path(room.__file__).parent.glob("*.py")}
    from setpoint.metrics import table

    assert files - {"__init__", "definition", "table"} == {
        m.__name__.rsplit(".", 1)[1]
        for m in (
            table.binary,
            table.points,
            table.ranking,
            table.reductions,
            table.regression,
            table.selective,
        )
    }


@pytest.mark.parametrize("name", [n for n in BY_ID if BY_ID[n].task == "binary"])
def test_merging_is_declared(name):
    columns = take_in(
        TASKS["binary"],
        [0, 1, 1, 0],
        decisions=[0, 1, 0, 1],
        scores=[0.1, 0.2, 0.3, 0.4],
        group=list("abab"),
    )
    for leaf in sp.metric(BY_ID[name].text).expand(Domain(columns)).leaves():
        assert leaf.merges in ("sum", "moments", "concatenate")
        assert (leaf.merges == "concatenate") == isinstance(leaf, Curve)


def test_reserved_words_are_not_group_columns():
    for word, how in itertools.product(RESERVED, ("gap", "worst")):
        if word not in ("bin", "class"):
            with pytest.raises(sp.GoalError):
                Over(how, sp.recall, word)
