"""A linear model, whose radii have a closed form, and attacks with the manners of others."""

import math
import types

import torch
from torch import nn


def linear(weights, bias, dtype=torch.float64):
    """Images (B, *shape) -> logits, by W x + b."""
    weights = torch.as_tensor(weights, dtype=dtype)
    layer = nn.Linear(weights.shape[1], weights.shape[0], dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(weights)
        layer.bias.copy_(torch.as_tensor(bias, dtype=dtype))
    return nn.Sequential(nn.Flatten(), layer)


def dual_power(p):
    """q with 1/p + 1/q = 1."""
    return math.inf if p == 1 else 1.0 if math.isinf(p) else p / (p - 1)


def nearest_wrong(weights, bias, x, y, p):
    """The nearest wrong point of a linear model and its distance, without a box.

    For each j != y the plane (w_j - w_y)'x + b_j - b_y = 0 is |margin_j| / ‖w_j - w_y‖_q away, in
    the direction that makes Hölder's inequality an equality.
    """
    x = x.flatten(1).double()
    z = x @ weights.T + bias
    slopes = weights[None] - weights[y][:, None]  # (B, K, n)
    gaps = z - z.gather(1, y[:, None])
    q = dual_power(p)
    size = torch.linalg.vector_norm(slopes, q, dim=2)
    away = torch.where(size > 0, (-gaps).clamp(min=0) / size.clamp(min=1e-300), math.inf)
    away.scatter_(1, y[:, None], math.inf)
    radius, j = away.min(1)
    slope = slopes[torch.arange(len(x)), j]
    if math.isinf(p):
        move = slope.sign()
    elif p == 1:
        top = slope.abs().argmax(1)
        move = torch.zeros_like(slope).scatter(
            1, top[:, None], slope.gather(1, top[:, None]).sign()
        )
    else:
        move = slope.sign() * slope.abs() ** (q - 1)
        move = move / torch.linalg.vector_norm(move, p, dim=1, keepdim=True)
    return x + radius[:, None] * move, radius


def problem(count=40, size=6, classes=4, seed=0):
    """A linear model, images well inside a wide box, labels mostly the model's own."""
    draw = torch.Generator().manual_seed(seed)
    weights = torch.randn(classes, size, generator=draw, dtype=torch.float64)
    bias = 0.1 * torch.randn(classes, generator=draw, dtype=torch.float64)
    x = 0.4 + 0.2 * torch.rand(count, size, generator=draw, dtype=torch.float64)
    y = (x @ weights.T + bias).argmax(1)
    y[::10] = (y[::10] + 1) % classes
    return linear(weights, bias), weights, bias, x, y


def exact(weights, bias, p):
    """The nearest wrong point, a hair beyond, as an attack (model, x, y)."""

    def nearest(model, x, y):
        point, _ = nearest_wrong(weights, bias, x, y, p)
        flat = x.flatten(1)
        return (flat + (1 + 1e-9) * (point.to(x) - flat)).reshape(x.shape)

    return nearest


class TwoCalls:
    """Called as attacks of torchattacks are: attack(images, labels), the model held inside."""

    def __init__(self, model, step):
        self.model, self.step = model, step
        self.targeted = False

    def __call__(self, images, labels=None, *args, **kwargs):
        x = images.clone().requires_grad_(True)
        nn.functional.cross_entropy(self.model(x), labels).backward()
        return (images + self.step * x.grad.sign()).clamp(0, 1).detach()


TwoCalls.__module__ = "torchattacks.attacks.one"


class WithEpsilons:
    """Called as attacks of foolbox are: attack(fmodel, inputs, criterion, *, epsilons)."""

    def __init__(self, weights, bias):
        self.weights, self.bias, self.seen = weights, bias, []

    def __call__(self, model, inputs, criterion, *, epsilons, **kwargs):
        self.seen.append((epsilons, model.bounds))
        point, radius = nearest_wrong(self.weights, self.bias, inputs, criterion, 2.0)
        raw = inputs + (1 + 1e-9) * (point - inputs)
        share = (epsilons / radius.clamp(min=1e-12)).clamp(max=1)
        return raw, inputs + share[:, None] * (raw - inputs), radius <= epsilons


def fake_foolbox():
    """The part of foolbox that a wrapper asks for."""

    class PyTorchModel:
        def __init__(self, model, bounds, device=None):
            self.model, self.bounds = model, bounds

    made = types.ModuleType("foolbox")
    made.PyTorchModel = PyTorchModel
    return made


class Standard:
    """Called as AutoAttack is."""

    def __init__(self, attack, model):
        self.attack, self.model = attack, model

    def run_standard_evaluation(self, x_orig, y_orig, bs=250):
        return torch.cat(
            [
                self.attack(self.model, x, y)
                for x, y in zip(x_orig.split(bs), y_orig.split(bs), strict=True)
            ]
        )
