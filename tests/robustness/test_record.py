"""The record: quantiles with infinities, promises, sentences, files that are whole."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.robustness.stand_ins import exact, problem

import setpoint as sp
from setpoint.robustness.attack_outcomes import AttackRun
from setpoint.robustness.evaluate import evaluate
from setpoint.robustness.record import Robustness
from setpoint.robustness.storage import FILES


def record(radius, correct=None, eps=(1.0,), stationarity=None, moving=None, **more):
    """A record with these radii."""
    radius = np.asarray(radius, float)
    n = len(radius)
    correct = radius > 0 if correct is None else np.asarray(correct)
    attacked = correct & (radius <= eps[-1])
    columns = {
        "index": np.arange(n),
        "label": np.zeros(n, int),
        "clean": np.where(correct, 0, 1),
        "correct": correct,
        "clean_margin": np.where(correct, -1.0, 1.0),
        "attacked": attacked,
        "by": np.where(attacked, "a", "").astype(object),
        "prediction": np.where(attacked, 1, 0),
        "margin": np.where(attacked, 0.5, -0.5),
        "distance": np.where(attacked, radius, 0.0),
        "radius": radius,
        "radius_by": np.full(n, "a", object),
        "violation": np.zeros(n),
        "stationarity": np.full(n, math.nan) if stationarity is None else stationarity,
        "radius_stationarity": np.full(n, math.nan) if moving is None else moving,
        "iterations": np.zeros(n, int),
    }
    attacks = more.pop(
        "attacks", (AttackRun("a", False, n, int(attacked.sum()), 0, 0, 0.1, None, ()),)
    )
    more.setdefault("asked", n)
    return Robustness("l2", tuple(eps), 0.95, columns, attacks, **more)


def test_wrong_images_count_as_0_and_unbeaten_ones_as_infinite():
    found = record([0.0, 0.5, 0.7, math.inf, math.inf])
    assert found.radius_quantiles((0.2, 0.4, 0.6, 0.8)) == {
        0.2: 0.0,
        0.4: 0.5,
        0.6: 0.7,
        0.8: math.inf,
    }
    assert (found.clean_accuracy, found.robust_accuracy) == (0.8, 0.4)
    assert (
        "with 1 image wrong from the start as 0 and 2 images without a success as infinite"
        in str(found)
    )
    assert found.at(1e6).right == 2


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.one_of(st.floats(0, 3), st.just(math.inf)), min_size=1, max_size=30),
    st.lists(st.floats(0, 3), min_size=2, max_size=6),
)
def test_accuracy_falls_with_eps_and_stays_below_clean(radii, eps):
    found = record(radii)
    curve = found.curve(sorted(eps))
    values = [level.accuracy for level in curve]
    assert values == sorted(values, reverse=True)
    for level in curve:
        beyond = level.eps * (1 + 1e-6)
        assert level.right == sum(r > 0 and r > beyond for r in radii)
        assert level.accuracy <= found.clean_accuracy
        assert level.interval[0] <= level.accuracy <= level.at_most <= level.interval[1]


@pytest.mark.parametrize(
    ("left", "floor", "verdict"),
    [
        (40, 0.6, "REFUTED"),
        (55, 0.6, "BROKEN"),
        (60, 0.6, "NOT REFUTED"),
        (100, 1.0, "NOT REFUTED"),
    ],
)
def test_promises(left, floor, verdict):
    found = record([0.5] * (100 - left) + [2.0] * left)
    promise = found.promise(floor)
    assert promise.verdict == verdict
    assert promise.holds is (verdict == "NOT REFUTED")
    assert promise.sentence.startswith(f"{verdict}: robust accuracy >= {floor:g} at l2 <= 1")
    rare = stats.binom.cdf(left, 100, floor) <= 0.05
    assert rare is np.bool_(verdict == "REFUTED")
    if verdict == "NOT REFUTED":
        assert "no proof" in promise.sentence


def test_refutations_are_seldom_wrong():
    """Where the promise just holds, and attacks are exact, 5% at most are refuted."""
    refuted = [
        record([2.0] * left + [0.5] * (50 - left)).promise(0.7).verdict == "REFUTED"
        for left in range(51)
    ]
    chance = stats.binom.pmf(np.arange(51), 50, 0.7)[np.array(refuted)].sum()
    assert 0.01 < chance <= 0.05


@pytest.mark.parametrize("floor", [0, 1.2, "0.5", math.nan])
def test_a_floor_is_a_share(floor):
    with pytest.raises(sp.DataError, match="floor is a share above 0, at most 1"):
        record([1.0]).promise(floor)


def test_what_figures_are_not_is_said():
    found = record(
        [0.5, math.inf, math.inf, 2.0],
        stationarity=np.array([0.5, 0.5, 1e-6, math.nan]),
        moving=np.array([0.5, math.nan, math.nan, 1e-6]),
        attacks=(AttackRun("a", True, 4, 1, 1, 3, 0.1, 100, (("ValueError: no", 2),)),),
        notes=("the model is odd",),
        asked=9,
    )
    told = str(found)
    for words in (
        "The model is right on 4 of 4 clean images. Stopped: 5 more were asked for",
        "l2 <= 1: 3 of 4 images right and not beaten: robust accuracy <= 0.75 on these images",
        "An attack can only show that a model is not robust",
        "On 1 of 2 images that were not beaten the attack ended without coming to rest",
        "1 of 2 least distances have not come to rest",
        "a raised ValueError: no; 2 images had to do without it.",
        "At 3 points of a the model gave no numbers",
        "The model is odd.",
    ):
        assert words in told


def test_files_hold_the_record(tmp_path):
    model, weights, bias, x, y = problem()
    attack = exact(weights, bias, 2.0)
    found = evaluate(model, x.reshape(-1, 2, 3), y, "l2", [0.02, 0.06], attacks=attack)
    place = found.save(tmp_path / "deep" / "run")
    assert {p.name for p in place.iterdir()} == set(FILES)
    told = json.loads((place / "robustness.json").read_text())
    assert told["robust_accuracy_at_most"] == found.robust_accuracy
    assert [level["right"] for level in told["levels"]] == [level.right for level in found.levels]
    assert told["sentences"] == found.sentences()
    assert told["attacks"][0]["name"] == "nearest"
    rows = list(csv.DictReader(io.StringIO((place / "images.csv").read_text())))
    assert list(rows[0]) == list(found.columns) == list(found.table.columns)
    np.testing.assert_array_equal([float(r["radius"]) for r in rows], found.columns["radius"])
    with np.load(place / "points.npz") as kept:
        np.testing.assert_array_equal(kept["X"], x.reshape(-1, 2, 3).numpy())
        beaten = kept["attacked"]
        moved = kept["points"][beaten].reshape(-1, 6) @ weights.numpy().T + bias.numpy()
        assert (moved.argmax(1) != kept["y"][beaten]).all()
    found.save(place, images=False)
    assert not (place / "points.npz").exists()


def test_infinities_are_plain_in_json():
    told = record([math.inf, math.inf]).to_json()
    assert told["radius_quantiles"]["0.5"] == "inf"
    json.dumps(told, allow_nan=False)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(sp.FileError, match="cannot make the folder"):
        record([1.0]).save(tmp_path / "file" / "run")


def test_vectors_and_unkept_points_have_no_sheet(tmp_path):
    model, weights, bias, x, y = problem()
    attack = exact(weights, bias, 2.0)
    found = evaluate(model, x, y, "l2", 0.06, attacks=attack, keep=False)
    place = found.save(tmp_path)
    assert {p.name for p in place.iterdir()} == {*FILES} - {"examples.png", "points.npz"}
