"""Who takes part: a name, a method of ``restore`` and the options that make it this way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.restoration.tasks import GOAL


@dataclass(frozen=True)
class Way:
    """A row of the table.

    Attributes
    ----------
    method : str
        Of ``restore``.
    title : str
        For the page.
    ours : bool
    grid : tuple of dict
        What is tried in tuning: four points, eight of plug-and-play.
    options : mapping
        What makes it this way, beside settings.
    tuning : mapping
        Options in tuning alone.
    like : str
        The way whose settings it has on tasks that it was not tuned on itself.
    tasks : tuple of str
        Those it takes part in; all where empty.
    prior : "diffusion" or "flow"
    cost : float
        About how long it takes, to begin with the longest.
    short : mapping
        Options for a dry run and for warming up.
    tabled : bool
        Whether it is a row of the table; else it is of the part noise alone.
    published : bool
        Whether its authors propose it like that. The mean of several DPS samples, which share an
        unknown kernel, is ours to make the baseline as strong as it can be.
    """

    method: str
    title: str
    ours: bool
    grid: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)
    like: str = ""
    tasks: tuple[str, ...] = ()
    prior: str = "diffusion"
    cost: float = 1.0
    short: Mapping[str, Any] = field(default_factory=dict)
    tabled: bool = True
    published: bool = True


def _points(name: str, *values: Any) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} for value in values)


FEW = {"iterations": 3}
GUIDED = (
    {"rule": "norm", "scale": 0.1},
    {"rule": "norm", "scale": 0.2},
    {"rule": "norm", "scale": 0.4},
    {"rule": "level", "spread": 0.3},
)
WARM = (
    {"time": 0.25, "share": 0.0},
    {"time": 0.25, "share": 0.5},
    {"time": 0.65, "share": 0.5},
    {"time": 0.65, "share": 0.3, "slack": 0.9},
)
SAMPLES = 8
#: solutions that FMPlug averages in tuning, where there are few images; in the table they are 4
COPIES = 8
#: of dps in the table, where the time of a device is short
STEPS = 250
WAYS: dict[str, Way] = {
    "dmplug": Way(
        "dmplug",
        "DMPlug",
        True,
        _points("learning_rate", 0.02, 0.05, 0.1, 0.2),
        {"iterations": 500},
        cost=40,
        short=FEW,
    ),
    "dmplug-robust": Way(
        "dmplug",
        "DMPlug, robust loss",
        True,
        options={"iterations": 500, "loss": "robust"},
        cost=40,
        short=FEW,
        tabled=False,
    ),
    "constrained": Way(
        "constrained",
        "constrained",
        True,
        _points("slack", 0.8, 1.0, 1.2, 1.5),
        cost=60,
        short=FEW,
    ),
    "fmplug-diffusion": Way(
        "fmplug",
        "FMPlug, diffusion prior",
        True,
        WARM,
        tuning={"copies": COPIES},
        like="fmplug",
        tasks=GOAL,
        cost=50,
        short=FEW,
    ),
    "fmplug": Way(
        "fmplug",
        "FMPlug, flow prior",
        True,
        WARM,
        tuning={"copies": COPIES},
        prior="flow",
        cost=50,
        short=FEW,
    ),
    "tv": Way(
        "tv",
        "total variation",
        False,
        _points("discrepancy", 0.7, 0.85, 1.0, 1.1),
        cost=5,
        short=FEW,
    ),
    "nearest": Way("nearest", "nearest training image", False, cost=4),
    "dip": Way(
        "dip",
        "deep image prior",
        False,
        _points("rate", 0.002, 0.005, 0.01, 0.02),
        {"iterations": 1500},
        cost=50,
        short=FEW,
    ),
    "dps": Way("dps", "DPS, one sample", False, GUIDED, {"iterations": STEPS}, cost=6, short=FEW),
    "dps-mean": Way(
        "dps",
        f"DPS, mean of {SAMPLES}",
        False,
        GUIDED,
        {"iterations": STEPS, "samples": SAMPLES},
        cost=45,
        short=FEW,
        published=False,
    ),
    "pnp": Way(
        "pnp",
        "plug-and-play ADMM",
        False,
        (
            {"strength": 0.35},
            {"strength": 0.5},
            {"strength": 1.0},
            {"strength": 0.7, "unknowns_rate": 0.05},
            {"strength": 0.5, "last": 3.0},
            {"strength": 0.7, "last": 3.0},
            {"strength": 1.0, "last": 3.0},
            {"strength": 0.7, "last": 2.0, "unknowns_rate": 0.05},
        ),
        cost=3,
        short=FEW,
    ),
}
