"""Implicit thresholds: corrections, pools, guards, several thresholds, the loop; by brute force."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint._core.errors import GoalError, KindError
from setpoint.methods import Implicit, Lagrangian
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.recent_rows import Pool, TrackedRows
from setpoint.methods.implicit.implicit import multipliers
from setpoint.methods.implicit.level_thresholds import best_threshold, level_thresholds, tail
from setpoint.methods.implicit.threshold_search import search_shifts, search_slots
from setpoint.methods.portfolio import EFFORTS, entries
from setpoint.solvers import FirstOrder
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.loop import TrainingPlan, train


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return sp.GoalLoss(goal, method, guard=False, **options)


SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)
GROUPS = sp.Task.binary(groups={"g": ["a", "b"]})


def rows(n, seed=0, share=0.3, scale=1.0):
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=rng) < share).long()
    return scale * torch.randn(n, generator=rng) + 1.5 * y, y


# --- corrections ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(SCORES, st.floats(0.01, 0.99), st.booleans(), st.booleans(), st.integers(0, 99))
def test_a_level_is_kept_and_no_further_border_keeps_it(values, level, at_least, weighted, seed):
    """Against every threshold that tells the rows apart, ties decided together."""
    scores = np.array(values)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(scores)) * 1.0 if weighted else np.ones(len(scores))
    whole = weight.sum()

    def rate(t):
        return weight[scores >= t].sum() / whole

    found = {}
    for name, kind in (("numpy", np.asarray), ("torch", torch.as_tensor)):
        arguments = kind(scores), kind(weight), whole, kind(np.array([level]))
        (cut,) = level_thresholds(*arguments, at_least, 0.25)
        found[name] = rate(float(cut))
    assert found["numpy"] == found["torch"]
    others = {rate(t) for t in [*scores, scores.max() + 1]}
    near = 1e-9
    if at_least:
        best = min(r for r in others if r >= level - near)
    else:
        best = max((r for r in others if r <= level + near), default=0.0)
    # a cap below one row is stood in for by the first row's own score
    assert found["numpy"] == best or (best == 0 and found["numpy"] == rate(scores.max()))


@settings(max_examples=40, deadline=None)
@given(SCORES, SCORES, st.floats(0.05, 0.95), st.booleans())
def test_the_ends_of_two_processes_are_enough_for_the_border_of_all(a, b, level, at_least):
    parts = [torch.tensor(x, dtype=torch.float64) for x in (a, b)]
    mass = torch.tensor(float(len(a) + len(b)))
    whole = torch.cat(parts)
    sent = [tail(x, torch.ones_like(x), mass, level, at_least) for x in parts]
    scores, weight = (torch.cat(x) for x in zip(*sent, strict=True))
    cut = [torch.tensor([level], dtype=torch.float64), at_least, 0.25]
    ours = level_thresholds(scores, weight, mass, *cut)
    alone = level_thresholds(whole, torch.ones_like(whole), mass, *cut)
    assert [(whole >= t).sum() for t in ours] == [(whole >= t).sum() for t in alone]


def test_the_ends_that_are_sent_are_short():
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    sent, _ = tail(x, torch.ones(10_000), torch.tensor(30_000.0), 0.01, False)
    assert len(sent) <= 302


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 25))
def test_the_best_threshold_is_that_of_brute_force(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    if y.all() or not y.any():
        return
    scores = rng.integers(-3, 4, n) + 0.0
    goal = sp.Goal.parse("maximize f1 subject to precision >= 0.6, recall >= 0.2")
    lowered = Lowered(goal, Cells(sp.Task.binary()))
    given_rows = torch.tensor(scores), torch.tensor(y).long(), torch.ones(n, dtype=torch.float64)
    found = best_threshold(lowered, *given_rows, 0.5)
    decided = scores >= float(found.threshold)
    best, feasible = -1.0, False
    for t in np.unique(scores):
        d = scores >= t
        if sp.precision(y, d) >= 0.6 and sp.recall(y, d) >= 0.2:
            best, feasible = max(best, sp.f1(y, d)), True
    if feasible:
        assert sp.precision(y, decided) >= 0.6 - 1e-9
        assert sp.f1(y, decided) == pytest.approx(best, abs=1e-6)
        assert found.broken.sum() == 0
        assert found.binds.sum() <= 1
    else:
        assert found.broken.sum() > 0


def test_which_constraint_stops_the_threshold():
    z, y = rows(400)
    for text, binds in (
        ("maximize recall subject to precision >= 0.7, fpr <= 0.5", [1, 0]),
        ("maximize recall subject to precision >= 0.2, fpr <= 0.1", [0, 1]),
        ("maximize f1 subject to recall >= 0.05", [0]),
    ):
        loss = bare(text, "implicit", memory=0, warmup=0)
        loss.observe(z, y)
        assert loss.program.keeper.binds.tolist() == binds


# --- multipliers ---------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_as_many_equations_as_thresholds_are_solved_exactly(seed, m):
    rng = np.random.default_rng(seed)
    held, down = rng.normal(size=(m, m)) + 3 * np.eye(m), rng.normal(size=m)
    on = np.ones(m)
    truth = np.linalg.solve(held.T, -down)
    assume(np.abs(truth).max() < 50)  # multipliers are kept within a hundred
    np.testing.assert_allclose(multipliers(down, held, on, on, 1e-9), truth, rtol=1e-6, atol=1e-9)
    tensors = (torch.tensor(x) for x in (down, held, on, on))
    np.testing.assert_allclose(multipliers(*tensors, 1e-9), truth, rtol=1e-6, atol=1e-9)


def test_an_inequality_has_no_negative_multiplier_and_an_inactive_one_none():
    held, on, equal = np.array([[1.0]]), np.ones(1), np.zeros(1)
    assert multipliers(np.array([2.0]), held, on, equal, 1e-6) == 0
    assert multipliers(np.array([-2.0]), held, on, equal, 1e-6) == 2
    assert multipliers(np.array([-2.0]), held, 0 * on, equal, 1e-6) == 0
    assert multipliers(np.array([2.0]), held, on, on, 1e-6) == -2


# --- several thresholds --------------------------------------------------------------------------


def test_thresholds_of_groups_are_as_good_as_brute_force():
    rng = np.random.default_rng(1)
    n = 60
    y, g = rng.random(n) < 0.5, rng.integers(0, 2, n)
    scores = rng.normal(size=n) + y + g
    goal = sp.Goal.parse('maximize accuracy subject to gap(positive_rate, by="g") <= 0.1')
    lowered = Lowered(goal, Cells(GROUPS))
    slot = np.array([0, 0, 1, 1])
    cuts, _, broken = search_slots(lowered, slot, scores, 2 * g + y, np.ones(n), 0.5)
    assert not broken.any()
    best = 0.0
    sorted_ = [np.sort(scores[g == k]) for k in (0, 1)]
    for a in [*sorted_[0], 9.0]:
        for b in [*sorted_[1], 9.0]:
            d = scores >= np.where(g == 0, a, b)
            if abs(d[g == 0].mean() - d[g == 1].mean()) <= 0.1:
                best = max(best, (d == y).mean())
    ours = scores >= cuts[g]
    assert abs(ours[g == 0].mean() - ours[g == 1].mean()) <= 0.1 + 1e-9
    assert (ours == y).mean() == pytest.approx(best)


def test_shifts_of_classes_keep_a_floor_that_argmax_breaks():
    rng = np.random.default_rng(0)
    n = 900
    y = rng.integers(0, 3, n)
    scores = rng.normal(size=(n, 3)) + np.eye(3)[y]
    goal = sp.Goal.parse("maximize accuracy subject to recall.of(2) >= 0.8")
    lowered = Lowered(goal, Cells(sp.Task.multiclass(range(3))))
    assert (scores.argmax(1) == 2)[y == 2].mean() < 0.7
    found, binds, broken = search_shifts(lowered, scores, y, np.ones(n), np.zeros(3), 0.5)
    decided = (scores - found).argmax(1)
    assert (decided == 2)[y == 2].mean() >= 0.8
    assert binds.tolist() == [1]
    assert not broken.any()
    # against a grid of the two shifts that matter
    best = 0.0
    for a in np.linspace(-2, 2, 41):
        for b in np.linspace(-2, 2, 41):
            d = (scores - [a, b, 0]).argmax(1)
            if (d == 2)[y == 2].mean() >= 0.8:
                best = max(best, (d == y).mean())
    assert (decided == y).mean() >= best - 0.01


# --- the pool ------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=12), st.integers(3, 9))
def test_a_pool_holds_the_newest_rows(sizes, size):
    pool, seen = Pool(size), []
    for n in sizes:
        new = torch.arange(len(seen), len(seen) + n) + 1.0
        pool.push(
            TrackedRows(new[:size], torch.zeros(min(n, size)).long(), torch.ones(min(n, size))),
            size,
        )
        seen += new[:size].tolist()
    held = pool.rows(size)
    assert sorted(held.scores[held.weight > 0].tolist()) == sorted(seen[-size:])


def test_few_rows_are_pooled_until_the_level_means_something():
    """At 1 % of 40 negatives a batch's own border lies at its first row; the pool's does not."""
    rng = torch.Generator().manual_seed(0)
    found = {}
    for pool in (0, 8192):
        loss = bare("minimize fnr_at_fpr(0.02)", "implicit", pool=pool, every=1)
        at = []
        for _ in range(120):
            z = torch.randn(40, generator=rng)
            loss.observe(z, torch.zeros(40).long())
            at.append(float(loss.program.reader.thresholds))
        found[pool] = np.array(at[60:])
    truth = 2.0537  # of a standard normal
    assert np.abs(found[8192] - truth).mean() < 0.1
    assert np.abs(found[0] - truth).mean() > 2 * np.abs(found[8192] - truth).mean()


# --- guards --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "minimize fnr_at_fpr(0.01)",
        "maximize auprc(min_recall=0.99)",
        "maximize recall subject to precision >= 0.99",
        "maximize auroc",
    ],
)
@pytest.mark.parametrize("kind", ["ties", "one class", "the other", "far apart", "one row"])
def test_finite_where_there_is_nothing_to_go_by(text, kind):
    z, y = rows(50)
    z, y = {
        "ties": (0 * z, y),
        "one class": (z, 0 * y),
        "the other": (z, 0 * y + 1),
        "far apart": (1e4 * z, y),
        "one row": (z[:1], y[:1]),
    }[kind]
    loss = bare(text, "implicit", warmup=0)
    for _ in range(12):
        leaf = z.clone().requires_grad_()
        value = loss(leaf, y)
        value.backward()
        assert value.isfinite()
        assert leaf.grad.isfinite().all()
        assert loss.program.reader.thresholds.isfinite().all()


def test_the_regulariser_keeps_scores_off_the_threshold():
    """Its gradient is that of (∂g/∂λ)² at a fixed λ, by finite differences."""
    z, y = (x.double() if x.is_floating_point() else x for x in rows(60))
    leaf, plain = z.clone().requires_grad_(), z.clone().requires_grad_()
    options = {"memory": 0, "warmup": 0, "pool": 0, "sharpness": 2.0}
    with_, without = (
        bare("minimize fnr_at_fpr(0.2)", "implicit", regulariser=r, **options) for r in (0.7, 0.0)
    )
    with_(leaf, y).backward()
    without(plain, y).backward()
    at = float(with_.program.reader.thresholds)
    negative = y == 0

    def density(s):
        m = torch.sigmoid(2 * (s - at))
        return float((2 * m * (1 - m))[negative].mean()) ** 2

    for i in range(5):
        step = torch.zeros_like(z)
        step[i] = 1e-5
        slope = 0.7 * (density(z + step) - density(z - step)) / 2e-5
        assert float(leaf.grad[i] - plain.grad[i]) == pytest.approx(slope, abs=1e-8)


def test_following_the_step_is_the_order_statistic_to_first_order():
    z, y = (x.double() if x.is_floating_point() else x for x in rows(4000, scale=1.3))
    options = {"memory": 0, "warmup": 0, "pool": 0, "correction": "soft"}
    loss = bare("minimize fnr_at_fpr(0.1)", "implicit", follow=True, **options)
    leaf = z.clone().requires_grad_()
    loss(leaf, y)
    before = float(loss.program.reader.thresholds)
    moved = z + 0.01 * torch.sin(3 * z) + 0.005
    loss.follow(moved)
    followed = float(loss.program.reader.thresholds)
    loss(moved.requires_grad_(), y)
    truth = float(loss.program.reader.thresholds)
    assert abs(truth - before) > 5e-4
    assert abs(followed - truth) < 0.05 * abs(truth - before)


# --- through the doors ---------------------------------------------------------------------------


def test_thresholds_are_refreshed_from_all_rows_in_evaluation_mode():
    """With dropout the scores of training are wider: the thresholds of the history are not."""
    z, y = rows(600)
    x = torch.stack([z, -z, torch.ones_like(z)], 1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 1, bias=False))
    loss = bare("minimize fnr_at_fpr(0.1)", "implicit", every=1000, warmup=0)
    plan = TrainingPlan(solver=FirstOrder(1e-9, weight_decay=0), epochs=2)
    run = train(model, loss, InMemory(TrainingRows(x, y), 100), plan)
    with torch.no_grad():
        scores = model.eval()(x)[:, 0]
    cut = run.history[-1]["threshold"]
    assert float((scores[y == 0] >= cut).float().mean()) <= 0.1
    assert float((scores[y == 0] >= cut).float().mean()) >= 0.09
    assert run.history[-1]["kernel"] > 1


def test_a_line_is_turned_towards_the_operating_point():
    """Two clusters of negatives: one near in x1 that cross-entropy minds, few at the tail in x2."""
    rng = np.random.default_rng(0)
    n = 4000
    y = (rng.random(n) < 0.2).astype(int)
    x = rng.normal(size=(n, 2)) + y[:, None] * [1.2, 1.2]
    x[(y == 0) & (rng.random(n) < 0.04)] += [4.0, 0.0]
    goal = "minimize fnr_at_fpr(0.02)"
    inputs, target = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    found = {}
    for name in ("cross-entropy", "implicit"):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        loss = bare(goal, name, memory=0, warmup=0)
        optimizer = torch.optim.Adam(model.parameters(), 0.05)
        for _ in range(150):
            optimizer.zero_grad()
            loss(model(inputs), target).backward()
            optimizer.step()
        scores = model(inputs).detach().numpy()[:, 0]
        found[name] = sp.metric("fnr_at_fpr(0.02)")(y, scores)
    assert found["implicit"] < found["cross-entropy"] - 0.03


def test_the_classifier_takes_it_and_says_when_cross_entropy_was_as_good():
    z, y = rows(500, share=0.5)
    X = torch.stack([z, z**2], 1).numpy()
    made = sp.GoalClassifier(
        "minimize fnr_at_fpr(0.05)", "linear", "implicit", epochs=6, compare=False
    ).fit(X, y.numpy())
    phases = {row["phase"] for row in made.history_}
    assert phases == {"cross-entropy", "implicit"}


def test_thresholds_by_group_are_stated_not_guessed():
    z, y = rows(300)
    g = np.array(["a", "b"])[(np.arange(300) % 2)]
    X, way = z.numpy()[:, None], Implicit(by="group")
    goal = 'maximize accuracy subject to gap(positive_rate, by="group") <= 0.1'
    made = sp.GoalClassifier(goal, "linear", way, epochs=3, compare=False)
    with pytest.raises(KindError, match='kind="per-group"'):
        made.fit(X, y.numpy(), group=g)
    made = sp.GoalClassifier(goal, "linear", way, epochs=3, compare=False, kind="per-group")
    made.fit(X, y.numpy(), group=g)
    assert made.rule_.kind == "per-group"
    with pytest.raises(GoalError, match="declare its values"):
        bare("maximize f1", way)


def test_it_enters_the_portfolio_where_it_has_a_reason():
    def names(text, task=None):
        found = entries(sp.Goal.parse(text), task or sp.Task.binary(), EFFORTS["standard"], ["mlp"])
        return {str(entry): entry.why for entry in found if entry.driven}

    assert set(names("minimize fnr subject to fpr <= 0.01")) == {
        "linear + costs",
        "linear + implicit",
    }
    assert set(names("maximize auprc(min_recall=0.95)")) == {"linear + implicit"}
    assert names("maximize auroc") == {}
    fair = 'maximize accuracy subject to gap(recall, by="g") <= 0.05'
    assert set(names(fair, GROUPS)) == {"linear + lagrangian"}
    assert set(names(fair)) == {"linear + lagrangian"}  # values of the column come with the rows


# --- what went wrong once ------------------------------------------------------------------------


def test_a_copy_after_many_steps_trains_like_the_original():
    loss = bare("maximize auroc(max_fpr=0.2)", "implicit", points=3, every=3)
    for i in range(230):
        z, y = rows(40, seed=i)
        loss(z.requires_grad_(), y.float())
    twin = copy.deepcopy(loss)
    thawed = pickle.loads(pickle.dumps(loss))
    for i in range(5):
        z, y = rows(40, seed=1000 + i)
        values = [float(one.observe(z, y.float())) for one in (loss, twin, thawed)]
        assert values[1] == pytest.approx(values[0], abs=1e-6)
        assert values[2] == pytest.approx(values[0], abs=1e-6)


def test_groups_have_thresholds_of_their_own_at_a_level_too():
    z, y = rows(800)
    g = torch.arange(800) % 2
    z = z + 2.0 * g
    loss = bare(
        "minimize fnr subject to fpr <= 0.1", "implicit", task=GROUPS, by="g", memory=0, warmup=0
    )
    leaf = z.clone().requires_grad_()
    loss(leaf, y, group=g).backward()
    a, b = loss.recover().thresholds
    assert b - a == pytest.approx(2.0, abs=1.2)


def test_a_pool_filled_from_sorted_rows_holds_both_classes():
    z, y = rows(20_000)
    order = y.argsort(descending=True)
    loss = bare("maximize accuracy subject to fpr <= 0.05", "implicit")
    loss.refresh(z[order], y[order])
    known = float(loss.program.reader.thresholds)
    loss.observe(z[:100], y[:100])
    assert float(loss.program.reader.thresholds) == pytest.approx(known, abs=0.1)
    assert set(loss.program.keeper.pool.place.tolist()) == {0, 1}


@pytest.mark.parametrize("name", ["implicit", "lagrangian", "soft-set"])
def test_a_gap_that_should_be_nothing_is_never_less(name):
    z, y = rows(200)
    g = torch.arange(200) % 2
    goal = 'maximize accuracy subject to gap(positive_rate, by="g") <= 0'
    loss = bare(goal, name, task=GROUPS)
    for _ in range(3):
        loss.observe(z - g, y, group=g)
    assert loss.recover().constraints[0].excess > 0.01


@pytest.mark.parametrize("options", [{"correction": "soft"}, {"pool": 0}])
def test_what_needs_a_whole_batch_refuses_parts(options):
    with pytest.raises(KindError, match="accumulate"):
        bare("minimize fnr_at_fpr(0.1)", "implicit", accumulate=2, **options)


def test_following_is_refused_where_a_second_reading_differs():
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1))
    loss = bare("minimize fnr_at_fpr(0.1)", "implicit", follow=True)
    z, y = rows(50)
    with pytest.raises(KindError, match="Dropout"):
        train(model, loss, InMemory(TrainingRows(z[:, None], y), 25), TrainingPlan(epochs=1))


def test_recover_reads_a_part_of_a_curve_in_its_own_units():
    z, y = rows(4000)
    loss = bare("maximize auroc(max_fpr=0.2)", "implicit", points=40, sharpness=200.0)
    loss.refresh(z, y)
    for _ in range(3):
        loss.observe(z, y)
    truth = sp.metric("auroc(max_fpr=0.2)")(y.numpy(), z.numpy())
    assert loss.recover().value == pytest.approx(truth, abs=0.01)


def test_shifts_come_back_from_where_a_class_is_out_of_sight():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    scores = rng.normal(size=(600, 3)) + 2 * np.eye(3)[y]
    lowered = Lowered(sp.Goal.parse("maximize accuracy"), Cells(sp.Task.multiclass(range(3))))
    far = np.array([0.0, 0.0, 50.0])
    found, *_ = search_shifts(lowered, scores, y, np.ones(600), far, 0.5)
    assert ((scores - found).argmax(1) == y).mean() >= (scores.argmax(1) == y).mean()


# --- fairness ------------------------------------------------------------------------------------

FAIR = {
    "demographic parity": 'maximize accuracy subject to gap(positive_rate, by="g") <= 0.05',
    "equal opportunity": 'maximize accuracy subject to gap(recall, by="g") <= 0.05',
    "equalised odds": 'maximize f1 subject to gap(recall, by="g") <= 0.1, gap(fpr, by="g") <= 0.1',
    "worst group": 'maximize worst(recall, by="g") subject to fpr <= 0.2',
    "80 % rule": 'maximize accuracy subject to ratio(positive_rate, by="g") >= 0.8',
}


@pytest.mark.parametrize("name", FAIR)
@pytest.mark.parametrize(
    "way", [Implicit(every=1), Implicit(every=1, by="g"), Lagrangian()], ids=["one", "by", "dual"]
)
def test_fairness_goals_are_kept_on_the_rows_they_are_trained_on(name, way):
    """A free score per row (a table of logits): nothing stands in the way but the method."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(200, generator=rng) < 0.4).long()
    g = (torch.rand(200, generator=rng) < 0.5).long()
    scores = (torch.randn(200, generator=rng) + y - g).requires_grad_()
    loss = bare(FAIR[name], way, task=GROUPS, memory=0, warmup=0)
    optimizer = torch.optim.Adam([scores], 0.05)
    for _ in range(150):
        optimizer.zero_grad()
        loss(scores, y, group=g).backward()
        assert scores.grad is not None
        assert scores.grad.isfinite().all()
        optimizer.step()
    given = {"group": {"g": np.array(["a", "b"])[g.numpy()]}}
    kind = {"kind": "per-group", "by": "g"} if getattr(way, "by", None) else {}
    rule = sp.tune(FAIR[name], y.numpy(), scores.detach().numpy(), **given, **kind)
    assert rule.feasible
    assert rule.value > 0.75


def test_a_loss_moved_to_another_type_goes_on_pooling():
    loss = bare("minimize fnr_at_fpr(0.2)", "implicit", every=2, pool=200)
    for i in range(230):
        z, y = rows(40, seed=i)
        loss.observe(z, y.float())
    before = float(loss.program.reader.thresholds)
    loss.double()
    for i in range(230):
        z, y = rows(40, seed=i)
        loss.observe(z + 5, y.float())
    assert float(loss.program.reader.thresholds) == pytest.approx(before + 5, abs=0.5)
