"""A record as a folder: each file whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import DataError
from setpoint._core.files import make_folder, png_of, write_bytes, write_json, write_text

if TYPE_CHECKING:
    from setpoint.robustness.record import Robustness

RECORD, TABLE, POINTS = "robustness.json", "images.csv", "points.npz"
ACCURACY, RADII, EXAMPLES = "accuracy.png", "radii.png", "examples.png"
FILES = (RECORD, TABLE, POINTS, ACCURACY, RADII, EXAMPLES)


def write_folder(robustness: Robustness, folder: str | os.PathLike[str], images: bool) -> Path:
    """Write the record, the table, the plots and the points; the record comes last."""
    place = Path(folder)
    make_folder(place)
    (place / RECORD).unlink(missing_ok=True)  # a folder without it is not finished
    write_text(place / TABLE, robustness.to_csv())
    write_bytes(place / ACCURACY, png_of(robustness.plot_accuracy()))
    write_bytes(place / RADII, png_of(robustness.plot_radii()))
    try:
        write_bytes(place / EXAMPLES, png_of(robustness.plot_examples()))
    except DataError:  # vectors, or nothing to show: no sheet, and a stale one is not left
        (place / EXAMPLES).unlink(missing_ok=True)
    if images and robustness.points is not None and robustness.clean is not None:
        write_bytes(place / POINTS, _points(robustness, robustness.points))
    else:
        (place / POINTS).unlink(missing_ok=True)
    write_json(place / RECORD, robustness.to_json())
    return place


def _points(robustness: Robustness, points: np.ndarray) -> bytes:
    count, columns = robustness.images, robustness.columns
    with io.BytesIO() as file:
        np.savez_compressed(
            file,
            X=to_numpy(robustness.clean)[:count],
            points=points,
            y=columns["label"],
            attacked=columns["attacked"],
        )
        return file.getvalue()
