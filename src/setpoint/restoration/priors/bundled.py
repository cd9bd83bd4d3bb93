"""Priors by name: those that come along, a file of one's own, a folder of diffusers."""

from __future__ import annotations

import os
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import torch

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.words import nearest
from setpoint.restoration.priors.diffusers_folder import is_folder, read_folder
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.prior_file import read_card, read_prior_file

_FOLDER: Traversable = resources.files("setpoint.restoration.priors") / "weights"
_ENDING = ".safetensors"
#: the names; their weights lie in the package
BUNDLED = ("mnist", "mnist-flow", "cifar10", "cifar10-flow")


def load_prior(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> DiffusionPrior | FlowPrior:
    """A trained prior.

    Parameters
    ----------
    name : str or path
        One of ``"mnist"``, ``"mnist-flow"`` (32×32 grey, digits padded by two zeros on each side),
        ``"cifar10"``, ``"cifar10-flow"`` (32×32 colour), all with images in [0, 1]; or a file
        written by :func:`save_prior`; or a folder of a diffusers ``UNet2DModel``, for which the
        extra is needed: ``pip install 'setpoint[restoration]'``. A name wins over a path.
    device : str or torch.device, default "cpu"
        Where it is to run.
    dtype : torch.dtype, default torch.float32
        Precision of the network.

    Returns
    -------
    DiffusionPrior or FlowPrior
        Nothing that comes from the file is executed.
    """
    _check(name, dtype)
    if isinstance(name, str) and name in BUNDLED:
        with resources.as_file(_bundled(name)) as path:
            return read_prior_file(path, device=device, dtype=dtype)
    path = Path(name)
    if is_folder(path):
        return read_folder(path, device=device, dtype=dtype)
    if path.is_file():
        return read_prior_file(path, device=device, dtype=dtype)
    if path.is_dir():
        raise FileError(
            f'the folder "{path}" holds no diffusers model: it needs config.json, or '
            "unet/config.json, that names a UNet2DModel."
        )
    hint = nearest(str(name), BUNDLED)
    raise FileError(
        f'there is no prior "{name}": it is neither a file nor a folder, nor one of '
        f"{', '.join(BUNDLED)}." + (f' Did you mean "{hint}"?' if hint else "")
    )


def prior_card(name: str | os.PathLike[str]) -> dict[str, Any]:
    """The model card of a bundled prior or of a file: data, steps, loss and more."""
    if isinstance(name, str) and name in BUNDLED:
        with resources.as_file(_bundled(name)) as path:
            return read_card(path)
    return read_card(name)


def _bundled(name: str) -> Traversable:
    place = _FOLDER / f"{name}{_ENDING}"
    if not place.is_file():
        raise FileError(
            f'the weights of "{name}" are not in this installation ({place}): install it anew.'
        )
    return place


def _check(name: object, dtype: object) -> None:
    if not isinstance(name, str | os.PathLike):
        raise KindError(
            f"load_prior takes a name or a path; got {type(name).__name__}. A module of your own "
            "is a prior already: wrap it in Generator(module, shape=…, range=…)."
        )
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise DataError(f"dtype={dtype} is not a floating-point type such as torch.float32.")
