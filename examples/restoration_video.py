"""A digit moves and most of its pixels are hidden: what frames know of each other.

python examples/restoration_video.py              principal components as the prior; seconds
python examples/restoration_video.py --prior mnist --out clip.png      the bundled one; minutes

Four ways: each frame for itself (base), frames whose seeds share a part (semantic), frames that
move with the flow (pixel), and both.
"""

import argparse

import torch
from sklearn.datasets import load_digits

import setpoint as sp
from setpoint.restoration import as_operator, psnr
from setpoint.restoration.video import restore_video, warp, warping_error

FRAMES, SIGMA = 6, 0.1
WAYS = {"base": (False, False), "semantic": (True, False), "pixel": (False, True)}
WAYS["both"] = (True, True)


def digits(side: int) -> torch.Tensor:
    """Images (n, 1, side, side) between 0 and 1, the digit in the middle."""
    x = torch.tensor(load_digits().images[:, None] / 16, dtype=torch.float32)
    wide = side * 2 // 3  # the digit leaves room to move
    x = torch.nn.functional.interpolate(x, size=(wide, wide), mode="bilinear")
    before = (side - wide) // 2
    after = side - wide - before
    return torch.nn.functional.pad(x, (before, after, before, after))


def moved(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Images (n, 1, side, side), each shifted by its (columns, rows)."""
    return warp(x, -by[:, :, None, None].expand(-1, -1, *x.shape[-2:]))


def principal(images: torch.Tensor, count: int = 60) -> sp.restoration.LinearPrior:
    """The map z -> mean + W z with the covariance of digits at random places."""
    draw = torch.Generator().manual_seed(0)
    images = images.repeat(4, 1, 1, 1)
    flat = moved(images, 4 * torch.rand(len(images), 2, generator=draw) - 2).flatten(1)
    mean = flat.mean(0)
    scale, left = torch.linalg.eigh((flat - mean).T @ (flat - mean) / len(flat))
    matrix = left[:, -count:] * scale[-count:].sqrt()
    return sp.restoration.LinearPrior(matrix, mean, tuple(images.shape[1:]), range=(0.0, 1.0))


def main() -> None:
    """Make a clip, hide 70 % of it, restore."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prior", help="a name or a file; principal components where not given")
    parser.add_argument("--out", help="draw the clips to this file")
    given = parser.parse_args()
    side = 32 if given.prior else 12
    images = digits(side)
    prior = sp.restoration.load_prior(given.prior) if given.prior else principal(images[:1500])
    steps = torch.linspace(-0.5, 0.5, FRAMES)[:, None] * torch.tensor([side / 4.0, side / 8.0])
    truth = moved(images[1502:1503].expand(FRAMES, -1, -1, -1), steps)
    flow = steps.diff(dim=0)[:, :, None, None].expand(-1, -1, side, side)
    operator = as_operator("inpaint:0.7", shape=prior.shape, batch=FRAMES)
    noise = sp.restoration.as_noise(f"gaussian:{SIGMA}")
    y = noise.add(operator(truth), 0, observed=operator.observed)

    rows = {"truth": truth, "measured": y}
    for name, (semantic, pixel) in WAYS.items():
        found = restore_video(
            y, operator, prior, flow=flow, semantic=semantic, pixel=pixel, iterations=200
        )
        rows[name] = found.frames
        quality, error = psnr(found.frames, truth).mean(), warping_error(found.frames, flow)
        print(f"{name:9} PSNR {quality:5.2f} dB, warping error {error:.4f}. {found.status}")
    if given.out:
        draw(rows, given.out)


def draw(rows: dict[str, torch.Tensor], path: str) -> None:
    """One row of frames for each way."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(rows), FRAMES, figsize=(1.2 * FRAMES, 1.25 * len(rows)))
    for line, (name, frames) in zip(axes, rows.items(), strict=True):
        for axis, frame in zip(line, frames, strict=True):
            axis.imshow(frame[0].detach(), cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
