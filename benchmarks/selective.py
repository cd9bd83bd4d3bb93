"""Which rows to keep: AURC of six confidences on corrupted digits, by the scale of the logits.

A small CNN is trained on half of scikit-learn's digits 0 to 7. It then decides on the other half,
as it is and under five corruptions; the digits 8 and 9, which it has never seen, are a label shift
and any decision on them is wrong. Five seeds (split, weights, corruptions). Reported is the mean of
AURC-α in percent, α = 0.1 / 0.5 / 1: of the confidences in logit space, as ``confidence`` computes
them, and of the textbook forms on a softmax in float32. The logits are scaled in float32, which
changes no decision and no margin's order, but makes probabilities 1.0.

Targets: the order by a margin, or by the greatest logit, is the same at every scale (AURC moves by
at most 0.02 points), and at ×20, where float32 probabilities are tied, a softmax score in logit
space is at most 0.05 points above the margin, which is its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.harness import Check, new_table, one_thread, verdict
from benchmarks.harness import verdict_cell as cell
from setpoint.decisions.risk_coverage import risk_coverage, selective_errors
from setpoint.rules.confidence_scores import CONFIDENCES, confidence

SEEDS = 5
EPOCHS = 40
KNOWN = 8  # the classes 0 … 7; what is beyond is a label shift
SCALES = (0.1, 1.0, 4.0, 20.0)
ALPHAS = (0.1, 0.5, 1.0)
MARGIN = "rl_conf_m"
MOVES = 0.02  # points, for a confidence that should not move
ABOVE = 0.05  # points, for a softmax score above the margin at the largest scale

#: The textbook forms, from probabilities in float32.
NAIVE: dict[str, Callable[[Tensor], Tensor]] = {
    "sr_max": lambda p: p.amax(1),
    "sr_ent": lambda p: torch.special.xlogy(p, p).sum(1),
    "sr_doctor": lambda p: 1 - 1 / (p * p).sum(1),
}
SETS = {
    "corrupted": ("clean", "noise .3", "noise .5", "blur", "shift", "contrast"),
    "clean + label shift": ("clean", "label shift"),
    "all + label shift": (
        *("clean", "noise .3", "noise .5", "blur", "shift", "contrast"),
        "label shift",
    ),
}


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Train, corrupt, score; one record for each confidence and form."""
    del repeats, rows
    one_thread()
    found: list[dict[tuple, list[float]]] = []
    errors: list[dict[str, float]] = []
    for seed in range(SEEDS):
        parts, head = decided(seed)
        found.append(areas(parts, head))
        errors.append({name: error(parts, names) for name, names in SETS.items()})
    values = {key: np.array([one[key] for one in found]) for key in found[0]}  # (seeds, alphas)
    full = {name: float(np.mean([one[name] for one in errors])) for name in SETS}
    records = by_scale(console, values, full)
    by_set(console, values, full)
    return records


# --- tables ----------------------------------------------------------------------------------


def by_scale(console: Console, values: Mapping[tuple, np.ndarray], full: dict) -> list[dict]:
    """Print AURC on clean and corrupted digits at each scale, and judge it."""
    table = new_table(
        f"AURC of α = .1 / .5 / 1 in percent, by logit scale; mean of {SEEDS} seeds",
        f"clean and corrupted digits 0–7, error {full['corrupted']:.2f} %; sd: over the seeds, of "
        "α = 1 at ×1",
        ("confidence", "form"),
        (*(f"×{scale:g}" for scale in SCALES), "sd", ""),
    )
    limit = values[MARGIN, "logit space", SCALES[-1], "corrupted"].mean(0)
    records = []
    for name, form in rows_of():
        figures = {s: values[name, form, s, "corrupted"] for s in SCALES}  # each (seeds, alphas)
        means = {s: v.mean(0) for s, v in figures.items()}
        checks = []
        if name.startswith("rl"):
            checks = [
                Check(float(max(np.ptp(v) for v in zip(*means.values(), strict=True))), MOVES)
            ]
        elif form == "logit space":
            checks = [Check(float((means[SCALES[-1]] - limit).max()), ABOVE)]
        word = verdict(checks)
        sd = float(figures[1.0][:, -1].std(ddof=1))
        texts = [triple(means[s]) for s in SCALES]
        table.add_row(name, form, *texts, f"{sd:.2f}", cell(word))
        records.append(
            {
                "confidence": name,
                "form": form,
                "error": full["corrupted"],
                "aurc": {f"x{s:g}": means[s].tolist() for s in SCALES},
                "label_shift": {
                    which: values[name, form, 1.0, which].mean(0).tolist()
                    for which in list(SETS)[1:]
                },
                "verdict": word,
            }
        )
    console.print(table)
    return records


def by_set(console: Console, values: Mapping[tuple, np.ndarray], full: dict) -> None:
    """Print AURC with digits of unknown classes among the rows."""
    shifted = list(SETS)[1:]
    table = new_table(
        "The same at ×1 with the digits 8 and 9, on which every decision is wrong",
        "error: "
        + ", ".join(f"{name} {full[name]:.2f} %" for name in shifted)
        + "; sd: over the seeds, of α = 1",
        ("confidence", "form"),
        [heading for name in shifted for heading in (name, "sd")],
    )
    for name, form in rows_of():
        cells = []
        for which in shifted:
            figures = values[name, form, 1.0, which]
            cells += [triple(figures.mean(0)), f"{figures[:, -1].std(ddof=1):.2f}"]
        table.add_row(name, form, *cells)
    console.print()
    console.print(table)


def rows_of() -> list[tuple[str, str]]:
    """Each confidence in logit space, the textbook form in float32 below it."""
    return [
        (name, form)
        for name in CONFIDENCES
        for form in ("logit space", "float32")
        if form == "logit space" or name in NAIVE
    ]


def triple(means: np.ndarray) -> str:
    """Print the three areas as 0.17/2.03/6.22."""
    return "/".join(f"{m:.2f}" for m in means)


# --- figures ---------------------------------------------------------------------------------


def areas(parts: Mapping[str, tuple[Tensor, Tensor]], head: Tensor) -> dict[tuple, list[float]]:
    """AURC in percent for each confidence, form, scale and set of rows."""
    out = {}
    for which, names in SETS.items():
        logits, actual = together(parts, names)
        for scale in SCALES if which == "corrupted" else (1.0,):
            z = logits * scale
            for name, row in CONFIDENCES.items():
                score, predicted = confidence(name, z, head if row.needs_head else None)
                out[name, "logit space", scale, which] = percent(score, predicted, actual)
            p = z.softmax(1)
            for name, form in NAIVE.items():
                out[name, "float32", scale, which] = percent(form(p), z.argmax(1), actual)
    return out


def percent(score: Tensor, predicted: Tensor, actual: Tensor) -> list[float]:
    """AURC-α in percent."""
    curve = risk_coverage(score, selective_errors(predicted, actual))
    return [100 * curve.aurc(alpha) for alpha in ALPHAS]


def error(parts: Mapping[str, tuple[Tensor, Tensor]], names: tuple[str, ...]) -> float:
    """Percent of rows that the argmax of the logits decides wrongly."""
    logits, actual = together(parts, names)
    return 100 * float(selective_errors(logits.argmax(1), actual).mean())


def together(
    parts: Mapping[str, tuple[Tensor, Tensor]], names: tuple[str, ...]
) -> tuple[Tensor, Tensor]:
    """Logits and classes of several parts, one behind the other."""
    return torch.cat([parts[n][0] for n in names]), torch.cat([parts[n][1] for n in names])


# --- network and data ------------------------------------------------------------------------


def decided(seed: int) -> tuple[dict[str, tuple[Tensor, Tensor]], Tensor]:
    """Logits and classes (−1: none of the known) of each part, and the last layer's weights."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    images = torch.tensor(x / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    classes = torch.tensor(y)
    random = torch.Generator().manual_seed(seed)
    known = torch.nonzero(classes < KNOWN).flatten()
    known = known[torch.randperm(len(known), generator=random)]
    train, test = known[: len(known) // 2], known[len(known) // 2 :]
    model = fitted(images[train], classes[train], seed)
    views = corrupted(images[test], random)
    with torch.no_grad():
        parts = {name: (model(view), classes[test]) for name, view in views.items()}
        others = images[classes >= KNOWN]
        parts["label shift"] = (model(others), torch.full((len(others),), -1))
    return parts, model.get_parameter(f"{len(model) - 1}.weight")


def fitted(x: Tensor, y: Tensor, seed: int) -> nn.Sequential:
    """Train two convolutions and two linear layers by cross-entropy."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, KNOWN)),
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(EPOCHS):
            for index in torch.randperm(len(x)).split(64):
                loss = functional.cross_entropy(model(x[index]), y[index])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return model.eval()


def corrupted(x: Tensor, random: torch.Generator) -> dict[str, Tensor]:
    """Images (n, 1, 8, 8) in [0, 1] as they are, noisy, blurred, moved by a pixel, and pale."""
    kernel = torch.tensor([1.0, 2.0, 1.0])
    kernel = (kernel[:, None] * kernel / kernel.sum() ** 2)[None, None]  # (1, 1, 3, 3)
    steps = torch.tensor([(0, 1), (0, -1), (1, 0), (-1, 0)])
    chosen = steps[torch.randint(len(steps), (len(x),), generator=random)].tolist()
    padded = functional.pad(x, (1, 1, 1, 1))
    moved = [padded[i, :, 1 + a : 9 + a, 1 + b : 9 + b] for i, (a, b) in enumerate(chosen)]
    mean = x.mean((1, 2, 3), keepdim=True)

    def noisy(size: float) -> Tensor:
        return (x + size * torch.randn(x.shape, generator=random)).clamp(0, 1)

    return {
        "clean": x,
        "noise .3": noisy(0.3),
        "noise .5": noisy(0.5),
        "blur": functional.conv2d(x, kernel, padding=1),
        "shift": torch.stack(moved),
        "contrast": mean + 0.3 * (x - mean),
    }


if __name__ == "__main__":
    missed = sum(row["verdict"] == "MISSED" for row in run(Console(width=110), 1, 1))
    raise SystemExit(1 if missed else 0)
