"""A table shared out over processes: the same weights and memberships at every world size.

Three processes are spawned once; groups of one, two and three of them train in turn over gloo.
Gradients are averaged by hand: DistributedDataParallel and an optimiser, which take longer to
import than this to run, are for the loop, under the mark slow. Process r takes rows r, r + world, …
of each batch of a fresh permutation, so that a row falls to one process in one epoch and to another
in the next.
"""

import os
import tempfile

import pytest
import torch
import torch.distributed as dist
from tests.training.processes import run_processes
from torch import nn

from setpoint._core.errors import DataError
from setpoint.goals import Goal, Task
from setpoint.methods.exact.membership_table import UNSEEN, Tabled, table_program
from setpoint.methods.exact.row_store import Shelf
from setpoint.training.batches import InMemory, TrainingRows
from setpoint.training.distributed import Processes
from setpoint.training.loop import TrainingPlan, train
from setpoint.training.running_loss import RunningLoss

ROWS, SIZE, EPOCHS, HALF = 41, 14, 6, 3
GROUPS = Task.binary(groups={"g": ["x", "y"]})
#: name -> goal, task, options
RUNS = {
    "fpor": ("maximize recall subject to precision >= 0.8", None, {}),
    "frop": ("maximize precision subject to recall >= 0.8", None, {"regulariser": "relabel"}),
    "ofbs": ("maximize f1", None, {}),
    "groups": ('maximize f1 subject to gap(recall, by="g") <= 0.1', GROUPS, {}),
    "disk": ("maximize recall subject to precision >= 0.8", None, {"table": "s.bin"}),
    "twice": ("maximize recall subject to precision >= 0.8", None, {}),
}
WORLDS = (1, 2, 3)


def data():
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(ROWS, generator=rng) < 0.3).long()
    x = torch.randn(ROWS, 4, generator=rng, dtype=torch.float64) + 0.7 * y[:, None]
    weight = 0.2 + torch.rand(ROWS, generator=rng, dtype=torch.float64)
    return x, y, weight, torch.randint(2, (ROWS,), generator=rng)


def batches(name, epochs):
    for epoch in epochs:
        rng = torch.Generator().manual_seed(epoch)
        for part in torch.randperm(ROWS, generator=rng).split(SIZE):
            yield torch.cat([part, part[:5]]) if name == "twice" else part


class Run:
    """A model and its loss, on one process of a group (None: without one)."""

    def __init__(self, name, folder, group=None):
        goal, task, options = RUNS[name]
        if "table" in options:
            options = {"table": f"{folder}/{group and dist.get_world_size(group)}"}
        torch.manual_seed(0)
        self.name, self.group = name, group
        self.model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double()
        options = {"rho": 1.0, "lam": 1.6, "rate_s": 0.4, **options}
        program = table_program(Goal.parse(goal), task or Task.binary(), Tabled(ROWS, **options))
        self.loss = RunningLoss(program, process_group=group).double()

    def train(self, epochs):
        rank, world = 0, 1
        if self.group is not None:
            rank, world = dist.get_rank(self.group), dist.get_world_size(self.group)
        parameters = list(self.model.parameters())
        x, y, weight, group = data()
        for part in batches(self.name, epochs):
            row = part[rank::world]
            more = {"group": group[row]} if self.name == "groups" else {}
            outputs = self.model(x[row])
            self.value = self.loss(outputs, y[row], weight=weight[row], row=row, **more)
            gradient = _flat(torch.autograd.grad(self.value, parameters)) / world
            if self.group is not None:
                dist.all_reduce(gradient, group=self.group)
            nn.utils.vector_to_parameters(_flat(parameters) - 0.2 * gradient, parameters)
        return self

    def found(self):
        shelf = self.loss.program.shelf
        exchange = self.loss._exchange()
        return {
            "parameters": _flat(self.model.parameters()),
            "totals": self.loss.totals.clone(),
            "multipliers": self.loss.multipliers.clone(),
            "value": self.value.detach(),
            "s": shelf.values(exchange),
            "nbytes": torch.tensor(shelf.nbytes),
        }


def _flat(tensors):
    return torch.cat([x.detach().flatten() for x in tensors])


def in_groups(rank, folder):
    """What each group finds, and what three find who take up where two stopped."""
    groups = {world: dist.new_group(range(world)) for world in WORLDS}
    found = {}
    for world, group in groups.items():
        if rank < world:
            for name in RUNS:
                found[name, world] = Run(name, folder, group).train(range(EPOCHS)).found()
    if rank < 2:
        first = Run("fpor", folder, groups[2]).train(range(HALF))
        state = {"model": first.model.state_dict(), "loss": first.loss.whole_state()}
        if rank == 0:
            torch.save(state, f"{folder}/half")
    dist.barrier()
    second = Run("fpor", folder, groups[3])
    state = torch.load(f"{folder}/half")
    second.model.load_state_dict(state["model"])
    second.loss.load_state_dict(state["loss"])
    found["taken up", 3] = second.train(range(HALF, EPOCHS)).found()
    return found


def by_the_loop(rank, folder):
    """Weights after the loop, uninterrupted and interrupted, with a checkpoint of all processes."""
    x, y, *_ = data()
    ends = []
    for path, epochs in ((None, 3), (f"{folder}/run", 2), (f"{folder}/run", 3)):
        run = Run("fpor", folder, None)
        model = nn.Sequential(run.model, nn.Flatten(0))
        plan = TrainingPlan(epochs=epochs, checkpoint=path, every=1)
        train(model, run.loss, InMemory(TrainingRows(x, y), SIZE, (rank, 3)), plan)
        ends.append(_flat(model.parameters()))
    return ends


def odd_rows(rank):
    """What is asked of a shelf by three processes with different numbers of rows."""
    exchange, shelf = Processes(), Shelf(8, UNSEEN)
    rows = [torch.tensor([0, 1, 2, 3, 1]), torch.tensor([7]), torch.tensor([1, 4])][rank]
    visit = shelf.take(rows, exchange)
    shelf.put(visit, 0.1 * rows.float() + 0.01 * rank, exchange)
    told = {"counts": visit.counts, "values": shelf.values(exchange), "bytes": shelf.nbytes}
    back = shelf.take(rows, exchange).values
    alone = dist.new_group([rank], use_local_synchronization=True)
    try:
        shelf.take(rows, Processes(alone))
    except DataError as error:
        told["error"] = str(error)
    return {**told, "back": back}


def worker(rank, folder, loop=False):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=3)
    try:
        result = by_the_loop(rank, folder) if loop else (in_groups(rank, folder), odd_rows(rank))
        torch.save(result, f"{folder}/found-{rank}")
    finally:
        dist.destroy_process_group()


def found_by_three(loop=False):
    with tempfile.TemporaryDirectory() as folder:
        run_processes(worker, folder, loop, count=3)
        return [torch.load(f"{folder}/found-{rank}") for rank in range(3)]


@pytest.fixture(scope="module")
def spawned():
    return found_by_three()


@pytest.fixture(scope="module")
def alone():
    assert not dist.is_initialized()
    with tempfile.TemporaryDirectory() as folder:
        yield {name: Run(name, folder).train(range(EPOCHS)).found() for name in RUNS}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("world", WORLDS)
def test_weights_and_memberships_do_not_depend_on_the_number_of_processes(
    spawned, alone, world, name
):
    one = alone[name]
    for rank in range(world):
        found = spawned[rank][0][name, world]
        for what in ("parameters", "totals", "multipliers", "value", "s"):
            torch.testing.assert_close(found[what], one[what], rtol=1e-6, atol=1e-6)
        assert torch.equal(found["s"], spawned[0][0][name, world]["s"])
        assert torch.equal(torch.signbit(found["s"]), torch.signbit(one["s"]))
    assert (one["s"].abs() <= 1).all(), "every row was seen"
    assert 0 < int((one["s"].abs() != data()[1]).sum()), "some rows were given up"


@pytest.mark.parametrize("name", RUNS)
def test_totals_are_those_of_the_table_shared_out(spawned, name):
    _, y, weight, group = data()
    found = spawned[2][0][name, 3]
    place = 2 * y + 4 * (group if name == "groups" else 0)
    for high, totals in zip(
        (found["s"].abs().double(), torch.signbit(found["s"]).double()),
        found["totals"],
        strict=True,
    ):
        cells = torch.zeros_like(totals)
        cells.index_add_(0, place, weight * (1 - high)).index_add_(0, place + 1, weight * high)
        torch.testing.assert_close(totals, cells, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("world", WORLDS)
def test_four_bytes_a_row_in_all(spawned, world):
    sizes = [int(spawned[rank][0]["fpor", world]["nbytes"]) for rank in range(world)]
    assert sum(sizes) == 4 * ROWS
    assert max(sizes) - min(sizes) <= 4


def test_a_run_of_two_processes_is_taken_up_by_three(spawned, alone):
    for rank in range(3):
        found = spawned[rank][0]["taken up", 3]
        for what in ("parameters", "totals", "multipliers", "s"):
            torch.testing.assert_close(found[what], alone["fpor"][what], rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_the_loop_keeps_the_whole_table_in_its_checkpoint():
    ends = found_by_three(loop=True)
    for whole, _, taken_up in ends:
        assert torch.equal(taken_up, whole)
        assert torch.equal(whole, ends[0][0])


def test_a_row_on_two_processes_counts_once(spawned):
    told = [rank[1] for rank in spawned]
    # row 1: twice on the first process, once on the third, which comes last
    assert told[0]["counts"].tolist() == [True, False, True, True, False]
    assert told[1]["counts"].tolist() == [True]
    assert told[2]["counts"].tolist() == [True, True]
    wanted = torch.tensor([0.0, 0.12, 0.2, 0.3, 0.42, UNSEEN, UNSEEN, 0.71])
    for rank in told:
        torch.testing.assert_close(rank["values"], wanted)
    torch.testing.assert_close(told[0]["back"], wanted[[0, 1, 2, 3, 1]])
    assert [rank["bytes"] for rank in told] == [12, 12, 8]
    assert all("shared out over 3 processes" in rank["error"] for rank in told)
