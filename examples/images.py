"""Images from an npz file and from a folder: a goal on a network of one's own, and on features.

python examples/images.py

The images are the digits that scikit-learn carries, 8 × 8 pixels, and the goal is on the eights
against the rest. Nothing below depends on the size of the images.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.9"


def write(folder: Path) -> None:
    """The same images twice: ``digits.npz`` with x and y, and ``digits/8/0017.png`` and so on."""
    digits = load_digits()
    x = (digits.images * 15).astype(np.uint8)  # (n, 8, 8), 0 to 240
    np.savez(folder / "digits.npz", x=x, y=digits.target)
    for i, (image, label) in enumerate(zip(x, digits.target, strict=True)):
        place = folder / "digits" / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{i:04d}.png")


def from_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 1, height, width) between 0 and 1, and labels (n,)."""
    with np.load(path) as file:
        return file["x"][:, None].astype(np.float32) / 255, file["y"].astype(str)


def from_folder(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The same from a folder that has a sub-folder for each class."""
    files = sorted(path.glob("*/*.png"), key=lambda file: file.name)
    images = [np.asarray(Image.open(file).convert("L")) for file in files]  # "L" is grey
    labels = np.array([file.parent.name for file in files])
    return np.stack(images)[:, None].astype(np.float32) / 255, labels


def network() -> nn.Sequential:
    """A small convolutional network with one output per image."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 1),
    )


def show(title: str, clf: sp.GoalClassifier) -> None:
    """The rule, the proof, what it bought."""
    print(f"\n=== {title}")
    print(clf.rule_)
    print(clf.certificate_)
    print(clf.comparison_)


with tempfile.TemporaryDirectory() as made:
    write(Path(made))
    x, y = from_npz(Path(made) / "digits.npz")
    again, labels = from_folder(Path(made) / "digits")
same = bool((x == again).all() and (y == labels).all())
print(f"{x.shape} in the npz file, {again.shape} in the folder, the same: {same}")

# One image in ten is an eight, and precision 0.9 takes 29 right of 29 at the very least: so more
# rows than the usual quarter are kept for the proof.
common = {"positive": "8", "certify_size": 0.4}

# (a) A module of one's own. It takes arrays of more than two dimensions as they are.
clf = sp.GoalClassifier(GOAL, network(), folds=3, epochs=30, learning_rate=1e-2, **common)
show("a network of one's own", clf.fit(x, y))
with tempfile.TemporaryDirectory() as run:
    clf.save(run)  # with its report; weights as safetensors, so the module is given again to load
    loaded = sp.load(run, model=network())
print(f"loaded, same decisions: {bool((loaded.predict(again) == clf.predict(x)).all())}")

# (b) Features of a network that is not trained any more, as a table for the portfolio. Here its
# filters are random. A network that was trained elsewhere goes in its place, on other images: the
# rows that certify must not have shaped it.
backbone = network()[:-1].eval()
with torch.no_grad():
    features = backbone(torch.as_tensor(x)).numpy()  # (n, 256)
clf = sp.GoalClassifier(GOAL, effort="quick", **common)
show("frozen features", clf.fit(features, y))
