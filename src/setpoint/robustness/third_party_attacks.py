"""Attacks of others beside ours: whatever they are called with, one criterion judges them all.

    a function of three               attack(model, x, y), with eps= and target= where it has them
    one with run_standard_evaluation  attack.run_standard_evaluation(x, y, bs=B)   AutoAttack
    one that takes epsilons=          attack(PyTorchModel(model), x, y, epsilons=eps)    foolbox
    one of two                        attack(x, y)                                 torchattacks

None of these packages is needed to import this file. The second and the last hold a model of their
own; that it is the one evaluated is for whoever made them to see to. Whatever it was, the points
are judged by the model evaluated.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from setpoint._core.errors import KindError
from setpoint.robustness.attacks.attack import Attack, Call

_KINDS = (
    "a function (model, x, y) -> points, an attack of torchattacks or foolbox, or an object with "
    "run_standard_evaluation(x, y, bs=)"
)


def others(attacks: Any) -> list[Attack]:
    """Attacks of others as ours are called.

    Parameters
    ----------
    attacks : attack, iterable of attacks, or dict of name -> attack
    """
    if isinstance(attacks, Mapping):
        return [named(attack, str(name)) for name, attack in attacks.items()]
    if isinstance(attacks, Iterable) and not callable(attacks):
        return [one for attack in attacks for one in others(attack)]
    return [named(attacks)]


def named(attack: Any, name: str | None = None) -> Attack:
    """One attack of others as ours are called, by a name or by its own."""
    if isinstance(attack, Attack):
        return attack
    own = getattr(attack, "__name__", None) or type(attack).__name__
    if callable(getattr(attack, "run_standard_evaluation", None)):
        return Attack(name or own, _auto_attack(attack))
    if isinstance(attack, type) or not callable(attack):
        raise KindError(f"attack {attack!r} cannot be called; it has to be {_KINDS}")
    takes = _arguments(attack)
    if "epsilons" in takes:
        return Attack(name or own, _foolbox(attack), each_eps=True)
    if _is_of("torchattacks", attack) or _places(attack) == 2:
        return Attack(name or own, _two(attack))
    return Attack(name or own, _plain(attack, takes), each_eps="eps" in takes)


def _auto_attack(attack: Any) -> Callable[[Call], Any]:
    def call(given: Call) -> Any:
        return attack.run_standard_evaluation(given.x, given.y, bs=len(given.x))

    return call


def _foolbox(attack: Any) -> Callable[[Call], Any]:
    def call(given: Call) -> Any:
        foolbox = importlib.import_module("foolbox")
        bounds = (given.low, given.high)
        model = foolbox.PyTorchModel(given.model, bounds=bounds, device=given.x.device)
        wanted: Any = given.y
        if given.target is not None:
            wanted = foolbox.criteria.TargetedMisclassification(given.target)
        raw, clipped, _ = attack(model, given.x, wanted, epsilons=given.eps)
        return [clipped, raw]  # raw: the least distance it knows, which may be beyond eps

    return call


def _two(attack: Any) -> Callable[[Call], Any]:
    def call(given: Call) -> Any:
        led = given.target is not None and getattr(attack, "targeted", False)
        return attack(given.x, given.target if led else given.y)

    return call


def _plain(attack: Any, takes: Iterable[str]) -> Callable[[Call], Any]:
    names = tuple(takes)

    def call(given: Call) -> Any:
        more = {n: getattr(given, n) for n in ("eps", "target") if n in names}
        return attack(given.model, given.x, given.y, **more)

    return call


def put_back(call: Callable[[Call], Any]) -> Callable[[Call], Any]:
    """The call with torch's generators set by the seed; they and the model as before afterwards.

    Attacks that train on the side leave a model in training mode, with gradients in its weights.
    """

    def run(given: Call) -> Any:
        devices = [given.x.device] if given.x.is_cuda else []
        parts = list(given.model.modules()) if isinstance(given.model, nn.Module) else []
        modes = [part.training for part in parts]
        weights = [(w, w.grad, w.requires_grad) for part in parts[:1] for w in part.parameters()]
        buffers = [(x, x.clone()) for part in parts[:1] for x in part.buffers()]
        for w, _, _ in weights:
            w.grad = None  # what backward adds up is then its own
        try:
            with torch.random.fork_rng(devices):
                torch.manual_seed(given.seed)
                return call(given)
        finally:
            for part, mode in zip(parts, modes, strict=True):
                part.training = mode
            for w, slope, wanted in weights:
                w.grad = slope
                w.requires_grad_(wanted)
            with torch.no_grad():
                for x, before in buffers:
                    x.copy_(before)

    return run


def _is_of(package: str, attack: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(attack).__mro__)


def _arguments(attack: Any) -> Mapping[str, inspect.Parameter]:
    try:  # a module's call passes on whatever it gets; its forward says what that is
        return inspect.signature(getattr(attack, "forward", attack)).parameters
    except (TypeError, ValueError):  # written in C, or made so that nobody can tell
        return {}


def _places(attack: Any) -> int:
    """How many arguments without a name it must have."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = _arguments(attack).values()
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
