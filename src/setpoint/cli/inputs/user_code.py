"""Code and data of a user of ``setpoint robustness``: code by its name, weights, images.

Nothing is ever unpickled: weights are read by safetensors, arrays without objects, and code is what
the user names and Python can import.
"""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.errors import FileError, KindError
from setpoint._core.files import claim_folder
from setpoint._core.words import did_you_mean, listing


def imported(spec: str, option: str) -> Any:
    """The function that ``package.module:function`` names, seen from here first."""
    module, _, name = spec.partition(":")
    if not module or not name or " " in spec or module.startswith("."):
        raise KindError(f'{option} is of the form package.module:function; got "{spec}".')
    here = os.getcwd()
    if here not in sys.path:
        # a script's own folder is on it, that of a command is not; last, so that a file that lies
        # here takes nobody's place
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever that code raises
        raise FileError(
            f'{option} {spec}: cannot import "{module}" ({type(error).__name__}: {error}); run '
            "this where Python finds it, or set PYTHONPATH."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            names = [n for n in dir(found) if not n.startswith("_")]
            hint = did_you_mean(part, names, f"it holds {listing(names)}.")
            raise FileError(f'{option} {spec}: "{module}" has no "{part}"; {hint}')
        found = getattr(found, part)
    if not callable(found):
        raise KindError(f"{option} {spec} cannot be called; it has to be a function.")
    return found


def called(spec: str, option: str, *given: Any) -> Any:
    """What the function that is named gives."""
    make = imported(spec, option)
    try:
        return make(*given)
    except Exception as error:
        said = " ".join(str(error).split())
        raise KindError(f"{option} {spec} raised {type(error).__name__}: {said}") from error


def read_model(path: Path, factory: str, device: str) -> Any:
    """The module that the factory makes, with the weights of a file."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    if not path.is_file():
        raise FileError(f'there is no file "{path}".')
    if path.suffix != ".safetensors":
        raise FileError(
            f'"{path.name}" is not read: only .safetensors is, as other files of weights can run '
            "code. safetensors.torch.save_model(model, path) writes one."
        )
    model = called(factory, "--factory")
    if not isinstance(model, torch.nn.Module):
        raise KindError(
            f"--factory {factory} gave a {type(model).__name__}; it has to give a torch module."
        )
    try:
        load_model(model, path)
    except SafetensorError as error:
        raise FileError(f'"{path}" cannot be read as safetensors: {error}.') from error
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f'the weights of "{path}" do not fit what --factory {factory} makes: {reason}'
        ) from error
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise KindError(f"--device {device} cannot be used: {reason}.") from error


def read_arrays(path: Path, images: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of an npz file, by their names in it."""
    if not path.is_file():
        raise FileError(f'there is no file "{path}".')
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise FileError(f'"{path}" is one array; an .npz with {images} and {labels} is due.')
        with file:
            names = list(file.files)
            for name, option in ((images, "--images"), (labels, "--labels")):
                if name not in names:
                    raise FileError(
                        f'"{path}" holds {listing(names)} and no "{name}"; say {option} NAME.'
                    )
            found = file[images], file[labels]
            for name, array in zip((images, labels), found, strict=True):
                if not array.ndim:
                    raise FileError(f'"{name}" in "{path}" is one number; it holds one an image.')
            return found
    except FileError:
        raise
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise FileError(f'"{path}" cannot be read as .npz: {error}.') from error


def claim(out: Path | None, force: bool) -> None:
    """Raise before any work is done where the results could not be written to the folder."""
    if out is None:
        return
    from setpoint.robustness.storage import FILES

    claim_folder(out, force, own=FILES, holds="an evaluation", option="--out")
