"""Batches by query: every query whole, once an epoch, in an order that can be taken up again."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.training.batches import TrainingRows
from setpoint.training.query_batches import ByQuery


def rows_of(codes):
    codes = torch.tensor(codes)
    return TrainingRows(torch.arange(len(codes))[:, None], codes * 10, None, codes)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-3, 6), min_size=1, max_size=40), st.integers(1, 5), st.integers(0, 9))
def test_an_epoch_holds_every_row_once_and_no_query_in_two_batches(codes, queries, seed):
    rows = rows_of(codes)
    batches = ByQuery(rows, queries)
    parts = list(batches.epoch(seed, 0))
    assert len(parts) == batches.count()
    assert sorted(int(x) for part in parts for x in part.inputs) == list(range(len(codes)))
    held = [set(part.group.tolist()) for part in parts]
    assert sum(map(len, held)) == len(set(codes))
    assert {len(h) for h in held} <= {max(map(len, held)), max(map(len, held)) - 1}
    assert max(map(len, held)) <= queries
    for part in parts:
        assert torch.equal(part.target, 10 * part.group)  # columns stay together


def test_the_order_is_that_of_seed_and_epoch_and_can_be_taken_up():
    rows = rows_of([q for q in range(12) for _ in range(3)])
    batches = ByQuery(rows, 4)
    whole = [part.inputs for part in batches.epoch(1, 2)]
    rest = [part.inputs for part in ByQuery(rows, 4).epoch(1, 2, start=1)]
    assert all(torch.equal(a, b) for a, b in zip(whole[1:], rest, strict=True))
    other = [part.inputs for part in batches.epoch(1, 3)]
    assert any(not torch.equal(a, b) for a, b in zip(whole, other, strict=True))


def test_processes_share_each_batch_by_query():
    rows = rows_of([q for q in range(11) for _ in range(1 + q % 3)])
    whole = list(ByQuery(rows, 4).epoch(0, 0))
    shares = [list(ByQuery(rows, 4, share=(rank, 2)).epoch(0, 0)) for rank in range(2)]
    for i, part in enumerate(whole):
        own = [set(share[i].group.tolist()) for share in shares]
        assert own[0].isdisjoint(own[1])
        assert own[0] | own[1] == set(part.group.tolist())
        assert all(own)
        assert len(part.target) == sum(len(share[i].target) for share in shares)


def test_codes_may_come_among_other_columns():
    codes = torch.tensor([2, 2, 5])
    rows = TrainingRows(torch.zeros(3, 1), codes, None, {"query": codes, "site": 0 * codes})
    (part,) = ByQuery(rows, 9).epoch(0, 0)
    assert set(part.group) == {"query", "site"}


@pytest.mark.parametrize(
    ("rows", "options", "error", "says"),
    [
        (rows_of([1, 1])._replace(group=None), {"queries": 1}, sp.KindError, "query codes"),
        (rows_of([1, 1])._replace(group=torch.tensor([1])), {"queries": 1}, sp.DataError, "2 rows"),
        (rows_of([1, 1]), {"queries": 0}, sp.DataError, "1 or more"),
        (rows_of([1, 2]), {"queries": 1, "share": (0, 2)}, sp.DataError, "queries=2"),
    ],
)
def test_what_makes_no_batches_is_refused(rows, options, error, says):
    with pytest.raises(error, match=says):
        ByQuery(rows, **options)
