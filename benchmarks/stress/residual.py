"""A small residual network for images of 32 × 32, and the flips and crops it is trained on."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 128)
NORMS = {"batch": nn.BatchNorm2d, "group": lambda width: nn.GroupNorm(8, width)}
MARGIN = 4  #: pixels of zeros around an image that a crop may reach into


class Residual(nn.Module):
    """Two convolutions of 3 × 3, normalised and added to their input."""

    def __init__(self, before: int, after: int, stride: int, norm: str) -> None:
        super().__init__()
        normal = NORMS[norm]
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            normal(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            normal(after),
        )
        self.skip: nn.Module = nn.Identity()
        if stride > 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.skip = nn.Sequential(conv, normal(after))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same number of images."""
        return functional.relu(self.body(x) + self.skip(x))


def residual_network(seed: int, norm: str = "batch") -> nn.Module:
    """A logit an image; 307,000 parameters, the same start for every method."""
    torch.manual_seed(seed)
    first = WIDTHS[0]
    # pooled at once: a third of the work of the same blocks at full size
    layers: list[nn.Module] = [nn.Conv2d(3, first, 3, padding=1, bias=False)]
    layers += [NORMS[norm](first), nn.ReLU(), nn.MaxPool2d(2)]
    before = first
    for after in WIDTHS:
        layers.append(Residual(before, after, 1 if after == first else 2, norm))
        before = after
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1), nn.Flatten(0)]
    return nn.Sequential(*layers)


def augmented(x: Tensor, rng: torch.Generator) -> Tensor:
    """Each image flipped by chance and cropped somewhere, on the device where it lies."""
    count, channels, height, width = x.shape
    padded = functional.pad(x, (MARGIN,) * 4)

    def whole(high: int) -> Tensor:
        return torch.randint(high, (count, 1), generator=rng, device=x.device)

    rows = whole(2 * MARGIN + 1) + torch.arange(height, device=x.device)
    columns = whole(2 * MARGIN + 1) + torch.arange(width, device=x.device)
    columns = torch.where(whole(2) == 1, columns.flip(1), columns)
    image = torch.arange(count, device=x.device)[:, None, None, None]
    channel = torch.arange(channels, device=x.device)[None, :, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]
