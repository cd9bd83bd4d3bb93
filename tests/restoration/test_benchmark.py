"""The benchmark's queue keeps what was done, and its verdicts are what the figures say."""

import json
import lzma
from dataclasses import asdict

import numpy as np
import pytest
from benchmarks.restoration import judging, listing, noise_page, page, settings, workers
from benchmarks.restoration.shelf import Job, Shelf
from benchmarks.restoration.tasks import GOAL, TASKS
from benchmarks.restoration.ways import WAYS
from benchmarks.results.recording import Recording
from scipy import stats

OURS, OTHER = "dmplug", "tv"
BASELINES = [name for name, way in WAYS.items() if not way.ours]


def all_baselines(psnr, task="inpaint", **better):
    """A line for every baseline, so that a lead over all of them can be known."""
    return [line(way, better.get(way.replace("-", "_"), psnr), task) for way in BASELINES]


def line(way, psnr, task="inpaint", oracle=None):
    held = {"data": "mnist", "task": task, "way": way, "images": len(psnr), "options": {}}
    held |= {"psnr": list(psnr), "oracle_psnr": list(psnr if oracle is None else oracle)}
    for name in ("ssim", "oracle_ssim", "residual", "manifold"):
        held |= {name: 0.5, f"{name}_error": 0.01}
    return held


def test_a_lead_is_two_standard_errors_of_the_paired_difference():
    draw = np.random.default_rng(0)
    seen = set()
    for shift in np.linspace(-0.5, 0.5, 41):
        base = draw.normal(20, 3, 30)
        a, b = base + shift + draw.normal(0, 0.5, 30), base
        found = judging.judged([line(OURS, a), *all_baselines(b)], "mnist", "inpaint")
        assert found.ahead == bool((a - b).mean() > 2 * stats.sem(a - b))
        assert (found.best == OURS) == (a.mean() > b.mean())
        seen.add(found.ahead)
    assert seen == {True, False}


def test_every_baseline_counts_and_the_lost_ones_are_named():
    flat = np.full(10, 20.0) + np.arange(10) % 2
    ours = [line(OURS, flat + 2), line("constrained", flat + 3)]
    found = judging.judged([*ours, *all_baselines(flat)], "mnist", "inpaint")
    assert (found.ours, found.ahead, found.not_beaten) == ("constrained", True, [])
    found = judging.judged([*ours, *all_baselines(flat, pnp=flat + 4)], "mnist", "inpaint")
    assert (found.best, found.ahead, found.not_beaten) == ("pnp", False, ["pnp"])


def test_a_baseline_that_was_not_run_is_not_beaten():
    flat = np.full(10, 20.0) + np.arange(10) % 2
    lines = [line(OURS, flat + 2), *all_baselines(flat)]
    some = [x for x in lines if x["way"] != "dip"]
    found = judging.judged(some, "mnist", "inpaint")
    assert (found.ahead, found.ahead_of_published, found.missing) == (None, None, ("dip",))
    assert not any("verdict" in x for x in judging.with_verdicts(some))
    lost = judging.judged([*some, line("constrained", flat - 9)][::-1], "mnist", "inpaint")
    assert lost.ahead is None
    behind = [line(OURS, flat - 1), *some[1:]]
    assert judging.judged(behind, "mnist", "inpaint").ahead is False
    about = {"command": "this", "environment": {"threads": 1}}
    text = page.six(Recording("restoration-table", about, tuple(some))).text
    assert "0 of 1 (1 not known, as not every baseline was run)" in text


def test_a_baseline_strengthened_here_is_counted_apart():
    flat = np.full(10, 20.0) + np.arange(10) % 2
    lines = [line(OURS, flat + 2), *all_baselines(flat, dps_mean=flat + 3)]
    found = judging.judged(lines, "mnist", "inpaint")
    assert (found.ahead_of_published, found.ahead) == (True, False)
    assert judging.with_verdicts(lines)[0]["verdict"] == "MISSED"


@pytest.mark.parametrize(("gap", "near"), [(0.29, True), (0.31, False)])
def test_selected_beside_oracle(gap, near):
    flat = np.arange(10.0) + 20
    lines = [line(OURS, flat + 5, oracle=flat + 5 + gap), *all_baselines(flat)]
    found = judging.judged(lines, "mnist", "inpaint")
    assert found.near is near
    assert found.gap == pytest.approx(gap)
    made = judging.with_verdicts(lines)
    assert made[0]["verdict"] == ("ok" if near else "MISSED")
    assert "verdict" not in made[1]


def test_the_page_says_when_a_baseline_wins():
    flat = np.arange(10.0) + 20
    won = [line(OURS, flat + 1), *all_baselines(flat)]
    lost = [line(OURS, flat, "sr2"), *all_baselines(flat - 1, "sr2", tv=flat + 1)]
    about = {"command": "this", "environment": {"threads": 1}}
    text = page.six(Recording("restoration-table", about, tuple(won + lost))).text
    assert "two standard errors in 1 of 1, and with DPS" in text
    assert "On the other tasks it is so in 0 of 1, and with DPS" in text
    assert (
        "A baseline is the best of all that were run on 1 of 2 (mnist, super-resolution ×2" in text
    )
    assert "| 25.50 ± 0.96 |" in text


def test_drop_of_a_misstated_level():
    draw = np.random.default_rng(1)
    right = draw.normal(25, 1, (12, 6))
    wrong = right - draw.normal(3, 0.1, (12, 6))
    rows = []
    for stated, values in ((1.0, right), (4.0, wrong)):
        for (kind, level), psnr in zip(noise_page.noise.SETTINGS, values, strict=True):
            rows.append({"way": "dps", "stated": stated, "kind": kind, "level": level})
            rows[-1]["psnr"] = list(psnr)
    found = {(x["way"], x["stated"], x["kind"], x["level"]): x["psnr"] for x in rows}
    mean, error = noise_page.drop(found, ("dps", 4.0), ("dps", 1.0))
    each = (wrong - right).mean(0)
    assert mean == pytest.approx(each.mean())
    assert error == pytest.approx(stats.sem(each))
    text = noise_page.text(Recording("restoration-noise", {}, tuple(rows)))
    assert f"told 4 ×: −{-mean:.2f} ± {error:.2f} dB" in text


def test_settings_are_the_best_point_of_the_task_or_of_the_set():
    def tried(task, rate, psnr):
        held = {"data": "mnist", "way": "dip", "task": task, "psnr": psnr}
        return {**held, "options": {"rate": rate}}

    lines = [tried("sr2", 1, 20), tried("sr2", 2, 21), tried("blur", 1, 30), tried("blur", 2, 25)]
    assert settings.chosen(lines, "mnist", "dip", "sr2") == {"rate": 2}
    assert settings.chosen(lines, "mnist", "dip", "blur") == {"rate": 1}
    assert settings.chosen(lines, "mnist", "dip", "sr4") == {"rate": 1}  # 25 against 23
    assert settings.chosen(lines, "mnist", "tv", "sr4") == {}
    # a point that one task alone has seen is not compared over the tasks
    more = [*lines, tried("blur", 3, 99)]
    assert settings.chosen(more, "mnist", "dip", "sr4") == {"rate": 1}


def test_a_way_that_is_like_another_has_its_settings_where_it_was_not_tuned(monkeypatch):
    def tried(way, task, time):
        held = {"data": "mnist", "way": way, "task": task, "psnr": 20.0}
        return {**held, "options": {"time": time}}

    lines = (tried("fmplug", "inpaint", 0.1), tried("fmplug", "blind", 0.2))
    lines += (tried("fmplug-diffusion", "blind", 0.3),)
    monkeypatch.setattr(settings, "_lines", lambda: lines)
    assert settings.options("mnist", "fmplug-diffusion", "blind") == {"time": 0.3}
    assert settings.options("mnist", "fmplug-diffusion", "inpaint") == {"time": 0.1}
    assert settings.options("cifar10", "fmplug-diffusion", "inpaint") == {}


def test_a_way_takes_part_in_its_own_tasks_alone():
    jobs = listing.table_jobs(["mnist"], ["fmplug", "fmplug-diffusion"], TASKS, 2, False)
    held = {way: {job.task for job in jobs if job.way == way} for way in WAYS}
    assert held["fmplug"] == set(TASKS)
    assert held["fmplug-diffusion"] == set(GOAL)


def test_results_survive_a_killed_run_and_a_bundle(tmp_path):
    jobs = [Job("table", "mnist", way, "sr2", 4) for way in (OURS, OTHER, "pnp")]
    shelf = Shelf(tmp_path / "a")
    assert shelf.open(jobs) == jobs
    assert [shelf.claim(job) for job in (*jobs, jobs[0])] == [True, True, True, False]
    shelf.put(jobs[0], {"psnr": [1.0]})
    shelf.put(jobs[1], {"error": "Traceback\nValueError: no"})
    assert shelf.errors(jobs) == [f"{jobs[1].key}: ValueError: no"]
    assert shelf.bundle(tmp_path / "all.jsonl") == 2
    other = Shelf(tmp_path / "b")
    packed = tmp_path / "all.jsonl.xz"
    packed.write_bytes(lzma.compress((tmp_path / "all.jsonl").read_bytes()))
    assert other.take(packed) == 2
    for held in (shelf, other):
        assert held.open(jobs) == jobs[1:]  # what was claimed or failed is made again
        assert held.claim(jobs[1])
    other.put(jobs[1], {"psnr": [2.0]})
    other.take(tmp_path / "all.jsonl")  # an error does not replace a result
    kept = other.get(jobs[1])
    assert kept is not None
    assert kept["psnr"] == [2.0]
    assert (
        json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])["job"]["part"] == "table"
    )


def test_other_options_or_another_version_are_another_job():
    keys = {Job("table", "mnist", OURS, "sr2", 4, {"rate": r}).key for r in (1, 2)}
    assert len(keys) == 2
    now = Job("table", "mnist", OURS, "sr2", 4)
    before = {k: v for k, v in asdict(now).items() if k != "version"}
    assert Job.of(before).key != now.key
    assert Job.of(asdict(now)) == now


def _round_of(errors, todo, shelf, count, made):
    for job in todo:
        made.append((job.way, count))
        error = errors.get((job.way, count))
        shelf.put(job, {"psnr": [1.0]} if error is None else {"error": error})


def test_a_full_device_is_tried_again_by_fewer_and_other_errors_are_not(tmp_path, monkeypatch):
    made = []
    full, wrong = "torch.OutOfMemoryError: CUDA out of memory", "ValueError: no"
    errors = {(OURS, 6): full, (OURS, 1): full, ("pnp", 6): wrong, ("tv", 6): full}

    def stand_in(jobs, todo, shelf, count, *more):
        _round_of(errors, todo, shelf, 6 if len(todo) > 2 else count, made)

    monkeypatch.setattr(workers, "_round", stand_in)
    ways = (OURS, OTHER, "pnp", "dps", "dip", "nearest")
    jobs = [Job("table", "mnist", way, "sr2", 4) for way in ways]
    shelf = Shelf(tmp_path)
    said = []
    more = {"workers": 6, "device": "cpu", "seconds": 60, "say": said.append}
    left = workers.work_off(jobs, shelf, **more)
    assert {job.way for job in left} == {"pnp"}
    assert made[6:] == [(OURS, 2), (OTHER, 2)]
    assert any("failed" in text and "ValueError: no" in text for text in said)


def test_no_way_of_ours_has_a_larger_grid_than_any_other():
    sizes = {name: len(way.grid) for name, way in WAYS.items() if way.tabled}
    ours = max(sizes[name] for name, way in WAYS.items() if way.tabled and way.ours)
    assert all(sizes[name] in (0, *range(ours, 9)) for name in sizes)
    assert [name for name, size in sizes.items() if not size] == ["nearest"]
