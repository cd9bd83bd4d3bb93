"""Train the priors that come along: python -m benchmarks.restoration.train NAME --seconds S.

mnist, mnist-flow
    Training digits, padded by 2 to 32×32, without those kept for tuning. Every second image of a
    batch is shifted by up to ±4 pixels each way (bilinear), so that the prior also knows digits off
    the centre.
cifar10, cifar10-flow
    Training images of CIFAR-10, without those kept for tuning, mirrored at random.

A short trial measures the speed, which gives the number of steps that fits the time; weights are
stored in half precision with their card, samples beside them as an array.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.restoration.data import bank
from setpoint.restoration.priors.prior_file import save_prior
from setpoint.restoration.priors.prior_training import PriorTrainingProgress, flip, train_prior
from setpoint.restoration.priors.unet import UNet

NETWORKS = {
    "mnist": {"channels": 1, "width": 32, "multipliers": (1, 2, 2), "size": 32},
    "cifar10": {"channels": 3, "width": 48, "multipliers": (1, 2, 2), "size": 32},
}


def shift(images: Tensor, generator: torch.Generator, most: float = 4.0) -> Tensor:
    """Move every second image by up to ``most`` pixels each way; what comes in is -1."""
    batch, _, high, wide = images.shape
    options = {"generator": generator, "device": images.device}
    moves = (2 * torch.rand(batch, 2, **options) - 1) * most  # type: ignore[arg-type]
    moves = moves * (torch.rand(batch, 1, **options) < 0.5)  # type: ignore[arg-type]
    turn = torch.eye(2, 3, device=images.device).repeat(batch, 1, 1)
    turn[:, 0, 2], turn[:, 1, 2] = moves[:, 0] * 2 / wide, moves[:, 1] * 2 / high
    grid = F.affine_grid(turn, list(images.shape), align_corners=False)
    return F.grid_sample(images + 1, grid, align_corners=False) - 1


def main(arguments: list[str] | None = None) -> int:
    """Train one prior and store it."""
    options = _options(arguments)
    data, _, kind = options.name.partition("-")
    kind = kind or "diffusion"
    train = bank(data, without_tuning=True)
    common = {
        "kind": kind,
        "batch": options.batch,
        "augment": shift if data == "mnist" else flip,
        "device": options.device,
        "seed": options.seed,
        "learning_rate": options.rate,
        "channels_last": False,
    }
    torch.backends.cudnn.benchmark = True
    steps = options.steps or _steps_in(options.seconds, train, data, common)
    seen: list[PriorTrainingProgress] = []

    def tell(progress: PriorTrainingProgress) -> bool:
        seen.append(progress)
        if len(seen) % 5 == 0:
            print(options.name, progress, flush=True)
        return progress.seconds < options.seconds

    network = _drawn(data, options.seed)
    begun = time.perf_counter()
    prior = train_prior(train, network=network, steps=steps, ema=0.9995, callback=tell, **common)
    card = {
        "data": f"{data}, training part, {len(train)} images",
        "steps": seen[-1].step,
        "batch": options.batch,
        "images": len(train),
        "loss": round(float(np.mean([p.loss for p in seen[-10:]])), 5),
        "seconds": round(time.perf_counter() - begun),
        "seed": options.seed,
        "parameters": sum(p.numel() for p in network.parameters()),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU",
    }
    _store(options.out, options.name, prior, card)
    print(options.name, json.dumps(card), flush=True)
    return 0


def _drawn(data: str, seed: int) -> UNet:
    torch.manual_seed(seed)
    return UNet(**NETWORKS[data])


def _steps_in(seconds: float, train: Tensor, data: str, common: dict) -> int:
    """Steps that take nine tenths of the time, by the speed of a trial of 400."""
    rates: list[float] = []
    train_prior(
        train,
        network=_drawn(data, 0),
        steps=400,
        every=100,
        callback=lambda progress: rates.append(progress.rate),
        **common,
    )
    return max(200, math.floor(0.9 * seconds * min(rates[1:]) / common["batch"]))


def _store(folder: Path, name: str, prior: Any, card: dict) -> None:
    """The weights with their card, 32 samples by 3 and by 50 steps as bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    save_prior(prior, folder / f"{name}.safetensors", card)
    draws = torch.randn(32, *prior.shape, generator=torch.Generator().manual_seed(0))
    draws = draws.to(next(prior.parameters()).device)
    with torch.no_grad():
        grids = {"few": prior(draws), "many": prior.with_steps(50)(draws)}
    np.savez_compressed(
        folder / f"{name}.npz",
        **{k: (255 * v).round().byte().cpu().numpy() for k, v in grids.items()},
    )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["mnist", "mnist-flow", "cifar10", "cifar10-flow"])
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--steps", type=int, help="instead of what fits the time")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("src/setpoint/restoration/weights"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
