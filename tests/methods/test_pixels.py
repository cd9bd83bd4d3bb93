"""Images as rows: the loss of a segmentation is that of its pixels in one long batch."""

import pytest
import torch

import setpoint as sp
from setpoint._core.errors import DataError

B, H, W, K = 3, 4, 5, 3
CLASSES, LABELS = sp.Task.multiclass(range(K)), sp.Task.multilabel(["a", "b", "c"])
GROUPS = sp.Task.binary(groups={"g": ["x", "y"]})
FLOOR = "maximize recall subject to precision >= 0.7"
FAIR = 'maximize f1 subject to gap(recall, by="g") <= 0.05'
#: goal, method, task, options
LOSSES = {
    "costs": (FLOOR, "costs", None, {}),
    "soft-set": (FLOOR, "soft-set", None, {"guard": False}),
    "cross-entropy": ("maximize f1", "cross-entropy", None, {}),
    "pairwise": ("maximize auroc", "pairwise", None, {}),
    "implicit": ("minimize fnr_at_fpr(0.2)", "implicit", None, {"every": 1, "pool": 500}),
    "follow": ("minimize fnr_at_fpr(0.2)", "implicit", None, {"follow": True, "pool": 500}),
    "lagrangian": (FLOOR, "lagrangian", None, {}),
    "exact": (FLOOR, "exact", None, {}),
    "fair": (FAIR, "costs", GROUPS, {}),
    "classes": ("maximize macro(f1)", "soft-set", CLASSES, {}),
    "labels": ("maximize macro(f1)", "costs", LABELS, {}),
    "errors": ("minimize mae", "errors", sp.Task.regression(edges=[0.0]), {}),
}


def made(name):
    goal, method, task, options = LOSSES[name]
    return sp.GoalLoss(goal, method, task=task, **options).double()


def batch(name, seed):
    """Logits, targets, weights and groups of images, and the same as rows, written out."""
    rng = torch.Generator().manual_seed(seed)
    task = LOSSES[name][2]
    channels = K if task in (CLASSES, LABELS) else 1
    logits = torch.randn(B, channels, H, W, generator=rng, dtype=torch.float64)
    target = torch.randint(2, (B, H, W), generator=rng)
    if task is CLASSES:
        target = torch.randint(K, (B, H, W), generator=rng)
    if task is LABELS:
        target = torch.randint(2, (B, K, H, W), generator=rng)
    target = target.double() if name == "errors" else target
    weight = torch.rand(B, H, W, generator=rng, dtype=torch.float64)
    group = torch.randint(2, (B, H, W), generator=rng) if task is GROUPS else None
    at = [(b, i, j) for b in range(B) for i in range(H) for j in range(W)]
    rows = torch.stack([logits[b, :, i, j] for b, i, j in at])
    labels = torch.stack([target[b, ..., i, j] for b, i, j in at])
    images = {"weight": weight, "group": group}
    flat = {"weight": weight.flatten(), "group": None if group is None else group.flatten()}
    return (logits, target, images), (rows if channels > 1 else rows[:, 0], labels, flat)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_images_is_that_of_their_pixels(name):
    images, rows = made(name), made(name)
    for seed in range(5):
        (z, y, more), (flat, labels, flat_more) = batch(name, seed)
        leaf, line = z.clone().requires_grad_(), flat.clone().requires_grad_()
        one, two = images(leaf, y, **more), rows(line, labels, **flat_more)
        assert one.item() == two.item()
        one.backward()
        two.backward()
        gradient = line.grad.reshape(B, H, W, -1).movedim(-1, 1)
        assert torch.equal(leaf.grad, gradient)
        if name == "follow":
            images.follow(z + 0.1)
            rows.follow(flat + 0.1)
    for key, value in images.state_dict().items():
        assert torch.equal(value, rows.state_dict()[key]), key
    if images.refreshes:
        images.refresh(z, y, **more)
        rows.refresh(flat, labels, **flat_more)
        assert images.shown() == rows.shown()


@pytest.mark.parametrize("logits", [(B, 1, H, W), (B, H, W), (B, 1, H * W)])
@pytest.mark.parametrize("layout", ["straight", "channels last"])
def test_shapes_that_say_the_same(logits, layout):
    (z, y, more), _ = batch("costs", 0)
    w = more["weight"]
    expected = made("costs")(z.requires_grad_(), y, weight=w).item()
    shaped = z.detach().reshape(logits)
    if layout == "channels last" and len(logits) == 4:
        shaped = shaped.contiguous(memory_format=torch.channels_last)
    space = (H * W,) if len(logits) == 3 and logits[1] == 1 else (H, W)
    for target in (y.reshape(B, *space), y.reshape(logits)):
        for weight in (w.reshape(B, *space), w.reshape(B, 1, *space)):
            found = made("costs")(shaped.clone().requires_grad_(), target, weight=weight)
            assert found.item() == pytest.approx(expected, rel=1e-12)


def test_a_weight_of_an_image_is_that_of_its_pixels():
    (z, y, _), _ = batch("classes", 0)
    per_image = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64)
    values = []
    for weight in (per_image, per_image[:, None, None].expand(B, H, W)):
        leaf = z.clone().requires_grad_()
        value = made("classes")(leaf, y, weight=weight)
        value.backward()
        values.append(value.item())
        assert (leaf.grad[1] == 0).all()
    assert values[0] == values[1]


def test_a_group_of_an_image_is_that_of_its_pixels():
    (z, y, _), _ = batch("fair", 0)
    code = torch.tensor([0, 1, 0])
    values = [
        made("fair").observe(z, y, group=group).item()
        for group in (code, {"g": code}, code[:, None, None].expand(B, H, W))
    ]
    assert values[0] == values[1] == values[2]


Z, Y = torch.zeros(B, 1, H, W), torch.zeros(B, H, W).long()


@pytest.mark.parametrize(
    ("name", "logits", "target", "more", "words"),
    [
        ("costs", Z, Y[:, :2], {}, r"\(3, 1, 4, 5\) and target \(3, 2, 5\); .* \(3, 4, 5\)"),
        ("costs", Z, Y[:2], {}, r"target \(2, 4, 5\)"),
        ("costs", Z, Y.transpose(1, 2), {}, r"target \(3, 5, 4\)"),
        ("costs", Z, Y[:, 0, 0], {}, r"target \(3,\)"),
        ("costs", torch.zeros(B, K, H, W), Y, {}, r"Task\.multiclass"),
        ("costs", Z, Y, {"weight": torch.ones(2)}, r"weight must have shape \(3, 4, 5\).*\(2,\)"),
        ("costs", Z, Y, {"weight": torch.ones(B, H)}, r"or \(3,\), one per image; got \(3, 4\)"),
        ("costs", Z, Y, {"weight": torch.ones(B, H * W)}, r"got \(3, 20\)"),
        ("fair", Z, Y, {"group": {"g": Y[:, 0]}}, r'group "g" must have shape'),
        ("classes", torch.zeros(B, K, H, W), Y[:, 1:], {}, r"target \(3, 3, 5\)"),
        ("classes", torch.zeros(B, 2, H, W), Y, {}, r"\(n, 3\)"),
        ("labels", torch.zeros(B, K, H, W), Y, {}, r"target has shape \(3, 3, 4, 5\)"),
        ("costs", Z[:0], Y[:0], {}, "empty"),
        ("costs", Z, Y + 2, {}, "got 2"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(name, logits, target, more, words):
    with pytest.raises(DataError, match=words):
        made(name)(logits.double().requires_grad_(), target, **more)
