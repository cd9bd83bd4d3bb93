"""GoalKeeper: best weights by the exact goal, resumed in the same bits, leaving no trace."""

import copy
import logging
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.validation import LossReport, check_accumulation, goal_figures

GOAL = "maximize recall subject to precision >= 0.7"


def rows(n=600, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=rng)
    return x, ((x[:, 0] + 0.6 * torch.randn(n, generator=rng)) > 1).long()


def network(seed=1):
    torch.manual_seed(seed)
    layers = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1)
    return nn.Sequential(*layers, nn.Flatten(0))


class Loop:
    """A plain loop that can be saved and taken up."""

    def __init__(self, **options):
        self.model = network()
        self.loss = sp.GoalLoss(GOAL, guard=True)
        self.optimiser = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.x, self.y = rows()
        self.keeper = sp.GoalKeeper(self.model, self.loss, *rows(300, 1), **options)

    def epochs(self, n):
        for _ in range(n):
            for batch in torch.randperm(len(self.y)).split(50):
                self.optimiser.zero_grad()
                self.loss(self.model(self.x[batch]), self.y[batch]).backward()
                self.optimiser.step()
            self.keeper.step()

    def parts(self):
        return self.model, self.loss, self.optimiser, self.keeper


def same(a, b):
    assert a.keys() == b.keys()
    for name, x in a.items():
        assert torch.equal(x, b[name]), name


def fixed(bias):
    """A model whose logit is the first column, and a bias."""
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0, 0, 0]]))
        model.bias.fill_(bias)
    return model


# --- what is kept ---------------------------------------------------------------------------------


def test_the_best_weights_come_back_with_a_rule_of_these_weights():
    loop = Loop()
    loop.epochs(6)
    keeper = loop.keeper
    rule = keeper.finish()
    x, y = rows(300, 1)
    loop.model.eval()
    with torch.no_grad():
        logits = loop.model(x)
    same(loop.model.state_dict(), keeper.state_dict()["best"]["model"])
    again = sp.tune(GOAL, y, logits, task=sp.Task.binary(score="logit"))
    assert rule.threshold == again.threshold
    assert rule.value == keeper.best.value
    assert rule is keeper.rule
    assert rule.task.score == "logit"
    best = max((check.feasible, check.value) for check in keeper.history)
    assert best == (keeper.best.feasible, keeper.best.value)


class Scripted(nn.Module):
    """A model whose outputs are set from outside, and a weight that tells which they were."""

    def __init__(self):
        super().__init__()
        self.mark = nn.Parameter(torch.zeros(()))
        self.outputs = None

    def forward(self, x):
        return self.outputs


Y = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0])
#: outputs at which the best of the goal is known: recall 1, ½ and ¼ where precision >= .7 is kept
PERFECT = [4, 3, 2, 1, -1, -2, -3, -4]
HALF = [4, 3, -9, -9, 1, 0, -1, -2]
QUARTER = [4, -9, -9, -9, 3, 2, 1, 0]
#: precision >= .7 at no threshold: 4 of 8 and 3 of 5 are the nearest
BROKEN = [1, 1, 1, 1, 1, 1, 1, 1]
LESS_BROKEN = [1, 1, 1, -9, 5, 4, -9, -9]


def scripted(script, **options):
    model = Scripted()
    keeper = sp.GoalKeeper(model, GOAL, torch.zeros(8, 1), Y, **options)
    for i, outputs in enumerate(script):
        model.outputs = torch.tensor(outputs, dtype=torch.float32)
        with torch.no_grad():
            model.mark.fill_(i)
        keeper.step()
    return model, keeper


def test_the_script_reads_as_it_is_meant():
    _, keeper = scripted([PERFECT, HALF, QUARTER, BROKEN, LESS_BROKEN])
    assert [check.feasible for check in keeper.history] == [True, True, True, False, False]
    assert [check.value for check in keeper.history[:3]] == [1, 0.5, 0.25]
    assert [check.constraints["precision >= 0.7"] for check in keeper.history[3:]] == [0.5, 0.6]


@pytest.mark.parametrize(
    ("script", "best"),
    [
        ([QUARTER, HALF, QUARTER], 1),
        ([BROKEN, QUARTER, BROKEN], 1),  # a constraint that is kept beats recall 1
        ([BROKEN, LESS_BROKEN, BROKEN], 1),  # the least broken, where none is kept
        ([HALF, HALF], 0),  # of equal ones the first
    ],
)
def test_which_weights_are_kept(script, best):
    model, keeper = scripted(script)
    keeper.restore()
    assert float(model.mark.detach()) == best
    assert keeper.best.step == best + 1


def test_it_stops_after_patience_without_a_better_one():
    _, keeper = scripted([QUARTER, HALF, QUARTER, HALF], patience=3)
    assert not keeper.stop
    _, keeper = scripted([QUARTER, HALF, QUARTER, HALF, QUARTER], patience=3)
    assert keeper.stop


def test_outputs_that_are_not_finite_are_never_kept(caplog):
    nan = [float("nan")] * 8
    model, keeper = scripted([nan, HALF, nan], patience=1)
    assert keeper.stop
    keeper.restore()
    assert float(model.mark.detach()) == 1
    assert "not finite (step 1)" in caplog.text
    _, keeper = scripted([nan])
    with pytest.raises(sp.KindError, match="kept no weights yet"):
        keeper.finish()


def test_every_counts_calls_and_finish_looks_at_the_rest():
    model, keeper = scripted([QUARTER, QUARTER, QUARTER, HALF], every=3)
    assert [check.step for check in keeper.history] == [3]
    assert keeper.step() is None
    model.outputs = torch.tensor(PERFECT, dtype=torch.float32)
    assert keeper.finish().value == 1
    assert [check.step for check in keeper.history] == [3, 5]
    keeper.finish()
    assert len(keeper.history) == 2


# --- no trace -------------------------------------------------------------------------------------


def test_an_evaluation_changes_nothing():
    loop = Loop()
    loop.epochs(2)
    loop.model.train()
    loop.model[1].eval()  # frozen, as in fine-tuning
    modes = [module.training for module in loop.model.modules()]
    assert len(set(modes)) == 2
    before = [copy.deepcopy(part.state_dict()) for part in loop.parts()[:3]]
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    loss_mode = loop.loss.training
    status = loop.loss.status()
    loop.keeper.step()
    assert [module.training for module in loop.model.modules()] == modes
    same(loop.model.state_dict(), before[0])
    same(loop.loss.state_dict(), before[1])
    assert loop.loss.training == loss_mode
    assert loop.loss.status() == status
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    assert all(p.grad is None or p.grad.isfinite().all() for p in loop.model.parameters())


def test_the_modes_come_back_from_an_error_too():
    model = network().train()
    keeper = sp.GoalKeeper(model, GOAL, torch.zeros(8, 3), Y)
    with pytest.raises(RuntimeError):
        keeper.step()
    assert all(module.training for module in model.modules())


def test_training_is_the_same_with_a_keeper_and_without():
    ends = []
    for watched in (True, False):
        loop = Loop()
        if not watched:
            loop.keeper = type("Nobody", (), {"step": staticmethod(lambda: None)})
        torch.manual_seed(5)
        loop.epochs(3)
        ends.append(loop.model.state_dict())
    same(*ends)


# --- resumed --------------------------------------------------------------------------------------


def test_a_resumed_run_ends_in_the_same_bits(tmp_path):
    whole = Loop(patience=2)
    torch.manual_seed(7)
    whole.epochs(8)
    first = Loop(patience=2)
    torch.manual_seed(7)
    first.epochs(3)
    state = [part.state_dict() for part in first.parts()]
    torch.save([*state, torch.get_rng_state()], tmp_path / "run.pt")
    second = Loop(patience=2)
    *states, generator = torch.load(tmp_path / "run.pt", weights_only=True)
    for part, saved in zip(second.parts(), states, strict=True):
        part.load_state_dict(saved)
    torch.set_rng_state(generator)
    second.epochs(5)
    assert second.keeper.history == whole.keeper.history
    assert second.keeper.stop == whole.keeper.stop
    rules = [loop.keeper.finish() for loop in (whole, second)]
    same(whole.model.state_dict(), second.model.state_dict())
    assert rules[0].threshold == rules[1].threshold


def test_a_resumed_keeper_still_has_the_weights_of_before():
    _, first = scripted([QUARTER, HALF, QUARTER], patience=3)
    model, second = scripted([], patience=3)
    second.load_state_dict(first.state_dict())
    model.outputs = torch.tensor(QUARTER, dtype=torch.float32)
    second.step()
    assert not second.stop
    second.step()
    assert second.stop
    second.restore()
    assert float(model.mark.detach()) == 1


def test_a_state_of_another_goal_is_refused():
    keeper = sp.GoalKeeper(fixed(0), "maximize f1", *rows(50))
    state = keeper.state_dict()
    other = sp.GoalKeeper(fixed(0), GOAL, *rows(50))
    with pytest.raises(sp.FileError, match='"maximize f1", and the goal is "maximize recall'):
        other.load_state_dict(state)
    with pytest.raises(sp.FileError, match="not the state of a GoalKeeper"):
        other.load_state_dict({})


def test_the_kept_weights_are_a_copy_on_the_device_that_was_asked_for():
    model, keeper = scripted([HALF], device="cpu")
    kept = keeper.state_dict()["best"]["model"]["mark"]
    with torch.no_grad():
        model.mark.fill_(9)
    assert kept.device.type == "cpu"
    assert float(kept) == 0


# --- kinds of goals, tasks and rows ---------------------------------------------------------------


class Pair(nn.Module):
    """A model of two inputs."""

    def __init__(self):
        super().__init__()
        self.linear = fixed(0.0)

    def forward(self, left, right):
        return self.linear(torch.cat([left, right], 1))


@pytest.mark.parametrize("form", ["tensor", "numpy", "tuple", "dict", "loader", "dicts", "hidden"])
def test_forms_of_rows_read_alike(form):
    x, y = rows(100)
    left, right = x[:, :2], x[:, 2:]
    model = fixed(0.0) if form in ("tensor", "numpy", "loader", "hidden") else Pair()
    options = {"batch_size": 33}
    match form:
        case "tensor":
            given = x, y
        case "numpy":
            given = x.numpy(), y.numpy()
        case "tuple":
            given = (left, right), y
        case "dict":
            given = {"right": right, "left": left}, y
        case "loader":
            given = (DataLoader(TensorDataset(x, y), batch_size=7),)
        case "dicts":
            table = [{"left": a, "right": b, "labels": c} for a, b, c in zip(left, right, y)]  # noqa: B905
            given = (DataLoader(table, batch_size=7),)
        case "hidden":
            given = (x, y)
            options["forward"] = lambda model, x: model(x)[:, 0]
    state = torch.get_rng_state()
    keeper = sp.GoalKeeper(model, GOAL, *given, **options)
    keeper.step()
    assert torch.equal(torch.get_rng_state(), state)
    plain = sp.tune(GOAL, y, x[:, 0], task=sp.Task.binary(score="logit"))
    assert keeper.finish().threshold == pytest.approx(plain.threshold)
    assert keeper.rule.rows == 100


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        (lambda x, y: (x,), sp.DataError, "the targets are missing"),
        (lambda x, y: (x, y[:5]), sp.DataError, "X_val has 50 rows and y_val 5"),
        (lambda x, y: (DataLoader(TensorDataset(x, y)), y), sp.KindError, "leave y_val out"),
    ],
)
def test_rows_that_do_not_fit_are_refused(given, error, sentence):
    x, y = rows(50)
    with pytest.raises(error, match=sentence):
        sp.GoalKeeper(fixed(0.0), GOAL, *given(x, y))


def test_a_shuffling_loader_takes_no_column_of_its_own():
    x, y = rows(50)
    loader = DataLoader(TensorDataset(x, y), shuffle=True)
    with pytest.raises(sp.KindError, match="shuffle=False"):
        sp.GoalKeeper(fixed(0.0), GOAL, loader, weight=torch.ones(50))


def test_a_loader_of_something_else_is_refused():
    keeper = sp.GoalKeeper(fixed(0.0), GOAL, DataLoader(torch.zeros(8, 4), batch_size=3))
    with pytest.raises(sp.DataError, match=r"must give \(inputs, targets\) .* got Tensor"):
        keeper.step()
    keeper = sp.GoalKeeper(nn.LSTM(4, 2), GOAL, *rows(50))
    with pytest.raises(sp.KindError, match="gives a tuple, and logits are needed; pass forward="):
        keeper.step()


def test_weights_count():
    x, y = rows(200)
    weight = torch.rand(200, generator=torch.Generator().manual_seed(3)) * 5
    keeper = sp.GoalKeeper(fixed(0.0), GOAL, x, y, weight=weight)
    keeper.step()
    task = sp.Task.binary(score="logit")
    weighed = sp.tune(GOAL, y, x[:, 0], sample_weight=weight, task=task)
    assert keeper.finish().value == pytest.approx(weighed.value)
    assert keeper.best.value == pytest.approx(weighed.value)
    assert weighed.value != pytest.approx(sp.tune(GOAL, y, x[:, 0], task=task).value)


def test_groups_by_their_codes():
    x, y = rows(400)
    sex = torch.arange(400) % 2
    task = sp.Task.binary(groups={"sex": ["f", "m"]})
    loss = sp.GoalLoss('maximize recall subject to gap(recall, by="sex") <= 0.1', task=task)
    keeper = sp.GoalKeeper(fixed(0.0), loss, x, y, group={"sex": sex})
    keeper.step()
    rule = keeper.finish()
    names = np.array(["f", "m"])[sex.numpy()]
    known = sp.Task.binary(score="logit")
    plain = sp.tune(loss.goal, y, x[:, 0], group={"sex": names}, task=known)
    assert rule.value == plain.value
    each = sp.GoalKeeper(fixed(0.0), loss, x, y, group=sex, kind="per-group", by="sex")
    each.step()
    assert each.finish().kind == "per-group"
    assert each.best.value == each.rule.value >= rule.value


def test_several_classes_and_labels():
    x, _ = rows(300)
    several = sp.Task.multiclass(["a", "b", "c", "d"])
    y = x.argmax(1)
    model = nn.Identity()
    loss = sp.GoalLoss("maximize macro(recall)", task=several)
    keeper = sp.GoalKeeper(model, loss, x, y)
    keeper.step()
    assert keeper.best.value == 1
    rule = keeper.finish()
    assert rule.kind == "offsets"
    assert rule.decide(x[:3]).tolist() == np.array(["a", "b", "c", "d"])[y[:3]].tolist()
    labels = sp.GoalLoss("maximize macro(f1)", task=sp.Task.multilabel(range(4)))
    keeper = sp.GoalKeeper(model, labels, x, (x > 0).long())
    keeper.step()
    assert keeper.best.value == 1  # decided at 0, as a logit is
    assert keeper.finish().kind == "per-label"


def test_goals_that_no_threshold_can_change_have_no_rule():
    x, y = rows(200)
    keeper = sp.GoalKeeper(fixed(0.0), sp.GoalLoss("maximize auroc", "pairwise"), x, y)
    keeper.step()
    assert keeper.best.value == pytest.approx(sp.auroc(y.numpy(), x[:, 0].numpy()))
    assert keeper.finish() is None
    target = x[:, 0] + 0.5
    loss = sp.GoalLoss("minimize mae", "errors", task="regression")
    keeper = sp.GoalKeeper(fixed(0.0), loss, x, target)
    keeper.step()
    assert keeper.best.value == pytest.approx(0.5)
    assert keeper.finish() is None


def test_the_first_k_rows():
    x, y = rows(200)
    keeper = sp.GoalKeeper(fixed(0.0), "maximize precision_at_k(20)", x, y)
    keeper.step()
    first = x[:, 0].argsort(descending=True)[:20]
    assert keeper.best.value == pytest.approx(float(y[first].double().mean()))
    assert keeper.finish().kind == "top-k"


def test_what_cannot_be_kept_is_refused():
    x, y = rows(50)
    with pytest.raises(sp.KindError, match="leave task= out"):
        sp.GoalKeeper(fixed(0.0), sp.GoalLoss(GOAL), x, y, task="binary")
    with pytest.raises(sp.KindError, match="rankings by query"):
        sp.GoalKeeper(fixed(0.0), "maximize ndcg(10)", x, y, task="ranking")
    with pytest.raises(sp.KindError, match="every=0"):
        sp.GoalKeeper(fixed(0.0), GOAL, x, y, every=0)
    with pytest.raises(sp.GoalError, match="mae"):
        sp.GoalKeeper(fixed(0.0), "minimize mae", x, y)


# --- figures --------------------------------------------------------------------------------------


def test_the_figure_for_early_stopping_sorts_broken_rules_below_kept_ones():
    def figure(scores, goal=GOAL):
        return goal_figures(sp.tune(goal, Y, torch.tensor(scores, dtype=torch.float32)))["goal"]

    figures = [figure(s) for s in (BROKEN, LESS_BROKEN, QUARTER, HALF, PERFECT)]
    assert figures[2:] == [0.25, 0.5, 1]
    assert figures == sorted(figures)
    assert len(set(figures)) == 5
    assert figures[:2] == pytest.approx([-0.2, -0.1])
    least = "minimize cost(fp=1, fn=2) subject to precision >= 0.7"
    assert 1 < figure(PERFECT, least) + 2 < figure(BROKEN, least) < float("inf")


def test_alarms_that_last_are_told_once(caplog):
    loss = sp.GoalLoss("maximize recall subject to precision >= 0.999", guard=True)
    _, y = rows(3000)
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(3000, generator=rng).requires_grad_()
    for batch in torch.arange(3000).repeat(9).split(50):
        loss(noise[batch], y[batch])
    assert loss.status().alarms
    report = LossReport(loss)
    with caplog.at_level(logging.WARNING, "setpoint"):
        figures = report.figures()
        assert not caplog.records  # those of one moment may pass
        report.figures()
        told = len(caplog.records)
        assert told >= 1
        report.figures()
        assert len(caplog.records) == told
    assert figures["train_held"] == loss.status().held
    assert figures["train_threshold"] == loss.threshold
    assert figures["train_price_1"] == loss.status().constraints[0].price
    assert LossReport(sp.GoalLoss("maximize auroc", "pairwise")).figures() == {}
    assert LossReport(None).figures() == {}


def test_another_accumulation_is_refused():
    with pytest.raises(sp.KindError, match="accumulates 2 batches and the loss was made with"):
        check_accumulation(sp.GoalLoss(GOAL), 2)
    check_accumulation(sp.GoalLoss(GOAL, accumulate=2), 2)
    check_accumulation(sp.GoalLoss(GOAL, memory=0), 2)
