"""Robust accuracy of a model, bounded from above by attacks.

    robust accuracy at ε  =  P( the model is right at every x' with d(x, x') ≤ ε in the box )
                          ≤  share of images that no attack has beaten within ε

An attack that succeeds is proof that the model is not robust at that image; one that fails proves
nothing. Every figure is therefore a bound from above, and the worst case over all attacks is the
best bound there is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.robustness.attack_batches import AttackBatches, Bench, Listener, Tally
from setpoint.robustness.attack_outcomes import AttackRun
from setpoint.robustness.attacks.attack import Attack, AttackResult, Call
from setpoint.robustness.attacks.attack_losses import checked_loss
from setpoint.robustness.attacks.distances import Distance
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.min_radius import min_radius
from setpoint.robustness.input_checks import (
    as_evaluated,
    digest_of,
    home_of,
    read_box,
    read_count,
    read_distance,
    read_eps,
    read_images,
    read_labels,
    read_model,
    weights_of,
)
from setpoint.robustness.record import Robustness
from setpoint.robustness.success_criterion import Judge
from setpoint.robustness.third_party_attacks import others
from setpoint.statistics.binomial import check_confidence

# Our two attacks as an evaluation calls them: the greatest loss within eps, the least radius.


MAX_LOSS, MIN_RADIUS = "max-loss", "min-radius"


def max_loss_attack(distance: Distance, loss: str, settings: Mapping[str, Any]) -> Attack:
    """Max ℓ(z(x'), y) subject to d(x, x') ≤ eps and the box."""

    def call(problem: Call) -> AttackResult:
        return max_loss(
            problem.model,
            problem.x,
            problem.y,
            distance,
            problem.eps,
            loss=loss,
            target=problem.target,
            **_common(problem),
            **settings,
        )

    return Attack(MAX_LOSS, call, each_eps=True, ours=True)


def min_radius_attack(distance: Distance, settings: Mapping[str, Any]) -> Attack:
    """Min d(x, x') subject to margin(z(x'), y) ≥ 0 and the box."""

    def call(problem: Call) -> AttackResult:
        return min_radius(
            problem.model,
            problem.x,
            problem.y,
            distance,
            target=problem.target,
            **_common(problem),
            **settings,
        )

    return Attack(MIN_RADIUS, call, nearest=True, ours=True)


def _common(arguments: Call) -> dict[str, Any]:
    return {
        "seed": arguments.seeds,  # of each image: what is found does not depend on its batch
        "low": arguments.low,
        "high": arguments.high,
        "progress": arguments.progress,
    }


_ROOM = 2**28  #: bytes that the state of one batch may take
_COPIES = 64  #: copies of a batch that an attack keeps: points, gradients, memory of steps
_ON_HOST = 256  #: images at a time on a CPU, which gains nothing by more: Ctrl-C loses a batch


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    distance: Any,
    eps: Any,
    *,
    attacks: Any = "auto",
    radius: bool = True,
    targets: Any = None,
    loss: str = "margin",
    restarts: int | None = None,
    iterations: int | None = None,
    batch_size: int | None = None,
    confidence: float = 0.95,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
    cascade: bool = True,
    strict: bool = False,
    keep: bool = True,
    listener: Listener | None = None,
) -> Robustness:
    """Attack a model on some images, and say what is left of its accuracy.

    Only images that the model gets right are attacked. Each attack's points are clipped to the
    box and judged by one criterion (:mod:`setpoint.robustness.success_criterion`), the worst of
    them counts.

    Parameters
    ----------
    model : callable
        Images (B, *shape) -> logits (B, K). A module is run in evaluation mode and put back.
    X : array or tensor (N, *shape)
        Images between ``low`` and ``high``, that training has not seen.
    y : array or tensor (N,)
        Labels, 0 to K − 1.
    distance : str or callable
        ``"l1"``, ``"l2"``, ``"linf"``, ``"l<p>"``, or a differentiable function of two batches of
        images that gives one number for each.
    eps : float or list of float
        The radius, or several.
    attacks : "auto", attack, list or dict
        ``"auto"`` is max-loss at each eps, and min-radius where ``radius`` is true. A list may
        hold ``"auto"``, ``"max-loss"``, ``"min-radius"`` and attacks of others
        (:mod:`setpoint.robustness.third_party_attacks`); a dict gives them names.
    radius : bool
        Whether the least distance is searched for, for every image that the model gets right.
    targets : array (N,), optional
        Classes to lead the model to; without them any wrong class is a success.
    loss : {"margin", "cross_entropy"}
        What max-loss makes large.
    restarts, iterations : int, optional
        Of our attacks; theirs unless given.
    batch_size : int, optional
        Images at a time; by the size of an image unless given.
    confidence : float
        Of the interval and of the bound.
    low, high : float
        The box of the pixels.
    seed : int
        Of random starts.
    cascade : bool
        Whether an image that is beaten at an eps is left alone by the attacks that come after.
        False runs every attack on every image, to compare them; the worst case is the same or
        worse.
    strict : bool
        Whether a tie between the label and another class counts as right.
    keep : bool
        Whether the points are kept in the record, as much memory as the images take.
    listener : callable, optional
        Told a :class:`AttackProgress` before each part of the work.

    Returns
    -------
    Robustness
        Stopped by Ctrl-C after the first batch, of the images that are done.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 2)
    >>> with torch.no_grad():
    ...     _ = model.weight.copy_(torch.eye(2)), model.bias.zero_()
    >>> X = torch.tensor([[0.9, 0.1], [0.3, 0.6], [0.5, 0.4], [0.2, 0.7]])
    >>> found = evaluate(model, X, [0, 1, 0, 0], "linf", 0.2)
    >>> found.clean_accuracy, found.robust_accuracy
    (0.75, 0.25)
    >>> found.table["radius"].round(3).tolist()
    [0.4, 0.15, 0.05, 0.0]
    """
    delta = check_confidence(confidence)
    model = read_model(model)
    box = read_box(low, high)
    images = read_images(X, *box)
    labels = read_labels(y, len(images))
    wanted = None if targets is None else _targets(targets, labels)
    measure = read_distance(distance)
    eps_values = read_eps(eps)
    limits = {"restarts": restarts, "iterations": iterations}
    settings = {name: read_count(value, name) for name, value in limits.items()}
    settings = {name: value for name, value in settings.items() if value is not None}
    asked = _attacks(attacks, bool(radius), measure, checked_loss(loss), settings)
    device, dtype = home_of(model, images)
    size = read_count(batch_size, "batch_size") or _batch_size(images, device)
    judge = Judge(model, measure, *box, strict=bool(strict))
    bench = Bench(
        judge, asked, [Tally(a.name) for a in asked], eps_values, int(seed), bool(cascade)
    )
    run = AttackBatches(
        bench=bench,
        images=images,
        labels=labels,
        targets=wanted,
        device=device,
        dtype=dtype,
        size=size,
        listener=listener,
        keep=bool(keep),
    )
    with as_evaluated(model) as notes:
        run.probe()
        began = time.perf_counter()
        run.all()
        seconds = time.perf_counter() - began
    _refuse_silence(bench)
    return Robustness(
        distance=measure.name,
        eps=eps_values,
        confidence=1.0 - delta,
        columns=run.columns(),
        attacks=tuple(_ran(t, a) for t, a in zip(bench.tallies, asked, strict=True)),
        asked=len(images),
        notes=(*notes, *run.notes()),
        rounding=judge.rounding(images[:1].to(dtype)),
        seconds=seconds,
        settings={
            "loss": loss,
            **limits,
            "batch_size": size,
            "low": box[0],
            "high": box[1],
            "seed": int(seed),
            "cascade": bool(cascade),
            "strict": bool(strict),
            "targeted": wanted is not None,
            "device": str(device),
            "dtype": str(dtype).removeprefix("torch."),
            "torch": torch.__version__,
            "data": digest_of(images, labels),
            "weights": digest_of(*weights_of(model)),
        },
        clean=images,
        points=run.points(),
    )


def _attacks(
    asked: Any, radius: bool, distance: Distance, loss: str, settings: Mapping[str, Any]
) -> list[Attack]:
    """Attacks in the order they are run: the least radius first, as it is wanted of all."""
    many = asked if isinstance(asked, list | tuple) else [asked]
    attacks: list[Attack] = []
    for one in many:
        if not isinstance(one, str):
            attacks += others(one)
            continue
        if one not in ("auto", MAX_LOSS, MIN_RADIUS):
            raise KindError(
                f'attacks="{one}": a name is "auto", "{MAX_LOSS}" or "{MIN_RADIUS}"; attacks of '
                "others are given as objects"
            )
        if one == MIN_RADIUS or (one == "auto" and radius):
            attacks.append(min_radius_attack(distance, settings))
        if one in ("auto", MAX_LOSS):
            attacks.append(max_loss_attack(distance, loss, settings))
    if not attacks:
        raise KindError('attacks is empty; say "auto" for ours')
    attacks.sort(key=lambda attack: not attack.nearest)
    return _apart(attacks)


def _apart(attacks: Sequence[Attack]) -> list[Attack]:
    """Attacks of one name get numbers behind it."""
    seen: dict[str, int] = {}
    renamed = []
    for attack in attacks:
        seen[attack.name] = seen.get(attack.name, 0) + 1
        again = f"{attack.name} {seen[attack.name]}" if seen[attack.name] > 1 else attack.name
        renamed.append(Attack(again, attack.call, attack.each_eps, attack.nearest, attack.ours))
    return renamed


def _targets(targets: Any, labels: Tensor) -> Tensor:
    wanted = read_labels(targets, len(labels), "targets")
    same = (wanted == labels).nonzero()
    if len(same):
        row = int(same[0])
        raise DataError(
            f"targets holds {int(wanted[row])} for image {row}, which is its label; a target is "
            "another class"
        )
    return wanted


def _batch_size(images: Tensor, device: torch.device) -> int:
    """So many images that the state of an attack on them keeps to its room."""
    fit = max(1, _ROOM // (_COPIES * 4 * images[0].numel()))
    return min(len(images), fit, _ON_HOST if device.type == "cpu" else fit)


def _refuse_silence(bench: Bench) -> None:
    """Raise where no attack has run: accuracy under no attack is not a bound worth a name."""
    failed = [t for t in bench.tallies if t.failures]
    if failed and not any(t.tried for t in bench.tallies):
        why = next(iter(failed[0].failures))
        raise DataError(f"no attack could be run; {failed[0].name} raised {why}")


def _ran(tally: Tally, attack: Attack) -> AttackRun:
    return AttackRun(
        name=tally.name,
        ours=attack.ours,
        tried=tally.tried,
        won=tally.won,
        first=tally.first,
        broken=tally.broken,
        seconds=tally.seconds,
        forwards=tally.forwards if attack.ours else None,
        failures=tuple(tally.failures.items()),
    )
