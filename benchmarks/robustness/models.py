"""Small convolutional networks on digits (8×8) and mnist (28×28), trained once and kept.

``python -m benchmarks.robustness.models`` trains the four of them in a few minutes of one core and
writes ``.data/robustness/NAME.safetensors``: a classifier for either table, and a second network of
another seed whose features are the perceptual distance. Needs numpy, torch, scikit-learn,
safetensors; mnist is read from ``$SETPOINT_DATA`` (default: ``../shared/data``), or from ``.data``
where it was carried.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

ROOT = Path(__file__).parents[2]
INTO = ROOT / ".data" / "robustness"
EPOCHS = {"digits": 60, "mnist": 4}
TABLES = tuple(EPOCHS)
#: network -> its seed; "seen" networks are those whose features measure a distance
SEEDS = {"digits": 0, "mnist": 0, "digits-seen": 1, "mnist-seen": 1}


def digits() -> nn.Sequential:
    """A network for 1×8×8 images in [0, 1]; 10 logits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def mnist() -> nn.Sequential:
    """A network for 1×28×28 images in [0, 1]; 10 logits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1568, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


FACTORIES: dict[str, Callable[[], nn.Sequential]] = {"digits": digits, "mnist": mnist}


class Seen(nn.Module):
    """φ(x): activations of the two convolutions, each of unit length along the channels.

    As LPIPS without trained weights: layer by layer z / ‖z‖₂ over channels, divided by
    √(height · width), flattened and joined, so that ‖φ(x) − φ(x')‖₂ does not grow with the image.
    """

    def __init__(self, net: nn.Sequential) -> None:
        super().__init__()
        self.stages = nn.ModuleList([net[:2], net[2:4]])

    def forward(self, x: Tensor) -> Tensor:
        """(B, 1, h, w) -> (B, m)."""
        found = []
        for stage in self.stages:
            x = stage(x)
            length = (x.square().sum(1, keepdim=True) + 1e-10).sqrt()
            found.append((x / length).flatten(1) / (x.shape[2] * x.shape[3]) ** 0.5)
        return torch.cat(found, 1)


def perceptual(name: str, dtype: torch.dtype = torch.float64) -> Callable[[Tensor, Tensor], Tensor]:
    """d(x, x') = ‖φ(x) − φ(x')‖₂, (B, …), (B, …) -> (B,), by the second network of a table."""
    seen = Seen(model(f"{name}-seen", dtype)).eval()

    def distance(x: Tensor, other: Tensor) -> Tensor:
        # the 1e-24 keeps the gradient of the root finite where the images are the same
        return ((seen(x) - seen(other)).square().sum(1) + 1e-24).sqrt()

    return distance


def data(name: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Images (N, 1, h, w) in [0, 1], float32, and labels: to train, to test."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
        x = (np.asarray(x, np.float32) / 16).reshape(-1, 1, 8, 8)
        a, b, c, d = train_test_split(x, y, test_size=400, random_state=0, stratify=y)
        pairs = (a, c), (b, d)
    else:
        with np.load(_mnist()) as held:
            pairs = tuple(
                (held[f"x_{part}"][:, None].astype(np.float32) / 255, held[f"y_{part}"])
                for part in ("train", "test")
            )
    first, second = ((torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in pairs)
    return first, second


def _mnist() -> Path:
    carried = ROOT / ".data" / "mnist.npz"
    if carried.is_file():
        return carried
    return Path(os.environ.get("SETPOINT_DATA") or "../shared/data") / "mnist.npz"


def train(name: str, seed: int) -> tuple[nn.Sequential, float]:
    """A network of a table and its accuracy on test rows; Adam, the rate falling to 0."""
    (x, y), (xt, yt) = data(name)
    torch.manual_seed(seed)
    net, batch = FACTORIES[name](), 64 if name == "digits" else 128
    stepper = torch.optim.Adam(net.parameters(), 2e-3)
    steps = EPOCHS[name] * -(-len(y) // batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(stepper, lambda i: 1 - i / steps)
    for _ in range(EPOCHS[name]):
        for rows in torch.randperm(len(y)).split(batch):
            stepper.zero_grad(set_to_none=True)
            cross_entropy(net(x[rows]), y[rows]).backward()
            stepper.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        return net, float((net(xt).argmax(1) == yt).double().mean())


def model(name: str, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """A trained network ("digits", "mnist", "digits-seen", "mnist-seen"), for evaluation."""
    path = INTO / f"{name}.safetensors"
    if not path.is_file():
        raise SystemExit(f"there is no {path}: run python -m benchmarks.robustness.models")
    net = FACTORIES[name.removesuffix("-seen")]()
    net.load_state_dict(load_file(path))
    return net.to(dtype).eval().requires_grad_(False)


def images(
    name: str, count: int = 200, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """The first test images that the network gets right, and their labels."""
    _, (x, y) = data(name)
    x, net = x.to(dtype), model(name, dtype)
    with torch.no_grad():
        right = net(x).argmax(1) == y
    return x[right][:count].clone(), y[right][:count].clone()


def main() -> None:
    """Train and keep what is not there yet."""
    torch.set_num_threads(1)
    INTO.mkdir(parents=True, exist_ok=True)
    for name, seed in SEEDS.items():
        path = INTO / f"{name}.safetensors"
        if not path.exists():
            net, accuracy = train(name.removesuffix("-seen"), seed)
            save_file(net.state_dict(), path)
            print(f"{path}: accuracy {accuracy:.4f} on test images")


if __name__ == "__main__":
    main()
