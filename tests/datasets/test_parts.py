"""Parts: apart, whole, each class in each, ids intact, time ordered, and the same for a seed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

import setpoint as sp
from setpoint.datasets import part

LABELS = st.lists(st.integers(0, 2), min_size=1, max_size=120).map(np.array)
SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.4])


def counted(y, rows, classes):
    return np.array([np.count_nonzero(y[rows] == c) for c in classes])


def enough(y, parts, least):
    """The promise of a fold: two classes (one, if there is one) fitted and held ``least`` times."""
    classes = np.unique(y)
    for fit, held in parts.folds:
        able = (counted(y, fit, classes) >= least) & (counted(y, held, classes) >= least)
        assert able.sum() >= min(2, len(classes))


def apart(y, parts, covered=True):
    """Nothing is in two parts, no row is lost."""
    n = len(y)
    every = np.concatenate([held for _, held in parts.folds])
    assert len(np.unique(every)) == len(every)
    assert not np.intersect1d(parts.train, parts.certify).size
    assert np.array_equal(np.sort(np.r_[parts.train, parts.certify]), np.arange(n))
    for fit, held in parts.folds:
        assert not np.intersect1d(fit, held).size
        assert np.array_equal(fit, np.unique(fit))
        if covered:
            assert np.array_equal(np.union1d(fit, held), parts.train)
    assert np.array_equal(parts.held, np.sort(every))
    fold = parts.fold_of(n)
    assert np.array_equal(np.flatnonzero(fold >= 0), parts.held)
    assert all((fold[held] == k).all() for k, (_, held) in enumerate(parts.folds))


@given(LABELS, SHARES, st.integers(1, 6), st.integers(0, 5), st.integers(1, 3))
def test_rows_are_parted_by_class(y, share, folds, seed, least):
    parts = part(y, certify_size=share, folds=folds, seed=seed, least=least)
    if parts.shared:
        assert sum(np.sort(np.unique(y, return_counts=True)[1])[-2:] >= 2 * least) < 2
        assert np.array_equal(parts.folds[0][0], np.arange(len(y)))
        assert not len(parts.certify)
        assert "flatters" in parts.notes[-1]
        return
    apart(y, parts)
    enough(y, parts, least)
    assert len(parts.folds) <= folds
    assert (len(parts.folds) < folds) == any("instead of" in note for note in parts.notes)
    for c in np.unique(y):
        n, kept = np.count_nonzero(y == c), np.count_nonzero(y[parts.certify] == c)
        assert abs(kept - share * n) < 1 + 1e-9 or kept in (0, 2)
        of = [np.count_nonzero(y[held] == c) for _, held in parts.folds]
        if folds > 1:
            assert max(of) - min(of) <= 1
            assert sum(of) in (n - kept, 0)  # a class of one row is only fitted on
        for k, (fit, _) in enumerate(parts.folds):
            assert not of[k] or np.count_nonzero(y[fit] == c)  # what is held was seen


def test_folds_are_of_one_size():
    y = np.r_[np.zeros(503), np.ones(101), np.full(47, 2)].astype(int)
    sizes = [len(held) for _, held in part(y, folds=7).folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("positives", "certify", "folds"), [(3, 0, 1), (4, 0, 2), (5, 0, 2), (6, 2, 2), (40, 10, 5)]
)
def test_few_positives(positives, certify, folds):
    y = np.array([0] * 60 + [1] * positives)
    parts = part(y)
    assert y[parts.certify].sum() == certify
    assert len(parts.folds) == folds
    assert parts.shared == (positives < 4)
    assert any("no rows are kept to certify" in note for note in parts.notes) == (certify == 0)


def test_a_rare_class_does_not_spoil_the_others():
    y = np.r_[np.zeros(50), np.ones(50), [2] * 8, [3]].astype(int)
    parts = part(y)
    assert len(parts.certify) == 27
    assert np.count_nonzero(y[parts.certify] == 2) == 2
    assert all(108 in fit for fit, _ in parts.folds)  # the only row of class 3


def test_no_rows_are_kept_on_request():
    parts = part(np.arange(40) % 2, certify_size=0)
    assert not len(parts.certify)
    assert parts.notes == ()


def test_one_fold_is_a_hold_out():
    parts = part(np.arange(400) % 2, folds=1)
    ((fit, held),) = parts.folds
    assert (len(parts.certify), len(fit), len(held)) == (100, 225, 75)


def test_several_labels_are_parted_by_the_rarest():
    y = (np.random.default_rng(0).random((400, 3)) < [0.5, 0.05, 0.3]).astype(int)
    parts = part(y)
    of = [y[held, 1].sum() for _, held in parts.folds]
    assert max(of) - min(of) <= 1
    assert abs(y[parts.certify, 1].sum() - y[:, 1].sum() / 4) < 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), SHARES, st.integers(1, 5))
def test_ids_stay_whole(seed, share, folds):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 150))
    y, ids = rng.integers(0, 3, n), rng.integers(0, rng.integers(1, 60), n)
    parts = part(y, together=ids.astype(str), certify_size=share, folds=folds)
    for a, b in [(parts.train, parts.certify), *parts.folds]:
        assert parts.shared or not np.intersect1d(ids[a], ids[b]).size
    if not parts.shared:
        apart(y, parts)
        enough(y, parts, 2)


def test_ids_are_dealt_as_evenly_as_by_scikit_learn():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(300), rng.geometric(0.1, 300))
    y = (rng.random(len(ids)) < rng.beta(0.5, 4, 300)[ids]).astype(int)
    parts = part(y, together=ids, certify_size=0.25)
    assert abs(len(parts.certify) / len(y) - 0.25) < 0.01
    assert abs(y[parts.certify].sum() / y.sum() - 0.25) < 0.02
    rest = parts.train
    ours = np.std([y[held].mean() for _, held in parts.folds])
    theirs = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    rates = [y[rest][held].mean() for _, held in theirs.split(rest, y[rest], ids[rest])]
    assert ours <= max(np.std(rates), 0.002)


def test_one_id_of_half_the_rows_does_not_starve_the_certificate():
    ids = np.r_[np.zeros(500), np.arange(1, 501)].astype(int)
    parts = part(np.arange(1000) % 2, together=ids)
    assert len(parts.certify) == 250


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), SHARES, st.integers(1, 5))
def test_later_rows_are_held(seed, share, folds):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    y, when = rng.integers(0, 2, n), rng.integers(0, rng.integers(2, 80), n)
    when[:2] = [0, 1]
    parts = part(y, time=when, certify_size=share, folds=folds)
    if len(parts.certify):
        assert when[parts.train].max() < when[parts.certify].min()
    if parts.shared:
        return
    apart(y, parts, covered=False)
    enough(y, parts, 2)
    ends = [when[held].max() for _, held in parts.folds]
    assert ends == sorted(ends)
    for fit, held in parts.folds:
        assert when[fit].max() < when[held].min()


def test_blocks_of_time_are_of_one_size():
    parts = part(np.arange(800) % 2, time=np.arange(800)[::-1], folds=5)
    assert np.array_equal(parts.certify, np.arange(200))
    assert [(len(fit), len(held)) for fit, held in parts.folds] == [
        (100 * k, 100) for k in range(1, 6)
    ]


@pytest.mark.parametrize(
    "spell",
    [
        lambda days: days.strftime("%Y-%m-%d").to_list(),
        lambda days: days.strftime("%d.%m.%Y").to_numpy(),
        lambda days: days.to_numpy(),
        lambda days: days.tz_localize("Europe/Berlin").to_series(),
        lambda days: [day.date() for day in days],
        lambda days: days.to_period("D").to_series(),
        lambda days: np.arange(len(days)) / 7,
        lambda days: pd.Series(np.arange(len(days)), dtype="Int64"),
    ],
)
def test_times_may_be_spelled(spell):
    days = pd.date_range("2023-12-20", periods=40)
    parts = part(np.arange(40) % 2, time=spell(days))
    assert np.array_equal(parts.certify, np.arange(30, 40))


def test_the_seed_decides():
    y = np.arange(200) % 3
    a, b, c = part(y, seed=1), part(y, seed=1), part(y, seed=2)
    assert np.array_equal(a.certify, b.certify)
    assert np.array_equal(a.fold_of(200), b.fold_of(200))
    assert not np.array_equal(a.certify, c.certify)
    assert np.array_equal(part(y, folds=2, seed=1).certify, a.certify)


def test_the_place_of_a_row_tells_nothing():
    y = np.r_[np.zeros(30), np.ones(10)].astype(int)
    often = np.bincount(np.concatenate([part(y, seed=s).certify for s in range(600)]), minlength=40)
    assert abs(often / 600 - 0.25).max() < 0.075  # over 4 standard errors


def test_the_users_parts_are_taken():
    words = np.array(["Train", "valid", "test ", "train", "dev", "holdout"] * 5)
    parts = part(np.arange(30) % 2, split=words)
    ((fit, held),) = parts.folds
    assert np.array_equal(
        fit,
        np.flatnonzero(np.char.startswith(words, ("Train")) | np.char.startswith(words, "train")),
    )
    assert np.array_equal(held, np.flatnonzero((words == "valid") | (words == "dev")))
    assert np.array_equal(parts.certify, np.flatnonzero((words == "test ") | (words == "holdout")))
    assert 'split: "dev" rows are taken as tune rows.' in parts.notes


def test_without_tune_the_train_rows_are_cross_fitted():
    words = np.array(["train"] * 60 + ["certify"] * 20)
    parts = part(np.arange(80) % 2, split=words, folds=3, certify_size=0.5)
    assert np.array_equal(parts.certify, np.arange(60, 80))
    assert np.array_equal(parts.held, np.arange(60))
    assert len(parts.folds) == 3


def test_the_users_parts_without_certify():
    parts = part(np.arange(40) % 2, split=["train"] * 40)
    assert not len(parts.certify)
    assert any("nothing can be certified" in note for note in parts.notes)


def test_the_users_parts_go_with_ids_and_with_time():
    y, words = np.arange(120) % 2, np.array(["train"] * 90 + ["certify"] * 30)
    ids = np.arange(120) // 3
    parts = part(y, split=words, together=ids)
    for fit, held in parts.folds:
        assert not np.intersect1d(ids[fit], ids[held]).size
    parts = part(y, split=words, time=np.arange(120))
    assert all(fit.max() < held.min() for fit, held in parts.folds)
    assert parts.notes == ()
    parts = part(y, split=words, time=-np.arange(120))
    assert any("overlap in time" in note for note in parts.notes)


Y = np.arange(20) % 2


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"split": ["train"] * 19 + ["training"]}, sp.DataError, '"training" in data row 20; the '
         "words are train, tune, certify"),
        ({"split": ["train"] * 19 + [None]}, sp.DataError, "missing in data row 20"),
        ({"split": ["tune"] * 20}, sp.DataError, 'no "train" rows'),
        ({"split": ["train"] * 3}, sp.DataError, "3 values for 20 rows"),
        ({"together": [1.0] * 19 + [float("nan")]}, sp.DataError, "missing in data row 20"),
        ({"together": np.ones((20, 2))}, sp.DataError, r"shape \(20, 2\)"),
        ({"together": [0] * 20, "split": ["train", "certify"] * 10}, sp.DataError, "rows 1 and 2"),
        ({"time": ["2024-01-01"] * 19 + ["soon"]}, sp.DataError, '"soon" in data row 20'),
        ({"time": ["2024-01-01"] * 19 + ["01.01.2024"]}, sp.DataError, "write all"),
        ({"time": [1.0] * 19 + [np.inf]}, sp.DataError, "infinite in data row 20"),
        ({"time": [None] + [1.0] * 19}, sp.DataError, "missing in data row 1"),
        ({"time": [3] * 20}, sp.DataError, "the same in every row"),
        ({"time": [True, False] * 10}, sp.KindError, "numbers or dates"),
        ({"time": range(20), "together": range(20)}, sp.KindError, "cannot be combined"),
        ({"certify_size": 1}, sp.KindError, "certify_size=.* at least 0 and below 1"),
        ({"certify_size": "half"}, sp.KindError, "certify_size=.* at least 0 and below 1"),
        ({"folds": 0}, sp.KindError, "folds=0"),
        ({"folds": 2.0}, sp.KindError, "folds=2.0"),
        ({"least": 0}, sp.KindError, "least=0"),
        ({"seed": -1}, sp.KindError, "seed=-1"),
    ],
)  # fmt: skip
def test_bad_input(given, error, says):
    with pytest.raises(error, match=says):
        part(Y, **given)


@pytest.mark.parametrize("y", [[], 3, np.zeros((2, 2, 2))])
def test_bad_classes(y):
    with pytest.raises(sp.DataError, match="y has shape"):
        part(y)
