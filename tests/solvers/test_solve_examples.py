"""The examples of the solver run, and what they print beside the truth is equal to it."""

import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NUMBER = r"(-?\d+\.?\d*(?:e[-+]?\d+)?)"


def printed(name, capsys):
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"]()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["solve_rosenbrock", "solve_sphere", "solve_dictionary", "solve_fused_lasso"],
)
def test_an_example_finds_the_truth(name, capsys):
    out = printed(name, capsys)
    found, true = map(
        float,
        re.search(rf"^f = {NUMBER}, the truth .*?{NUMBER}( \(|$)", out, re.MULTILINE).groups()[:2],
    )
    assert found == pytest.approx(true, rel=1e-6), out
    violation, kkt = re.search(rf"violation {NUMBER}, kkt {NUMBER}: solved", out).groups()
    assert float(violation) <= 1e-8, out
    assert float(kkt) <= 1e-5, out


def test_robust_pca_is_proven_by_its_multipliers(capsys):
    out = printed("solve_robust_pca", capsys)
    found, least = re.search(rf"^f = {NUMBER}, proven to be no less than {NUMBER}", out).groups()
    assert float(found) == pytest.approx(float(least), rel=1e-6), out
    for what in ("rank", "spikes"):
        got, true = re.search(rf"^{what} (\d+), the truth (\d+)", out, re.MULTILINE).groups()
        assert got == true, out


def test_the_table_of_hock_and_schittkowski(capsys):
    rows = re.findall(
        rf"^hs(\d+) +{NUMBER} +{NUMBER} +{NUMBER}",
        printed("solve_hock_schittkowski", capsys),
        re.MULTILINE,
    )
    assert len(rows) == 12
    for _, found, published, violation in rows:
        assert float(found) == pytest.approx(float(published), rel=1e-6, abs=1e-6)
        assert float(violation) <= 1e-8


def test_the_perceptual_attack_keeps_its_distance_and_beats_a_penalty(capsys):
    out = printed("robustness_perceptual", capsys)
    lost, most = re.search(
        rf"constrained: (\d+) of \d+ lost; greatest distance {NUMBER}", out
    ).groups()
    penalty = max(map(int, re.findall(r"[\d.]+: (\d+)", out.split("by weight")[1])))
    assert float(most) <= 1 + 1e-6, out
    assert int(lost) > penalty, out
