"""An evaluation against closed forms: a linear model's radii, the worst of several attacks."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.robustness.stand_ins import exact, linear, nearest_wrong, problem
from torch import nn

import setpoint as sp
from setpoint.robustness.evaluate import evaluate


def within(attack, eps, p):
    """The attack cut to a ball: points beyond it are pulled back."""

    def cut(model, x, y):
        move = attack(model, x, y) - x
        size = torch.linalg.vector_norm(move.flatten(1), p, dim=1).reshape(-1, 1)
        return x + move * (eps / size.clamp(min=1e-12)).clamp(max=1)

    return cut


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_figures_are_those_of_the_closed_form(p):
    model, weights, bias, x, y = problem()
    name = "linf" if math.isinf(p) else f"l{p:g}"
    _, radius = nearest_wrong(weights, bias, x, y, p)
    right = (x @ weights.T + bias).argmax(1) == y
    radius = torch.where(right, radius, 0.0).numpy()
    eps = [float(np.quantile(radius, 0.3)) + 1e-6, float(np.quantile(radius, 0.7)) + 1e-6]
    found = evaluate(model, x, y, name, eps[::-1], attacks=exact(weights, bias, p))
    assert found.eps == tuple(eps)
    assert found.clean_accuracy == float(right.double().mean())
    np.testing.assert_allclose(found.columns["radius"], radius, rtol=1e-6, atol=1e-12)
    for level, e in zip(found.levels, eps, strict=True):
        left = int((radius > e).sum())
        assert (level.right, level.images) == (left, len(x))
        truth = stats.binomtest(left, len(x)).proportion_ci(0.95, "exact")
        assert level.interval == pytest.approx((truth.low, truth.high))
        once = stats.binomtest(left, len(x), alternative="less").proportion_ci(0.95, "exact")
        assert level.at_most == pytest.approx(once.high)
    assert found.robust_accuracy == found.levels[-1].accuracy
    assert found.radius_quantiles((0.5,))[0.5] == pytest.approx(np.sort(radius)[len(x) // 2 - 1])
    assert (found.columns["attacked"] == (right.numpy() & (radius <= eps[1]))).all()


def test_only_right_images_are_attacked_and_copies_are_given():
    model, weights, bias, x, y = problem()
    before, seen = x.clone(), []

    def greedy(model, images, labels):
        seen.append((images.clone(), labels.clone()))
        return images.mul_(0.5)

    evaluate(model, x, y, "l2", 0.1, attacks=greedy, batch_size=7)
    right = (x @ weights.T + bias).argmax(1) == y
    assert torch.equal(torch.cat([a for a, _ in seen]), x[right])
    assert torch.equal(torch.cat([b for _, b in seen]), y[right])
    assert torch.equal(x, before)


def test_the_worst_case_over_attacks_is_reported():
    model, weights, bias, x, y = problem()
    best = exact(weights, bias, 2.0)
    even = torch.arange(len(x)) % 2 == 0

    def some(keep):
        def attack(model, images, labels):
            rows = torch.tensor([(x == one).all(1).nonzero().item() for one in images])
            return torch.where(keep[rows][:, None], best(model, images, labels), images)

        return attack

    eps = 0.06
    names = {"even": some(even), "odd": some(~even)}
    both = evaluate(model, x, y, "l2", eps, attacks=names)
    all_of_them = evaluate(model, x, y, "l2", eps, attacks=best)
    assert both.robust_accuracy == all_of_them.robust_accuracy
    by = both.columns["by"][both.columns["attacked"]]
    expected = np.where(even.numpy(), "even", "odd")[both.columns["attacked"]]
    assert (by == expected).all()
    assert set(by) == {"even", "odd"}
    tried = {ran.name: (ran.tried, ran.won) for ran in both.attacks}
    assert tried["even"][0] == int(both.columns["correct"].sum())
    assert tried["odd"][0] == tried["even"][0] - tried["even"][1]  # beaten ones are left alone
    compared = evaluate(model, x, y, "l2", eps, attacks=names, cascade=False)
    assert [ran.tried for ran in compared.attacks] == [tried["even"][0]] * 2
    assert compared.robust_accuracy == both.robust_accuracy


def test_an_attack_that_fails_costs_the_others_nothing():
    model, weights, bias, x, y = problem()

    def broken(model, images, labels):
        raise RuntimeError("out of\nideas")

    def short(model, images, labels):
        return images[:-1]

    def numpy(model, images, labels):
        return images.numpy()

    good = exact(weights, bias, 2.0)
    found = evaluate(model, x, y, "l2", 0.06, attacks=[broken, short, numpy, good], cascade=False)
    alone = evaluate(model, x, y, "l2", 0.06, attacks=good)
    assert found.robust_accuracy == alone.robust_accuracy
    right = int(found.columns["correct"].sum())
    told = str(found)
    assert f"broken raised RuntimeError: out of ideas; {right} images had to do without it." in told
    assert "short raised DataError: an attack gave points of shape" in told
    assert "numpy raised DataError: it gave a ndarray for" in told
    with pytest.raises(sp.DataError, match="no attack could be run; broken raised RuntimeError"):
        evaluate(model, x, y, "l2", 0.06, attacks=broken)


def test_points_beyond_eps_count_for_the_radius_only():
    model, weights, bias, x, y = problem()
    found = evaluate(model, x, y, "l2", 1e-4, attacks=exact(weights, bias, 2.0))
    assert not found.columns["attacked"].any()
    assert np.isfinite(found.columns["radius"]).all()
    assert (found.columns["violation"] == 0).all()
    assert (found.points == x.numpy()).all()
    far = found.at(10.0)
    assert far.right == 0


@pytest.mark.parametrize("batch_size", [1, 9, 40, 1000])
def test_the_size_of_batches_changes_nothing(batch_size):
    model, weights, bias, x, y = problem()
    attack = exact(weights, bias, math.inf)
    one = evaluate(model, x, y, "linf", [0.01, 0.03], attacks=attack, batch_size=batch_size)
    other = evaluate(model, x, y, "linf", [0.01, 0.03], attacks=attack)
    for name, column in one.columns.items():
        if column.dtype == np.float64:
            np.testing.assert_allclose(column, other.columns[name], rtol=1e-9, atol=1e-15)
        else:
            assert (column == other.columns[name]).all(), name


def test_stopped_it_gives_what_is_done():
    model, weights, bias, x, y = problem()
    calls = []

    def stopping(after):
        def attack(model, images, labels):
            calls.append(len(images))
            if len(calls) > after:
                raise KeyboardInterrupt
            return exact(weights, bias, 2.0)(model, images, labels)

        return attack

    found = evaluate(model, x, y, "l2", 0.06, attacks=stopping(2), batch_size=10)
    assert (found.images, found.asked, found.stopped) == (20, 40, True)
    whole = evaluate(model, x[:20], y[:20], "l2", 0.06, attacks=exact(weights, bias, 2.0))
    assert found.levels == whole.levels
    assert len(found.points) == 20
    assert "Stopped: 20 more were asked for" in str(found)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, x, y, "l2", 0.06, attacks=stopping(0), batch_size=10)


def test_memory_that_runs_out_halves_the_batch():
    model, weights, bias, x, y = problem()
    sizes = []

    def hungry(model, images, labels):
        sizes.append(len(images))
        if len(images) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return exact(weights, bias, 2.0)(model, images, labels)

    found = evaluate(model, x, y, "l2", 0.06, attacks=hungry)
    assert sizes[:3] == [36, 18, 9]
    alone = evaluate(model, x, y, "l2", 0.06, attacks=exact(weights, bias, 2.0))
    assert found.levels == alone.levels
    assert found.attacks[0].tried == 36


def test_random_attacks_repeat_themselves_and_leave_the_generator_alone():
    model, _, _, x, y = problem()

    def noise(model, images, labels):
        return images + 0.2 * torch.randn_like(images)

    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one = evaluate(model, x, y, "l2", 0.5, attacks=noise, seed=3)
    assert torch.equal(torch.rand(3), expected)
    two = evaluate(model, x, y, "l2", 0.5, attacks=noise, seed=3)
    other = evaluate(model, x, y, "l2", 0.5, attacks=noise, seed=4)
    assert (one.points == two.points).all()
    assert not (one.points == other.points).all()


def test_progress_is_told():
    model, weights, bias, x, y = problem()
    told = []
    attacks = [exact(weights, bias, 2.0), within(exact(weights, bias, 2.0), 0.05, 2)]
    evaluate(model, x, y, "l2", 0.05, attacks=attacks, batch_size=20, listener=told.append)
    assert [t.done for t in told] == sorted(t.done for t in told)
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 40, 40)
    assert {t.attack for t in told} == {"nearest", "cut"}


def test_targets():
    model, weights, bias, x, y = problem()
    targets = (y + 1) % 4

    def leading(model, images, labels, target):
        moved = images.clone()
        slope = weights[target] - weights[labels]
        return moved + 0.2 * slope / slope.norm(dim=1, keepdim=True)

    found = evaluate(model, x, y, "l2", 0.2, attacks=leading, targets=targets)
    right = (x @ weights.T + bias).argmax(1) == y
    slope = weights[targets] - weights[y]
    point = (x + 0.2 * slope / slope.norm(dim=1, keepdim=True)).clamp(0, 1)
    led = right & ((point @ weights.T + bias).argmax(1) == targets)
    assert found.columns["attacked"].tolist() == led.tolist()
    assert 0 < int(led.sum()) < int(right.sum())
    assert (found.columns["prediction"][led.numpy()] == targets[led].numpy()).all()
    assert "not led to its target" in str(found)


# --- our own attacks ------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_ours_find_what_the_closed_form_says(p):
    model, weights, bias, x, y = problem(24)
    name = "linf" if math.isinf(p) else f"l{p:g}"
    _, radius = nearest_wrong(weights, bias, x, y, p)
    right = (x @ weights.T + bias).argmax(1) == y
    radius = torch.where(right, radius, 0.0).numpy()
    ranked = np.sort(radius)
    eps = [float(ranked[k : k + 2].mean()) for k in (8, 16)]  # no image has a radius near them
    found = evaluate(model, x, y, name, eps, iterations=40)
    assert [ran.name for ran in found.attacks] == ["min-radius", "max-loss"]
    np.testing.assert_allclose(found.columns["radius"], radius, rtol=2e-3, atol=1e-9)
    assert (found.columns["radius"] >= radius * (1 - 1e-6)).all()
    assert [level.right for level in found.levels] == [int((radius > e).sum()) for e in eps]
    assert found.attacks[0].forwards > 0
    alone = evaluate(model, x, y, name, eps, radius=False, iterations=40)
    assert [ran.name for ran in alone.attacks] == ["max-loss"]
    assert alone.levels == found.levels
    assert (alone.columns["violation"] <= 1e-6 * eps[-1]).all()
    assert "(not searched for; attacks within eps found these)" in str(alone)


def test_what_ours_find_does_not_depend_on_the_batch():
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x = torch.rand(12, 6, dtype=torch.float64)
    y = net(x).argmax(1)
    whole = evaluate(net, x, y, "l2", 0.2, cascade=False, seed=5, iterations=20)
    parts = evaluate(net, x, y, "l2", 0.2, cascade=False, seed=5, iterations=20, batch_size=5)
    np.testing.assert_allclose(whole.columns["radius"], parts.columns["radius"], rtol=1e-6)
    assert (whole.columns["attacked"] == parts.columns["attacked"]).all()
    np.testing.assert_allclose(whole.points, parts.points, atol=1e-4)


def test_any_distance_is_attacked():
    model, weights, bias, x, y = problem(10)

    def weighed(a, b):  # an l2 norm in other units: twice the closed form
        return 2 * (a - b).norm(dim=1)

    _, radius = nearest_wrong(weights, bias, x, y, 2.0)
    right = (x @ weights.T + bias).argmax(1) == y
    radius = 2 * torch.where(right, radius, 0.0).numpy()
    found = evaluate(model, x, y, weighed, float(np.sort(radius)[4:6].mean()))
    assert found.distance == "weighed"
    np.testing.assert_allclose(found.columns["radius"], radius, rtol=1e-2, atol=1e-9)
    assert found.levels[0].right == int((radius > found.eps[0]).sum())


# --- the model ------------------------------------------------------------------------------------


class Dropping(nn.Module):
    """A model whose answer depends on its mode."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.drop, self.frozen = inner, nn.Dropout(0.5), nn.BatchNorm1d(4)
        self.double()
        self.frozen.eval()

    def forward(self, x):
        return self.drop(self.inner(x))


def test_a_model_in_training_mode_is_put_back():
    inner, weights, bias, x, y = problem()
    model = Dropping(inner)
    found = evaluate(model, x, y, "l2", 0.05, attacks=exact(weights, bias, 2.0))
    assert model.training
    assert model.drop.training
    assert not model.frozen.training
    assert "The model was in training mode and was run in evaluation mode, as Dropout" in str(found)
    assert (
        found.levels == evaluate(inner, x, y, "l2", 0.05, attacks=exact(weights, bias, 2.0)).levels
    )

    def broken(*_):
        raise ValueError("no")

    with pytest.raises(sp.DataError):
        evaluate(model, x, y, "l2", 0.05, attacks=broken)
    assert model.drop.training


def test_a_model_that_does_not_repeat_itself_is_named():
    model, weights, bias, x, y = problem()
    attack = exact(weights, bias, 2.0)
    found = evaluate(lambda z: model(z) + 0.1 * torch.rand(4), x, y, "l2", 0.05, attacks=attack)
    assert "answers the same images otherwise from call to call" in str(found)


@pytest.mark.parametrize("how", ["detached", "inference", "rounded"])
def test_gradients_that_are_not_there_are_named(how):
    model, weights, bias, x, y = problem()

    def blind(z):
        if how == "inference":
            with torch.inference_mode():
                return model(z).clone()
        return model(z).detach() if how == "detached" else (model(z) * 1e6).round() / 1e6

    told = str(evaluate(blind, x, y, "l2", 0.05, attacks=exact(weights, bias, 2.0)))
    said = "gradient is exactly 0 at 36 of 36" if how == "rounded" else "carry no gradient"
    assert said in told


def test_clean_logits_that_are_no_numbers_count_as_wrong():
    model, weights, bias, x, y = problem()
    lost = x[3, 0]

    def hurt(z):
        return torch.where((z[:, :1] == lost), torch.full((1, 4), math.nan).double(), model(z))

    found = evaluate(hurt, x, y, "l2", 0.05, attacks=exact(weights, bias, 2.0))
    assert not found.columns["correct"][3]
    assert found.columns["radius"][3] == 0
    assert "no numbers for 1 clean image, the first is 3" in str(found)


def test_images_are_taken_as_the_model_wants_them():
    weights, bias = torch.randn(3, 4, dtype=torch.float64), torch.zeros(3).double()
    model = linear(weights, bias, torch.float32)
    x = np.random.default_rng(0).integers(0, 256, (6, 2, 2)).astype(np.uint8)
    y = model(torch.from_numpy(x).float()).argmax(1).numpy()
    seen = []

    def attack(model, images, labels):
        seen.append(images.dtype)
        return images

    found = evaluate(model, x, y.astype(np.int32), "l2", 5, attacks=attack, high=255)
    assert seen == [torch.float32]
    assert found.points.dtype == np.float32
    assert found.clean_accuracy == 1.0


# --- mistakes -------------------------------------------------------------------------------------

MODEL, W, B, X, Y = problem(8)
NAN = X.clone()
NAN[2, 1] = math.nan
MISTAKES = {
    "beyond": ({"X": X * 200}, sp.DataError, r"X holds 1\d\d\.\d+ and the box is \[0, 1\]; divide"),
    "below": ({"X": X - 1}, sp.DataError, r"X holds -0\.\d+ and the box is \[0, 1\]; say low=-0"),
    "nan": ({"X": NAN}, sp.DataError, "no finite number in image 2"),
    "one image": ({"X": X[0]}, sp.DataError, r"One image alone is X\[None\]"),
    "none": ({"X": X[:0], "y": Y[:0]}, sp.DataError, "one at least"),
    "words": ({"X": [["a", "b"]]}, sp.KindError, "X is a list that is no array of numbers"),
    "length": ({"y": Y[:5]}, sp.DataError, r"y has shape \(5,\) and there are 8 images"),
    "labels": ({"y": ["a"] * 8}, sp.KindError, "y holds 'a'; labels are the numbers"),
    "halves": ({"y": [0.5] * 8}, sp.KindError, r"y holds 0\.5; labels"),
    "negative": ({"y": Y - 4}, sp.DataError, "count from 0"),
    "class": ({"y": Y + 4}, sp.DataError, "the model has 4 classes, 0 to 3; labels count from 0"),
    "eps 0": ({"eps": 0}, sp.DataError, "eps is a number above 0, or several; got 0"),
    "eps nan": ({"eps": [0.1, math.nan]}, sp.DataError, "got nan"),
    "no eps": ({"eps": []}, sp.DataError, "eps is empty"),
    "distance": ({"distance": "l2x"}, sp.DataError, r"did you mean 'l2'\?"),
    "euclid": ({"distance": "euclidian"}, sp.DataError, r"did you mean 'l2'\?"),
    "no distance": ({"distance": 2}, sp.KindError, "distance is a int"),
    "one number": ({"distance": lambda a, b: (a - b).norm()}, sp.KindError, "one number for each"),
    "class of model": ({"model": nn.Linear}, sp.KindError, "a class: make one of it"),
    "no model": ({"model": 3}, sp.KindError, "model is 3"),
    "one logit": ({"model": lambda z: z[:, :1]}, sp.DataError, "one for each class"),
    "flat": ({"model": lambda z: z.sum(1)}, sp.DataError, r"gave \(2,\) for 2 images"),
    "pair": ({"model": lambda z: (z, z)}, sp.DataError, "gave tuple for 2 images"),
    "wrong size": (
        {"model": nn.Linear(9, 3)},
        sp.DataError,
        r"cannot take images of shape \(2, 6\)",
    ),
    "box": ({"low": 1.0, "high": 0.0}, sp.DataError, "low below high"),
    "confidence": ({"confidence": 95}, sp.DataError, "did you mean 0.95"),
    "batch": ({"batch_size": 0}, sp.DataError, "batch_size is a whole number, 1 or more; got 0"),
    "restarts": ({"restarts": 1.5}, sp.DataError, "restarts is a whole number"),
    "loss": ({"loss": "hinge"}, sp.DataError, "loss is 'hinge'"),
    "attack": ({"attacks": "pgd"}, sp.KindError, 'a name is "auto", "max-loss" or "min-radius"'),
    "no attack": ({"attacks": []}, sp.KindError, "attacks is empty"),
    "no call": ({"attacks": [3]}, sp.KindError, "attack 3 cannot be called"),
    "targets": ({"targets": Y}, sp.DataError, "for image 0, which is its label"),
    "far target": ({"targets": Y * 0 + 9}, sp.DataError, "targets holds 9 and the model has 4"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_sentences(name):
    changed, kind, said = MISTAKES[name]
    given = {
        "model": MODEL,
        "X": X,
        "y": Y,
        "distance": "l2",
        "eps": 0.1,
        "attacks": exact(W, B, 2),
    }
    with pytest.raises(kind, match=said):
        evaluate(**(given | changed))


def test_data_and_weights_are_known_again():
    attack = exact(W, B, 2)
    one = evaluate(MODEL, X, Y, "l2", 0.1, attacks=attack).settings
    assert one == evaluate(MODEL, X.numpy(), Y.tolist(), "l2", 0.1, attacks=attack).settings
    other = evaluate(MODEL, X.flip(0), Y.flip(0), "l2", 0.1, attacks=attack).settings
    assert (one["data"] != other["data"], one["weights"] == other["weights"]) == (True, True)
    changed = linear(W, B + 1e-9)
    assert evaluate(changed, X, Y, "l2", 0.1, attacks=attack).settings["weights"] != one["weights"]


def test_each_stationarity_is_of_its_own_problem():
    found = evaluate(MODEL, X, Y, "l2", 0.03, iterations=20, cascade=False)
    table, right = found.table, found.columns["correct"]
    assert (table["radius_stationarity"].notna() == (table["radius_by"] == "min-radius")).all()
    assert table["radius_stationarity"][right & ~table["attacked"]].notna().all()
    left = right & ~found.columns["attacked"]
    assert left.any()
    assert table["stationarity"][left].between(0, 0.05).all()  # the loss of a linear model is one
