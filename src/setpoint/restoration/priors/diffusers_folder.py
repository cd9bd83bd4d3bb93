"""A folder of diffusers as a prior: the network of a ``UNet2DModel`` and its noise schedule.

Read are ``config.json`` (or ``unet/config.json``), the weights beside it as safetensors, and
``scheduler_config.json`` (or ``scheduler/scheduler_config.json``): ᾱ from its betas, and what the
network predicts. The network works on [−1, 1]; images are given in the declared range.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError, FileError
from setpoint.restoration.priors.diffusion import DiffusionPrior

MODEL, WEIGHTS = "UNet2DModel", "diffusion_pytorch_model.safetensors"
PREDICTIONS = {"epsilon": "epsilon", "sample": "sample", "v_prediction": "v"}


class Timed(nn.Module):
    """Our call ``network(x_t, index/T)`` on a diffusers network, ``model(x_t, index).sample``."""

    def __init__(self, model: nn.Module, T: int, channels: int, whole: bool) -> None:
        super().__init__()
        self.model, self.T, self.channels, self.whole = model, T, channels, whole

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """What the model says; channels beyond the image's are its variance and are left out."""
        index = t * self.T
        if self.whole:  # a learned table of times knows whole numbers only
            index = index.round().long().clamp(0, self.T - 1)
        return self.model(x, index).sample[:, : self.channels]


def is_folder(path: Path) -> bool:
    """Whether a model's configuration lies where diffusers writes it."""
    return any((path / part / "config.json").is_file() for part in ("unet", "."))


def read_folder(
    path: str | os.PathLike[str],
    *,
    range: tuple[float, float] = (0.0, 1.0),
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    steps: int = 3,
    spacing: str = "trailing",
) -> DiffusionPrior:
    """The diffusion prior in a folder written by ``save_pretrained``.

    Parameters
    ----------
    path : str or path
        The folder of a pipeline (``unet/`` and ``scheduler/`` in it), or of the model itself with
        the scheduler's file beside it.
    range : tuple of float, default (0, 1)
        The declared value range of the images made.
    device, dtype
        Where the network is to run, and its precision.
    steps, spacing
        Of R(z), see :class:`DiffusionPrior`.
    """
    folder = Path(path)
    place = folder / "unet" if (folder / "unet" / "config.json").is_file() else folder
    config = _json(place / "config.json")
    shape, whole = _checked(config, place)
    planned = _scheduler(folder, place)
    table = alpha_bar(planned, folder)
    prediction = planned.get("prediction_type", "epsilon")
    if prediction not in PREDICTIONS:
        raise FileError(
            f'the scheduler in "{folder}" has prediction_type {prediction!r}; known are '
            f"{', '.join(PREDICTIONS)}."
        )
    if prediction == "epsilon" and float(table[-1]) == 0:
        raise FileError(
            f'the schedule in "{folder}" ends without signal (rescale_betas_zero_snr), where the '
            "noise that the network predicts says nothing of the image: not usable as a prior."
        )
    clip = bool(planned.get("clip_sample", True)) and planned.get("clip_sample_range", 1.0) == 1.0
    model = _model(place, dtype).to(device)
    return DiffusionPrior(
        Timed(model, len(table), shape[0], whole),
        shape=shape,
        range=range,
        alpha_bar=table.to(device),
        prediction=PREDICTIONS[prediction],
        steps=steps,
        spacing=spacing,
        clip=clip,
    )


def alpha_bar(planned: dict[str, Any], folder: Path) -> Tensor:
    """ᾱ_t = Π_{s ≤ t} (1 − β_s), the betas as the scheduler's configuration says.

    ``linear`` has β evenly spaced, ``scaled_linear`` √β, ``squaredcos_cap_v2`` is
    β_t = min(0.999, 1 − f((t + 1)/T)/f(t/T)) with f(u) = cos²(π/2 · (u + 0.008)/1.008);
    ``trained_betas`` are the numbers themselves. With ``rescale_betas_zero_snr`` the last ᾱ is 0.
    """
    given, name = planned.get("trained_betas"), planned.get("beta_schedule", "linear")
    T = int(planned.get("num_train_timesteps", 1000))
    first, last = float(planned.get("beta_start", 1e-4)), float(planned.get("beta_end", 0.02))
    if given is not None:
        betas = torch.tensor(given, dtype=torch.float64)
    elif name == "linear":
        betas = torch.linspace(first, last, T, dtype=torch.float64)
    elif name == "scaled_linear":
        betas = torch.linspace(first**0.5, last**0.5, T, dtype=torch.float64).square()
    elif name == "squaredcos_cap_v2":
        u = torch.arange(T + 1, dtype=torch.float64) / T
        left = torch.cos((u + 0.008) / 1.008 * (math.pi / 2)).square()
        betas = (1 - left[1:] / left[:-1]).clamp(max=0.999)
    else:
        raise FileError(
            f'the scheduler in "{folder}" has beta_schedule {name!r}; known are linear, '
            "scaled_linear and squaredcos_cap_v2."
        )
    if not bool(((betas > 0) & (betas < 1)).all()):
        raise FileError(f'the betas of the scheduler in "{folder}" do not lie between 0 and 1.')
    levels = torch.cumprod(1 - betas, dim=0)
    if planned.get("rescale_betas_zero_snr"):  # √ᾱ moved and stretched to end at 0
        root = levels.sqrt()
        levels = ((root - root[-1]) * (root[0] / (root[0] - root[-1]))).square()
    return levels


def _checked(config: dict[str, Any], place: Path) -> tuple[tuple[int, int, int], bool]:
    """The shape of an image, and whether times must be whole numbers."""
    kind = config.get("_class_name")
    if kind != MODEL:
        raise FileError(
            f'"{place}" holds a {kind or "model of no name"}; a diffusers folder needs a {MODEL} '
            "(unconditional, in pixels)."
        )
    for key in ("class_embed_type", "num_class_embeds"):
        if config.get(key) is not None:
            raise FileError(
                f'the model in "{place}" wants a class label ({key} = {config[key]!r}): wrap it '
                "with a label of your choice in DiffusionPrior."
            )
    timed, size = config.get("time_embedding_type", "positional"), config.get("sample_size")
    if timed not in ("positional", "learned"):
        raise FileError(
            f'the model in "{place}" is told the time as {timed!r} (a score model); known are '
            "positional and learned."
        )
    if size is None:
        raise FileError(f'"{place / "config.json"}" does not say sample_size, the image\'s side.')
    sides = (size, size) if isinstance(size, int) else tuple(size)
    return (int(config.get("in_channels", 3)), int(sides[0]), int(sides[1])), timed == "learned"


def _scheduler(folder: Path, place: Path) -> dict[str, Any]:
    name = "scheduler_config.json"
    places = [folder / "scheduler" / name, place / name, place.parent / "scheduler" / name]
    for one in places:
        if one.is_file():
            planned = _json(one)
            break
    else:
        raise FileError(
            f'"{folder}" has no {name} (looked in scheduler/ and beside the model): the noise '
            "schedule is not guessed. Save the pipeline, or the scheduler into the same folder."
        )
    if "num_train_timesteps" not in planned or not (
        {"beta_schedule", "trained_betas"} & planned.keys()
    ):
        raise FileError(
            f'the scheduler in "{folder}" ({planned.get("_class_name")}) has no betas: only '
            "diffusion with a discrete schedule (DDPM, DDIM and kin) can be loaded."
        )
    return planned


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f'cannot read "{path}": {error}.') from error
    if not isinstance(data, dict):
        raise FileError(f'"{path}" is not a configuration of diffusers: an object is needed.')
    return data


def _model(place: Path, dtype: torch.dtype) -> nn.Module:
    if not (place / WEIGHTS).is_file():
        raise FileError(
            f'"{place}" has no {WEIGHTS}: pickled weights are not read. Save the model anew with '
            "save_pretrained(folder), which writes safetensors."
        )
    try:
        from diffusers import UNet2DModel  # type: ignore[import-not-found]
    except ImportError as error:
        raise DataError(
            f"a diffusers folder needs diffusers: pip install 'setpoint[restoration]' ({error})."
        ) from error
    try:
        return UNet2DModel.from_pretrained(
            place, torch_dtype=dtype, local_files_only=True, use_safetensors=True
        )
    except Exception as error:  # diffusers raises what its parts raise
        raise FileError(f'diffusers cannot read the model in "{place}": {error}') from error
