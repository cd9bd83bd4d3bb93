"""The problem of ``setpoint restore``: files, options and names as tensors, operator and prior.

Everything is brought to the declared range of the prior, or taken as it stands where that has no
ends; nothing about ranges or noise is guessed.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, FileError, KindError, SetpointError
from setpoint.cli.inputs.user_code import called, imported
from setpoint.cli.words import count
from setpoint.restoration.image_files import Pictures, padded, read_pictures
from setpoint.restoration.image_scores import Range
from setpoint.restoration.measurement.input_checks import prior_range
from setpoint.restoration.measurement.noise import as_noise
from setpoint.restoration.operators import OPERATORS, Blur, Inpaint, as_operator
from setpoint.restoration.priors.bundled import load_prior
from setpoint.restoration.storage import RestorationSetting

#: operators that draw something by the seed
DRAWN = ("inpaint",)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
DIGIT = (28, 28)  #: the size of an image of MNIST
EDGE = 1e-5  #: of the range: what rounding may add to a clean image


@dataclass(frozen=True)
class RestoreOptions:
    """The options of the command."""

    source: Path
    operator: str
    prior: str
    noise: str
    truth: Path | None
    truth_array: str | None
    simulate: bool
    through: str | None
    hidden: bool
    range: Range | None
    array: str | None
    first: int | None
    pad: int
    training: Path | None
    training_array: str | None
    seed: int
    device: str
    nearest: bool


@dataclass(frozen=True)
class RestoreProblem:
    """A problem, ready to be solved.

    Attributes
    ----------
    y, truth, training : Tensor or None
        In the prior's range, on the device.
    operator, prior, noise : object
        As the library takes them.
    names, notes : tuple of str
    """

    y: Tensor
    truth: Tensor | None
    training: Tensor | None
    operator: Any
    prior: Any
    noise: Any
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def setting(self, asked: RestoreOptions) -> RestorationSetting:
        """What was asked, in words for the record."""
        low, high = self.prior.range
        units = f" (in units of the range {low:g} to {high:g})" if ":" in asked.noise else ""
        units = units if math.isfinite(high - low) else ""
        hidden = ", not told to the methods" if asked.hidden else ""
        through = f", simulated through {asked.through}" if asked.through else ""
        simulated = " (clean, measured here)" if asked.simulate else ""
        return RestorationSetting(
            f"{asked.source.name}{simulated}",
            f"{asked.operator}{through}",
            asked.prior,
            f"{asked.noise}{units}{hidden}",
            self.names,
            asked.seed,
            self.notes,
        )


def read_problem(asked: RestoreOptions) -> RestoreProblem:
    """Read, check and, where it is asked for, simulate."""
    _agree(asked)
    prior = prior_of_option(asked.prior, asked.device)
    box = tuple(prior.range)
    _check_ends(asked, box)
    noise = _noise(asked.noise, box)
    pictures, framed = _read(asked, prior)
    batch = len(pictures["source"].values)
    make = partial(read_operator, prior=prior, asked=asked, batch=batch)
    operator = make(asked.operator, option="--operator")
    kind = "image" if asked.simulate else getattr(operator, "output", "unknown")
    tensors = _Tensors(asked, box, pictures, framed, kind)
    if asked.simulate:
        truth = tensors.clean("source")
        seen_by = operator if asked.through is None else make(asked.through, option="--through")
        y = _simulated(seen_by, truth, noise, asked.seed)
    else:
        truth = tensors.clean("truth") if "truth" in pictures else None
        y = tensors.measurement(operator)
    if truth is not None and len(truth) != len(y):
        raise DataError(f"there are {len(y)} measurements and {len(truth)} true images.")
    training = tensors.clean("training") if "training" in pictures else None
    tensors.check_range()
    return RestoreProblem(
        y=y,
        truth=truth,
        training=training,
        operator=operator,
        prior=prior,
        noise=None if asked.hidden else noise,
        names=pictures["source"].names,
        notes=_notes(asked),
    )


def _agree(asked: RestoreOptions) -> None:
    """Options that need each other, or exclude each other."""
    if not asked.simulate:
        for name, present in (("through", asked.through), ("hide-noise", asked.hidden)):
            if present:
                raise KindError(f"--{name} belongs to --simulate; say both or neither.")
        if asked.noise == "none":
            raise KindError("--noise none belongs to --simulate; say --noise unknown.")
    if asked.simulate and asked.truth is not None:
        raise KindError("with --simulate IN is the truth; leave --truth out.")
    if asked.simulate and asked.noise == "unknown":
        raise KindError(
            "--simulate needs to know with what noise: say --noise gaussian:0.02 (--hide-noise "
            "where the methods are not to know it) or --noise none."
        )
    if asked.hidden and asked.noise == "none":
        raise KindError("--hide-noise has no noise to hide; say --noise gaussian:0.02.")
    if asked.training is not None and not asked.nearest:
        raise KindError("--training is for the method nearest; add it: --method …,nearest.")
    if asked.nearest and asked.training is None:
        raise KindError("the method nearest looks among training images: say --training FILE.")
    for name, array, file in (
        ("truth", asked.truth_array, asked.truth),
        ("training", asked.training_array, asked.training),
    ):
        if array is not None and file is None:
            raise KindError(f"--{name}-array is for the file of --{name}; say both or neither.")


def _check_ends(asked: RestoreOptions, box: Range) -> None:
    """Scores, and black, where the range of the prior has no ends."""
    low, high = box
    if math.isfinite(high - low):
        return
    declared = f"--prior {asked.prior} declares the range {low:g},{high:g}"
    for name, present in (("truth", asked.truth is not None), ("simulate", asked.simulate)):
        if present:
            raise KindError(
                f"{declared}, and a score needs two ends: declare them there, such as range=(0.0, "
                f"1.0), or leave --{name} out."
            )
    if asked.pad and not math.isfinite(low):
        raise KindError(f"{declared}, which says nothing of how dark a frame is: leave --pad out.")


def _noise(spec: str, box: Range) -> Any:
    if spec in ("unknown", "none"):
        return None
    try:
        return as_noise(spec, range=box)
    except SetpointError as error:
        raise type(error)(f"--noise {spec}: {error}") from error


def prior_of_option(name: str, device: str) -> Any:
    """A bundled prior, a file, a folder, or what a function of the user makes."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise KindError(
            f"--device {device} cannot be used: {str(error).splitlines()[0]}."
        ) from error
    if ":" in name and not Path(name).exists():
        prior = called(name, "--prior")
        try:
            prior_range(prior)
        except SetpointError as error:
            raise type(error)(f"--prior {name}: {error}") from error
        return prior.to(device) if isinstance(prior, torch.nn.Module) else prior
    return load_prior(name, device=device)


def read_operator(
    spec: str, *, prior: Any, asked: RestoreOptions, batch: int | None, option: str
) -> Any:
    """An operator by name, a mask or a kernel in a file, or a function of the user."""
    head, colon, rest = spec.partition(":")
    if colon and head == "mask":
        masks = _mask(Path(rest), prior.shape, asked)
        if batch is not None and len(masks) not in (1, batch):
            raise DataError(
                f"{option} {spec} holds {len(masks)} masks and IN {count(batch, 'image')}: give "
                "one mask for each image, or one for all."
            )
        return Inpaint(torch.from_numpy(masks))
    if colon and head == "kernel":
        return Blur(torch.from_numpy(_kernel(Path(rest))))
    if head not in OPERATORS and _FUNCTION.fullmatch(spec):
        return as_operator(imported(spec, option), shape=prior.shape)
    box = tuple(prior.range)
    return as_operator(spec, shape=prior.shape, seed=asked.seed, batch=batch, range=box)


def seen(operator: Any, x: Tensor) -> Tensor:
    """A(x), with a blind operator's unknowns where they start."""
    start = getattr(operator, "unknowns", None)
    with torch.no_grad():
        return operator(x, start(len(x), x)) if callable(start) else operator(x)


def _simulated(operator: Any, x: Tensor, noise: Any, seed: int) -> Tensor:
    if callable(getattr(operator, "unknowns", None)):
        raise KindError(
            "a blind operator cannot simulate, its kernel is unknown: say what the images are seen "
            "through, such as --through gaussian-blur:1.5."
        )
    y = seen(operator, x)
    return y if noise is None else noise.add(y, seed, observed=getattr(operator, "observed", None))


def _read(asked: RestoreOptions, prior: Any) -> tuple[dict[str, Pictures], bool]:
    """The files, each with the shape that is due, and whether IN takes the frame of --pad."""
    shape = tuple(prior.shape)
    clean = (shape[0], *(side - 2 * asked.pad for side in shape[1:]))
    files = {"truth": asked.truth, "training": asked.training}
    arrays = {"truth": asked.truth_array, "training": asked.training_array}
    due, framed = clean, True
    if not asked.simulate:
        single = read_operator(
            asked.operator, prior=prior, asked=asked, batch=None, option="--operator"
        )
        take = getattr(single, "take", None)
        single = take([0]) if callable(take) else single  # of a mask for each image, the first
        at = next((p.device for p in _parameters(prior)), torch.device(asked.device))
        blank = torch.full((1, *shape), float(max(prior.range[0], 0.0)), device=at)
        due = tuple(seen(single, blank).shape[1:])
        framed = due == shape and getattr(single, "output", "") == "image"
        if framed:
            due = clean  # a frame of dark pixels is taken as measured
        elif asked.pad and not (asked.truth or asked.training):
            raise KindError(
                f"--pad is for clean images and for measurements of their size; {asked.operator} "
                f"gives {' × '.join(map(str, due))}."
            )
    pictures = {"source": _sized(asked.source, due, asked, asked.first, "--array", asked.array)}
    for name, path in files.items():
        if path is not None:
            first = asked.first if name == "truth" else None
            pictures[name] = _sized(path, clean, asked, first, f"--{name}-array", arrays[name])
    return pictures, framed


def _parameters(prior: Any) -> Any:
    return prior.parameters() if isinstance(prior, torch.nn.Module) else iter(())


def _sized(
    path: Path,
    due: tuple[int, ...],
    asked: RestoreOptions,
    first: int | None,
    option: str,
    array: str | None,
) -> Pictures:
    """Read; where a frame of dark pixels would make a clean image fit, say so."""
    try:
        return read_pictures(path, due, array=array, first=first, option=option)
    except DataError as error:
        shape = error.fields.get("shape", ())
        digits = DIGIT in itertools.pairwise(shape)  # also where colours come last
        if asked.pad or not digits or due[1:] != (32, 32):
            raise
        raise error.followed_by("Digits of 28 × 28 take a frame: say --pad 2.") from error


@dataclass(frozen=True)
class _Tensors:
    """The files as tensors in the range of the prior."""

    asked: RestoreOptions
    box: Range
    pictures: dict[str, Pictures]
    framed: bool  # whether IN takes the frame of --pad
    kind: str  # of what IN holds: "image", "other" or "unknown"

    def stated(self, pictures: Pictures) -> Range | None:
        """--range, for files whose numbers do not say theirs."""
        return self.asked.range if pictures.range is None else None

    def clean(self, name: str) -> Tensor:
        """Clean images, which lie in their range."""
        pictures = self.pictures[name]
        values = pictures.within(self.box, self.stated(pictures))
        low, high = self.box
        edge = EDGE * (high - low)  # infinite where the range has no ends: nothing is beyond it
        if values.min() < low - edge or values.max() > high + edge:
            declared = pictures.known(self.stated(pictures))
            raise DataError(
                f"{pictures.source} goes from {pictures.values.min():g} to "
                f"{pictures.values.max():g}, beyond its range {declared[0]:g},{declared[1]:g}; "
                "state the one it has as --range."
            )
        return torch.from_numpy(padded(values, self.asked.pad, low)).to(self.asked.device)

    def measurement(self, operator: Any) -> Tensor:
        """IN in the units of A(x), hidden pixels as 0."""
        pictures = self.pictures["source"]
        declared = pictures.range or self.asked.range
        if self.kind == "other" and pictures.range is not None:
            raise DataError(
                f"{self.asked.operator} does not give an image, and the range of {pictures.source} "
                "is that of images: its numbers are taken as they stand, floats in an .npy or .npz."
            )
        if self.kind == "other" or (self.kind != "image" and declared is None):
            values = pictures.values.astype("float32")
        else:
            values = pictures.within(self.box, self.stated(pictures))
            if self.framed:
                values = padded(values, self.asked.pad, self.box[0])
        y = torch.from_numpy(values).to(self.asked.device)
        observed = getattr(operator, "observed", None)
        return y if observed is None else y * observed.to(y)

    def check_range(self) -> None:
        """--range is for some file."""
        unsaid = [name for name, file in self.pictures.items() if file.range is None]
        if self.asked.range is None or any(n != "source" or self.kind != "other" for n in unsaid):
            return
        source = self.pictures["source"]
        if unsaid:
            raise DataError(
                f"--range is not needed: {self.asked.operator} does not give an image, and the "
                f"numbers of {source.source} are taken as they stand. Leave it out."
            )
        low, high = source.known()
        raise DataError(
            f"--range is not needed: {source.source} holds {source.values.dtype}, whose range is "
            f"{low:g},{high:g}. Leave it out."
        )


def _notes(asked: RestoreOptions) -> tuple[str, ...]:
    head = asked.operator.partition(":")[0]
    if head in DRAWN and not asked.simulate:
        return (
            f"The hidden pixels of {asked.operator} are drawn by --seed {asked.seed}; what IN has "
            "there is not used. For a mask of your own: --operator mask:FILE.",
        )
    return ()


def _mask(path: Path, shape: tuple[int, ...], asked: RestoreOptions) -> Any:
    """White (the top of its range, or true) is seen; so is the frame of --pad."""
    due = (1, *(side - 2 * asked.pad for side in shape[1:]))
    try:
        pictures = read_pictures(path, due, first=asked.first, option=None)
    except DataError as error:
        raise error.with_fields(because="a mask is a grey one") from error
    low, high = pictures.known((0.0, 1.0) if pictures.range is None else None)
    values = (pictures.values - low) / (high - low)
    if not ((values == 0) | (values == 1)).all():
        raise DataError(f'the mask "{path}" holds greys; white is seen, black is hidden.')
    return padded(values, asked.pad, 1.0).astype(bool)


def _kernel(path: Path) -> Any:
    import numpy as np

    if path.suffix != ".npy" or not path.is_file():
        raise FileError(f'a kernel is an .npy of k × k numbers; there is none at "{path}".')
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f'"{path}" cannot be read as .npy: {error}.') from error
    return values.astype("float32")
