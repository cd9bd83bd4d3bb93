"""The table form of the exact reformulation: its formula, totals, state and refusals."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint._core.errors import DataError, FileError, GoalError, KindError
from setpoint.goals import Goal, Task
from setpoint.methods.confusion import batch as batch_of
from setpoint.methods.exact.membership_table import UNSEEN, Tabled, table_program
from setpoint.methods.exact.row_store import Shelf, found_on_device
from setpoint.methods.exact.step_tie import apart, exceeds, falls_short
from setpoint.solvers import FirstOrder
from setpoint.surrogates import Annealed
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.loop import TrainingPlan, train
from setpoint.training.running_loss import RunningLoss

GROUPS = Task.binary(groups={"g": ["x", "y"]})
GOALS = {
    "fpor": ("maximize recall subject to precision >= 0.8", Task.binary()),
    "frop": ("maximize precision subject to recall >= 0.8", Task.binary()),
    "f1": ("maximize f1", Task.binary()),
    "f2": ("maximize f_beta(2)", Task.binary()),
    "mcc": ("maximize mcc", Task.binary()),
    "equation": ("maximize f1 subject to positive_rate == 0.3", Task.binary()),
    "two": ("maximize recall subject to precision >= 0.7 and fpr <= 0.1", Task.binary()),
    "fair": ('maximize f1 subject to gap(recall, by="g") <= 0.1', GROUPS),
    "worst": ('maximize precision subject to worst(recall, by="g") >= 0.6', GROUPS),
}
every_goal = pytest.mark.parametrize("name", GOALS)


def made(name="fpor", rows=64, warmup=1, double=True, **options):
    goal, task = GOALS[name]
    program = table_program(Goal.parse(goal), task, Tabled(rows, **options))
    loss = RunningLoss(program, warmup=warmup)
    return loss.double() if double else loss


def data(name, rows=64, seed=0):
    """Logits, target, and keywords of all rows."""
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(rows, generator=rng) < 0.3).long()
    y[:2] = torch.tensor([0, 1])
    z = 1.5 * torch.randn(rows, generator=rng, dtype=torch.float64) + 0.8 * y - 0.4
    weight = 0.1 + torch.rand(rows, generator=rng, dtype=torch.float64)
    group = torch.randint(2, (rows,), generator=rng) if GOALS[name][1].groups else None
    return z, y, {"weight": weight, "group": group}


def some(more, part):
    return {k: None if v is None else v[part] for k, v in more.items()}


def called(loss, z, y, **more):
    leaf = z.detach().clone().requires_grad_()
    value = loss(leaf, y, **more)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def filled(name, s, z, y, more, **options):
    """A loss that has seen all rows, with the memberships of a table set by hand."""
    loss = made(name, len(y), **options)
    row = torch.arange(len(y))
    called(loss, z, y, row=row, **more)  # the first step is cross-entropy
    shelf = loss.program.shelf
    shelf.put(shelf.take(row), s.float())
    return loss, row


def gains_of(loss, y, group):
    """What deciding each row is worth more than not deciding it, from the running prices."""
    table = loss.prices[0].reshape(-1, 2)
    gain = table[:, 1] - table[:, 0]
    return gain[y + 2 * (0 if group is None else group)]


def recount(loss, y, more):
    """Totals of memberships and of decisions, from the table alone."""
    values = loss.program.shelf.values().double()
    seen = values.abs() <= 1
    w = more["weight"].double() if more["weight"] is not None else torch.ones(len(y)).double()
    w = w * seen
    table = 0 * y if more["group"] is None else more["group"]
    place = 4 * table + 2 * y
    sums = []
    for high in (values.abs(), torch.signbit(values).double()):
        cells = torch.zeros(loss.totals.shape[1], dtype=torch.float64)
        cells.index_add_(0, place, w * torch.where(seen, 1 - high, 0.0))
        cells.index_add_(0, place + 1, w * torch.where(seen, high, 0.0))
        sums.append(cells)
    return torch.stack(sums)


# --- the formula ---------------------------------------------------------------------------------


@pytest.mark.parametrize("regulariser", ["trim", "relabel", "none"])
@pytest.mark.parametrize("relation", ["inequality", "equality"])
@pytest.mark.parametrize("name", ["fpor", "f1", "equation", "fair"])
def test_both_steps_are_those_of_the_formula(name, relation, regulariser):
    z, y, more = data(name)
    s = torch.rand(len(y), generator=torch.Generator().manual_seed(5)).double()
    rho, lam, eta = 0.7, 0.4, 0.05
    loss, row = filled(
        *(name, s, z, y, more), rho=rho, lam=lam, rate_s=eta,
        relation=relation, regulariser=regulariser,
    )  # fmt: skip
    s = loss.program.shelf.values().double()
    gain = gains_of(loss, y, more["group"])
    leaf, free = z.clone().requires_grad_(), s.clone().requires_grad_()
    f = torch.sigmoid(leaf)
    tied = torch.where(gain > 0, exceeds(f, free, 0.5), falls_short(f, free, 0.5))
    tied = apart(f, free, 0.5) if relation == "equality" else tied
    ce1, ce0 = F.softplus(-leaf), F.softplus(leaf)
    R = {
        "trim": torch.where(gain > 0, free * ce1, (1 - free) * ce0),
        "relabel": free * ce1 + (1 - free) * ce0,
        "none": 0 * leaf,
    }[regulariser]
    of_rows = -gain.sign() * free + rho * tied + lam * R
    whole = (more["weight"] * gain.abs() * of_rows).sum() / more["weight"].sum()
    (up,) = torch.autograd.grad(of_rows.sum(), free, retain_graph=True)
    (wanted,) = torch.autograd.grad(whole, leaf)
    _, gradient = called(loss, z, y, row=row, **more)
    torch.testing.assert_close(gradient, wanted, rtol=1e-6, atol=1e-9)
    moved = loss.program.shelf.values()
    torch.testing.assert_close(moved.abs().double(), (s - eta * up).clamp(0, 1), rtol=0, atol=1e-6)
    assert torch.equal(torch.signbit(moved), z >= 0)


def test_auto_ties_by_inequalities_where_the_goal_always_wants_the_same():
    assert not made("fpor").program.both.any()
    assert made("equation").program.both.all()


def test_prices_weigh_rows_by_one_on_average():
    z, y, more = data("frop")
    loss, _ = filled("frop", y.double(), z, y, more)
    gain, w = gains_of(loss, y, None), more["weight"]
    assert float((w * gain.abs()).sum() / w.sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("lam", [0.125, 0.5, 1.4])
def test_a_row_is_kept_where_the_regulariser_leaves_it_some_worth(lam):
    """Many visits at fixed logits end in the minimum, over s ∈ [0, 1], that s = y leads to."""
    z = torch.linspace(-6, 6, 60, dtype=torch.float64).repeat(2)
    y = torch.arange(2).repeat_interleave(60)
    loss = made("f1", 120, lam=lam, rho=4.0)
    for _ in range(200):
        loss.observe(z, y, row=torch.arange(120))
    s = loss.program.shelf.values().abs().double()
    right = z * (2 * y - 1)
    kept = lam * F.softplus(-right) < 1
    assert torch.equal(s, torch.where(kept, y, 1 - y).double())
    # no s is better than that nearby: the objective of each row on a fine grid
    q, ties = torch.linspace(0, 1, 101), (0.5 - torch.sigmoid(right))[:, None]
    cost = -q + 4 * torch.minimum(q, ties.clamp(min=0)) + lam * q * F.softplus(-right)[:, None]
    at = torch.where(kept, 100, 0)
    beside = (at + torch.where(kept, -1, 1)).clamp(0, 100)
    assert (cost.gather(1, at[:, None]) <= cost.gather(1, beside[:, None]) + 1e-9).all()


def test_a_large_rate_decides_memberships_at_once():
    z, y, more = data("f1")
    loss = made("f1", rate_s=1e6, lam=1.4)
    for _ in range(2):
        loss.observe(z, y, row=torch.arange(64), **more)
    s = loss.program.shelf.values().abs().double()
    kept = 1.4 * F.softplus(-z * (2 * y - 1)) < 1
    assert torch.equal(s, torch.where(kept, y, 1 - y).double())


def test_a_firm_tie_keeps_what_was_given_up():
    z = torch.full((4,), -0.1, dtype=torch.float64)
    y = torch.tensor([1, 1, 0, 0])
    for rho, back in ((0.5, True), (5.0, False)):
        loss, row = filled("f1", torch.zeros(4), z, y, {}, rho=rho, lam=0.1, rate_s=10.0)
        loss.observe(z, y, row=row)
        assert bool((loss.program.shelf.values().abs()[:2] == 1).all()) == back


# --- totals --------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["fpor", "f1", "fair"]),
    batches=st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=9), min_size=1, max_size=8),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
    double=st.booleans(),
    broken=st.booleans(),
)
def test_totals_are_those_of_the_table(name, batches, seed, weighted, double, broken):
    """Whatever rows come, however often, twice in a batch too, and with logits that are NaN."""
    z, y, more = data(name, 16, seed)
    if not weighted:
        more["weight"] = None
    elif not double:
        more["weight"] = more["weight"].float()
    loss = made(name, 16, double=double, rate_s=0.4, lam=Annealed(0.2, 2.0, 8))
    rng = torch.Generator().manual_seed(seed)
    for k, part in enumerate(map(torch.tensor, batches)):
        noise = torch.randn(len(part), generator=rng)  # a row mentioned twice has two logits
        logits = (z[part] + noise).to(torch.float64 if double else torch.float32)
        if k == 0:
            loss._watch.calls = 1  # the first batch is checked, and may not hold NaN
        if broken and k % 2:
            logits[0] = float("nan")
        loss.observe(logits, y[part], row=part, **some(more, part))
    found, wanted = loss.totals, recount(loss, y, more)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_totals_are_exact_after_many_updates():
    n = 500
    z, y, _ = data("fpor", n)
    loss = made("fpor", n, double=False, rate_s=0.01)
    rng = torch.Generator().manual_seed(0)
    for _ in range(800):
        part = torch.randint(n, (20,), generator=rng)
        noise = torch.randn(20, generator=rng)
        loss.observe((z[part] + noise).float(), y[part], row=part)
    wanted = recount(loss, y, {"weight": None, "group": None})
    middle = (loss.program.shelf.values().abs() - 0.5).abs() < 0.5
    assert int(middle.sum()) > 20, "some memberships are between 0 and 1"
    assert float((loss.totals - wanted).abs().max()) < 1e-10
    assert float(wanted[0].sum()) == n


def test_a_row_mentioned_twice_is_written_once_and_by_its_last_mention():
    shelf = Shelf(5, UNSEEN)
    row = torch.tensor([3, 1, 3, 0, 3])
    visit = shelf.take(row)
    assert visit.counts.tolist() == [False, True, False, True, True]
    assert visit.values.tolist() == [2.0] * 5
    shelf.put(visit, torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5]))
    torch.testing.assert_close(shelf.values(), torch.tensor([0.4, 0.2, 2.0, 0.5, 2.0]))


def test_a_shelf_keeps_every_bit():
    shelf = Shelf(3, UNSEEN)
    shelf.put(shelf.take(torch.tensor([0, 1])), torch.tensor([-0.0, 1e-42]))
    values = shelf.double().values()
    assert torch.signbit(values).tolist() == [True, False, False]
    assert values.dtype == torch.float32
    assert float(values[1]) == float(np.float32(1e-42))


def test_four_bytes_a_row(tmp_path):
    for n in (1, 1000):
        loss = made("f1", n)
        loss.observe(torch.zeros(1).double(), torch.ones(1), row=torch.tensor([0]))
        assert loss.program.shelf.nbytes == 4 * n
        buffers = sum(b.numel() * b.element_size() for b in loss.buffers())
        assert buffers - 4 * n < 2000
    disk = made("f1", 1000, table=tmp_path / "s.bin")
    disk.observe(torch.zeros(1).double(), torch.ones(1), row=torch.tensor([0]))
    assert (tmp_path / "s.bin").stat().st_size == disk.program.shelf.nbytes == 4 * 1000 + 4
    assert sum(b.numel() for b in disk.buffers()) < 100


# --- state ---------------------------------------------------------------------------------------


def run(loss, name, batches, seed=0):
    z, y, more = data(name, 64)
    for k in batches:
        rng = torch.Generator().manual_seed(1000 * seed + k)
        part = torch.randperm(64, generator=rng)[:20]
        loss.observe(z[part], y[part], row=part, **some(more, part))
    return loss


def same(one, other):
    a, b = one.state_dict(), other.state_dict()
    assert list(a) == list(b)
    assert all(torch.equal(x, b[k]) for k, x in a.items())


@every_goal
def test_a_run_taken_up_goes_on_bitwise(name):
    whole = run(made(name, steps=20), name, range(20))
    first = run(made(name, steps=20), name, range(11))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = made(name, steps=20)
    second.load_state_dict(torch.load(file))
    same(run(second, name, range(11, 20)), whole)
    again = pickle.loads(pickle.dumps(copy.deepcopy(first)))
    same(run(again, name, range(11, 20)), whole)


def test_a_table_on_disk_is_the_one_in_memory(tmp_path):
    path = tmp_path / "s.bin"
    memory = run(made("fpor", steps=20), "fpor", range(20))
    disk = run(made("fpor", steps=20, table=str(path)), "fpor", range(12))
    saved = disk.state_dict()
    assert saved["program.shelf.bits"].numel() == 0
    again = made("fpor", steps=20, table=str(path))
    again.load_state_dict(saved)
    run(again, "fpor", range(12, 20))
    wanted = memory.program.shelf.values().view(torch.int32)
    assert torch.equal(again.program.shelf.values().view(torch.int32), wanted)
    on_disk = np.fromfile(path, np.int32)
    assert on_disk[:-1].tolist() == wanted.tolist()
    assert on_disk[-1] == 20
    for name in ("totals", "prices", "multipliers", "steps"):
        assert torch.equal(getattr(again, name), getattr(memory, name))
    assert [p.name for p in tmp_path.iterdir()] == ["s.bin"]


def test_files_of_other_runs_are_refused(tmp_path):
    path = tmp_path / "s.bin"
    old = run(made("f1", table=path), "f1", range(5))
    with pytest.raises(FileError, match="written 5 times, and this loss has made 0 visits"):
        run(made("f1", table=path), "f1", [0])
    earlier = old.state_dict()
    earlier["program.shelf.visits"] = torch.tensor(4)
    fresh = made("f1", table=path)
    fresh.load_state_dict(earlier)
    with pytest.raises(FileError, match="not of one moment"):
        run(fresh, "f1", [0])
    path.write_bytes(b"something else")
    with pytest.raises(FileError, match="has 14 bytes, and a table of 64 rows has 260"):
        run(made("f1", table=path), "f1", [0])
    with pytest.raises(FileError, match='cannot write "'):
        run(made("f1", table=tmp_path / "nowhere" / "s.bin"), "f1", [0])
    assert [p.name for p in tmp_path.iterdir()] == ["s.bin"]


def test_a_table_of_other_rows_is_not_loaded():
    state = run(made("f1"), "f1", range(3)).state_dict()
    with pytest.raises(RuntimeError, match="a table of 64 rows, and this one has 65"):
        made("f1", 65).load_state_dict(state)


def test_types_may_change_and_totals_stay_wide():
    loss = run(made("f1"), "f1", range(3))
    for dtype in (torch.float16, torch.float32, torch.float64):
        loss.to(dtype)
        assert loss.totals.dtype == torch.float64
        assert loss.program.shelf.bits.dtype == torch.int32
    more = data("f1")[2]
    torch.testing.assert_close(loss.totals.sum(1), more["weight"][_seen(loss)].sum().expand(2))


def _seen(loss):
    return loss.program.shelf.values().abs() <= 1


def test_in_evaluation_nothing_is_kept_and_no_row_is_asked_for():
    name = "fpor"
    z, y, more = data(name)
    loss = run(made(name), name, range(5)).eval()
    before = {k: v.clone() for k, v in loss.state_dict().items()}
    value, gradient = called(loss, z, y, **more)
    assert gradient.isfinite().all()
    assert all(torch.equal(v, before[k]) for k, v in loss.state_dict().items())
    w = more["weight"]
    tp, fp = w[(z >= 0) & (y == 1)].sum(), w[(z >= 0) & (y == 0)].sum()
    P = w[y == 1].sum()
    lagrangian = 1 - tp / P + loss.multipliers[0] * (0.8 * (tp + fp) - tp) / P
    torch.testing.assert_close(value, lagrangian, rtol=1e-6, atol=1e-9)


def test_recovered_speaks_of_decisions():
    z, y, more = data("fpor")
    loss = run(made("fpor"), "fpor", range(5))
    loss.observe(z, y, row=torch.arange(64), **more)
    found = loss.program.recovered(loss.totals / loss.totals[0].sum(), loss.multipliers)
    w = more["weight"]
    recall = w[(z >= 0) & (y == 1)].sum() / w[y == 1].sum()
    assert found.value == pytest.approx(float(recall), abs=1e-9)
    precision = w[(z >= 0) & (y == 1)].sum() / w[z >= 0].sum()
    assert found.constraints[0].excess == pytest.approx(0.8 - float(precision), abs=1e-9)


def test_multipliers_follow_decisions_as_the_goal_states_them():
    """While memberships promise everything; and they come back where nothing is decided."""
    y = torch.tensor([1, 0, 0, 0])
    row = torch.arange(4)
    for logit, excess in ((3.0, 0.8 - 0.25), (-3.0, 0.8 - 1.0)):  # nothing decided: all are right
        loss = made("fpor", 4, rate=2.0, lam=1e-3)
        z = torch.full((4,), logit, dtype=torch.float64)
        for _ in range(3):
            loss.observe(z, y, row=row)
        assert torch.equal(loss.program.shelf.values().abs(), y.float())
        # the first step is cross-entropy, and the first time the rows are counted
        wanted = np.exp(2 * 2.0 * excess) if excess < 0.5 else np.exp(2.0)  # by e a step at most
        assert float(loss.multipliers) == pytest.approx(wanted, rel=5e-3)


# --- odd batches, and what is refused ------------------------------------------------------------


@every_goal
@pytest.mark.parametrize("only", [0, 1])
def test_batches_of_one_class_are_finite(name, only):
    n = 40
    z, y, more = data(name, n)
    loss = made(name, n, warmup=0, steps=6)
    order = torch.cat([(y == only).nonzero()[:, 0], (y != only).nonzero()[:, 0]])
    for part in (order[:5], order[:1], order[5:9], order[-4:], order[-1:], order[:5]):
        value, gradient = called(loss, 40 * z[part], y[part], row=part, **some(more, part))
        assert value.isfinite()
        assert gradient.isfinite().all()
        for name_ in ("totals", "prices", "multipliers"):
            assert getattr(loss, name_).isfinite().all()
    torch.testing.assert_close(loss.totals, recount(loss, y, more))


def test_what_is_not_finite_leaves_its_row_alone():
    z, y, more = data("fpor")
    loss = run(made("fpor"), "fpor", range(6))
    before = loss.program.shelf.values()
    bad = z.clone()
    bad[:3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    loss.observe(bad, y, row=torch.arange(64), **more)
    after = loss.program.shelf.values()
    assert torch.equal(after[:3].view(torch.int32), before[:3].view(torch.int32))
    assert not torch.equal(after[3:], before[3:])
    torch.testing.assert_close(loss.totals, recount(loss, y, more))
    value, gradient = called(loss, z, y, row=torch.arange(64), **more)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_rows_are_asked_for_and_checked():
    z, y, more = data("f1")
    loss = made("f1")
    with pytest.raises(KindError, match=r'pass row=.*0…63; form="eliminated" needs none'):
        loss.observe(z, y)
    for row, kind, words in (
        (torch.arange(64) + 1, DataError, "row 64 is none of the 64 rows"),
        (torch.arange(64) - 1, DataError, "row -1 is none"),
        (torch.arange(63), DataError, r"shape \(64,\); got \(63,\)"),
        (torch.arange(64.0), KindError, "whole numbers; got torch.float32"),
        (list(range(64)), KindError, "whole numbers; got list"),
    ):
        with pytest.raises(kind, match=words):
            loss.observe(z, y, row=row, **more)
    assert float(loss.totals.sum()) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "rows=0"),
        ({"rows": 2.5}, "rows=2.5"),
        ({"rho": "x"}, "rho"),
        ({"lam": -1}, "value=-1"),
        ({"rate_s": -0.1}, "rate_s=-0.1"),
        ({"steps": 0}, "steps=0"),
        ({"regulariser": "trimm"}, "did you mean trim"),
        ({"relation": "less"}, 'relation="less"'),
        ({"table": 3}, "table=3"),
        ({"multipliers": [1, 2]}, "2 numbers for 1 constraints"),
        ({"multipliers": "1"}, 'multipliers="1"'),
    ],
)
def test_options_are_checked(options, words):
    goal, task = GOALS["fpor"]
    with pytest.raises(KindError, match=words):
        table_program(Goal.parse(goal), task, Tabled(**{"rows": 10, **options}))


@pytest.mark.parametrize("task", [Task.multiclass(range(3)), Task.multilabel(["a", "b"])])
def test_one_membership_a_row_is_for_binary_tasks(task):
    with pytest.raises(GoalError, match='form="eliminated"'):
        table_program(Goal.parse("maximize macro(f1)"), task, Tabled(10))


def test_what_a_running_loss_cannot_do_with_a_table():
    goal, task = GOALS["f1"]
    program = table_program(Goal.parse(goal), task, Tabled(10))
    with pytest.raises(KindError, match="accumulate=2"):
        RunningLoss(program, accumulate=2)
    with pytest.raises(KindError, match="memory=0"):
        RunningLoss(program, memory=0)


# --- elsewhere than on the host ------------------------------------------------------------------


class Elsewhere(batch_of.Batch):
    """A batch whose sums stay tensors, as on a device."""

    __slots__ = ()

    def __init__(self, *parts):
        super().__init__(*parts)
        self.host = self.flat = False
        self.z, self.y, self.p, self.w = self.logits, self.actual, self.probability, self.weight


@every_goal
def test_tensors_give_what_arrays_give(name, monkeypatch):
    host = run(made(name, steps=12), name, range(12))
    monkeypatch.setattr(batch_of, "Batch", Elsewhere)
    there = run(made(name, steps=12), name, range(12))
    for key, value in host.state_dict().items():
        if key != "program.shelf.bits":
            torch.testing.assert_close(there.state_dict()[key], value, rtol=1e-6, atol=1e-6)
    values, wanted = (x.program.shelf.values() for x in (there, host))
    torch.testing.assert_close(values, wanted, rtol=0, atol=1e-6)
    torch.testing.assert_close(there.totals, recount(there, *data(name)[1:]))
    z, y, more = data(name)
    for loss in (host, there):
        loss.train(name != "two")  # once in evaluation
    ends = []
    for loss, kind in ((host, Elsewhere.__base__), (there, Elsewhere)):
        monkeypatch.setattr(batch_of, "Batch", kind)
        ends.append(called(loss, z, y, row=torch.arange(64), **more))
    torch.testing.assert_close(*ends, rtol=1e-6, atol=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_a_device_finds_the_last_mention(rows):
    bits = torch.arange(10, dtype=torch.int32) * 7
    found, last, counts = found_on_device(bits, torch.tensor(rows))
    assert found.tolist() == [7 * r for r in rows]
    assert last.tolist() == [max(j for j, x in enumerate(rows) if x == r) for r in rows]
    assert counts.tolist() == [r not in rows[j + 1 :] for j, r in enumerate(rows)]
    assert bits.tolist() == [7 * r for r in range(10)]


# --- training ------------------------------------------------------------------------------------


def two_kinds(n, seed=0):
    """Positives of two kinds, of which a linear score can find one; features and target."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    x = rng.normal(size=(n, 6))
    far = rng.random(n) < 0.45
    x[y & far, 0] += 3.2
    x[y & ~far, 1] += 1.6
    x[~y, 0] *= 0.9
    x[~y, 1] *= 1.6
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y).float()


def test_batches_know_the_numbers_of_their_rows():
    x, y = two_kinds(50)
    for share in ((0, 1), (1, 3)):
        for rows in InMemory(TrainingRows(x, y), 12, share).epoch(0, 0):
            assert torch.equal(rows.inputs, x[rows.index])
    given = InMemory(TrainingRows(x, y, index=torch.arange(50) + 100), 50)
    assert next(given.epoch(0, 0)).index.min() == 100


def test_it_finds_what_cross_entropy_does_not():
    """On the training rows, at its own threshold, against the best threshold of cross-entropy."""
    x, y = two_kinds(2000, seed=3)
    epochs, size = 60, 250
    model = torch.nn.Sequential(torch.nn.Linear(6, 1), torch.nn.Flatten(0))
    torch.nn.init.zeros_(model[0].weight)
    torch.nn.init.zeros_(model[0].bias)
    loss = made("fpor", len(y), steps=epochs * 8, double=False)
    solver = FirstOrder(0.05, "adam", weight_decay=0.0, final=0.0)
    plan = TrainingPlan(solver=solver, epochs=epochs, patience=epochs)
    train(model, loss, InMemory(TrainingRows(x, y), size), plan)
    decided = (model(x) >= 0).detach()
    precision = float(y[decided].mean())
    recall = float(y[decided].sum() / y.sum())
    assert precision >= 0.79
    assert recall >= _tuned_recall(x, y) + 0.05
    stated = loss.program.recovered(loss.totals / loss.totals[0].sum(), loss.multipliers)
    assert stated.value == pytest.approx(recall, abs=0.03)


def _tuned_recall(x, y):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import precision_recall_curve

    score = LogisticRegression(C=1e3).fit(x.numpy(), y.numpy()).decision_function(x.numpy())
    precision, recall, _ = precision_recall_curve(y.numpy(), score)
    return recall[precision >= 0.8].max()


def test_a_loop_that_was_interrupted_ends_alike(tmp_path):
    x, y = two_kinds(200)

    def trained(epochs, checkpoint=None):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(6, 1), torch.nn.Flatten(0))
        loss = made("fpor", 200, double=False)
        plan = TrainingPlan(epochs=epochs, checkpoint=checkpoint, every=1)
        train(model, loss, InMemory(TrainingRows(x, y), 50), plan)
        return model, loss

    model, loss = trained(6)
    trained(3, tmp_path / "run")
    again, taken_up = trained(6, tmp_path / "run")
    assert torch.equal(again[0].weight, model[0].weight)
    same(taken_up, loss)
