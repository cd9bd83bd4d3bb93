"""A record as a folder: each file whole or not at all."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import DataError, FileError
from setpoint._core.files import write_bytes, write_text

if TYPE_CHECKING:
    from setpoint.robustness.record import Robustness

RECORD, TABLE, POINTS = "robustness.json", "images.csv", "points.npz"
ACCURACY, RADII, EXAMPLES = "accuracy.png", "radii.png", "examples.png"
FILES = (RECORD, TABLE, POINTS, ACCURACY, RADII, EXAMPLES)


def write_folder(found: Robustness, folder: str | os.PathLike[str], images: bool) -> Path:
    """Write the record, the table, the plots and the points; the record comes last."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f'cannot make the folder "{place}": {error.strerror or error}.') from error
    (place / RECORD).unlink(missing_ok=True)  # a folder without it is not finished
    write_text(place / TABLE, found.to_csv())
    write_bytes(place / ACCURACY, as_png(found.plot_accuracy()))
    write_bytes(place / RADII, as_png(found.plot_radii()))
    try:
        write_bytes(place / EXAMPLES, as_png(found.plot_examples()))
    except DataError:  # vectors, or nothing to show: no sheet, and a stale one is not left
        (place / EXAMPLES).unlink(missing_ok=True)
    if images and found.points is not None and found.clean is not None:
        write_bytes(place / POINTS, _points(found, found.points))
    else:
        (place / POINTS).unlink(missing_ok=True)
    text = json.dumps(found.to_json(), indent=1, allow_nan=False)
    write_text(place / RECORD, text + "\n")
    return place


def as_png(figure: Any) -> bytes:
    """A figure as the bytes of a file; the same twice."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
        return file.getvalue()


def _points(found: Robustness, points: np.ndarray) -> bytes:
    count, columns = found.images, found.columns
    with io.BytesIO() as file:
        np.savez_compressed(
            file,
            X=to_numpy(found.clean)[:count],
            points=points,
            y=columns["label"],
            attacked=columns["attacked"],
        )
        return file.getvalue()
