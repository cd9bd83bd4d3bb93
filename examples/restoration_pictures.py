"""The pictures of docs/guide/restoration.md, by the priors that come along.

python examples/restoration_pictures.py --mnist mnist.npz --cifar10 cifar10.npz \
    --out docs/images --device cuda

A data file is an .npz with ``x_train`` and ``x_test``, bytes. Without a file its pictures are left
out; without any, samples of the priors are drawn, measured and restored. On a GPU the whole takes a
few minutes; ``--iterations 3 --count 1`` shows on any machine that it runs.
"""

import argparse
import pathlib

import numpy as np
import torch

import setpoint as sp

OURS = ["dmplug", "constrained", "fmplug"]
#: picture -> (prior, operator, seen through, methods)
PICTURES = {
    "inpaint": ("mnist", "inpaint:0.7", None, [*OURS, "tv", "nearest"]),
    "blind": ("mnist", "blind-blur:9", "motion-blur:7,30", [*OURS, "tv"]),
    "nonlinear": ("mnist", "blur-saturate:1.5,2.0", None, [*OURS, "tv"]),
    "super-resolution": ("cifar10", "sr:2", None, [*OURS, "tv", "pnp"]),
}
NOISE = "gaussian:0.02"


def read(path: pathlib.Path | None, shape: tuple[int, ...]) -> dict[str, torch.Tensor] | None:
    """Images (n, C, H, W) between 0 and 1, framed to the prior's size."""
    if path is None:
        return None
    made = {}
    with np.load(path) as file:
        for part in ("x_train", "x_test"):
            images = torch.from_numpy(file[part]).float() / 255
            images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2)
            frame = (shape[-1] - images.shape[-1]) // 2
            made[part] = torch.nn.functional.pad(images, (frame,) * 4)
    return made


def picture(
    name: str, data: dict[str, torch.Tensor] | None, count: int, iterations: int | None, device: str
) -> sp.restoration.Compared:
    """Measure some images, restore them by several methods, score them."""
    which, spec, through, methods = PICTURES[name]
    prior = sp.restoration.load_prior(which, device=device)
    if data is None:
        z = torch.randn(count, *prior.seed_shape, generator=torch.Generator().manual_seed(1))
        truth, training = prior(z.to(device)).detach(), None
        methods = [method for method in methods if method != "nearest"]
    else:
        truth, training = data["x_test"][:count].to(device), data["x_train"].to(device)
    operator, seen_by = (
        sp.restoration.as_operator(one, shape=prior.shape, batch=count)
        for one in (spec, through or spec)
    )
    noise = sp.restoration.as_noise(NOISE)
    y = noise.add(seen_by(truth), 0, observed=getattr(seen_by, "observed", None))
    if "nearest" not in methods:
        training = None
    return sp.restoration.compare(
        y, operator, prior, methods, truth, noise=noise, training=training, iterations=iterations
    )


def main() -> None:
    """Make the pictures and print what is in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", type=pathlib.Path)
    parser.add_argument("--cifar10", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--only", choices=list(PICTURES), action="append")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    shapes = {"mnist": (1, 32, 32), "cifar10": (3, 32, 32)}
    data = {name: read(getattr(asked, name), shape) for name, shape in shapes.items()}
    given = any(images is not None for images in data.values())
    for name, (which, *_) in PICTURES.items():
        if (given and data[which] is None) or name not in (asked.only or PICTURES):
            continue
        found = picture(name, data[which], asked.count, asked.iterations, asked.device)
        found.plot(count=asked.count).savefig(
            asked.out / f"restoration-{name}.png", dpi=110, metadata={"Software": None}
        )
        print(f"=== {name}: {PICTURES[name][1]}\n{found}", flush=True)


if __name__ == "__main__":
    main()
