"""A prior as one file: half-precision weights, and in words all that is needed to rebuild it.

The format is safetensors, which holds numbers and strings only: nothing in it is ever executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.files import write_bytes
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import cosine, linear, schedule
from setpoint.restoration.priors.unet import UNet

FORMAT = "setpoint-prior-1"
SCHEDULES = {"cosine": cosine, "linear": linear}


def save_prior(
    prior: DiffusionPrior | FlowPrior,
    path: str | os.PathLike[str],
    card: Mapping[str, Any] | None = None,
) -> Path:
    """Write a prior with its model card; the file is whole or not there.

    Parameters
    ----------
    prior : DiffusionPrior or FlowPrior
        With a :class:`UNet` as its network.
    path : str or path
        Name of the file, by custom ``.safetensors``.
    card : mapping, optional
        What is told about the model: data, steps, loss …; anything that JSON can hold.

    Returns
    -------
    Path
        The file written.
    """
    network = getattr(prior, "network", None)
    if not isinstance(prior, DiffusionPrior | FlowPrior) or not isinstance(network, UNet):
        raise KindError(
            "only a DiffusionPrior or a FlowPrior on a UNet of this library can be saved; got "
            f"{type(prior).__name__} on {type(network).__name__}. Save other modules with "
            "torch.save or safetensors and wrap them again."
        )
    weights = {name: value.detach().cpu() for name, value in network.state_dict().items()}
    halves = {name: value.to(torch.float16).contiguous() for name, value in weights.items()}
    for name, value in halves.items():
        if not bool(value.isfinite().all()):
            raise DataError(
                f'the weights "{name}" are not finite in half precision (largest '
                f"{float(weights[name].abs().max()):g}): the model cannot be saved."
            )
    words = {
        "format": FORMAT,
        "kind": "diffusion" if isinstance(prior, DiffusionPrior) else "flow",
        "network": json.dumps(network.arguments),
        "shape": json.dumps(prior.shape),
        "range": json.dumps(prior.range),
        "sampler": json.dumps(_sampler(prior)),
        "card": _card(card),
    }
    if isinstance(prior, DiffusionPrior):
        words |= {
            "schedule": json.dumps(_schedule(prior.levels)),
            "prediction": prior.prediction,
        }
    return write_bytes(path, save(halves, metadata=words))


def read_prior_file(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> DiffusionPrior | FlowPrior:
    """The prior that :func:`save_prior` wrote to that file."""
    words, weights = _opened(Path(path))
    try:
        arguments, limits = json.loads(words["network"]), json.loads(words["range"])
        shape = tuple(int(side) for side in json.loads(words["shape"]))
        sampler = json.loads(words.get("sampler", "{}"))
        with torch.device("meta"):  # no memory, and no initial weights drawn
            network = UNet(**arguments)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise _broken(path, f"its description cannot be read ({error!r})") from error
    _fill(network, weights, path)
    network = network.to(device=device, dtype=dtype)
    if len(shape) != 3 or shape[0] != network.first.in_channels:
        raise _broken(path, f"images of shape {shape} are not what its network is for")
    try:
        if words.get("kind") == "flow":
            return FlowPrior(network, shape=shape, range=limits, **sampler)
        if words.get("kind") != "diffusion":
            raise _broken(path, f"its kind is {words.get('kind')!r}, not diffusion or flow")
        table = _levels(json.loads(words["schedule"])).to(device)
        prediction = words["prediction"]
        return DiffusionPrior(
            network, shape=shape, range=limits, alpha_bar=table, prediction=prediction, **sampler
        )
    except (KeyError, TypeError, DataError, json.JSONDecodeError) as error:
        raise _broken(path, f"its description cannot be used ({error})") from error


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The model card in a file, with the kind of prior and the number of weights beside it."""
    words, weights = _opened(Path(path))
    try:
        card = dict(json.loads(words.get("card", "{}")))
    except (TypeError, ValueError) as error:
        raise _broken(path, f"its card cannot be read ({error})") from error
    return {
        "kind": words.get("kind"),
        "weights": sum(value.numel() for value in weights.values()),
        **card,
    }


def _sampler(prior: DiffusionPrior | FlowPrior) -> dict[str, Any]:
    more = {"spacing": prior.spacing} if isinstance(prior, DiffusionPrior) else {}
    return {"steps": prior.steps, "clip": prior.clip} | more


def _schedule(levels: list[float]) -> dict[str, Any]:
    """By its name where it has one, else as the numbers themselves."""
    levels_read = torch.tensor(levels, dtype=torch.float64)
    for name, make in SCHEDULES.items():
        if torch.allclose(make(len(levels)), levels_read, rtol=1e-6, atol=1e-9):
            return {"name": name, "T": len(levels)}
    return {"alpha_bar": levels}


def _levels(record: dict[str, Any]) -> Tensor:
    if "alpha_bar" in record:
        return torch.tensor(record["alpha_bar"], dtype=torch.float64)
    return schedule(record["name"], int(record["T"]))


def _card(card: Mapping[str, Any] | None) -> str:
    try:
        return json.dumps(dict(card or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the card cannot be written as JSON ({error}): use strings, finite numbers, lists."
        ) from error


def _opened(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileError(f'there is no file "{path}".')
    try:
        with safe_open(path, framework="pt") as file:
            words = file.metadata() or {}
            if words.get("format") != FORMAT:
                raise FileError(
                    f'"{path}" is a safetensors file, but not a prior of this library (its '
                    f'"format" is {words.get("format")!r}, not "{FORMAT}"): load its weights into '
                    "your own module and give that as a prior."
                )
            return words, {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise _broken(path, f"it is not a whole safetensors file ({error})") from error


def _fill(network: nn.Module, weights: dict[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Put the weights in, after every name and shape has been compared."""
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    missing, extra = sorted(wanted.keys() - weights), sorted(weights.keys() - wanted)
    if missing or extra:
        name, fault = (missing[0], "missing") if missing else (extra[0], "not of its network")
        raise _broken(path, f'the weights "{name}" are {fault}')
    for name, shape in wanted.items():
        if tuple(weights[name].shape) != shape:
            found = tuple(weights[name].shape)
            raise _broken(path, f'the weights "{name}" have shape {found}, not {shape}')
        if not weights[name].is_floating_point() or not bool(weights[name].isfinite().all()):
            raise _broken(path, f'the weights "{name}" are not all finite numbers')
    network.load_state_dict(weights, assign=True)


def _broken(path: str | os.PathLike[str], what: str) -> FileError:
    return FileError(f'"{path}" cannot be loaded as a prior: {what}. Fetch or save it again.')
