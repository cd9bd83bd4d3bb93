"""Tensors on every device that is here give what numpy gives, and stay on their device."""

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.decisions import CONFIDENCES, confidence
from setpoint.training.running_loss import CALLS_BEFORE_NOTICES

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
N = 20_000
_seed = torch.Generator().manual_seed(0)
Y = torch.rand(N, generator=_seed) < 0.05
S = torch.randn(N, generator=_seed) + 1.5 * Y
W = torch.rand(N, generator=_seed)
GROUP = np.where(np.arange(N) % 2, "a", "b")
DECISIONS = "f1 mcc kappa balanced_accuracy precision g_mean cost(fp=1,fn=10) macro(f1)".split()
SCORES = "auroc average_precision recall_at_precision(0.5) precision_at_k(100)".split()


def close(value, expected, device, tolerance=1e-9):
    assert value.device.type == device
    assert abs(float(value) - expected) < tolerance


@pytest.mark.parametrize("device", DEVICES)
def test_metrics(device):
    y, s, w = (x.to(device) for x in (Y, S, W))
    host = (Y.numpy(), (S >= 1.0).numpy(), W.numpy())
    for text in DECISIONS:
        close(sp.metric(text)(y, s >= 1.0, w), sp.metric(text)(*host), device)
    for text in SCORES:
        close(sp.metric(text)(y, s, w), sp.metric(text)(Y.numpy(), S.numpy(), W.numpy()), device)
    gap = sp.metric('gap(recall, by="group")')
    close(gap(y, s >= 1.0, group=GROUP), gap(*host[:2], group=GROUP), device)


@pytest.mark.parametrize("device", DEVICES)
def test_rules(device):
    y, s = Y.to(device), S.to(device)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        scores = s.to(dtype)
        rule = sp.tune("maximize recall subject to precision >= 0.4", y, scores)
        decided = rule.decide(scores)
        assert rule.feasible
        close(sp.recall(y, decided), rule.value, device)
    group = sp.tune("maximize accuracy", y, s, group=GROUP, kind="per-group")
    close(sp.accuracy(y, group.decide(s, group=GROUP)), group.value, device)


@pytest.mark.parametrize("device", DEVICES)
def test_classes_and_labels(device):
    c = torch.randint(0, 5, (4000,), generator=_seed)
    scores = torch.randn(4000, 5, generator=_seed) + torch.nn.functional.one_hot(c, 5)
    c, scores = c.to(device), scores.to(device)
    task = sp.Task.multiclass(range(5))
    rule = sp.tune("maximize macro(f1)", c, scores, task=task)
    close(sp.macro(sp.f1)(c, rule.decide(scores), task=task), rule.value, device)
    y = torch.rand(4000, 3, generator=_seed) < 0.3
    scores = torch.randn(4000, 3, generator=_seed) + 1.0 * y
    y, scores = y.to(device), scores.to(device)
    rule = sp.tune("maximize macro(f1)", y, scores, task="multilabel")
    close(sp.macro(sp.f1)(y, rule.decide(scores), task="multilabel"), rule.value, device)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients(device):
    z = torch.randn(4096, generator=_seed).to(device).requires_grad_()
    for text in ("f1", "mcc", "g_mean", "recall"):
        value = sp.metric(text).soft(Y[:4096].to(device), torch.sigmoid(z))
        (gradient,) = torch.autograd.grad(value, z)
        assert torch.isfinite(gradient).all()
        assert gradient.abs().sum() > 0


# --- training ------------------------------------------------------------------------------------

LOSSES = {
    "soft-set": ("maximize f1", "soft-set", {}),
    "grid": ("maximize f1", "soft-set", {"thresholds": "grid"}),
    "sigmoid": ("maximize mcc", "soft-set", {"surrogate": "sigmoid"}),
    "constrained": ("maximize recall subject to precision >= 0.6", "soft-set", {}),
    "costs": ("maximize recall subject to precision >= 0.6", "costs", {}),
    "balanced": ("maximize f1", "cross-entropy", {"class_weight": "balanced"}),
    "auroc": ("maximize auroc", "pairwise", {}),
    "multiclass": ("maximize macro(f1)", "soft-set", {"task": sp.Task.multiclass(range(4))}),
    "dynamic": (
        "maximize macro(f1)",
        "soft-set",
        {"task": sp.Task.multiclass(range(4)), "membership": "dynamic"},
    ),
    "multiclass costs": ("maximize macro(f1)", "costs", {"task": sp.Task.multiclass(range(4))}),
    "multilabel": ("maximize macro(f1)", "soft-set", {"task": sp.Task.multilabel(range(3))}),
    "implicit point": ("minimize fnr_at_fpr(0.1)", "implicit", {"every": 2}),
    "implicit curve": ("maximize auroc(max_fpr=0.2)", "implicit", {"every": 2}),
    "implicit constrained": ("maximize recall subject to precision >= 0.6", "implicit", {}),
    "exact": ("maximize recall subject to precision >= 0.6", "exact", {"anneal": 10}),
    "exact curve": ("maximize average_precision", "exact", {"anneal": 10}),
    "exact classes": (
        "maximize macro(f1)",
        "exact",
        {"task": sp.Task.multiclass(range(4)), "anneal": 10},
    ),
    "lagrangian": ("maximize recall subject to precision >= 0.6", "lagrangian", {}),
    "lagrangian curve": ("maximize auroc(max_fpr=0.2)", "lagrangian", {}),
    "accumulated": ("maximize f1", "soft-set", {"accumulate": 2}),
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_on_a_gpu_waits_for_nobody_and_says_what_the_host_says(name):
    goal, method, options = LOSSES[name]
    rng = torch.Generator().manual_seed(0)
    classes = ("multiclass", "dynamic", "multiclass costs", "exact classes")
    width = dict.fromkeys(classes, (4,)) | {"multilabel": (3,)}
    shape = (300, *width.get(name, ()))
    logits = 2 * torch.randn(20, *shape, generator=rng, dtype=torch.float64)
    if name in classes:
        target = torch.randint(4, (20, 300), generator=rng)
    else:
        target = (torch.rand(20, *shape, generator=rng) < 0.2).long()
    weight = torch.rand(20, 300, generator=rng, dtype=torch.float64)
    seen = []
    for device in ("cpu", "cuda"):
        # a guard reads its window on the host, once in 16 steps
        loss = sp.GoalLoss(goal, method, **{"guard": False, **options}).double().to(device)
        z, y, w = (x.to(device) for x in (logits, target, weight))
        rows = []
        for call in range(2 * CALLS_BEFORE_NOTICES + 5 if name == "soft-set" else 20):
            step = call % 20
            leaf = z[step].clone().requires_grad_()
            if device == "cuda" and call > 0:  # the first batch's values are looked at
                torch.cuda.set_sync_debug_mode("error")
            try:
                value = loss(leaf, y[step], weight=w[step])
                value.backward()
            finally:
                torch.cuda.set_sync_debug_mode("default")
            rows.append(torch.cat([value.detach().reshape(1), leaf.grad.flatten()]).cpu())
        seen.append((torch.stack(rows), {k: v.cpu() for k, v in loss.state_dict().items()}))
    (cpu, cpu_state), (gpu, gpu_state) = seen
    torch.testing.assert_close(gpu, cpu, rtol=1e-7, atol=1e-10)
    # thresholds that move by tilts over their own size magnify what sums round otherwise
    near = 1e-7 if name == "lagrangian curve" else 1e-10
    for key, buffer in cpu_state.items():
        torch.testing.assert_close(gpu_state[key], buffer, rtol=1e-7, atol=near)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("method", ["soft-set", "costs", "exact", "lagrangian"])
def test_a_guarded_loss_on_a_gpu_says_what_the_host_says(method):
    rng = torch.Generator().manual_seed(0)
    target = (torch.rand(60, 300, generator=rng) < 0.2).double()
    logits = torch.randn(60, 300, generator=rng, dtype=torch.float64) + 2 * target
    said = []
    for device in ("cpu", "cuda"):
        loss = sp.GoalLoss("maximize recall subject to precision >= 0.7", method)
        loss = loss.double().to(device)
        pulled = []
        for z, y in zip(logits.to(device), target.to(device), strict=True):
            leaf = z.clone().requires_grad_()
            loss(leaf, y).backward()
            pulled.append(leaf.grad.cpu())
        said.append((torch.stack(pulled), loss.threshold, str(loss.status())))
    torch.testing.assert_close(said[1][0], said[0][0], rtol=1e-7, atol=1e-10)
    assert said[1][1] == pytest.approx(said[0][1])
    assert said[1][2] == said[0][2]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_estimator_trains_on_a_gpu():
    data = sp.datasets.load("breast-cancer")
    clf = sp.GoalClassifier("maximize f1", "mlp", "costs", epochs=10, device="cuda")
    assert sp.f1(data.y, clf.fit(data.X, data.y).predict(data.X)) > 0.9


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(CONFIDENCES))
def test_confidences_stay_on_their_device(device, name):
    logits = 5 * torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    head = [1.0, 2.0, 0.5, 1.0, 3.0, 1.5] if CONFIDENCES[name].needs_head else None
    expected, classes = confidence(name, logits.numpy(), head)
    for dtype in (torch.float32, torch.float64):
        found, predicted = confidence(name, logits.to(device, dtype), head)
        assert found.device.type == predicted.device.type == device
        torch.testing.assert_close(found.cpu(), torch.as_tensor(expected))
        assert predicted.cpu().tolist() == classes.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_proof_takes_tensors(device):
    random = np.random.default_rng(0)
    y = (random.random(1500) < 0.3).astype(int)
    scores = (2 * y + random.normal(size=1500)).astype(np.float32)
    goal = "maximize recall subject to precision >= 0.7"
    made = []
    for take in (lambda a: a, lambda a: torch.as_tensor(a, device=device)):
        parts = [(take(y[i : i + 500]), take(scores[i : i + 500])) for i in (0, 500, 1000)]
        rule = sp.tune(goal, *parts[1], prove=0.9, reference=parts[0])
        monitor = sp.Monitor(rule.certificate)
        made.append((rule, rule.certificate, monitor.update(*parts[2])))
    assert made[0] == made[1]


@pytest.mark.parametrize("device", DEVICES)
def test_abstaining_takes_tensors(device):
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 600)
    logits = random.normal(size=(600, 3)).astype(np.float32)
    logits[np.arange(600), y] += 2
    task = sp.Task.multiclass([0, 1, 2], score="logit")
    goal = "maximize coverage subject to selective_risk <= 0.1"
    rule = sp.tune(goal, y, logits, task=task)
    tensor = torch.as_tensor(logits, device=device)
    assert sp.tune(goal, torch.as_tensor(y, device=device), tensor, task=task) == rule
    assert rule.decide(tensor).tolist() == rule.decide(logits).tolist()
    assert rule.abstains(tensor).tolist() == rule.abstains(logits).tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_the_solvers_stay_on_their_device(device, kind):
    """The nearest points to four targets in the unit disc, x >= 0, one by one and at once."""
    targets = torch.tensor([[2.0, 1.0], [0.0, 3.0], [0.1, 0.1], [-1.0, 1.0]])
    targets = targets.to(device, kind)
    clipped = targets.clamp(min=0)
    truth = clipped / clipped.norm(dim=1, keepdim=True).clamp(min=1)
    tolerance = 1e-3 if kind == torch.float32 else 1e-6
    start = torch.full_like(targets, 0.2)
    for target, point, x0 in zip(targets, truth, start, strict=True):
        result = sp.solve(
            lambda x, target=target: (x - target).square().sum(),
            x0,
            inequalities=lambda x: x @ x - 1,
            bounds=(0.0, None),
        )
        assert result.x.device.type == device
        assert result.x.dtype == kind
        assert result.success, result.status
        torch.testing.assert_close(result.x, point, atol=tolerance, rtol=0)
    found = sp.solve_batched(
        lambda x, target: (x - target).square().sum(1),
        start,
        inequalities=lambda x, target: x.square().sum(1) - 1,
        bounds=(0.0, None),
        data=(targets,),
    )
    assert found.x.device.type == device
    torch.testing.assert_close(found.x, truth, atol=tolerance, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_attacks_find_the_same_radii_on_every_device(device, distance):
    """A linear model: the least distance is margin over the dual norm, inside a wide box."""
    rng = torch.Generator().manual_seed(0)
    W = torch.randn(3, 5, generator=rng)
    x = torch.randn(12, 5, generator=rng)
    y = (x @ W.T).argmax(1)
    dual = {"l1": torch.inf, "l2": 2, "linf": 1}[distance]
    apart = W[None] - W[y][:, None]  # (12, 3, 5)
    size = apart.norm(p=dual, dim=2)
    margin = -(apart * x[:, None]).sum(2)
    radii = torch.where(size > 0, margin / size.clamp(min=1e-9), torch.inf).amin(1)
    model = torch.nn.Linear(5, 3, bias=False)
    model.weight.data = W.clone()
    model = model.to(device)
    found = sp.robustness.evaluate(
        model, x.to(device), y.to(device), distance, float(radii.median()), low=-50.0, high=50.0
    )
    seen = torch.as_tensor(np.array(found.table["radius"]), dtype=torch.float32)
    torch.testing.assert_close(seen, radii, rtol=5e-3, atol=1e-4)
    assert found.levels[0].right <= int((radii > radii.median()).sum()) + 1


@pytest.mark.parametrize("device", DEVICES)
def test_a_keeper_evaluates_on_the_models_device(device):
    model = torch.nn.Linear(1, 1).to(device)
    keeper = sp.GoalKeeper(model, "maximize f1", S[:, None], Y.long(), device="cpu")
    states = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    assert keeper.step().best
    assert keeper.state_dict()["best"]["model"]["weight"].device.type == "cpu"
    assert torch.equal(torch.get_rng_state(), states[0])
    assert all(map(torch.equal, torch.cuda.get_rng_state_all(), states[1]))
    rule = keeper.finish()
    assert next(model.parameters()).device.type == device
    with torch.no_grad():
        logits = model(S[:, None].to(device)).squeeze(1)
    assert sp.evaluate(rule, Y, logits.cpu()).value == pytest.approx(rule.value)
