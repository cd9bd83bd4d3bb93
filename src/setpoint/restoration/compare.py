"""Several methods on one measurement, and which of them came nearest to the truth, if it is known.

Methods are ranked by mean PSNR at the iterate each selected by itself, never by the oracle's. The
first is called better than the second where the paired difference exceeds two standard errors.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError, SetpointError, Spelling
from setpoint._core.options import checked_options
from setpoint._core.words import did_you_mean, listing
from setpoint.restoration.contact_sheet import plot_sheet
from setpoint.restoration.evaluate import RestorationEvaluation, evaluate, mean_and_error
from setpoint.restoration.image_scores import Range
from setpoint.restoration.measurement.input_checks import prior_range, read_measurement
from setpoint.restoration.operators.image_tensors import as_floats
from setpoint.restoration.restoration_record import Restored
from setpoint.restoration.restore import METHODS, restore
from setpoint.restoration.storage import RestorationSetting, write_folder

SURE = 2.0  #: standard errors by which the first has to lead


@dataclass(frozen=True, repr=False)
class Compared:
    """What every method made of one measurement.

    Attributes
    ----------
    restored : dict
        Method -> its record, in the order they were asked for.
    evaluations : dict
        Method -> its scores; empty without the truth.
    failed : dict
        Method -> the sentence why it could not be used here.
    measurement : Tensor (B, ...)
    truth : Tensor (B, C, H, W) or None
    noise : object
        As it was given.
    stopped : bool
        Whether the user stopped it: methods after the last one here were not begun.
    """

    restored: dict[str, Restored]
    evaluations: dict[str, RestorationEvaluation]
    failed: dict[str, str]
    measurement: Tensor
    truth: Tensor | None = None
    noise: Any = None
    stopped: bool = False
    asked: tuple[str, ...] = field(default=())

    @property
    def range(self) -> Range:
        """Declared range of the images."""
        return next(iter(self.restored.values())).range

    @property
    def best(self) -> str | None:
        """The method with the greatest mean PSNR; None without the truth."""
        ranked = self.ranking()
        return ranked[0] if ranked else None

    def ranking(self) -> list[str]:
        """Methods by mean PSNR at the selected iterate, the best first; empty without the truth.

        Means that are infinite are told apart by the number of images met exactly, then by the
        mean of the others.
        """
        keys = {name: _standing(scores.psnr) for name, scores in self.evaluations.items()}
        return sorted(keys, key=lambda name: keys[name], reverse=True)

    def lead(self) -> tuple[float, float | None] | None:
        """How far the first is before the second: mean paired difference in dB, standard error."""
        ranked = self.ranking()
        if len(ranked) < 2:
            return None
        first, second = (self.evaluations[name].psnr for name in ranked[:2])
        return mean_and_error(torch.where(first == second, 0.0, first - second))

    def table(self) -> list[dict[str, Any]]:
        """One row a method: figures as (mean, standard error), None where there are none."""
        rows = []
        for name, restored in self.restored.items():
            scored = self.evaluations.get(name)
            residual = mean_and_error(restored.residual)
            figures = scored.summary() if scored else {"residual": residual}
            rows.append(
                {
                    "method": name,
                    **{key: figures.get(key) for key in COLUMNS},
                    "seconds": restored.seconds,
                    "seconds_per_image": restored.seconds / len(restored.image),
                    "status": restored.status,
                }
            )
        return rows

    def verdict(self) -> str:
        """Which method came nearest to the truth, and whether that can be told from chance."""
        if self.truth is None:
            return (
                "The truth is not known, so nothing here says which method is nearest to it: the "
                "least residual may be the one that fits the noise best."
            )
        ranked, lead = self.ranking(), self.lead()
        best = f"{ranked[0]} has the greatest PSNR at the selected iterate"
        if lead is None:
            return f"{ranked[0]} is the only method here."
        gap, error = lead
        if gap == 0:
            return f"{ranked[0]} and {ranked[1]} have the same PSNR at the selected iterate."
        many = len(self.evaluations[ranked[0]].psnr)
        ahead = f"{best}, {gap:.2f} dB before {ranked[1]}"
        if many > 1 and not math.isfinite(gap):
            exact = [int(self.evaluations[name].psnr.isinf().sum()) for name in ranked[:2]]
            return (
                f"{ranked[0]} meets the truth exactly on {exact[0]:,} of {many:,} images, "
                f"{ranked[1]} on {exact[1]:,}: PSNR is infinite there, so the difference of the "
                "two has no size and no standard error."
            )
        if error is None:
            return f"{ahead}, on one image: that says nothing of others."
        if gap > SURE * error:
            return f"{ahead} (s.e. of the paired difference {error:.2f} dB, {many:,} images)."
        return (
            f"{ahead}, which is within two standard errors ({error:.2f} dB): on so few images the "
            "two cannot be told apart."
        )

    def sentences(self) -> list[str]:
        """Figures of every method, then the verdict, then what could not be used."""
        sentences = [
            str(self.evaluations[name])
            if name in self.evaluations
            else f"{name}: residual {float(restored.residual.double().mean()):.4g}."
            for name, restored in self.restored.items()
        ]
        failed = [f"{name} could not be used: {why}" for name, why in self.failed.items()]
        return [*sentences, self.verdict(), *failed]

    def plot(self, names: Sequence[str] = (), count: int = 8) -> Any:
        """The contact sheet as a matplotlib figure: truth, measurement, every method."""
        return plot_sheet(self, names, count)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        setting: RestorationSetting | None = None,
        force: bool = False,
    ) -> Path:
        """Write images, record, contact sheet and page as a folder, whole or not at all.

        Parameters
        ----------
        folder : path
            A new one, or with ``force`` one that this wrote before.
        setting : RestorationSetting, optional
            What was asked, in words for the record.
        """
        if setting is None:
            first = next(iter(self.restored.values()))
            digits = len(str(len(first.image) - 1))
            names = tuple(f"{at:0{digits}d}" for at in range(len(first.image)))
            noise = "unknown" if self.noise is None else str(self.noise)
            shape = " × ".join(map(str, first.shape))
            setting = RestorationSetting(
                "a tensor", repr(first.operator), f"images of {shape}", noise, names
            )
        return write_folder(self, setting, Path(folder), force)

    def __repr__(self) -> str:
        many = len(self.measurement)
        return f"<Compared {', '.join(self.restored)} on {many:,} images; best: {self.best}>"

    def __str__(self) -> str:
        return "\n".join(self.sentences())


COLUMNS = ("psnr", "ssim", "residual", "manifold", "oracle_psnr", "oracle_ssim")


def compare(
    y: Any,
    operator: Any,
    prior: Any,
    methods: Sequence[str] = ("dmplug", "tv"),
    truth: Any = None,
    *,
    noise: Any = None,
    seed: int = 0,
    trail: int = 10,
    training: Any = None,
    iterations: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    callback: Callable[..., Any] | None = None,
) -> Compared:
    """Restore by several methods and set them side by side.

    Parameters
    ----------
    y, operator, prior, noise, seed
        As :func:`setpoint.restoration.restore` takes them; the same for every method.
    methods : sequence of str
        Names in ``METHODS``.
    truth : tensor (B, C, H, W), optional
        For the scores, floats in the range of the prior, which then has two ends. It is looked
        over before the first method begins and used after the last is done; no method sees it.
    trail : int
        Every so many iterates one is kept for the oracle, where there is a truth; 0 keeps none.
    training : tensor (N, C, H, W), optional
        Images for the method ``nearest``.
    iterations : int, optional
        For every method that iterates; each has its own number without it.
    options : mapping, optional
        Method -> its own options.
    callback : callable, optional
        As that of ``restore``, called with the name of the method first.

    Returns
    -------
    Compared
        A method that this prior or operator does not serve is named there with its reason; an error
        is raised where that is so for all of them.
    """
    names = checked_methods(methods)
    strange = [key for key in options or {} if key not in names]
    if strange:
        raise KindError(f'options= names "{strange[0]}", which is none of {listing(names, 20)}.')
    options_of = {name: _options(name, training, iterations, options) for name in names}
    if truth is not None:
        _check_truth(truth, y, prior)
    trail_step = trail if truth is not None else 0
    restored: dict[str, Restored] = {}
    failed: dict[str, str] = {}
    first: SetpointError | None = None
    stopped = False
    for name in names:
        listener = None if callback is None else _named(callback, name)
        try:
            restored[name] = restore(
                y,
                operator,
                prior,
                noise=noise,
                method=name,
                seed=seed,
                trail=trail_step,
                callback=listener,
                **options_of[name],
            )
        except SetpointError as error:
            failed[name], first = str(error), first or error
            continue
        except KeyboardInterrupt:
            if not restored:
                raise
            stopped = True
            break
        if restored[name].interrupted:
            stopped = True
            break
    if not restored and first is not None:
        raise first
    scores = (
        {}
        if truth is None
        else {name: evaluate(found, truth, prior) for name, found in restored.items()}
    )
    shown = None if truth is None else torch.as_tensor(truth)
    return Compared(
        restored=restored,
        evaluations=scores,
        failed=failed,
        measurement=torch.as_tensor(y),
        truth=shown,
        noise=noise,
        stopped=stopped,
        asked=tuple(names),
    )


def _check_truth(truth: Any, y: Any, prior: Any) -> None:
    """What a score would refuse is refused before the work is done."""
    low, high = prior_range(prior)
    if not math.isfinite(high - low):
        raise DataError(
            f"a score needs the range of the images, and the prior declares ({low:g}, {high:g}); "
            "declare two ends there, such as range=(0.0, 1.0), or leave truth out."
        )
    truth, due = as_floats("the truth", truth), (len(read_measurement(y)), *prior.shape)
    if tuple(truth.shape) != due:
        raise DataError(f"the truth has shape {tuple(truth.shape)}, and {due} will be restored.")
    bad = ~truth.flatten(1).isfinite().all(1)
    if bool(bad.any()):
        raise DataError(
            f"the truth of image {int(bad.nonzero()[0])} holds values that are no numbers; there "
            "is no score of them."
        )


def _standing(psnr: Tensor) -> tuple[float, int, float]:
    """What methods are ranked by: mean, images met exactly, mean of the others."""
    exact = psnr.isinf()
    rest = psnr[~exact]
    return float(psnr.mean()), int(exact.sum()), float(rest.mean()) if len(rest) else 0.0


def checked_methods(methods: Sequence[str]) -> list[str]:
    """Names of methods that there are, each once."""
    if isinstance(methods, str):
        methods = [methods]
    names = list(dict.fromkeys(methods))
    if not names:
        raise KindError(f"no method is named; there are {listing(METHODS)}.")
    for name in names:
        if name not in METHODS:
            hint = did_you_mean(name, METHODS, f"there are {listing(METHODS, 20)}.")
            raise KindError(f'there is no method "{name}"; {hint}')
    return names


def _options(
    name: str,
    training: Any,
    iterations: int | None,
    options: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """What a method is called with: its own options, and the shared ones that it knows."""
    parameters = inspect.signature(METHODS[name]).parameters
    shared = {"training": training, "iterations": iterations}
    common = {
        key: value for key, value in shared.items() if value is not None and key in parameters
    }
    own = dict((options or {}).get(name, {}))
    checked_options(name, METHODS[name], own)
    if "training" in parameters and {**common, **own}.get("training") is None:
        raise DataError(
            '"{name}" looks among training images: give them as {way}.',
            name=name,
            way=Spelling("training=", "--training FILE"),
        )
    return common | own


def _named(callback: Callable[..., Any], name: str) -> Callable[..., Any]:
    def told(*given: Any, **more: Any) -> Any:
        return callback(name, *given, **more)

    return told
