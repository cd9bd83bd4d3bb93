"""The benchmark of plain loops on images: its rows, its judging, and runs that are taken up."""

import json
import math

import numpy as np
import pytest
import torch
from benchmarks.results.page import assemble
from benchmarks.stress import __main__ as stress
from benchmarks.stress.draws import GUARDED, aims_with
from benchmarks.stress.image_jobs import lines_of, packed, run_all, unpacked
from benchmarks.stress.images import FILE, FLOORS, POSITIVE, Pace, parts_of, read, settings
from benchmarks.stress.judging import Scored, best_threshold, judged, merit
from benchmarks.stress.page import shown
from benchmarks.stress.residual import MARGIN, NORMS, augmented, residual_network
from benchmarks.stress.tables import Part, Table
from sklearn import metrics
from torch import nn

METHOD = GUARDED[0]
LABELS = np.repeat(np.arange(10), 30)


@pytest.fixture
def images(tmp_path):
    """300 images of noise, those of the class a little brighter, in the file's own form."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 200, (300, 32, 32, 3)) + 40 * (LABELS == POSITIVE)[:, None, None, None]
    x, y = x.astype(np.uint8), LABELS.astype(np.uint8)
    np.savez(tmp_path / FILE, x_train=x[::2], y_train=y[::2], x_test=x[1::2], y_test=y[1::2])
    return tmp_path


@pytest.fixture
def line_up(images, tmp_path, monkeypatch):
    """A file of runs, and a call that runs one method on two goals, an epoch each."""
    for name in ("images.settings", "image_jobs.settings"):
        monkeypatch.setattr(f"benchmarks.stress.{name}", two_goals)
    monkeypatch.setattr("benchmarks.stress.images._prepared", lambda: None)
    monkeypatch.setattr("benchmarks.stress.images.residual_network", tiny_network)
    monkeypatch.setattr("benchmarks.stress.image_jobs.ProcessPoolExecutor", Inline)
    out = tmp_path / "runs.jsonl"

    def run(**changed):
        how = {"seeds": 1, "methods": (METHOD,), "jobs": 1, **changed}
        until = how.pop("until", math.inf)
        pace = Pace(images, epochs=how.pop("epochs", 1), until=until)
        return run_all(out, how["seeds"], how["methods"], pace, how["jobs"])

    return out, run


def tiny_network(seed, norm):
    torch.manual_seed(seed)
    layers = (nn.Conv2d(3, 4, 8, 8), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0))
    return nn.Sequential(*layers)


def two_goals(seeds):
    return [s for s in settings(seeds) if s.aim in ("f1", "floor")]


class Inline:
    """A pool that runs in this process, when it is asked."""

    def __init__(self, jobs, mp_context):
        assert mp_context.get_start_method() == "spawn"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def submit(self, call, *arguments):
        future = stress.image_jobs.Future()
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.mark.parametrize("share", FLOORS)
def test_positives_are_thinned_alike_in_every_part(share):
    y = np.arange(12_000) % 10 == 0
    parts = parts_of(y.astype(int), share, seed=3)
    assert [round(100 * y[rows].mean(), 1) for rows in parts] == [100 * share] * 3
    assert len(set(np.concatenate(parts))) == sum(map(len, parts))
    assert [int((~y[rows]).sum()) for rows in parts] == [6480, 2160, 2160]
    again, other = parts_of(y.astype(int), share, seed=3), parts_of(y.astype(int), share, seed=4)
    assert all((a == b).all() for a, b in zip(parts, again, strict=True))
    assert set(other[2]) != set(parts[2])


def test_images_are_standardised_on_those_to_train_on(images):
    table = read(0.1, 0, images)
    assert table.train.x.mean((0, 2, 3)) == pytest.approx(0, abs=1e-4)
    assert table.train.x.std((0, 2, 3)) == pytest.approx(1, abs=1e-4)
    assert table.train.x.shape == (180, 3, 32, 32)
    brightness = {label: table.test.x[table.test.y == label].mean() for label in (0, 1)}
    assert brightness[1] > brightness[0] + 0.3  # the labels belong to these images


def test_a_flip_or_crop_is_a_window_of_the_padded_image():
    x = torch.arange(1.0, 3 * 8 * 8 * 5 + 1).reshape(5, 3, 8, 8)
    rng = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(40):
        for before, after in zip(x, augmented(x, rng), strict=True):
            found = [
                (down, right, flipped)
                for down in range(2 * MARGIN + 1)
                for right in range(2 * MARGIN + 1)
                for flipped in (False, True)
                if torch.equal(window(before, down, right, flipped), after)
            ]
            assert len(found) == 1
            seen.update(found)
    assert {down for down, _, _ in seen} == {right for _, right, _ in seen} == set(range(9))
    assert {flipped for _, _, flipped in seen} == {False, True}


def window(image, down, right, flipped):
    padded = np.pad(image.numpy(), ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))
    cut = padded[:, down : down + 8, right : right + 8]
    return torch.from_numpy((cut[:, :, ::-1] if flipped else cut).copy())


@pytest.mark.parametrize("norm", NORMS)
def test_the_network_gives_a_logit_an_image_and_starts_alike(norm):
    net = residual_network(1, norm).eval()
    assert sum(p.numel() for p in net.parameters()) == 307_489
    x = torch.randn(3, 3, 32, 32)
    assert net(x).shape == (3,)
    assert torch.equal(net(x), residual_network(1, norm).eval()(x))
    assert not torch.equal(net(x), residual_network(2, norm).eval()(x))


def test_judged_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    y = (rng.random(900) < 0.2).astype(int)
    parts = (y[:500], y[500:700], y[700:])
    table = Table("made up", *(Part(np.zeros(0), p) for p in parts))
    plain = Scored(*(rng.normal(2 * p - 1, 1) for p in parts))
    own = plain.less(0.4)
    aim = aims_with(0.7)["floor"]
    found = judged(aim, table, own, plain)
    assert found["auroc"] == pytest.approx(metrics.roc_auc_score(parts[0], own.train))
    precision, recall = (
        score(parts[2], own.test >= 0) for score in (metrics.precision_score, metrics.recall_score)
    )
    assert found["own"] == pytest.approx(recall - 5 * max(0, 0.7 - precision))
    at = best_threshold(aim, parts[1], own.tune)[0]
    assert found["tuned"] == merit(aim, parts[2], own.test >= at)
    precision = metrics.precision_score(parts[0], own.train >= 0)
    assert found["kept"] == (precision >= 0.68)
    assert not found["collapsed"]
    assert judged(aim, table, plain.less(99), plain)["collapsed"]  # nobody is decided
    random = Scored(*(rng.normal(size=p.size) for p in parts))
    assert judged(aim, table, random, plain)["collapsed"]


def test_scores_come_back_from_a_line():
    scores = Scored(*(np.random.default_rng(n).normal(size=n).astype("f4") for n in (5, 3, 2)))
    split, found = unpacked(json.loads(json.dumps(packed((0.01, 4), scores))))
    assert split == (0.01, 4)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(*map(dict.values, map(vars, (found, scores))), strict=True)
    )


def test_numbers_stay_when_seeds_are_added():
    assert settings(3)[:8] == settings(1)
    assert [s.number for s in settings(2)] == list(range(16))
    assert {(s.share, s.aim, s.seed) for s in settings(5)} == {
        (share, aim, seed) for share in FLOORS for aim in aims_with(0.5) for seed in range(5)
    }


def test_runs_are_recorded_and_not_run_twice(line_up, tmp_path, monkeypatch):
    out, run = line_up
    assert run() == 0
    lines = lines_of(out)
    runs = [line for line in lines if "number" in line]
    assert {(r["number"], r["method"]) for r in runs} == {
        (s.number, method) for s in two_goals(1) for method in ("cross-entropy", METHOD)
    }
    assert sum("split" in line for line in lines) == 2
    assert all("covered" in r for r in runs if r["method"] == METHOD and r["aim"] != "f1")

    out.write_text(out.read_text("utf-8")[:-9], "utf-8")  # killed while it wrote the last line
    lost = runs[-1]
    assert run() == 0
    assert [line for line in lines_of(out)[len(lines) :] if "number" in line] == [
        {**lost, "seconds": lines_of(out)[-1]["seconds"]}
    ]
    with pytest.raises(ValueError, match="--epochs 1 --norm batch, not of --epochs 2"):
        run(epochs=2)

    monkeypatch.setattr(stress, "record", lambda *a, **k: kept(tmp_path, *a, **k))
    stress.main(["record", "--out", str(out)])
    page = assemble(tmp_path / "recorded")
    assert f"| 10% | {shown(METHOD)} | " in page
    assert f"| 1% | {shown(METHOD)} | " in page
    assert "batch normalisation, 1 epochs in batches of 128" in page


def kept(folder, name, *rest, **more):
    assert name == "stress-images"
    return RECORD(name, *rest, folder=folder / "recorded", **more)


RECORD = stress.record


def test_no_run_goes_on_when_the_time_is_over(line_up, capsys):
    out, run = line_up
    assert run(until=0.0) == 0
    assert not [line for line in lines_of(out) if "number" in line]
    assert "out of time: 0 of 6 runs" in capsys.readouterr().out


def test_a_run_that_fails_leaves_the_others(line_up, monkeypatch, capsys):
    out, run = line_up

    def broken(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr("benchmarks.stress.image_jobs.method_run", broken)
    assert run() == 4
    assert {r["method"] for r in lines_of(out) if "number" in r} == {"cross-entropy"}
    assert "RuntimeError: no memory" in capsys.readouterr().err


def test_mistakes_of_the_command_line_are_errors(tmp_path, capsys):
    with pytest.raises(SystemExit):
        stress.main(["images", "--methods", "soft-set,magic"])
    assert "no method 'magic'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        stress.main(["record", "--out", str(tmp_path / "none.jsonl")])
    assert "there is no file" in capsys.readouterr().err
