"""Contact sheet, page and folder: what is shown is what was found, whole or not at all."""

import base64
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from tests.restoration.smooth import images, make

import setpoint as sp
from setpoint._core import files
from setpoint.restoration.compare import compare
from setpoint.restoration.contact_sheet import HIDDEN, as_shades, panels
from setpoint.restoration.operators import as_operator
from setpoint.restoration.storage import FILES, RestorationSetting, as_json


@pytest.fixture(scope="module")
def found():
    truth, prior = images(3), make()
    operator = as_operator("inpaint:0.5", shape=prior.shape, batch=3)
    return compare(operator(truth), operator, prior, ["dmplug", "tv"], truth, iterations=20)


SETTING = RestorationSetting("a <b>.png", "inpaint:0.5", "smooth", "none", ("one", "two", "three"))


def test_a_row_has_truth_measurement_and_methods(found):
    row = panels(found, 1)
    assert [p.title for p in row] == ["truth", "measurement", "dmplug", "tv"]
    np.testing.assert_allclose(row[0].shades[..., 0], found.truth[1, 0].numpy(), atol=1e-6)
    hidden = ~found.restored["tv"].operator.observed[1, 0].numpy()
    assert (row[1].shades[hidden] == HIDDEN).all()
    np.testing.assert_allclose(
        row[1].shades[~hidden][:, 1], found.measurement[1, 0].numpy()[~hidden], atol=1e-6
    )
    assert row[1].caption == f"{hidden.mean():.0%} hidden"
    assert row[2].caption == f"{float(found.evaluations['dmplug'].psnr[1]):.2f} dB"


def test_ranges_and_colours():
    shades = as_shades(np.array([[[-1.0, 0.0, 1.0, 9.0]]]), (-1.0, 1.0))
    np.testing.assert_allclose(shades[0], np.repeat([[0.0], [0.5], [1.0], [1.0]], 3, axis=1))
    colour = np.zeros((3, 1, 1))
    colour[2] = 1.0
    assert as_shades(colour, (0.0, 1.0))[0, 0].tolist() == [0, 0, 1]


def test_what_is_no_image_is_drawn_on_a_log_scale():
    truth, prior = images(1), make()
    operator = as_operator("phase:2", shape=prior.shape)
    phase = compare(operator(truth), operator, prior, ["dmplug"], iterations=3)
    panel = panels(phase, 0)[0]
    assert panel.caption == "sizes, log scale"
    assert panel.shades.shape == (24, 24, 3)
    assert panel.shades.max() == 1


def test_the_sheet_says_how_many_it_leaves_out(found):
    figure = found.plot(count=2)
    assert len(figure.axes) == 2 * 4
    assert "the first 2 of 3 images" in figure._supxlabel.get_text()
    figure.savefig(io.BytesIO(), format="png")


def test_complex_measurements_are_drawn_by_their_size(recwarn):
    prior, truth = make(), images(2)
    y = torch.fft.fft2(truth)
    found = compare(y, torch.fft.fft2, prior, ["dmplug"], iterations=2)
    panel = panels(found, 0)[0]
    assert panel.caption == "sizes, log scale"
    size = torch.log1p(y[0, 0].abs())
    np.testing.assert_allclose(panel.shades[..., 0], size / size.max(), atol=1e-6)
    assert not recwarn.list


def test_names_are_no_formulas(found):
    names = ("a$_$b", "$x", "$\\nothing$")
    figure = found.plot(names, count=2)
    figure.savefig(io.BytesIO(), format="png")
    drawn = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()]
    assert drawn == ["a$_$b", "$x"]
    texts = [figure._supxlabel]
    for ax in figure.axes:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label]
    assert not any(text.get_parse_math() for text in texts if text.get_text())


@pytest.mark.parametrize("box", [(-math.inf, math.inf), (0.0, math.inf)])
def test_a_range_without_ends_is_saved(tmp_path, box):
    truth, prior = images(2), make()
    prior.range = box
    operator = as_operator("inpaint:0.5", shape=prior.shape, batch=2)
    place = compare(operator(truth), operator, prior, ["dmplug"], iterations=3).save(tmp_path / "r")
    told = json.loads((place / "restoration.json").read_text())
    assert [float(end) for end in told["range"]] == list(box)
    page = (place / "restoration.html").read_text(encoding="utf-8")
    assert "and inf</dd>" in page
    shown = np.asarray(Image.open(place / "dmplug" / "0.png"))
    assert np.ptp(shown) > 0  # over the values that the images have


def test_a_folder(found, tmp_path):
    place = found.save(tmp_path / "run", setting=SETTING)
    assert {p.name for p in place.iterdir()} == {*FILES, "dmplug", "tv"}
    assert sorted(p.name for p in (place / "tv").iterdir()) == ["one.png", "three.png", "two.png"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]  # no temporary name is left
    with np.load(place / "restored.npz") as arrays:
        np.testing.assert_array_equal(arrays["dmplug"], found.restored["dmplug"].image.numpy())
        np.testing.assert_array_equal(arrays["truth"], found.truth.numpy())
        assert arrays["names"].tolist() == ["one", "two", "three"]
    shown = np.asarray(Image.open(place / "dmplug" / "two.png"))
    image = found.restored["dmplug"].image[1, 0].clamp(0, 1).numpy()
    assert np.abs(shown / 255.0 - image).max() <= 0.5 / 255 + 1e-6
    told = json.loads((place / "restoration.json").read_text())
    assert told == as_json(found, SETTING)
    first = told["methods"][0]
    assert [i["chosen"] for i in first["images"]] == found.restored["dmplug"].chosen.tolist()
    assert all(i["why"] for i in first["images"])
    assert first["status"] == found.restored["dmplug"].status
    assert first["psnr"][0] == pytest.approx(float(found.evaluations["dmplug"].psnr.mean()))


def test_the_page_stands_alone_and_labels_the_oracle(found, tmp_path):
    place = found.save(tmp_path / "run", setting=SETTING)
    text = (place / "restoration.html").read_text(encoding="utf-8")
    assert "a &lt;b&gt;.png" in text
    assert "<b>.png" not in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(pictures) == 3 * 4
    first = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[0]))).convert("L"))
    assert np.abs(first / 255.0 - found.truth[0, 0].numpy()).max() <= 0.5 / 255 + 1e-6
    assert '<th class="oracle">oracle PSNR</th>' in text
    assert "they are no results" in text
    for row in found.table():
        assert f"{row['psnr'][0]:.2f} ± {row['psnr'][1]:.2f}" in text
        assert row["status"] in text
    assert found.verdict() in text


def test_without_truth_there_is_no_score_on_the_page(tmp_path):
    truth, prior = images(1), make()
    operator = as_operator("sr:2", shape=prior.shape)
    bare = compare(operator(truth), operator, prior, ["dmplug"], iterations=3)
    text = (bare.save(tmp_path / "run") / "restoration.html").read_text(encoding="utf-8")
    assert "PSNR, dB" not in text
    assert "oracle PSNR" not in text
    assert "The truth is not known" in text


def test_a_folder_is_replaced_by_force_only_and_foreign_files_never(found, tmp_path):
    place = found.save(tmp_path / "run", setting=SETTING)
    with pytest.raises(sp.FileError, match="holds a restoration; say force to replace it"):
        found.save(place, setting=SETTING)
    (place / "sheet.png").write_bytes(b"old")
    found.save(place, setting=SETTING, force=True)
    assert (place / "sheet.png").read_bytes() != b"old"
    (place / "notes.txt").write_text("mine")
    with pytest.raises(sp.FileError, match="holds other files"):
        found.save(place, setting=SETTING, force=True)
    assert (place / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_the_old_folder_and_nothing_else(found, tmp_path, monkeypatch):
    place = found.save(tmp_path / "run", setting=SETTING)
    before = (place / "restoration.json").read_bytes()

    def fail(source, target):
        if str(target).endswith("run") and not str(source).endswith(".old"):
            raise OSError(28, "No space left on device")
        real(source, target)

    real = files.os.replace
    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(sp.FileError, match=r"No space left on device\. Nothing was written"):
        found.save(place, setting=replace(SETTING, seed=7), force=True)
    assert (place / "restoration.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_perfect_image_is_carried_by_json(found):
    perfect = {
        name: replace(e, psnr=torch.full_like(e.psnr, torch.inf))
        for name, e in found.evaluations.items()
    }
    told = as_json(replace(found, evaluations=perfect), SETTING)
    assert json.loads(json.dumps(told, allow_nan=False))["methods"][0]["psnr"] == ["inf", None]
    assert "have the same PSNR" in told["verdict"]
