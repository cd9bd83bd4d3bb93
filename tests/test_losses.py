"""The edges of a loss: what moves its state, whose state it takes, what labels it refuses."""

import contextlib
import inspect
import math
import re

import pytest
import safetensors.torch
import torch
from torch.distributed.checkpoint import state_dict as checkpoints

from setpoint._core.errors import DataError, KindError
from setpoint.goals import Task
from setpoint.losses import OPTIONS, GoalLoss
from setpoint.methods import SoftSet
from setpoint.methods.confusion import batch as batch_module
from setpoint.programs.column_rules import READ_EVERY
from setpoint.training import running_loss

FLOOR = "maximize recall subject to precision >= 0.8"
CLASSES = Task.multiclass(range(3))
GROUPS = Task.binary(groups={"g": ["x", "y"]})
FAIR = 'maximize f1 subject to gap(recall, by="g") <= 0.05'
#: goal, method, task, options
LOSSES = {
    "soft-set": (FLOOR, "soft-set", None, {}),
    "guarded": (FLOOR, "soft-set", None, {"guard": True}),
    "costs": (FLOOR, "costs", None, {}),
    "costs in parts": (FLOOR, "costs", None, {"accumulate": 3}),
    "cross-entropy": ("maximize f1", "cross-entropy", None, {}),
    "pairwise": ("maximize auroc", "pairwise", None, {}),
    "implicit": (FLOOR, "implicit", None, {"every": 2, "pool": 64}),
    "implicit curve": ("maximize auprc", "implicit", None, {"points": 4, "every": 2, "pool": 64}),
    "lagrangian": (FLOOR, "lagrangian", None, {}),
    "lagrangian curve": ("maximize auroc(max_fpr=0.3)", "lagrangian", None, {"points": 3}),
    "exact": (FLOOR, "exact", None, {}),
    "exact table": (FLOOR, "exact", None, {"form": "table", "rows": 40}),
    "classes": ("maximize macro(f1)", "soft-set", CLASSES, {}),
    "fair": (FAIR, "lagrangian", GROUPS, {}),
    "errors": ("minimize mae", "errors", Task.regression(edges=[0.0]), {}),
}
every = pytest.mark.parametrize("name", LOSSES)


def made(name):
    goal, method, task, options = LOSSES[name]
    return GoalLoss(goal, method, task=task, **options).double()


def batch(name, seed, n=40):
    """Logits that ask for a gradient, target and keywords."""
    rng = torch.Generator().manual_seed(seed)
    task = LOSSES[name][2]
    shape = (n, 3) if task is CLASSES else (n,)
    logits = torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_()
    target = torch.randint(3 if task is CLASSES else 2, (n,), generator=rng)
    target = target.double() if name == "errors" else target
    more = {"group": torch.randint(2, (n,), generator=rng)} if task is GROUPS else {}
    if "table" in name:
        more["row"] = torch.arange(n)
    return logits, target, more


def state(loss):
    return {key: value.clone() for key, value in loss.state_dict().items()}


def same(one, other):
    return all(torch.equal(value, other[key]) for key, value in one.items())


# --- what moves the state ------------------------------------------------------------------------


def without_gradients(loss, logits, target, more):
    with torch.no_grad():
        return loss(logits, target, **more)


def in_inference_mode(loss, logits, target, more):
    with torch.inference_mode():
        return loss(logits, target, **more)


def detached(loss, logits, target, more):
    return loss(logits.detach(), target, **more)


READINGS = {
    "no_grad": without_gradients,
    "inference_mode": in_inference_mode,
    "detached": detached,
}


@pytest.mark.parametrize("how", READINGS)
@every
def test_outputs_that_ask_for_no_gradient_move_nothing(name, how):
    loss, twin = made(name), made(name)
    for seed in range(4):
        logits, target, more = batch(name, seed)
        loss(logits, target, **more)
        twin(logits, target, **more)
    before = state(loss)
    for seed in range(10, 15):
        logits, target, more = batch(name, seed)
        value = READINGS[how](loss, logits, target, more)
        expected = twin.eval()(logits.detach(), target, **more)
        assert value == expected or (value.isnan() and expected.isnan())
    assert same(before, state(loss))
    assert loss.training
    twin.train()
    for seed in range(20, 24):  # both go on alike: nothing outside the state moved either
        logits, target, more = batch(name, seed)
        assert loss(logits, target, **more) == twin(logits, target, **more)
    assert not same(before, state(loss))


@every
def test_observing_moves_what_a_step_moves(name):
    loss, twin = made(name), made(name)
    guard = contextlib.nullcontext, torch.no_grad, torch.inference_mode
    for seed in range(7):
        logits, target, more = batch(name, seed)
        with guard[seed % 3]():
            value = loss.observe(logits, target, **more)
        assert not value.requires_grad
        assert value == twin(logits, target, **more)
    assert same(state(loss), state(twin))
    assert int(loss.steps) == (2 if "parts" in name else 7)


def test_a_loss_in_evaluation_mode_observes_nothing():
    loss = made("soft-set").eval()
    with pytest.raises(KindError, match=r"loss\.train\(\)"):
        loss.observe(torch.zeros(2), torch.zeros(2))


def test_a_refused_batch_leaves_the_loss_in_training_mode():
    loss = made("soft-set")
    with pytest.raises(DataError):
        loss(torch.zeros(4), torch.zeros(3))
    assert loss.training
    assert loss.program.training


# --- whose state it takes ------------------------------------------------------------------------

STATES = {
    "goal": (("maximize f1", "costs", {}), ("maximize recall", "costs", {})),
    "bound": ((FLOOR, "costs", {}), (FLOOR.replace("0.8", "0.9"), "costs", {})),
    "method": ((FLOOR, "soft-set", {}), (FLOOR, "costs", {})),
    "thresholds": (
        ("maximize f1", "soft-set", {"thresholds": [0.3, 0.5]}),
        ("maximize f1", "soft-set", {"thresholds": [0.4, 0.5]}),
    ),
    "membership": (
        ("maximize macro(f1)", "soft-set", {"task": CLASSES}),
        ("maximize macro(f1)", "soft-set", {"task": CLASSES, "membership": "dynamic"}),
    ),
    "dual": ((FLOOR, "lagrangian", {}), (FLOOR, "lagrangian", {"dual": "external"})),
    "points": (
        ("maximize auprc", "implicit", {"points": 4}),
        ("maximize auprc", "implicit", {"points": 5}),
    ),
    "classes": (
        ("maximize macro(f1)", "costs", {"task": Task.multiclass(list("abc"))}),
        ("maximize macro(f1)", "costs", {"task": Task.multiclass(list("abd"))}),
    ),
    "groups": (
        (FAIR, "costs", {"task": GROUPS}),
        (FAIR, "costs", {"task": Task.binary(groups={"g": ["y", "x"]})}),
    ),
    "task": (
        ("maximize macro(f1)", "costs", {"task": CLASSES}),
        ("maximize macro(f1)", "costs", {"task": Task.multilabel(range(3))}),
    ),
}


def of(goal, method, options):
    return GoalLoss(goal, method, **options)


@pytest.mark.parametrize("what", STATES)
def test_the_state_of_another_loss_is_refused_with_both_names(what):
    ours, theirs = (of(*parts) for parts in STATES[what])
    before = state(ours)
    with pytest.raises(KindError) as error:
        ours.load_state_dict(theirs.state_dict())
    words = str(error.value)
    for loss in (ours, theirs):
        assert f'"{loss.goal}" with {loss.method.name}' in words
    saved, here = words.split("; this loss is for ")
    assert saved != here
    if what in ("thresholds", "membership", "dual", "points", "classes"):
        assert what in saved
        assert what in here
    assert same(before, state(ours))


def test_the_sentence_in_full():
    ours, theirs = GoalLoss("maximize f1", "costs"), GoalLoss(FLOOR, "soft-set")
    with pytest.raises(KindError) as error:
        torch.nn.ModuleDict({"loss": ours}).load_state_dict(
            torch.nn.ModuleDict({"loss": theirs}).state_dict(), strict=False
        )
    assert str(error.value).startswith(
        'this state was saved for "maximize recall subject to precision >= 0.8" with soft-set; '
        'this loss is for "maximize f1" with costs: '
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((FLOOR, "soft-set", {}), ("maximize recall s.t. precision >= 80%", "soft-set", {})),
        ((FLOOR, "soft-set", {}), (FLOOR, "soft-set", {"rate": 1.0, "cross_entropy": 0.1})),
        ((FLOOR, "soft-set", {}), (FLOOR, "soft-set", {"memory": 100, "warmup": 9})),
        ((FLOOR, "exact", {}), (FLOOR, "exact", {"form": "eliminated", "anneal": 5})),
        (("maximize auprc", "implicit", {}), ("maximize auprc", "implicit", {"points": 10.0})),
        (
            ("maximize f1", "costs", {"task": Task.binary(positive="yes")}),
            ("maximize f1", "costs", {"task": Task.binary(score="logit")}),
        ),
    ],
)
def test_what_does_not_change_the_meaning_of_a_state_is_taken(ours, theirs):
    ours, theirs = of(*ours), of(*theirs)
    theirs.observe(torch.randn(40), torch.arange(40) % 2)
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours.totals, theirs.totals)
    assert ours.totals.abs().sum() > 0


def by_torch(state, folder):
    torch.save(state, folder / "s.pt")
    return torch.load(folder / "s.pt", weights_only=True)


def by_safetensors(state, folder):
    alone = {key: value.clone() for key, value in state.items()}  # thresholds are there twice
    safetensors.torch.save_file(alone, folder / "s.safetensors")
    return safetensors.torch.load_file(folder / "s.safetensors")


def in_half(state, folder):
    return {key: value.half() for key, value in state.items()}


@pytest.mark.parametrize("way", [by_torch, by_safetensors, in_half])
@every
def test_the_name_of_a_state_survives_every_format(name, way, tmp_path):
    loss = made(name)
    logits, target, more = batch(name, 0)
    loss(logits, target, **more)
    kept = way(loss.state_dict(), tmp_path)
    assert all(isinstance(value, torch.Tensor) for value in kept.values())
    made(name).load_state_dict(kept)
    other = GoalLoss("maximize mcc", "costs")
    with pytest.raises(KindError, match='"maximize mcc" with costs'):
        other.load_state_dict(kept)


@every
def test_a_state_without_a_name_is_taken_as_version_1_wrote_it(name):
    loss, fresh = made(name), made(name)
    logits, target, more = batch(name, 0)
    loss(logits, target, **more)
    old = {key: value for key, value in loss.state_dict().items() if "_extra_state" not in key}
    assert len(old) == len(loss.state_dict()) - 1
    fresh.load_state_dict(old, strict=True)
    assert same(state(fresh), state(loss))


def test_a_state_that_lacks_something_else_is_still_incomplete():
    loss = GoalLoss("maximize f1")
    short = {key: value for key, value in loss.state_dict().items() if key != "totals"}
    with pytest.raises(RuntimeError, match="totals"):
        GoalLoss("maximize f1").load_state_dict(short)


def test_a_damaged_name_is_a_sentence():
    loss = GoalLoss("maximize f1")
    with pytest.raises(KindError, match="cannot be read"):
        loss.load_state_dict({**loss.state_dict(), "_extra_state": torch.zeros(9).byte()})


def test_a_state_travels_in_distributed_checkpoints():
    model = torch.nn.ModuleDict({"line": torch.nn.Linear(2, 1), "loss": GoalLoss(FLOOR)})
    model["loss"].observe(torch.randn(40), torch.arange(40) % 2)
    whole = checkpoints.get_model_state_dict(
        model, options=checkpoints.StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    again = torch.nn.ModuleDict({"line": torch.nn.Linear(2, 1), "loss": GoalLoss(FLOOR)})
    checkpoints.set_model_state_dict(again, whole)
    assert torch.equal(again["loss"].totals, model["loss"].totals)
    other = torch.nn.ModuleDict({"line": torch.nn.Linear(2, 1), "loss": GoalLoss("maximize f1")})
    with pytest.raises(KindError, match="saved for"):
        checkpoints.set_model_state_dict(other, whole)


# --- labels and weights --------------------------------------------------------------------------


def changed(x, value, place=3):
    y = x.double().clone()
    y[place] = value
    return y


WRONG = {
    "a NaN target": ("target", math.nan, "nan"),
    "a 2": ("target", 2.0, "got 2|held 2"),
    "an infinite target": ("target", math.inf, "inf"),
    "a negative weight": ("weight", -0.5, "-0.5"),
    "a NaN weight": ("weight", math.nan, "nan"),
}
CHECKED = [
    (name, wrong)
    for name in LOSSES
    for wrong in WRONG
    if not (name in ("classes", "errors") and wrong == "a 2")
    and not (name == "classes" and "target" in wrong)
]


def run_until_batch_50(loss, name, wrong, calls):
    """The call that raised, the state before it, and the sentence."""
    where, value, _ = WRONG[wrong]
    for call in range(calls):
        logits, target, more = batch(name, call)
        rows = {"target": target, "weight": torch.ones(40, dtype=torch.float64)}
        if call == 49:
            rows[where] = changed(rows[where], value)
        before = state(loss)
        try:
            loss(logits, rows["target"], weight=rows["weight"], **more)
        except DataError as error:
            return call, before, str(error)
    raise AssertionError("nothing was found")


@pytest.mark.parametrize(("name", "wrong"), CHECKED)
def test_a_wrong_number_in_batch_50_is_refused_before_anything_moves(name, wrong):
    loss = made(name)
    call, before, words = run_until_batch_50(loss, name, wrong, 60)
    assert call == 49
    assert same(before, state(loss))
    assert re.search(WRONG[wrong][2], words), words


#: losses whose arithmetic is tensors' alone wherever they lie
FORCED = [case for case in CHECKED if "table" not in case[0] and case[0] != "guarded"]


@pytest.mark.parametrize(("name", "wrong"), FORCED)
def test_on_a_device_it_is_told_a_few_calls_later(name, wrong, monkeypatch):
    """The path of a device, forced on the host; nothing is looked at in the call itself."""
    for room in (running_loss, batch_module):
        monkeypatch.setattr(room, "lies_on_host", lambda x: False)
    call, _, words = run_until_batch_50(made(name), name, wrong, 50 + 2 * READ_EVERY + 1)
    assert re.search(WRONG[wrong][2], words), words
    assert 50 <= call <= 50 + 2 * READ_EVERY


@pytest.mark.parametrize("odd", [3, -1, 255])
def test_a_class_that_there_is_not_in_a_later_batch(odd):
    loss = made("classes")
    for seed in range(3):
        logits, target, _ = batch("classes", seed)
        loss(logits, target)
    with pytest.raises(DataError, match=f"class indices 0…2; got {odd}"):
        loss(logits, changed(target, odd))


def test_a_batch_that_is_read_is_checked_too():
    loss = made("soft-set")
    logits, target, _ = batch("soft-set", 0)
    loss(logits, target)
    for read in (loss, loss.eval()):
        with pytest.raises(DataError, match="got 2"):
            read(logits.detach(), changed(target, 2.0))


def test_relevances_are_checked_at_every_call():
    loss = GoalLoss("maximize ndcg(5)", "implicit", task="ranking").double()
    scores = torch.randn(12, dtype=torch.float64).requires_grad_()
    query, relevance = torch.arange(12) // 4, torch.arange(12) % 3
    loss(scores, relevance, group=query)
    with pytest.raises(DataError, match="0 or more; got -1"):
        loss(scores, changed(relevance, -1), group=query)


def test_targets_and_weights_that_may_stand_are_not_refused():
    loss = GoalLoss("maximize f1")
    logits = torch.randn(6).requires_grad_()
    for y in (torch.tensor([True, False] * 3), torch.tensor([-0.0, 1] * 3), torch.zeros(6).int()):
        for w in (None, torch.zeros(6), torch.full((6,), 1e30), torch.full((6,), 1e-30)):
            for _ in range(2):
                loss(logits, y, weight=w)


# --- mistyped options ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options", "parts"),
    [
        ("soft-set", {"temprature": 1}, ["did you mean temperature?", "It takes surrogate"]),
        ("soft-set", {"acumulate": 2}, ["did you mean accumulate?", "the loss itself takes task"]),
        ("auto", {"acumulate": 2}, ['method="exact"', "did you mean accumulate?"]),
        ("auto", {"trunc": 2}, ["did you mean truncate?", "It takes form, regulariser"]),
        ("costs", {"quux": 2}, ['"quux": it takes truncate, rate, floor, multipliers; the loss']),
        ("softset", {}, ["did you mean soft-set?"]),
        ("atuo", {}, ["did you mean auto?"]),
        ("xyz", {}, ["choose from auto, cross-entropy"]),
        (SoftSet(), {"acumulate": 2}, ["SoftSet(…), already made", "did you mean accumulate?"]),
        (SoftSet(), {"rate": 2}, ["rate: options belong into SoftSet(…), already made"]),
    ],
)
def test_a_mistyped_option_is_recognised(method, options, parts):
    with pytest.raises(KindError) as error:
        GoalLoss("maximize f1", method, **options)
    for part in parts:
        assert part in str(error.value)


def test_the_options_of_the_loss_are_those_of_its_signature():
    known = inspect.signature(GoalLoss.__init__).parameters.values()
    named = tuple(p.name for p in known if p.kind is p.KEYWORD_ONLY)
    assert named == OPTIONS
