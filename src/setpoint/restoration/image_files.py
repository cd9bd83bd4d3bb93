"""Images in files: png, npy, npz and folders of png, with a value range that is known or stated.

The range of an 8-bit file is 0 to 255, that of a 16-bit png 0 to 65535, and booleans are 0 and 1.
Floats and other whole numbers do not say theirs, so it has to be stated: a guess between [0, 1],
[-1, 1] and [0, 255] that goes wrong spoils every figure without a word. Where the images asked for
have a range without ends, there is nothing to convert to: numbers are taken as they stand.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, FileError, Name, Phrase, Spelling
from setpoint._core.words import listing
from setpoint.restoration.image_scores import Range

ENDINGS = ".png, .npy, .npz or a folder of .png"
Shape = tuple[int, ...]

_BYTE, _WORD = (0.0, 255.0), (0.0, 65535.0)
_UNREAD = (OSError, ValueError, zipfile.BadZipFile, EOFError, zlib.error)


@dataclass(frozen=True)
class Pictures:
    """Images as they stand in a file.

    Attributes
    ----------
    values : array (N, C, H, W)
        In the file's own numbers.
    names : tuple of str
        One an image, good as the name of a file.
    range : (float, float) or None
        What the file's kind of numbers says of it; None where it says nothing.
    source : str
        For sentences.
    """

    values: np.ndarray
    names: tuple[str, ...]
    range: Range | None
    source: str

    def within(self, box: Range, stated: Range | None = None) -> np.ndarray:
        """The images in another range, (v − low)(high' − low')/(high − low) + low', as float32.

        Parameters
        ----------
        box : (float, float)
            Of the images that are asked for. Where it has no ends, floats of which no range is
            stated are taken as they stand, and others are refused.
        stated : (float, float), optional
            Range of the file where its numbers do not say it.
        """
        if not math.isfinite(box[1] - box[0]):
            return self._as_they_stand(box, stated)
        low, high = self.known(stated)
        factor = (box[1] - box[0]) / (high - low)
        return ((self.values.astype(np.float64) - low) * factor + box[0]).astype(np.float32)

    def _as_they_stand(self, box: Range, stated: Range | None) -> np.ndarray:
        declared = self.range or stated
        if declared is not None:
            raise DataError(
                "{source} has the range {known}, and the prior's, {box}, has no ends to bring it "
                "to: give floats in the prior's own units, as .npy or .npz, and {way}.",
                source=self.source,
                known=_said(declared),
                box=_said(box),
                way=Spelling("state no range", "leave --range out"),
            )
        return self.values.astype(np.float32)

    def known(self, stated: Range | None = None) -> Range:
        """The range of the file: what its numbers say, else what was stated, else an error."""
        if self.range is not None and stated is not None and tuple(stated) != self.range:
            raise DataError(
                "{source} holds {dtype}, whose range is {range}; {argument} {stated} was stated. "
                "Leave it out.",
                source=self.source,
                dtype=self.values.dtype,
                range=_said(self.range),
                argument=Name("range"),
                stated=_said(stated),
            )
        declared = self.range or stated
        if declared is None:
            low, high = self.values.min(), self.values.max()
            raise DataError(
                "{source} holds {dtype} from {low:g} to {high:g}, which does not say what black "
                "and white are: {way}, such as 0,1 or -1,1 or 0,255.",
                source=self.source,
                dtype=self.values.dtype,
                low=low,
                high=high,
                way=Spelling("state the range", "state it: --range LOW,HIGH"),
            )
        return declared


def read_pictures(
    path: Path,
    expected: Shape | None,
    *,
    array: str | None = None,
    first: int | None = None,
    option: str | None = "--array",
) -> Pictures:
    """Read one image or several.

    Parameters
    ----------
    path : Path
        A .png, .npy or .npz, or a folder of .png, which are read in the order of their names. A
        png is one image, and so has the channels that are due.
    expected : (C, H, W) or None
        Shape of one image, by which axes are told apart; None takes (N, C, H, W) alone.
    array : str, optional
        Name of the array of an .npz that holds several.
    first : int, optional
        Only so many images.
    option : str or None
        What the sentence about several arrays says to use; None where there is no such option.
    """
    if not path.exists():
        raise FileError(f'there is no file "{path}".')
    if path.is_dir():
        return _folder(path, expected, first)
    kind = path.suffix.lower()
    if kind == ".png":
        values, box = _one(path, expected)
        return Pictures(values, (path.stem,), box, f'"{path}"')
    if kind not in (".npy", ".npz"):
        raise FileError(f'"{path}" is not read: give {ENDINGS}.')
    values = _array(path, array, option)
    if values.dtype.kind not in "buif":
        raise FileError(f'"{path}" holds {values.dtype}; images are numbers.')
    if not np.isfinite(values).all():
        raise DataError(f'"{path}" holds values that are no numbers (NaN or infinite).')
    values = _shaped(values, expected, f'"{path}"', first)
    digits = len(str(len(values) - 1))
    names = tuple(f"{i:0{digits}d}" for i in range(len(values)))
    box = {"b": (0.0, 1.0)}.get(values.dtype.kind, _BYTE if values.dtype == np.uint8 else None)
    return Pictures(values, names, box, f'"{path}"')


def read_png(path: Path, grey: bool = False) -> tuple[np.ndarray, Range]:
    """A png as (C, H, W) with its range; transparency is refused.

    Parameters
    ----------
    grey : bool
        Whether a palette that holds greys alone is read as one channel.
    """
    image = _pillow()
    try:
        with image.open(path, formats=["PNG"]) as file:
            file.load()
            mode = file.mode
            if mode in ("RGBA", "LA", "PA") or "transparency" in file.info:
                raise FileError(f'"{path}" is transparent in places; save it without alpha.')
            deep = mode in ("I", "I;16", "I;16B")
            picture = file if deep else file.convert("L" if mode in ("1", "L") else "RGB")
            values = np.asarray(picture)
    except FileError:
        raise
    except (*_UNREAD, SyntaxError) as error:
        raise FileError(f'"{path}" cannot be read as .png: {error}.') from error
    values = values[None] if values.ndim == 2 else np.moveaxis(values, 2, 0)
    if grey and mode == "P" and (values == values[:1]).all():
        values = values[:1]
    return values, _WORD if deep else _BYTE


def as_png(image: np.ndarray, box: Range) -> bytes:
    """An image (C, H, W) of 1 or 3 channels as the bytes of an 8-bit png; clipped to the range."""
    low, high = box
    shades = np.clip((image.astype(np.float64) - low) / (high - low), 0, 1)
    shades = (255 * shades).round().astype(np.uint8)
    if shades.ndim != 3 or shades.shape[0] not in (1, 3):
        raise DataError(
            f"a png has 1 or 3 channels; this image is {image.shape}. Its values are in the npz."
        )
    flat = shades[0] if shades.shape[0] == 1 else np.moveaxis(shades, 0, 2)
    with io.BytesIO() as file:
        _pillow().fromarray(np.ascontiguousarray(flat)).save(file, format="PNG")
        return file.getvalue()


def padded(values: np.ndarray, pixels: int, low: float) -> np.ndarray:
    """Images (N, C, H, W) with a frame of the lowest value."""
    frame = ((0, 0), (0, 0), (pixels, pixels), (pixels, pixels))
    return np.pad(values, frame, constant_values=low)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:  # it comes with matplotlib, which is a dependency
        raise FileError(
            "png needs Pillow, which is not installed: pip install pillow, or use .npy or .npz."
        ) from error
    return Image


def _folder(path: Path, expected: Shape | None, first: int | None) -> Pictures:
    files = sorted(p for p in path.iterdir() if p.suffix.lower() == ".png" and p.is_file())
    if not files:
        raise FileError(f'"{path}" holds no .png.')
    files = files[:first]
    named: dict[str, Path] = {}
    for file in files:
        other = named.setdefault(file.stem, file)
        if other is not file:
            raise FileError(
                f'"{other.name}" and "{file.name}" in "{path}" are both called "{file.stem}", and '
                "so would be what is made of them: rename one."
            )
    values, boxes = [], set()
    for file in files:
        image, box = _one(file, expected)
        values.append(image)
        boxes.add(box)
        if values[-1].shape != values[0].shape:
            raise DataError(
                f'images of one folder have one size: "{files[0].name}" is '
                f'{_size(values[0][0].shape)}, "{file.name}" is {_size(values[-1][0].shape)}.'
            )
    if len(boxes) > 1:
        raise DataError(f'"{path}" holds files of 8 and of 16 bits; make them alike.')
    return Pictures(np.concatenate(values), tuple(named), boxes.pop(), f'"{path}"')


def _one(path: Path, expected: Shape | None) -> tuple[np.ndarray, Range]:
    """A png as (1, C, H, W) with its range: one image, whose channels are those that are due."""
    grey = expected is not None and (len(expected) == 2 or expected[0] == 1)
    image, box = read_png(path, grey)
    if expected in (None, image.shape):
        return image[None], box
    if expected == image.shape[1:] and len(image) == 1:  # (H, W) is due
        return image, box
    raise _unlike(image.shape, expected, f'"{path}"')


def _array(path: Path, name: str | None, option: str | None) -> np.ndarray:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            return file
        with file:
            names = list(file.files)
            if name is None and len(names) == 1:
                return file[names[0]]
            if name is None:
                way = f"say which, {option} NAME" if option else "give a file that holds one"
                raise FileError(f'"{path}" holds {listing(names)}; {way}.')
            if name not in names:
                raise FileError(f'"{path}" holds {listing(names)} and no "{name}".')
            return file[name]
    except FileError:
        raise
    except _UNREAD as error:
        raise FileError(f'"{path}" cannot be read as {path.suffix}: {error}.') from error


def _shaped(
    values: np.ndarray, expected: Shape | None, source: str, first: int | None
) -> np.ndarray:
    """Arrays of several layouts as (N, C, H, W); axes are told apart by the shape expected."""
    shape = values.shape
    if expected is None:
        if values.ndim != 4:
            raise DataError(
                f"{source} has shape {shape}; (images, channels, height, width) is due."
            )
        images = values
    elif shape[-len(expected) :] == expected and values.ndim in (len(expected), len(expected) + 1):
        images = values.reshape(-1, *expected)
    elif len(expected) == 3:
        images = _rearranged(values, expected)
    else:
        images = None
    if images is None:
        raise _unlike(shape, expected, source)
    if not len(images):
        raise DataError(f"{source} holds no image.")
    return np.ascontiguousarray(images[:first])


def _rearranged(values: np.ndarray, expected: Shape) -> np.ndarray | None:
    """Grey images without their axis of channels, and colours that come last."""
    channels, height, width = expected
    if channels == 1 and values.ndim in (2, 3) and values.shape[-2:] == (height, width):
        return values.reshape(-1, 1, height, width)
    if values.ndim in (3, 4) and values.shape[-3:] == (height, width, channels):
        return np.moveaxis(values.reshape(-1, height, width, channels), 3, 1)
    return None


def _unlike(shape: Shape, expected: Shape | None, source: str) -> DataError:
    """Images of another shape; the error has the shape as a field."""
    words = Phrase(
        "{source} has shape {shape}; images of {due} are due here",
        source=source,
        shape=shape,
        due=_size(expected or ()),
    )
    if expected is not None and len(expected) == 3:
        channels = expected[0]
        grey, colour = (1, "grey"), (3, "colour")
        for (count, name), (other, also) in ((grey, colour), (colour, grey)):
            if channels == count and other in (shape[-1], *shape[-3:-2]):
                return DataError(
                    "{words}: it is a {also} image, and {because}.",
                    words=words,
                    also=also,
                    because=f"the prior makes {name} ones",
                    shape=shape,
                )
    return DataError("{words}, one or several.", words=words, shape=shape)


def _size(shape: Shape) -> str:
    return " × ".join(map(str, shape))


def _said(box: Range) -> str:
    return f"{box[0]:g},{box[1]:g}"
