"""One job: pose the task, restore, score. What comes back are figures image by image."""

from __future__ import annotations

import base64
import hashlib
import platform
import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from benchmarks.restoration import noise
from benchmarks.restoration.data import DATASETS, ROOT, bank, images
from benchmarks.restoration.shelf import Found, Job
from benchmarks.restoration.tasks import SIGMA, Posed, pose
from benchmarks.restoration.ways import WAYS
from setpoint.restoration.evaluate import evaluate
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.priors.bundled import load_prior
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import cosine
from setpoint.restoration.priors.unet import UNet
from setpoint.restoration.restoration_record import Restored
from setpoint.restoration.restore import restore

TRAIL = 10  #: every so many iterates are kept for the oracle
SHOWN = 8  #: images kept for the contact sheets
DIGITS = {"psnr": 3, "oracle_psnr": 3, "ssim": 4, "oracle_ssim": 4, "residual": 5, "manifold": 5}


def run(job: Job, device: str, *, beside: int = 0) -> Found:
    """Make a job, with so many other processes on the device; alone, it is warmed up first."""
    if job.part == "noise":
        found = noise.run(job, device, prior(job.data, WAYS[job.way].prior, device))
        return {**found, "environment": environment(device)}
    if job.part == "video":
        return _video(job, device)
    truth = images(job.data, "tune" if job.part == "tune" else "test", job.images)
    posed = pose(job.task, truth)
    if not beside:
        _restored(job, posed, device, **WAYS[job.way].short)  # warms up, not counted
        if device == "cuda":
            torch.cuda.synchronize()
    begun = time.perf_counter()
    restored = _restored(job, posed, device)
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    found = _figures(restored, posed.truth, prior(job.data, "diffusion", device))
    found |= {"seconds": seconds, "beside": beside, "status": restored.status}
    found["environment"] = environment(device)
    if job.part == "table":
        found["shown"] = packed(restored.image[:SHOWN])
    return found


def _restored(job: Job, posed: Posed, device: str, **short: Any) -> Restored:
    way = WAYS[job.way]
    options = {**job.options, **short}
    if way.method == "nearest":
        options["training"] = _bank(job.data, job.part == "tune", device)
    return restore(
        posed.y.to(device),
        posed.operator,
        prior(job.data, way.prior, device),
        noise=Gaussian(SIGMA),
        method=way.method,
        trail=TRAIL,
        **options,
    )


def _video(job: Job, device: str) -> Found:
    # imported here: it is a part of its own, and the others do not need it
    from benchmarks.restoration import video

    one = {"tasks": (job.task,), "ways": (job.options["way"],)}
    lines = video.run(device=device, clips=job.images, smoke=job.smoke, **one)
    return {"lines": lines, "environment": environment(device)}


def _figures(restored: Restored, truth: Tensor, judge: Any) -> Found:
    """Scores, clipped to the range for everybody: a truth outside of it there is none."""
    low, high = judge.range
    trail = None if restored.trail is None else restored.trail.clamp(low, high)
    inside = replace(restored, image=restored.image.clamp(low, high), trail=trail)
    scores = evaluate(inside, truth, judge)
    found: Found = {}
    for name, digits in DIGITS.items():
        values = getattr(scores, name)
        if values is not None:
            found[name] = [round(v, digits) for v in values.tolist()]
    return {**found, "chosen": restored.chosen.tolist()}


@lru_cache(maxsize=1)
def _bank(data: str, without_tuning: bool, device: str) -> Tensor:
    return bank(data, without_tuning=without_tuning).to(device)


@lru_cache(maxsize=4)
def prior(data: str, kind: str, device: str) -> Any:
    """The bundled prior of a set; an untrained small one where it has none, for a dry run."""
    held = DATASETS[data]
    name = held.prior if kind == "diffusion" else held.flow
    if name:
        return load_prior(name, device=device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = UNet(channels=1, width=8, multipliers=(1, 2), blocks=1, attention=(), size=8)
    if kind == "flow":
        return FlowPrior(net, shape=(1, 8, 8), steps=2).to(device)
    return DiffusionPrior(net, shape=(1, 8, 8), alpha_bar=cosine(1000), steps=2).to(device)


def environment(device: str) -> dict[str, Any]:
    """What figures depend on."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "threads": 1,
        "torch": torch.__version__.partition("+")[0],
    }
    if device == "cuda":
        found["device"] = torch.cuda.get_device_name()
    return found


@lru_cache(maxsize=1)
def code() -> str:
    """A mark of the sources that figures come from, so that a mixture of them is seen."""
    folder = ROOT / "src" / "setpoint" / "restoration"
    paths = sorted([*folder.rglob("*.py"), *folder.rglob("*.safetensors")])
    marks = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    return hashlib.sha256(marks).hexdigest()[:8]


def packed(x: Tensor) -> dict[str, Any]:
    """Images in [0, 1] as bytes that a JSON can hold."""
    pixels = (x.detach().clamp(0, 1) * 255).round().to(torch.uint8).cpu()
    text = base64.b64encode(pixels.numpy().tobytes()).decode()
    return {"shape": list(pixels.shape), "pixels": text}


def unpacked(held: dict[str, Any]) -> Tensor:
    """Images of bytes."""
    raw = bytearray(base64.b64decode(held["pixels"]))
    return torch.frombuffer(raw, dtype=torch.uint8).reshape(held["shape"]).float() / 255
