"""The sections of docs/results.md: recording -> section. Every word of judgement is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.restoration import noise_page, tasks
from benchmarks.restoration.data import NAMES, PICTURES
from benchmarks.restoration.judging import NEAR, Judged, difference, judged, mean_and_error
from benchmarks.restoration.ways import COPIES, WAYS
from benchmarks.results.figures import table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how

TITLES = {
    "table": "Six tasks, ours beside others",
    "noise": "Noise of an unknown level",
    "video": "Video: what each part adds",
    "gpu": "Seconds an image",
    "tune": "Settings of the ways",
}
PROTOCOL = (
    f"Held-out test images in [0, 1], Gaussian noise σ = {tasks.SIGMA} in these units, its level "
    "stated to everybody. Options are the methods' own, which were set on training images that no "
    "prior has seen, ours and others alike{beside}. PSNR in dB and SSIM are of the iterate that "
    "the way itself **selected**; the oracle is the best iterate it passed, each score at its own, "
    "which nobody without the truth can have. Residual: root mean square of A(x) − y. Manifold: "
    "root mean square of x − D(x, 0.1), D the denoiser of the diffusion prior. All are clipped "
    "to [0, 1]. ± is a standard error over images."
)


def six(recording: Recording) -> Section:
    """Sets, tasks, ways; then what they come to."""
    text = how(recording, PROTOCOL.replace("{beside}", _beside(recording))) + "\n"
    results = []
    for data in recording.distinct("data"):
        lines = recording.where(data=data)
        count = lines[0]["images"]
        here = [t for t in tasks.TASKS if any(x["task"] == t for x in lines)]
        results += [judged(lines, data, task) for task in here]
        text += f"**{NAMES[data]}, {count} images**, PSNR at the selected iterate:\n\n"
        text += _overview(lines, here) + "\n"
        text += _picture(data)
        text += f"{NAMES[data]}, everything:\n\n" + _everything(lines, here) + "\n"
    return Section(TITLES["table"], text + _verdicts(results))


def _picture(data: str) -> str:
    """The contact sheet, where it was drawn."""
    name = f"restoration-table-{data}.png"
    if not (PICTURES / name).is_file():
        return ""
    return f"![{NAMES[data]}: truth, measurement and every way](images/{name})\n\n"


def _beside(recording: Recording) -> str:
    """The options that are not a method's own, as they were recorded."""
    found = []
    for name in WAYS:
        held = {_words(x["options"]) for x in recording.lines if x["way"] == name and x["options"]}
        if len(held) == 1:
            found.append(f"{WAYS[name].title} {held.pop()}")
        elif held:
            found.append(f"{WAYS[name].title} as chosen below")
    on_cpu = {x["way"] for x in recording.lines if x.get("device") == "CPU"}
    where = [f"{WAYS[name].title} ran on a processor" for name in WAYS if name in on_cpu]
    told = [*found, *where] if len(on_cpu) < len(recording.distinct("way")) else found
    return f" (here {'; '.join(told)})" if told else ""


def _overview(lines: Sequence[Mapping[str, Any]], here: Sequence[str]) -> str:
    """Ways by tasks; the best of a task is bold."""
    found = {(x["task"], x["way"]): x for x in lines}
    best = {}
    for task in here:
        means = {w: np.mean(found[task, w]["psnr"]) for w in WAYS if (task, w) in found}
        best[task] = max(means, key=lambda w: means[w])
    rows = []
    for name in WAYS:
        cells = []
        for task in here:
            if (task, name) not in found:
                cells.append("–")
                continue
            text = "{:.2f} ± {:.2f}".format(*mean_and_error(found[task, name]["psnr"]))
            cells.append(f"**{text}**" if best[task] == name else text)
        if set(cells) != {"–"}:
            rows.append([titled(name), *cells])
    return table(["", *(tasks.TITLES[t] for t in here)], rows)


def _everything(lines: Sequence[Mapping[str, Any]], here: Sequence[str]) -> str:
    rows = []
    for task in here:
        for name in WAYS:
            found = [x for x in lines if (x["task"], x["way"]) == (task, name)]
            rows += [[tasks.TITLES[task], titled(name), *_cells(x)] for x in found]
    head = ["task", "", "PSNR", "oracle PSNR", "SSIM", "oracle SSIM", "residual", "manifold"]
    return table(head, rows)


def _cells(x: Mapping[str, Any]) -> list[str]:
    found = []
    for name in ("psnr", "oracle_psnr"):
        pair = mean_and_error(x[name]) if name in x else None
        found.append("–" if pair is None else "{:.2f} ± {:.2f}".format(*pair))
    for name in ("ssim", "oracle_ssim", "residual", "manifold"):
        known = x.get(name) is not None
        found.append(f"{x[name]:.4f} ± {x[f'{name}_error']:.4f}" if known else "–")
    return found


def _verdicts(results: Sequence[Judged]) -> str:
    """Who is best; ours against every baseline; selected against oracle."""
    rows = []
    for x in results:
        if x.ours is None:
            rows.append([NAMES[x.data], tasks.TITLES[x.task], titled(x.best), *["–"] * 7])
            continue
        least = min(x.pairs, key=lambda p: p.mean, default=None)
        nearest = "–" if least is None else _difference(least.mean, least.error, least.other)
        lost = ", ".join(titled(name) for name in x.not_beaten) or "–"
        gap = "–" if x.gap is None else f"{x.gap:.2f}"
        near = "–" if x.near is None else _WORDS[x.near]
        absent = ", ".join(titled(name) for name in x.missing) or "–"
        above = [_WORDS[held] for held in (x.ahead_of_published, x.ahead)]
        rows.append(
            [
                NAMES[x.data],
                tasks.TITLES[x.task],
                titled(x.best),
                titled(x.ours),
                nearest,
                *above,
                lost,
                absent,
                f"{gap}: {near}",
            ]
        )
    head = [
        "set",
        "task",
        "best of all that were run",
        "best of ours",
        "less the best baseline, paired",
        "ours above every published baseline by more than two s.e.",
        f"also above {_strengthened()}",
        "not beaten",
        "not run",
        f"oracle less selected, dB: within {NEAR}",
    ]
    return "Verdicts:\n\n" + table(head, rows) + "\n" + _pairs(results) + "\n" + _sentences(results)


def _pairs(results: Sequence[Judged]) -> str:
    """The best of ours less every baseline."""
    others = [name for name, way in WAYS.items() if not way.ours]
    rows = []
    for x in results:
        held = {p.other: _difference(p.mean, p.error) for p in x.pairs}
        if held:
            name = titled(x.ours or "")
            cells = [held.get(other, "–") for other in others]
            rows.append([NAMES[x.data], tasks.TITLES[x.task], name, *cells])
    head = ["set", "task", "ours", *(titled(name) for name in others)]
    return "The best of ours less each baseline, dB, paired over images:\n\n" + table(head, rows)


def _sentences(results: Sequence[Judged]) -> str:
    held = [x for x in results if x.ours is not None]
    goal = [x for x in held if x.task in tasks.GOAL]
    near = [x for x in goal if x.near]
    words = (
        f"On inpainting, the nonlinear and the blind task one of ours is above every baseline as "
        f"published by more than two standard errors in {_met(goal)}; there its selected iterates "
        f"are within {NEAR} dB of the oracle's in {len(near)} of {len(goal)}. "
    )
    rest = [x for x in held if x.task not in tasks.GOAL]
    if rest:
        words += f"On the other tasks it is so in {_met(rest)}. "
    lost = [x for x in held if not WAYS[x.best].ours]
    if lost:
        named = ", ".join(
            f"{NAMES[x.data]}, {tasks.TITLES[x.task]}: {titled(x.best)}" for x in lost
        )
        words += (
            f"A baseline is the best of all that were run on {len(lost)} of {len(held)} ({named})."
        )
    else:
        words += f"The best of all that were run is one of ours on all {len(held)}."
    return words.rstrip() + "\n"


_WORDS = {True: "yes", False: "**no**", None: "not known"}


def _met(results: Sequence[Judged]) -> str:
    """How many goals are met, without and with the baselines strengthened here."""
    published = _counted([x.ahead_of_published for x in results])
    strengthened = _counted([x.ahead for x in results])
    return f"{published}, and with {_strengthened()} counted too in {strengthened}"


def _counted(held: Sequence[bool | None]) -> str:
    open_ = sum(x is None for x in held)
    words = f" ({open_} not known, as not every baseline was run)" if open_ else ""
    return f"{sum(x is True for x in held)} of {len(held)}{words}"


def _strengthened() -> str:
    return ", ".join(way.title for way in WAYS.values() if not (way.published or way.ours))


def _difference(mean: float, error: float, other: str = "") -> str:
    return difference(mean, error) + (f" ({titled(other)})" if other else "")


def titled(name: str) -> str:
    """A way as the page calls it; ours are marked."""
    return f"{WAYS[name].title} (ours)" if WAYS[name].ours else WAYS[name].title


def timing(recording: Recording) -> Section:
    """Seconds by sets: the least of a way's jobs, for others on the device only make it longer."""
    about = (
        "All images in one batch, wall time over images, the least of its tasks. Where nothing else"
        " was on the device a short call was made before and not counted; beside other jobs a way"
        " takes longer than alone."
    )
    rows = []
    for data in (name for name in NAMES if name in recording.distinct("data")):
        for name in WAYS:
            held = [x for x in recording.lines if (x["data"], x["way"]) == (data, name)]
            if held:
                least = min(held, key=lambda x: x["seconds"])
                task = tasks.TITLES[least["task"]]
                words = [NAMES[data], titled(name), least["images"]]
                seconds, beside = f"{least['seconds']:.3f}", least["beside"] or "alone"
                rows.append([*words, seconds, beside, task, len(held)])
    head = ["set", "", "images", "s an image", "other jobs", "its task", "of so many"]
    return Section(TITLES["gpu"], how(recording, about) + "\n" + table(head, rows))


def tuned(recording: Recording) -> Section:
    """What was tried, what was chosen."""
    tried = {}
    for x in recording.lines:
        tried.setdefault(x["way"], set()).add(_words(x["options"]))
    most = max(len(v) for v in tried.values())
    images = max(x["images"] for x in recording.lines)
    about = (
        f"Each way has a grid of at most {most} points, tried on {images} training images that the "
        "priors were not trained on; the best mean PSNR at the selected iterate is what the tables "
        "above use. Ways that are not listed ran with their defaults. "
        f"FMPlug was tuned with {COPIES} copies and runs with 4. The points of its grid were picked"
        " from about twenty settings, those of plug-and-play from about forty, tried before on up"
        " to 48 training images; of DPS five more were tried on inpainting and the"
        " nonlinear task with 12 digits, none better."
    )
    rows = []
    for data in recording.distinct("data"):
        for name in WAYS:
            held = recording.where(data=data, way=name)
            for task in dict.fromkeys(x["task"] for x in held):
                points = [x for x in held if x["task"] == task]
                best = max(points, key=lambda x: x["psnr"])
                others = ", ".join(
                    f"{_words(x['options'])}: {x['psnr']:.2f}" for x in points if x is not best
                )
                words = f"{_words(best['options'])}: {best['psnr']:.2f}"
                rows.append([NAMES[data], titled(name), tasks.TITLES[task], words, others or "–"])
    head = ["set", "", "task", "chosen: PSNR", "others"]
    return Section(TITLES["tune"], how(recording, about) + "\n" + table(head, rows))


def _words(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in sorted(options.items())) or "as it is"


def video(recording: Recording) -> Section:
    """Base, + semantic, + pixel, both."""
    about = (
        "Clips of moving digits whose flow is known; warping error: mean squared difference of a "
        "frame and the one before it carried along the true flow. ± over clips; differences are "
        "paired."
    )
    rows, words = [], []
    for task in recording.distinct("task"):
        lines = recording.where(task=task)
        ways = list(dict.fromkeys(x["way"] for x in lines))
        base = _clips(lines, "base") if "base" in ways else None
        for way in ways:
            held = _clips(lines, way)
            cells = [
                "{:.2f} ± {:.2f}".format(*mean_and_error(held["psnr"])),
                "{:.3g} ± {:.2g}".format(*mean_and_error(held["warping"])),
            ]
            more = ["–", "–"]
            if base is not None and way != "base":
                ratio = np.mean(held["warping"]) / np.mean(base["warping"])
                apart = mean_and_error(held["psnr"] - base["psnr"])
                more = [_difference(*apart), f"{ratio:.2f} ×"]
            rows.append([task, way, *cells, *more])
        words.append(_helps(lines, task, ways))
    head = ["task", "", "PSNR", "warping error", "PSNR less base", "warping error over base"]
    text = how(recording, about) + "\n" + table(head, rows) + "\n" + " ".join(words) + "\n"
    return Section(TITLES["video"], text)


def _helps(lines: Sequence[Mapping[str, Any]], task: str, ways: Sequence[str]) -> str:
    """Whether each part adds to what is there without it: PSNR up, warping error down."""
    if not {"base", "semantic", "pixel", "both"} <= set(ways):
        return ""
    found = []
    for part, before, after in (
        ("the semantic part", "base", "semantic"),
        ("the pixel part", "base", "pixel"),
        ("the semantic part on top of the pixel part", "pixel", "both"),
        ("the pixel part on top of the semantic part", "semantic", "both"),
    ):
        a, b = _clips(lines, after), _clips(lines, before)
        up, error = mean_and_error(a["psnr"] - b["psnr"])
        down, other = mean_and_error(b["warping"] - a["warping"])
        helps = up > 2 * error and down > 2 * other
        found.append(f"{part}: {'yes' if helps else '**no**'}")
    said = "; ".join(found)
    return f"{task}, PSNR up and warping error down, both by more than two s.e.? {said}."


def _clips(lines: Sequence[Mapping[str, Any]], way: str) -> dict[str, np.ndarray]:
    held = sorted((x for x in lines if x["way"] == way), key=lambda x: x["clip"])
    return {key: np.array([x[key] for x in held], float) for key in ("psnr", "warping")}


def noisy(recording: Recording) -> Section:
    """Kinds and levels."""
    return Section(
        TITLES["noise"], how(recording, noise_page.ABOUT) + "\n" + noise_page.text(recording)
    )


_MAKE = {"table": six, "noise": noisy, "video": video, "gpu": timing, "tune": tuned}
#: recording -> its section, title and command
SECTIONS = {
    f"restoration-{part}": (
        make,
        TITLES[part],
        f"python -m benchmarks.restoration {part} --record",
    )
    for part, make in _MAKE.items()
}
