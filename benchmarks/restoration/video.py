"""``video``: 20 clips of a moving digit, restored without and with consistency over the frames.

Ways: *base*, each frame for itself; *semantic*, the frames share a seed and differ by residuals of
low rank; *pixel*, the warping error with the known flow is held small; *both*. Where OpenCV is
there, also *pixel* and *both* with the flow estimated from the frames restored so far. PSNR is the
mean over the frames of a clip, at the iterate selected by windowed moving variance; the oracle is
the best iterate of those kept, every tenth. The warping error is always that along the known flow;
``true_warping`` is that of the true clip, which is not 0: reading between pixels blurs.

``python -m benchmarks.restoration.video FILE.json --part 0/1`` tries the grid on training digits;
of several processes each takes its part.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.restoration.clips import Clips, clips
from benchmarks.restoration.judging import mean_and_error
from benchmarks.restoration.tasks import pose
from setpoint.restoration.image_scores import psnr
from setpoint.restoration.priors.bundled import load_prior
from setpoint.restoration.video import RestoredVideo, restore_video, warping_error

SIGMA, TRAIL = 0.05, 10
TASKS = ("sr4", "inpaint")
WAYS: dict[str, dict[str, bool]] = {
    "base": {"semantic": False, "pixel": False},
    "semantic": {"semantic": True, "pixel": False},
    "pixel": {"semantic": False, "pixel": True},
    "both": {"semantic": True, "pixel": True},
}
ESTIMATED = ", flow estimated"
#: chosen on training digits by the grid below, for all ways and tasks alike
SETTINGS: dict[str, Any] = {"rate": 0.1, "rank": 4, "weight": 0.5, "iterations": 220}
Line = dict[str, Any]


def run(
    *,
    device: str = "cpu",
    clips: int = 20,
    smoke: bool = False,
    tasks: Sequence[str] = TASKS,
    ways: Sequence[str] = tuple(WAYS),
) -> list[Line]:
    """One line for each task, way and clip."""
    found: list[Line] = []
    frames, more = (4, {"iterations": 6, "window": 2, "warmup": 2}) if smoke else (8, {})
    held = _clips("test", clips, frames)
    prior = load_prior("mnist", device=device)
    opencv = importlib.util.find_spec("cv2") is not None
    if not opencv:
        print("no OpenCV here: the lines with estimated flow are left out")
    for task in tasks:
        for way in ways:
            parts = WAYS[way]
            options = {**SETTINGS, **parts, **more}
            found += _lines(task, way, held, prior, device, {"flow": held.flow, **options})
            print(_told(found, task, way), flush=True)
            if opencv and parts["pixel"]:
                options = {"flow": "opencv", **options}
                found += _lines(task, way + ESTIMATED, held, prior, device, options)
                print(_told(found, task, way + ESTIMATED), flush=True)
    return found


def _told(lines: list[Line], task: str, way: str) -> str:
    """Mean ± standard error of a way, and of its paired differences from the base."""

    def values(of: str, name: str) -> Tensor:
        held = [x[name] for x in lines if x["task"] == task and x["way"] == of]
        return torch.tensor(held, dtype=torch.float64)

    def said(x: Tensor, digits: int) -> str:
        return "{0:.{2}f} ± {1:.{2}f}".format(*mean_and_error(x.numpy()), digits)

    good, error = values(way, "psnr"), 100 * values(way, "warping")
    text = f"{task} {way}: PSNR {said(good, 2)}, 100 WE {said(error, 3)}"
    base = values("base", "psnr"), 100 * values("base", "warping")
    if way == "base" or not len(base[0]):
        return text
    return f"{text}; beside the base {said(good - base[0], 2)} dB, {said(error - base[1], 3)}"


def _clips(part: str, count: int, frames: int) -> Clips:
    return clips(part, count, frames=frames)


def _lines(
    task: str, way: str, held: Clips, prior: Any, device: str, options: dict[str, Any]
) -> list[Line]:
    """Measure the clips, restore them in one batch, score."""
    truth = held.frames
    posed = pose(task, truth.flatten(0, 1), sigma=SIGMA)
    y = posed.y.unflatten(0, truth.shape[:2]).to(device)
    done = restore_video(y, posed.operator, prior, trail=TRAIL, **options)
    scores = _scores(done.frames.cpu(), held)
    oracle = _oracle(done, held)
    assert done.trail is not None
    last = _scores(done.trail[-1].cpu(), held)
    true = warping_error(truth, held.flow)
    return [
        {
            "task": task,
            "clip": clip,
            "way": way,
            "psnr": float(scores["psnr"][clip]),
            "warping": float(scores["warping"][clip]),
            "oracle_psnr": float(oracle[clip]),
            "last_psnr": float(last["psnr"][clip]),
            "true_warping": float(true[clip]),
            "residual": float(done.residual[clip].square().mean().sqrt()),
            "chosen": int(done.chosen[clip]),
            "seconds": done.seconds / len(truth),
        }
        for clip in range(len(truth))
    ]


def _scores(frames: Tensor, held: Clips) -> dict[str, Tensor]:
    """PSNR (N,), the mean over frames, and warping error (N,) of frames clipped to [0, 1]."""
    frames = frames.clamp(0, 1)
    value = psnr(frames.flatten(0, 1), held.frames.flatten(0, 1), (0.0, 1.0))
    return {
        "psnr": value.unflatten(0, frames.shape[:2]).mean(1),
        "warping": warping_error(frames, held.flow),
    }


def _oracle(done: RestoredVideo, held: Clips) -> Tensor:
    """(N,): the best of the iterates kept and the selected one, by their PSNR."""
    assert done.trail is not None
    seen = [_scores(x.cpu(), held)["psnr"] for x in (*done.trail, done.frames)]
    return torch.stack(seen).amax(0)


# ---- the grid ------------------------------------------------------------------------------------

#: how frames share a seed: residuals of that rank, and what a frame may have beyond
SHARED: tuple[dict[str, Any], ...] = (
    {"rank": 2},
    {"rank": 4},
    {"rank": 2, "slack": 0.1},
    {"rank": 2, "slack": 0.01},
    {"rank": 0, "slack": 0.01},
)


def grid() -> list[tuple[str, dict[str, Any]]]:
    """Ways with options, the cheapest question first: what sharing adds to the pixel part."""
    found: list[tuple[str, dict[str, Any]]] = [("pixel", {"weight": 0.5}), ("pixel", {"weight": 1})]
    found += [("both", {"weight": 0.5, **shared}) for shared in SHARED]
    found += [("both", {"weight": 1.0, **SHARED[3]})]
    found += [("semantic", shared) for shared in (SHARED[0], SHARED[2], SHARED[3])]
    return [*found, ("base", {"rate": 0.1})]


def tried(part: int, of: int, device: str, count: int, iterations: int) -> list[Line]:
    """One line for each point of a part of the grid: means over clips of training digits."""
    held = clips("tune", count)
    prior = load_prior("mnist", device=device)
    points = [(task, way, options) for task in TASKS for way, options in grid()]
    found = []
    for task, way, options in points[part::of]:
        full = {**WAYS[way], **options, "iterations": iterations, "flow": held.flow}
        rows = _lines(task, way, held, prior, device, full)
        means = {
            name: sum(row[name] for row in rows) / len(rows)
            for name in rows[0]
            if isinstance(rows[0][name], float | int) and name != "clip"
        }
        found.append({"task": task, "way": way, "options": options, **means})
        print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Try a part of the grid."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restoration.video")
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", default="0/1", metavar="K/N")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clips", type=int, default=6)
    parser.add_argument("--iterations", type=int, default=220)
    given = parser.parse_args()
    part, of = (int(x) for x in given.part.split("/"))
    found = tried(part, of, given.device, given.clips, given.iterations)
    given.file.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
