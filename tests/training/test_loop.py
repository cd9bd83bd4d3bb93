"""The loop: interrupted and resumed it ends in the same weights; best weights, history, events."""

import signal
import zlib

import numpy as np
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.methods import Costs, CrossEntropy, SoftSet
from setpoint.solvers import (
    SOLVERS,
    AugmentedLagrangian,
    ExactPenalty,
    FirstOrder,
    Sqp,
)
from setpoint.surrogates import Annealed
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.best_weights import EpochVerdict
from setpoint.training.checkpoint import load_state, save_state
from setpoint.training.events import EpochDone, Started, Stepped, Stopped
from setpoint.training.loop import TrainingPlan, train


def bare(goal, method="soft-set", **options):
    """The loss of a method as it was published, without a guard."""
    return sp.GoalLoss(goal, method, guard=False, **options)


CONSTRAINED = "maximize recall subject to precision >= 0.7"
METHODS = {
    "cross-entropy": ("maximize f1", CrossEntropy()),
    "balanced": ("maximize f1", CrossEntropy("balanced")),
    "soft-set": ("maximize f1", SoftSet()),
    "soft-set, grid": (CONSTRAINED, SoftSet(thresholds="grid")),
    "soft-set, annealed": ("maximize mcc", SoftSet(temperature=Annealed(1, 0.2, 30))),
    "costs": (CONSTRAINED, Costs()),
    "costs, truncated": ("maximize f1", Costs(truncate=Annealed(8, 0.7, 30))),
    "pairwise": ("maximize auroc", sp.methods.Pairwise()),
}


def problem(n=200, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=rng)
    y = ((x[:, 0] + 0.5 * torch.randn(n, generator=rng)) > 0.8).long()
    return x, y


def network(seed=1):
    torch.manual_seed(seed)
    layers = nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1), nn.Flatten(0)
    return nn.Sequential(*layers)


def judge_of(x, y):
    def judge(model):
        with torch.no_grad():
            value = sp.f1(y.numpy(), (model(x) >= 0).numpy())
        return EpochVerdict((value,), {"tune": value})

    return judge


def run(name, path=None, stop_at=None, epochs=6, workers=None):
    goal, method = METHODS[name]
    x, y = problem()
    model, loss = network(), bare(goal, method, memory=500)

    def listener(event):
        if isinstance(event, Stepped) and event.step == stop_at:
            signal.raise_signal(signal.SIGINT)

    plan = TrainingPlan(FirstOrder(1e-2), epochs=epochs, patience=99, seed=3, checkpoint=path)
    batches = InMemory(TrainingRows(x, y), 32)
    done = train(model, loss, batches, plan, judge_of(x, y), listener)
    return model, loss, done


@pytest.mark.parametrize("name", METHODS)
def test_interrupted_and_resumed_ends_in_the_same_bits(name, tmp_path):
    whole, whole_loss, done = run(name)
    steps = 6 * 7
    assert done.finished
    assert done.steps == steps
    stop_at = int(np.random.default_rng(zlib.crc32(name.encode())).integers(1, steps))
    path = tmp_path / "run.safetensors"
    _, _, broken = run(name, path, stop_at)
    assert not broken.finished
    assert broken.steps == stop_at
    model, loss, resumed = run(name, path)
    assert resumed.finished
    assert resumed.steps == steps
    for a, b in ((whole, model), (whole_loss, loss)):
        for key, tensor in a.state_dict().items():
            assert torch.equal(tensor, b.state_dict()[key]), key
    assert resumed.history == done.history
    assert resumed.best_epoch == done.best_epoch


def test_killed_and_resumed_from_the_end_of_an_epoch(tmp_path):
    """No last word of the run: it goes on from the checkpoint that was written on the way."""
    whole, whole_loss, _ = run("soft-set", epochs=9)

    class Killed(Exception):
        pass

    def kill(event):
        if isinstance(event, Stepped) and event.step == 7 * 7 + 3:
            raise Killed

    path = tmp_path / "run.safetensors"
    goal, method = METHODS["soft-set"]
    x, y = problem()
    plan = TrainingPlan(FirstOrder(1e-2), epochs=9, patience=99, seed=3, checkpoint=path)
    with pytest.raises(Killed):
        train(
            network(),
            bare(goal, method, memory=500),
            InMemory(TrainingRows(x, y), 32),
            plan,
            judge_of(x, y),
            kill,
        )
    model, loss, _ = run("soft-set", path, epochs=9)
    for a, b in ((whole, model), (whole_loss, loss)):
        for key, tensor in a.state_dict().items():
            assert torch.equal(tensor, b.state_dict()[key]), key


def test_patience_may_wait():
    x, y = problem()
    values = iter([0.9] + [0.1] * 50)
    plan = TrainingPlan(epochs=30, patience=3, waits=10)
    done = train(
        network(),
        bare("maximize f1"),
        InMemory(TrainingRows(x, y), 64),
        plan,
        lambda model: EpochVerdict((next(values),)),
    )
    assert len(done.history) == 14


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    x, y = problem()
    path = tmp_path / "run.safetensors"
    for mark in ("one", "one"):
        plan = TrainingPlan(epochs=1, checkpoint=path, fingerprint=mark)
        train(network(), bare("maximize f1"), InMemory(TrainingRows(x, y), 64), plan)
    plan = TrainingPlan(epochs=1, checkpoint=path, fingerprint="two")
    with pytest.raises(sp.FileError, match="belongs to another run"):
        train(network(), bare("maximize f1"), InMemory(TrainingRows(x, y), 64), plan)


def test_the_best_weights_are_returned_and_patience_ends_a_run():
    x, y = problem()
    values = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.9])
    kept = []

    def judge(model):
        kept.append({k: v.clone() for k, v in model.state_dict().items()})
        return EpochVerdict((next(values),))

    events = []
    model = network()
    done = train(
        model,
        bare("maximize f1"),
        InMemory(TrainingRows(x, y), 64),
        TrainingPlan(epochs=50, patience=3),
        judge,
        events.append,
    )
    assert done.best_epoch == 1
    assert done.reason == "no better for 3 epochs"
    assert all(torch.equal(v, kept[1][k]) for k, v in model.state_dict().items())
    assert [type(e) for e in events if not isinstance(e, Stepped)] == [
        Started,
        *[EpochDone] * 5,
        Stopped,
    ]
    assert [row["best"] for row in done.history] == [True, True, False, False, False]


def test_a_loss_that_is_not_finite_is_an_error_with_a_sentence():
    x, y = problem()
    x[150] = float("nan")
    with pytest.raises(sp.DataError, match=r"NaN|became nan"):
        train(
            network(),
            bare("maximize f1"),
            InMemory(TrainingRows(x, y), 32),
            TrainingPlan(epochs=2),
        )


def test_batches_cover_every_row_once_and_can_be_entered_in_the_middle():
    rows = TrainingRows(torch.arange(103.0)[:, None], torch.arange(103))
    batches = InMemory(rows, 25)
    seen = [b.target for b in batches.epoch(0, 4)]
    assert sorted(torch.cat(seen).tolist()) == list(range(103))
    assert {len(b) for b in seen} == {20, 21}
    late = [b.target for b in batches.epoch(0, 4, start=3)]
    assert all(torch.equal(a, b) for a, b in zip(late, seen[3:], strict=True))
    other = next(batches.epoch(0, 5)).target
    assert not torch.equal(other, seen[0])
    shares = [list(InMemory(rows, 25, (r, 2)).epoch(0, 4)) for r in range(2)]
    for whole, *parts in zip(seen, *shares, strict=True):
        assert sorted(torch.cat([p.target for p in parts]).tolist()) == sorted(whole.tolist())


def test_state_goes_to_a_file_and_back(tmp_path):
    state = {"a": [torch.arange(3), None, 1.5, True, "x"], "b": {"c": (1, torch.zeros(()))}}
    save_state(tmp_path / "s", state)
    back = load_state(tmp_path / "s")
    assert torch.equal(back["a"][0], state["a"][0])
    assert back["a"][1:] == state["a"][1:]
    assert isinstance(back["b"]["c"], tuple)
    assert back["b"]["c"][0] == 1
    (tmp_path / "odd").write_bytes(b"odd")
    with pytest.raises(sp.FileError, match="cannot read the checkpoint"):
        load_state(tmp_path / "odd")
    with pytest.raises(sp.FileError, match="cannot read the checkpoint"):
        load_state(tmp_path / "none")


def test_every_solver_is_in_the_table():
    assert SOLVERS == {
        "first-order": FirstOrder,
        "exact-penalty": ExactPenalty,
        "augmented-lagrangian": AugmentedLagrangian,
        "sqp": Sqp,
    }


def test_the_rate_rises_and_falls():
    solver = FirstOrder(1.0, warmup=10, final=0.1)
    rates = [solver.rate(s, 100) for s in range(101)]
    assert rates[0] == pytest.approx(0.1, abs=1e-2)
    assert max(rates) == pytest.approx(1, abs=0.03)
    assert rates[-1] == pytest.approx(0.1)
    assert FirstOrder(0.5).rate(7, 10) == 0.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"optimiser": "adm"}, "did you mean adam"),
        ({"learning_rate": 0}, "learning_rate=0 must be a number above 0"),
        ({"weight_decay": -1}, "weight_decay=-1 must be a number at least 0"),
    ],
)
def test_odd_settings_get_a_sentence(options, sentence):
    with pytest.raises(sp.KindError, match=sentence):
        FirstOrder(**options)
