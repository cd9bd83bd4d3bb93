"""`setpoint restore`: files in, folder out, scores beside the oracle, mistakes, Ctrl-C."""

import importlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image
from tests.restoration.smooth import images

from setpoint.cli.commands import restore as command
from setpoint.cli.display.progress_bar import ProgressBar
from setpoint.restoration import storage
from setpoint.restoration.image_scores import psnr
from setpoint.restoration.operators import as_operator

PRIORS = """
import torch
from tests.restoration.smooth import make  # noqa: F401  named by --prior

def negative(x):
    return 1 - x

def halves(x):
    return x[..., ::2]

def stopping():
    class Stopping(torch.nn.Module):
        shape, seed_shape, range = (1, 12, 12), (9,), (0.0, 1.0)
        def __init__(self):
            super().__init__()
            self.inner, self.calls = make(), 0
        def forward(self, z):
            self.calls += 1
            if self.calls > 8:
                raise KeyboardInterrupt
            return self.inner(z)
    return Stopping()

def number():
    return 3

def endless():
    prior = make()
    prior.range = (-float("inf"), float("inf"))
    return prior
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    """Clean images as npy and png, in the folder the command runs in."""
    truth = images(3)
    (tmp_path / "brought_priors.py").write_text(PRIORS)
    np.save(tmp_path / "clean.npy", truth.numpy())
    shades = (255 * truth).round().byte().numpy()
    (tmp_path / "pngs").mkdir()
    for at in range(3):
        Image.fromarray(shades[at, 0]).save(tmp_path / "pngs" / f"image{at}.png")
    np.savez(tmp_path / "two.npz", a=shades[:, 0], b=shades[:2, 0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return truth


@pytest.fixture
def undrawn(monkeypatch):
    """Folders without their sheet, which takes longer to draw than a small search."""
    monkeypatch.setattr(storage, "plot_sheet", lambda *_: Figure((1, 1)))


SMOOTH = ("--prior", "brought_priors:make")
QUICK = ("--iterations", 20)
SIMULATED = ("restore", "pngs", "--simulate", "--operator", "inpaint:0.5", *SMOOTH, *QUICK)
NOISE = ("--noise", "gaussian:0.02")


def test_simulate_restore_and_score(run, case, flat):
    result = run(*SIMULATED, *NOISE, "--method", "dmplug,tv", "--out", "run")
    assert (result.exit_code, result.stderr) == (0, "")
    said = flat(result)
    for words in (
        "Data pngs (clean, measured here): 3 images",
        "Noise gaussian:0.02 (in units of the range 0 to 1)",
        "oracle: the iterate picked by the truth, which nobody has; not a result",
        "Verdict ",
        "Written run",
    ):
        assert words in said, words
    assert max(map(len, result.stdout.splitlines())) <= 80
    told = json.loads(open("run/restoration.json").read())
    with np.load("run/restored.npz") as arrays:
        due = psnr(arrays["dmplug"], arrays["truth"])
        np.testing.assert_allclose(
            [i["psnr"] for i in told["methods"][0]["images"]], due.numpy(), rtol=1e-6
        )
        operator = as_operator("inpaint:0.5", shape=(1, 12, 12), batch=3)
        hidden = ~operator.observed.numpy()
        assert (arrays["measurement"][hidden] == 0).all()
        off = arrays["measurement"][~hidden] - arrays["truth"][~hidden]
        assert off.std() == pytest.approx(0.02, rel=0.2)
        np.testing.assert_allclose(arrays["truth"], case.numpy(), atol=0.51 / 255)
    assert Image.open("run/dmplug/image2.png").size == (12, 12)


def test_a_measurement_with_its_truth_beside(run, case):
    operator = as_operator("sr:2", shape=(1, 12, 12))
    np.save("y.npy", 255 * operator(case).numpy())
    np.save("x.npy", 255 * case.numpy())
    result = run(
        *("restore", "y.npy", "--operator", "sr:2", *SMOOTH, "--iterations", 300),
        *("--range", "0,255", "--truth", "x.npy", "--json"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert (told["images"], told["written"], told["noise"]) == (3, None, "unknown")
    method = told["methods"][0]
    assert method["psnr"][0] > 30  # 36 block means and 9 waves: the measurement determines them
    assert method["oracle_psnr"][0] >= method["psnr"][0]


@pytest.mark.parametrize(
    ("args", "count"),
    [
        (("pngs/image1.png",), 1),
        (("pngs", "--first", 2), 2),
        (("clean.npy", "--range", "0,1"), 3),
        (("two.npz", "--array", "b"), 2),
    ],
)
def test_kinds_of_files(run, case, args, count):
    source, *more = args
    result = run("restore", source, "--simulate", "--operator", "sr:2", *SMOOTH, "--noise", "none",
                 "--iterations", 3, *more, "--json")  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["images"] == count


def test_a_frame_makes_smaller_images_fit(run, case, undrawn):
    np.save("small.npy", case.numpy()[..., 2:-2, 2:-2])
    result = run(
        *("restore", "small.npy", "--range", "0,1", "--simulate", "--operator", "sr:2", *SMOOTH),
        *("--noise", "none", "--iterations", 3, "--pad", 2, "--out", "run"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["truth"][..., 2:-2, 2:-2], np.load("small.npy"))
        assert (arrays["truth"][..., :2, :] == 0).all()


def test_a_measurement_of_the_size_of_an_image_takes_a_frame_too(run, case, undrawn):
    operator = as_operator("box:4", shape=(1, 8, 8))
    y = operator(case[..., 2:-2, 2:-2]).numpy()
    np.save("small.npy", y)
    np.save("mask.npy", operator.observed[0, 0].numpy())
    args = (*SMOOTH, "--range", "0,1", "--iterations", 3, "--pad", 2, "--out", "run")
    result = run("restore", "small.npy", "--operator", "mask:mask.npy", *args)
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["measurement"][..., 2:-2, 2:-2], y)
        assert arrays["measurement"].shape == (3, 1, 12, 12)
    result = run("restore", "small.npy", "--operator", "sr:2", *args, "--force")
    assert result.exit_code == 2
    assert "--pad is for clean images and for measurements of their size" in result.stderr


def test_a_measurement_as_small_as_the_images_before_their_frame_takes_none(run, case, undrawn):
    small = np.load("clean.npy")[..., 3:9, 3:9]  # 6 × 6, as sr:2 of 12 × 12 is
    np.save("y.npy", small)
    args = ("restore", "y.npy", "--range", "0,1", "--operator", "sr:2", *SMOOTH, "--pad", 3)
    result = run(*args, "--truth", "y.npy", "--iterations", 3, "--out", "run")
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["measurement"], small)
        assert arrays["truth"].shape == (3, 1, 12, 12)


def test_masks_kernels_and_functions_of_ones_own(run, case, undrawn):
    mask = np.zeros((12, 12), np.uint8)
    mask[:, ::2] = 255
    Image.fromarray(mask).save("mask.png")
    np.save("kernel.npy", np.full((3, 3), 1 / 9))
    for spec, due in (
        ("mask:mask.png", case * torch.tensor(mask > 0)),
        ("kernel:kernel.npy", None),
        ("brought_priors:negative", 1 - case),
    ):
        result = run(
            *("restore", "clean.npy", "--range", "0,1", "--simulate", "--operator", spec, *SMOOTH),
            *("--noise", "none", "--iterations", 3, "--out", "run", "--force"),
        )
        assert (result.exit_code, result.stderr) == (0, ""), spec
        if due is not None:
            with np.load("run/restored.npz") as arrays:
                np.testing.assert_allclose(arrays["measurement"], due.numpy(), atol=1e-6)


def test_truth_and_measurement_in_one_file(run, case, undrawn):
    y = (0.5 * case + 0.25).numpy()
    np.savez("both.npz", measurement=y, truth=case.numpy())
    args = ("restore", "both.npz", "--array", "measurement", "--operator", "gaussian-blur:0.5",
            *SMOOTH, "--range", "0,1", "--truth", "both.npz", "--iterations", 3)  # fmt: skip
    result = run(*args, "--out", "run", "--truth-array", "truth")
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_allclose(arrays["truth"], case.numpy(), atol=1e-6)
        np.testing.assert_allclose(arrays["measurement"], y, atol=1e-6)
    result = run(*args)
    assert result.exit_code == 2
    assert "holds measurement, truth; say which, --truth-array NAME." in result.stderr


def test_truth_alone_in_a_file_needs_no_name(run, case):
    np.savez("both.npz", measurement=case.numpy(), other=case.numpy())
    np.savez("one.npz", clean=case.numpy())
    result = run("restore", "both.npz", "--array", "measurement", "--operator", "gaussian-blur:0.5",
                 *SMOOTH, "--range", "0,1", "--truth", "one.npz", "--iterations", 3)  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")


def test_one_mask_for_each_image(run, case, undrawn):
    masks = np.random.default_rng(1).random((3, 12, 12)) > 0.5
    np.save("masks.npy", masks)
    args = ("restore", "clean.npy", "--range", "0,1", "--operator", "mask:masks.npy", *SMOOTH)
    args = (*args, "--iterations", 3)
    for at, more in enumerate(((), ("--simulate", "--noise", "none"), ("--first", 2))):
        result = run(*args, *more, "--out", f"run{at}")
        assert (result.exit_code, result.stderr) == (0, "")
        with np.load(f"run{at}/restored.npz") as arrays:
            count = 2 if more[:1] == ("--first",) else 3
            due = case.numpy() * masks[:, None]
            np.testing.assert_allclose(arrays["measurement"], due[:count], atol=1e-6)
    for count, said in ((1, "1 image:"), (2, "2 images:")):
        np.save("clean.npy", case.numpy()[:count])
        result = run(*args)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"--operator mask:masks.npy holds 3 masks and IN {said}" in result.stderr


def test_a_mask_in_colour_is_a_sentence_about_the_mask(run, case):
    Image.fromarray(np.full((12, 12, 3), 255, np.uint8)).save("mask.png")
    result = run("restore", "pngs", "--operator", "mask:mask.png", *SMOOTH)
    assert result.exit_code == 2
    assert "it is a colour image, and a mask is a grey one" in result.stderr


def test_a_colour_png_is_not_three_grey_ones(run, case):
    Image.fromarray(np.full((12, 12, 3), 99, np.uint8)).save("rgb.png")
    for more in ((), ("--simulate", "--noise", "none")):
        result = run("restore", "rgb.png", "--operator", "gaussian-blur:0.5", *SMOOTH, *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "it is a colour image, and the prior makes grey ones" in result.stderr


def test_a_prior_without_ends_takes_floats_as_they_stand(run, case, undrawn):
    endless = ("--operator", "gaussian-blur:0.5", "--prior", "brought_priors:endless")
    args = ("restore", "clean.npy", *endless, "--iterations", 3)
    result = run(*args, "--noise", "gaussian:0.02", "--out", "run")
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["measurement"], case.numpy())
    told = json.loads(open("run/restoration.json").read())
    assert (told["range"], told["noise"]) == (["-inf", "inf"], "gaussian:0.02")
    for source, more, said in (
        ("clean.npy", ("--range", "0,1"), "in the prior's own units, as .npy or .npz, and leave "),
        ("pngs", (), "has the range 0,255, and the prior's, -inf,inf, has no ends"),
        ("clean.npy", ("--truth", "clean.npy"), "a score needs two ends"),
        ("clean.npy", ("--simulate", "--noise", "none"), "or leave --simulate out"),
        ("clean.npy", ("--pad", 1), "says nothing of how dark a frame is: leave --pad out"),
    ):
        result = run("restore", source, *endless, *more)
        assert (result.exit_code, result.stdout) == (2, ""), more
        assert said in result.stderr


def test_what_a_drawn_mask_hides_is_not_read(run, case, undrawn, flat):
    args = ("--operator", "inpaint:0.5", *SMOOTH, *QUICK, "--range", "0,1")
    clean = run("restore", "clean.npy", *args, "--out", "a")
    operator = as_operator("inpaint:0.5", shape=(1, 12, 12), batch=3)
    np.save("masked.npy", operator(case).numpy())
    masked = run("restore", "masked.npy", *args, "--out", "b")
    assert (clean.exit_code, masked.exit_code) == (0, 0)
    with np.load("a/restored.npz") as a, np.load("b/restored.npz") as b:
        np.testing.assert_array_equal(a["dmplug"], b["dmplug"])
    assert "Note The hidden pixels of inpaint:0.5 are drawn by --seed 0" in flat(clean)


def test_blind_deblurring_shows_its_kernel(run, case):
    result = run(
        *("restore", "clean.npy", "--range", "0,1", "--simulate", "--operator", "blind-blur:3"),
        *("--through", "gaussian-blur:0.5", *SMOOTH, "--noise", "none", "--iterations", 5),
        *("--out", "run"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        assert arrays["dmplug_kernel"].shape == (3, 1, 3, 3)
        np.testing.assert_allclose(arrays["dmplug_kernel"].sum((1, 2, 3)), 1, rtol=1e-5)
    assert "dmplug: kernel" in open("run/restoration.html", encoding="utf-8").read()


def test_nearest_training_image(run, case):
    result = run(*SIMULATED, "--noise", "none", "--method", "nearest", "--training", "clean.npy",
                 "--range", "0,1", "--json")  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["methods"][0]["psnr"][0] > 50  # the image itself is among them


def test_ctrl_c_keeps_the_best_so_far(run, case, undrawn):
    args = ("restore", "pngs", "--simulate", "--operator", "sr:2", "--noise", "none")
    result = run(
        *args, "--prior", "brought_priors:stopping", "--method", "dmplug,tv", "--out", "run"
    )
    assert result.exit_code == 130, result.output
    assert 'it is written to "run".\n' in result.stderr
    assert "Stopped          tv not begun" in result.stdout
    told = json.loads(open("run/restoration.json").read())
    assert (told["stopped"], [m["method"] for m in told["methods"]]) == (True, ["dmplug"])
    assert told["asked"] == ["dmplug", "tv"]


def test_the_bar_tells_method_step_and_residual(monkeypatch):
    events = []

    class Bar(ProgressBar):
        shown = True

        def show(self, *event):
            events.append(event)

    def compare(*_, callback, **__):
        callback("dmplug", 5, 20, torch.tensor([0.01, 0.07]))  # their mean is 0.2 squared
        callback("dmplug", 6, 20, torch.tensor([9.0, 9.0]))  # too soon after the last look
        callback("tv", 1, None, torch.tensor([0.25]))
        return "restored"

    monkeypatch.setattr(command, "ProgressBar", Bar)
    monkeypatch.setattr(importlib.import_module("setpoint.restoration.compare"), "compare", compare)
    times = iter([10.0, 10.1, 10.3])
    monkeypatch.setattr(command.time, "monotonic", lambda: next(times))
    given = SimpleNamespace(y=0, operator=0, prior=0, truth=0, noise=0, training=0)
    assert command._compared(given, ["dmplug", "tv"], None, 0, quiet=False) == "restored"
    assert events == [
        ("dmplug 5/20, residual 0.2", 0.25, 2),
        ("tv 1, residual 0.5", 1.0, 2),
        ("done", 2, 2),
    ]


MISTAKES = {
    "no file": (("no.png",), 'there is no file "no.png"'),
    "kind": (("brought_priors.py",), "is not read: give .png, .npy, .npz or a folder of .png"),
    "range": (("clean.npy",), "state it: --range LOW,HIGH, such as 0,1 or -1,1 or 0,255."),
    "no range": (("pngs", "--range", "0,1"), "--range is not needed:"),
    "range text": (("pngs", "--range", "0..1"), "--range is two numbers, LOW,HIGH, such as 0,1"),
    "beyond": (("clean.npy", "--range", "0,0.5"), "beyond its range 0,0.5"),
    "array": (("two.npz",), "holds a, b; say which, --array NAME."),
    "no array": (("two.npz", "--array", "c"), 'holds a, b and no "c"'),
    "truth array": (("pngs", "--truth-array", "a"), "--truth-array is for the file of --truth"),
    "training array": (("pngs", "--training-array", "a"), "--training-array is for the file of"),
    "which training": (
        ("pngs", "--method", "nearest", "--training", "two.npz"),
        "holds a, b; say which, --training-array NAME.",
    ),
    "size": (("pngs", "--pad", "1"), "images of 1 × 10 × 10 are due here"),
    "operator": (("pngs", "--operator", "inpant:0.7"), "did you mean inpaint?"),
    "numbers": (("pngs", "--operator", "sr:x"), "holds something that is no number"),
    "import": (("pngs", "--operator", "no_such:fun"), 'cannot import "no_such"'),
    "prior": (("pngs", "--prior", "mnst"), 'Did you mean "mnist"?'),
    "prior kind": (("pngs", "--prior", "brought_priors:number"), "is a int that lacks shape"),
    "noise": (("pngs", "--noise", "gaussian:-1"), "-1"),
    "noise kind": (("pngs", "--noise", "gausian:1"), "gaussian"),
    "no noise": (("pngs", "--noise", "unknown"), "--simulate needs to know with what noise"),
    "method": (("pngs", "--method", "dmplg"), 'there is no method "dmplg"; did you mean dmplug?'),
    "training": (("pngs", "--method", "nearest"), "say --training FILE."),
    "no nearest": (("pngs", "--training", "clean.npy"), "--training is for the method nearest"),
    "first": (("pngs", "--first", "0"), "--first is a whole number, 1 or more; got 0."),
    "iterations": (("pngs", "--iterations", "0"), "--iterations is a whole number, 1 or more"),
    "device": (("pngs", "--device", "cube"), "--device cube cannot be used"),
    "truth": (("pngs", "--truth", "pngs"), "with --simulate IN is the truth"),
    "blind": (("pngs", "--operator", "blind-blur:3"), "such as --through gaussian-blur:1.5."),
    "out": (("pngs", "--out", "clean.npy"), '"clean.npy" is a file; name a folder.'),
    "other files": (("pngs", "--out", "pngs"), "holds other files; name a new folder."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(run, case, tmp_path, name):
    before = {p.name for p in tmp_path.iterdir()}
    (source, *args), said = MISTAKES[name]
    defaults = {"--operator": "sr:2", "--prior": SMOOTH[1], "--noise": "none", "--out": "run"}
    for option, value in defaults.items():
        args += [] if option in args else [option, value]
    result = run("restore", source, "--simulate", *args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert said in result.stderr
    assert {p.name for p in tmp_path.iterdir()} - before <= {"__pycache__"}


def test_options_of_a_simulation_are_for_it_alone(run, case):
    for more, said in (
        (("--hide-noise",), "--hide-noise belongs to --simulate"),
        (("--through", "sr:2"), "--through belongs to --simulate"),
        (("--noise", "none"), "--noise none belongs to --simulate"),
    ):
        result = run("restore", "pngs", "--operator", "inpaint:0.5", *SMOOTH, *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr


def test_a_measurement_that_is_no_image_is_taken_as_it_stands(run, case):
    operator = as_operator("phase:2", shape=(1, 12, 12))
    np.save("y.npy", operator(case).numpy())
    args = ("restore", "y.npy", "--operator", "phase:2", *SMOOTH, "--iterations", 3)
    assert run(*args).exit_code == 0
    for more in ((), ("--truth", "pngs")):  # bytes say their range
        result = run(*args, "--range", "0,1", *more)
        assert result.exit_code == 2
        assert "--range is not needed: phase:2 does not give an image" in result.stderr
    np.save("y.npy", operator(case).byte().numpy())
    result = run(*args)
    assert result.exit_code == 2
    assert "does not give an image, and the range of" in result.stderr


def test_a_truth_of_floats_beside_what_is_no_image(run, case, undrawn):
    operator = as_operator("phase:2", shape=(1, 12, 12))
    np.save("y.npy", operator(case).numpy())
    np.save("x.npy", 255 * case.numpy())
    args = ("restore", "y.npy", "--operator", "phase:2", *SMOOTH, "--iterations", 3)
    result = run(*args, "--truth", "x.npy")
    assert result.exit_code == 2
    assert "state it: --range LOW,HIGH" in result.stderr
    result = run(*args, "--truth", "x.npy", "--range", "0,255", "--out", "run")
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("run/restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["measurement"], np.load("y.npy"))
        np.testing.assert_allclose(arrays["truth"], case.numpy(), atol=1e-6)


def test_a_run_is_replaced_by_force_only(run, case, undrawn):
    quick = (*SIMULATED, *NOISE, "--iterations", 2, "--first", 1, "--out", "run")
    assert run(*quick).exit_code == 0
    again = run(*quick)
    assert again.exit_code == 2
    assert '"run" holds a restoration; say --force to replace it.' in again.stderr
    assert run(*quick, "--force").exit_code == 0
