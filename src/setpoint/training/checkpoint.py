"""Checkpoints: a run on disk, as safetensors with JSON inside. Loading executes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from setpoint._core.errors import FileError
from setpoint._core.files import write_bytes

VERSION = 1


def save_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write nested mappings and lists of tensors and plain data, by way of a temporary file."""
    tensors: dict[str, Tensor] = {}
    plain = _apart(state, "", tensors)
    text = json.dumps({"setpoint": VERSION, "state": plain}, allow_nan=True)
    write_bytes(Path(path), save(tensors, {"json": text}))


def load_state(path: str | Path) -> dict[str, Any]:
    """Read what :func:`save_state` wrote."""
    try:
        with safe_open(str(path), framework="pt") as file:
            text = (file.metadata() or {}).get("json")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        data = json.loads(text or "null")
        if not isinstance(data, dict) or "state" not in data:
            raise FileError(f'"{path}" is no checkpoint of Setpoint')
        if data.get("setpoint") != VERSION:
            raise FileError(
                f'"{path}" was written in format {data.get("setpoint")}, and this version reads '
                f"{VERSION}"
            )
        return _together(data["state"], tensors)
    except (SafetensorError, OSError, json.JSONDecodeError, KeyError) as error:
        raise FileError(f'cannot read the checkpoint "{path}": {error}') from error


def _apart(x: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Plain data with tensors replaced by their names."""
    if isinstance(x, Tensor):
        tensors[name] = x.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(x, Mapping):
        return {"map": [[k, _apart(v, f"{name}/{k}", tensors)] for k, v in x.items()]}
    if isinstance(x, list | tuple):
        items = [_apart(v, f"{name}/{i}", tensors) for i, v in enumerate(x)]
        return {"list": items, "tuple": isinstance(x, tuple)}
    if x is None or isinstance(x, bool | int | float | str):
        return {"is": x}
    raise TypeError(f"{name} is a {type(x).__name__}, which a checkpoint cannot hold")


def _together(x: Any, tensors: Mapping[str, Tensor]) -> Any:
    if "tensor" in x:
        return tensors[x["tensor"]]
    if "map" in x:
        return {k: _together(v, tensors) for k, v in x["map"]}
    if "list" in x:
        items = [_together(v, tensors) for v in x["list"]]
        return tuple(items) if x["tuple"] else items
    return x["is"]


def copied(x: Any, device: torch.device | str | None = None) -> Any:
    """A copy of nested state that later steps do not change; on another device, if one is named."""
    if isinstance(x, Tensor):
        return x.detach().clone() if device is None else x.detach().to(device, copy=True)
    if isinstance(x, Mapping):
        return {k: copied(v, device) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(copied(v, device) for v in x)
    return x


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators that dropout draws from; those of other devices are left alone."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The generators that dropout draws from."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Put the generators back."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


# What a run is about, in one word, so that another run's checkpoint is known as such.


def digest(parts: Iterable[object], tensors: Iterable[Tensor | None]) -> str:
    """SHA-256 of some texts and of the bytes of some tensors.

    >>> digest(["a goal"], [torch.zeros(2)])[:8] == digest(["a goal"], [torch.ones(2)])[:8]
    False
    """
    sha = hashlib.sha256("|".join(map(str, parts)).encode())
    for tensor in tensors:
        if tensor is not None:
            plain = tensor.detach().cpu().contiguous().reshape(-1)
            sha.update(plain.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()
