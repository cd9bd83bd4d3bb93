"""A comparison as a folder, written under another name and renamed: whole or not at all.

::

    restoration.json       what was asked, what was selected and why, figures, sentences
    restoration.html       the same with the pictures, one file
    sheet.png              truth, measurement, every method
    restored.npz           all images in the prior's range, exact; the measurement; histories
    METHOD/NAME.png        every restored image, 8 bits
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.arrays import to_numpy
from setpoint._core.files import claim_folder, json_text, png_of, replacing_folder
from setpoint._core.json_codec import to_json
from setpoint.restoration.contact_sheet import drawn_range, kernel_of, plot_sheet
from setpoint.restoration.html_page import page_of
from setpoint.restoration.image_files import as_png
from setpoint.restoration.restore import METHODS

if TYPE_CHECKING:
    from setpoint.restoration.compare import Compared

RECORD, PAGE, SHEET, ARRAYS = (
    "restoration.json",
    "restoration.html",
    "sheet.png",
    "restored.npz",
)
FILES = (RECORD, PAGE, SHEET, ARRAYS)
#: tensors of an evaluation that are told for every image
SCORES = ("psnr", "ssim", "manifold", "oracle_psnr", "oracle_ssim", "oracle_step")


@dataclass(frozen=True)
class RestorationSetting:
    """What was asked, in words.

    Attributes
    ----------
    source, operator, prior, noise : str
    names : tuple of str
        Of the images.
    seed : int
    notes : tuple of str
        Sentences that belong to the record.
    """

    source: str
    operator: str
    prior: str
    noise: str
    names: tuple[str, ...]
    seed: int = 0
    notes: tuple[str, ...] = ()


def as_json(compared: Compared, setting: RestorationSetting) -> dict[str, Any]:
    """The record as plain data; infinite figures (a perfect PSNR) as the word "inf"."""
    record = {
        "format": "setpoint-restoration-1",
        "source": setting.source,
        "operator": setting.operator,
        "prior": setting.prior,
        "noise": setting.noise,
        "seed": setting.seed,
        "notes": setting.notes,
        "range": compared.range,
        "images": len(setting.names),
        "stopped": compared.stopped,
        "asked": compared.asked,
        "best": compared.best,
        "verdict": compared.verdict(),
        "oracle": "oracle figures pick the iterate by the truth; they are no results",
        "methods": [_method(compared, row, setting.names) for row in compared.table()],
        "failed": compared.failed,
    }
    return to_json(record)


def write_folder(
    compared: Compared, setting: RestorationSetting, folder: Path, force: bool = False
) -> Path:
    """Write everything beside the folder, then rename it there.

    Parameters
    ----------
    force : bool
        Whether a folder that holds such a record may be replaced.
    """
    claim(folder, force)
    files = _files(compared, setting)
    with replacing_folder(folder) as part:
        for name, content in files.items():
            (part / name).parent.mkdir(exist_ok=True)
            (part / name).write_bytes(content)
    return folder


def claim(folder: Path, force: bool) -> None:
    """Raise, before any work is done, where the folder cannot be written or holds other things."""
    claim_folder(folder, force, own={*FILES, *METHODS}, holds="a restoration", record=RECORD)


def _files(compared: Compared, setting: RestorationSetting) -> dict[str, bytes]:
    record = as_json(compared, setting)
    box = drawn_range(compared)
    files = {
        SHEET: png_of(plot_sheet(compared, setting.names)),
        ARRAYS: _arrays(compared, setting.names),
        PAGE: page_of(record, compared, setting.names).encode(),
        RECORD: json_text(record).encode(),
    }
    for method, restored in compared.restored.items():
        images = to_numpy(restored.image)
        if images.shape[1] in (1, 3):
            files |= {
                f"{method}/{name}.png": as_png(image, box)
                for name, image in zip(setting.names, images, strict=True)
            }
    return files


def _arrays(compared: Compared, names: tuple[str, ...]) -> bytes:
    arrays = {"names": np.array(names), "measurement": to_numpy(compared.measurement)}
    if compared.truth is not None:
        arrays["truth"] = to_numpy(compared.truth)
    for method, restored in compared.restored.items():
        arrays[method] = to_numpy(restored.image)
        arrays |= {f"{method}_history_{key}": to_numpy(v) for key, v in restored.history.items()}
        kernel = kernel_of(restored)
        if kernel is not None:
            arrays[f"{method}_kernel"] = kernel
    with io.BytesIO() as file:
        np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
        return file.getvalue()


def _method(compared: Compared, row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A row of the table, and of every image the selected iterate, why, and its figures."""
    name = row["method"]
    restored, scored = compared.restored[name], compared.evaluations.get(name)
    columns = {"chosen": restored.chosen, "residual": restored.residual}
    if scored is not None:
        columns |= {key: getattr(scored, key) for key in SCORES}
    lists = {key: value.tolist() for key, value in columns.items() if value is not None}
    images = [
        {"name": one, "why": why, **{key: value[at] for key, value in lists.items()}}
        for at, (one, why) in enumerate(zip(names, restored.why, strict=True))
    ]
    return {**row, "images": images}
