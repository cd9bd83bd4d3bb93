"""The newest rows of several processes, against a list that is dealt out by hand."""

import numpy as np
import pytest
import torch

from setpoint.methods.guard.recent_rows import TrackedRows
from setpoint.methods.implicit.shared_pool import SharedPool
from setpoint.programs import Exchange


class Together(Exchange):
    """Processes of one interpreter: what each would send is computed beforehand."""

    def __init__(self, rank, sent):
        self.rank, self.world, self.sent = rank, len(sent), sent

    def summed(self, x):
        raise NotImplementedError

    def rows(self, *columns):
        return [torch.cat(self.sent)]


class Alone(Exchange):
    """Notes what a process sends."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def summed(self, x):
        raise NotImplementedError

    def rows(self, *columns):
        self.sent = columns[0]
        raise StopIteration


def rows(scores):
    scores = torch.as_tensor(scores, dtype=torch.float32)
    return TrackedRows(scores, torch.zeros(len(scores), dtype=torch.long), torch.ones(len(scores)))


def newest(pools, turn):
    """The scores that all pools hold together."""
    sent = []
    for rank, pool in enumerate(pools):
        note = Alone(rank, len(pools))
        with pytest.raises(StopIteration):
            pool.newest(turn, note)
        sent.append(note.sent)
    kept = [pool.newest(turn, Together(r, sent)) for r, pool in enumerate(pools)]
    return sorted(x for part in kept for x in part.scores[part.weight > 0].tolist())


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("size", [20, 47, 300])
def test_the_newest_rows_of_all(world, size):
    """Batches of changing size, dealt out row by row; one list of all rows is the truth."""
    rng = np.random.default_rng(size + world)
    pools, single, everything = [SharedPool(size) for _ in range(world)], SharedPool(size), []
    for turn in range(1, 60):
        n = int(rng.integers(world, 15))
        batch = np.arange(len(everything), len(everything) + n)
        everything += batch.tolist()
        now = torch.tensor(turn)
        for rank, pool in enumerate(pools):
            pool.take(rows(batch[rank::world]), now)
        single.take(rows(batch), now)
        expected = everything[-size:]
        assert newest(pools, now) == expected
        alone = single.newest(now, None)
        assert sorted(alone.scores[alone.weight > 0].tolist()) == expected


def test_rows_of_unknown_age_are_the_oldest():
    """Version 1 kept no ages: its rows stay until newer ones need their room."""
    old = [SharedPool(8) for _ in range(2)]
    for rank, pool in enumerate(old):
        pool.push(rows([rank + 1.0] * 4), 8)
    state = [{k: v for k, v in pool.state_dict().items() if k != "turn"} for pool in old]
    pools = [SharedPool(8) for _ in range(2)]
    for pool, saved in zip(pools, state, strict=True):
        pool.load_state_dict(saved)
    assert newest(pools, torch.tensor(5)) == [1.0] * 4 + [2.0] * 4
    for pool in pools:
        pool.take(rows([9.0, 9.0]), torch.tensor(6))
    assert newest(pools, torch.tensor(6)) == [1.0] * 2 + [2.0] * 2 + [9.0] * 4
