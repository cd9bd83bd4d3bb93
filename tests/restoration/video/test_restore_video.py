"""Video: warping and its error by closed forms, seeds of low rank as principal components."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from setpoint._core.errors import SetpointError
from setpoint.restoration.operators import as_operator
from setpoint.restoration.priors.prior import Generator
from setpoint.restoration.video import restore_video, warp, warping_error
from setpoint.restoration.video.flow_warp import consistent, inside
from setpoint.restoration.video.frame_seeds import on_shell, start_seeds
from setpoint.restoration.video.optical_flow import as_estimator, motion, opencv_flow, refined

F64 = torch.float64


def drawn(*shape, seed=0, dtype=F64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def uniform(dx, dy, high, wide, lead=(), dtype=F64):
    """The same flow at every pixel."""
    return torch.tensor([dx, dy], dtype=dtype)[:, None, None].expand(*lead, 2, high, wide)


# ---- warp ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize(("dx", "dy"), [(0, 0), (1, 0), (0, -2), (3, 2), (-1, 4)])
def test_whole_shifts_are_exact(dtype, dx, dy):
    x = drawn(3, 2, 7, 9, dtype=dtype)
    flow = uniform(dx, dy, 7, 9, (3,), dtype)
    here = inside(flow).expand_as(x)
    moved = torch.roll(x, (-dy, -dx), (-2, -1))
    assert torch.equal(warp(x, flow)[here], moved[here])
    assert int(here.sum()) == 6 * (7 - abs(dy)) * (9 - abs(dx))


@settings(max_examples=20, deadline=None)
@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-2, 2), st.floats(-2, 2), st.integers(0, 1000))
def test_a_ramp_is_read_exactly_between_pixels(a, b, dx, dy, seed):
    rows, columns = torch.meshgrid(
        torch.arange(6, dtype=F64), torch.arange(5, dtype=F64), indexing="ij"
    )
    ramp = (a * columns + b * rows + 1)[None]
    flow = uniform(dx, dy, 6, 5) + 0.5 * drawn(2, 6, 5, seed=seed)  # other at every pixel
    wanted = a * (columns + flow[0]) + b * (rows + flow[1]) + 1
    here = inside(flow)[0]
    torch.testing.assert_close(warp(ramp, flow)[0][here], wanted[here], atol=1e-12, rtol=0)


def test_warp_is_scipys_interpolation():
    x, flow = drawn(4, 3, 8, 6), 3 * drawn(4, 2, 8, 6, seed=1)
    rows, columns = np.mgrid[:8, :6].astype(float)
    made = warp(x, flow).numpy()
    for image, f, got in zip(x.numpy(), flow.numpy(), made, strict=True):
        for channel, there in zip(image, got, strict=True):
            wanted = map_coordinates(
                channel, [rows + f[1], columns + f[0]], order=1, mode="nearest"
            )
            np.testing.assert_allclose(there, wanted, atol=1e-12)


def test_slopes_of_warp():
    x, flow = drawn(2, 1, 4, 3).requires_grad_(), (1.3 * drawn(2, 2, 4, 3, seed=3)).requires_grad_()
    assert torch.autograd.gradcheck(warp, (x, flow))


def test_one_pixel_wide():
    x = drawn(1, 1, 1, 4)
    torch.testing.assert_close(warp(x, uniform(0.0, 5.0, 1, 4, (1,))), x)


def test_there_and_back():
    forth = uniform(1.0, -0.5, 6, 6, (2,))
    assert bool(consistent(forth, -forth).all())
    assert not bool(consistent(forth, forth).any())
    half = -forth.clone()
    half[..., :3] = 4.0  # another surface comes from the left
    assert bool(consistent(forth, half)[..., 3:5].all())
    assert not bool(consistent(forth, half)[..., :2].any())


def test_warping_error_by_loops():
    frames, flow = drawn(2, 3, 2, 5, 4), drawn(2, 2, 2, 5, 4, seed=1)
    valid = drawn(2, 2, 1, 5, 4, seed=2) > -0.5
    for clip in range(2):
        total, count = 0.0, 0
        for t in range(2):
            for row in range(5):
                for column in range(4):
                    dx, dy = flow[clip, t, :, row, column].tolist()
                    out = not (0 <= row + dy <= 4 and 0 <= column + dx <= 3)
                    if out or not valid[clip, t, 0, row, column]:
                        continue
                    for channel in range(2):
                        there = map_coordinates(
                            frames[clip, t + 1, channel].numpy(),
                            [[row + dy], [column + dx]],
                            order=1,
                        )
                        total += float(frames[clip, t, channel, row, column] - there[0]) ** 2
                        count += 1
        got = warping_error(frames, flow, valid)[clip]
        assert float(got) == pytest.approx(total / count, abs=1e-12)


def test_a_clip_that_moves_with_its_flow_has_no_error():
    wide = drawn(1, 6, 12)
    frames = torch.stack([wide[..., 4 - t : 10 - t] for t in range(4)])  # one pixel right a frame
    flow = uniform(1.0, 0.0, 6, 6, (3,))
    assert float(warping_error(frames, flow)) == 0.0
    assert float(warping_error(frames, torch.zeros_like(flow))) > 0.5


# ---- seeds ---------------------------------------------------------------------------------------


def test_seeds_are_shared_of_low_rank_and_on_the_shell():
    start = {"semantic": True, "rank": 2, "shell": True, "seed": 3, "like": drawn(1)}
    seeds = start_seeds((2, 6, 30), free=True, **start)
    with torch.no_grad():
        seeds.own.copy_(0.1 * drawn(2, 6, 30))
        seeds.shared.mul_(3.0)
    z, slack = seeds()
    torch.testing.assert_close(z.norm(dim=-1), torch.full((2, 6), 30.0, dtype=F64).sqrt())
    torch.testing.assert_close(slack, seeds.own.norm(dim=-1).square().sum(1) / (6 * 30))
    beyond = seeds.rows() - seeds.own - seeds.shared
    assert torch.linalg.matrix_rank(beyond).tolist() == [2, 2]
    seeds.settle()
    torch.testing.assert_close(seeds()[0], z)
    torch.testing.assert_close(seeds.rows().square().mean((1, 2)), torch.ones(2, dtype=F64))
    alone, both = (start_seeds((n, 6, 30), free=False, **start)()[0] for n in (1, 2))
    assert torch.equal(alone, both[:1])


# ---- known answers: x = W z with orthonormal columns, A x = x ------------------------------------


def linear(columns=5, seed=0):
    basis = torch.linalg.qr(drawn(16, 16, seed=seed))[0][:, :columns]
    prior = Generator(
        lambda z: (z @ basis.T).reshape(-1, 1, 4, 4),
        shape=(1, 4, 4),
        seed_shape=(columns,),
        range=(-20.0, 20.0),
    )
    return prior, basis


PLAIN = {"shell": False, "rate": 0.05, "iterations": 400, "patience": 400, "warmup": 0}


@pytest.mark.parametrize("rank", [0, 2])
def test_low_rank_is_principal_components(rank):
    """The best s + U V for A = identity is the mean and the first components of the frames."""
    prior, basis = linear()
    y = drawn(2, 6, 1, 4, 4, seed=1)
    found = restore_video(y, lambda x: x, prior, pixel=False, rank=rank, **PLAIN)
    for clip, frames in zip(y, found.frames, strict=True):
        seeds = clip.reshape(6, 16) @ basis
        u, s, v = torch.linalg.svd(seeds - seeds.mean(0), full_matrices=False)
        wanted = (seeds.mean(0) + (u[:, :rank] * s[:rank]) @ v[:rank]) @ basis.T
        torch.testing.assert_close(frames.reshape(6, 16), wanted, atol=1e-4, rtol=0)


MORE = {"iterations": 800, "patience": 800}


@pytest.mark.parametrize("rank", [0, 1])
def test_what_is_beyond_the_rank_is_shrunk(rank):
    """Σ‖c_t − s − l_t − e_t‖²/(16 T) + b Σ‖e_t‖²/(5 T): s + l as above, e by 5/(5 + 16 b)."""
    prior, basis = linear()
    y, b = drawn(5, 1, 4, 4, seed=2), 0.7
    found = restore_video(y, lambda x: x, prior, pixel=False, rank=rank, slack=b, **PLAIN | MORE)
    seeds = y.reshape(5, 16) @ basis
    u, s, v = torch.linalg.svd(seeds - seeds.mean(0), full_matrices=False)
    low = seeds.mean(0) + (u[:, :rank] * s[:rank]) @ v[:rank]
    wanted = low + (seeds - low) * 5 / (5 + 16 * b)
    torch.testing.assert_close(found.seeds, wanted, atol=1e-4, rtol=0)


def test_pixel_consistency_solves_its_normal_equations():
    """With a whole shift the loss is quadratic in the pixels: solved directly beside it."""
    prior, _ = linear(16)
    y, a = drawn(3, 1, 4, 4, seed=4), 0.8
    flow = uniform(1.0, 0.0, 4, 4, (2,))
    found = restore_video(y, lambda x: x, prior, flow=flow, semantic=False, weight=a, **PLAIN)
    pairs = [  # pixel (t, r, c) and where it is in the next frame, three columns of four stay
        (16 * t + 4 * r + c, 16 * (t + 1) + 4 * r + c + 1)
        for t in range(2)
        for r in range(4)
        for c in range(3)
    ]
    quadratic = np.eye(48) / 48
    for p, q in pairs:
        row = np.zeros(48)
        row[p], row[q] = 1, -1
        quadratic += a / len(pairs) * np.outer(row, row)
    wanted = np.linalg.solve(quadratic, y.flatten().numpy() / 48)
    np.testing.assert_allclose(found.frames.flatten().numpy(), wanted, atol=1e-4)
    assert found.flow is not None
    assert found.valid.sum() == 24
    last = float(warping_error(found.frames, flow))
    assert float(found.history["warping"][-1, 0]) == pytest.approx(last, abs=1e-6)


def test_a_hidden_pixel_is_seen_in_the_next_frame():
    prior, _ = linear(16)
    still = drawn(1, 1, 4, 4, seed=5).expand(2, -1, -1, -1)
    mask = torch.ones(2, 1, 4, 4, dtype=F64)
    mask[0, 0, 1, 2] = 0
    flow = torch.zeros(1, 2, 4, 4, dtype=F64)
    found = restore_video(still * mask, lambda x: x * mask, prior, flow=flow, slack=0.0, **PLAIN)
    torch.testing.assert_close(found.frames, still, atol=1e-3, rtol=0)


# ---- flow ----------------------------------------------------------------------------------------


def test_flow_is_estimated_as_it_goes_and_smoothed():
    prior, _ = linear(16)
    y, seen = drawn(2, 3, 1, 4, 4), []

    def estimate(here, there):
        assert here.shape == there.shape == (4, 1, 4, 4)
        seen.append(here)
        return torch.full((4, 2, 4, 4), float(len(seen)), dtype=F64)

    found = restore_video(
        y, lambda x: x, prior, flow=estimate, warmup=10, refine=10, smoothing=0.75, iterations=25
    )
    assert len(seen) == 4  # at 10 and 20, both directions
    # forward estimates are 1 and 3
    torch.testing.assert_close(
        found.flow, torch.full((2, 2, 2, 4, 4), 0.75 * 1 + 0.25 * 3.0).double()
    )
    assert float(found.history["warping"][:10].abs().max()) == 0.0


def test_a_given_mask_is_kept_when_flow_is_refined():
    forth, mask = torch.zeros(1, 1, 2, 4, 4), torch.ones(1, 1, 1, 4, 4, dtype=torch.bool)
    mask[..., 0] = False
    held = motion(forth, None, mask)
    after = refined(held, torch.zeros(1, 2, 1, 4, 4), lambda a, b: torch.ones(1, 2, 4, 4), 0.5)
    assert float(after.forward.mean()) == 0.5
    assert float(after.backward.mean()) == 1.0
    assert not bool(after.valid[..., 0].any())


def test_without_opencv_a_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    prior, _ = linear()
    with pytest.raises(SetpointError, match=r"pip install opencv-python-headless.*pixel=False"):
        restore_video(drawn(2, 1, 4, 4), lambda x: x, prior)


@pytest.mark.parametrize("kind", ["dis", "farneback"])
def test_opencv_finds_a_shift(kind):
    pytest.importorskip("cv2")
    rows, columns = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")

    def blob(dx, dy):
        far = (columns - 15 - dx) ** 2 + 2 * (rows - 16 - dy) ** 2
        return 2 * torch.exp(-far / 40)[None, None] - 1

    found = opencv_flow(blob(0, 0), blob(1.3, -0.7), (-1.0, 1.0), kind)
    middle = found[0, :, 12:20, 11:19].mean((1, 2))
    torch.testing.assert_close(middle, torch.tensor([1.3, -0.7]), atol=0.15, rtol=0)


# ---- the run -------------------------------------------------------------------------------------


def squash():
    """A nonlinear prior, 1×4×4."""
    mix = drawn(16, 16, seed=8) / 4
    return Generator(
        lambda z: torch.sigmoid(z.flatten(1) @ mix.to(z.dtype)).reshape(-1, 1, 4, 4),
        shape=(1, 4, 4),
        range=(0.0, 1.0),
    )


def test_the_selected_iterate_is_that_of_least_variance():
    y = torch.rand(3, 4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    found = restore_video(
        y,
        lambda x: x,
        squash(),
        pixel=False,
        rank=1,
        window=5,
        patience=30,
        trail=1,
        iterations=150,
    )
    k = len(found.history["loss"])
    assert found.trail.shape == (k, 3, 4, 1, 4, 4)
    for clip, step in enumerate(found.chosen.tolist()):
        tail = found.history["variance"][: step + 30 + 1, clip]
        assert int(tail.argmin()) == step
        span = found.trail[step - 4 : step + 1, clip]
        spread = (span - span.mean(0)).square().mean()
        assert float(tail[step]) == pytest.approx(float(spread), rel=1e-3)
        torch.testing.assert_close(found.frames[clip], found.trail[step, clip])
        gap = (found.frames[clip] - y[clip]).square().flatten(1).mean(1).sqrt()
        torch.testing.assert_close(found.residual[clip], gap)
    again = squash()(found.seeds.flatten(0, 1)).unflatten(0, (3, 4))
    torch.testing.assert_close(again, found.frames)
    assert found.frames.dtype == torch.float32


def test_clips_do_not_touch_each_other():
    y = torch.rand(3, 4, 1, 4, 4, generator=torch.Generator().manual_seed(1), dtype=F64)
    flow = 0.4 * drawn(3, 3, 2, 4, 4)
    options = {"iterations": 40, "rank": 2, "window": 5}
    every = restore_video(y, lambda x: x, squash(), flow=flow, **options)
    first = restore_video(y[0], lambda x: x, squash(), flow=flow[0], **options)
    torch.testing.assert_close(first.frames, every.frames[0])
    assert int(first.chosen) == int(every.chosen[0])
    assert first.residual.shape == (4,)


def test_the_best_of_several_starts_is_taken():
    valleys = Generator(  # for y = 1: x = 1 at z = 1, and x = 0.7 at z = −1
        lambda z: torch.where(z > 0, 1 - (z - 1) ** 2, 0.7 - (z + 1) ** 2).reshape(-1, 1, 1, 1),
        shape=(1, 1, 1),
        seed_shape=(1,),
        range=(-50.0, 50.0),
    )
    y = torch.ones(6, 2, 1, 1, 1, dtype=F64)
    options = {"pixel": False, "rank": 0, "shell": False, "iterations": 300, "rate": 0.02}
    one, several = (restore_video(y, lambda x: x, valleys, starts=n, **options) for n in (1, 8))
    ends = one.frames.flatten(1).mean(1)
    assert 0 < int((ends - 0.7).abs().lt(0.05).sum()) < 6, "a single start ends in either valley"
    torch.testing.assert_close(several.frames, y, atol=1e-2, rtol=0)


def test_a_clip_of_several_starts_is_one_of_them():
    """Flow, masks of each image, seeds, history and trail are those of the start that was taken."""
    y = torch.rand(2, 3, 1, 4, 4, generator=torch.Generator().manual_seed(1), dtype=F64)
    flow = 0.4 * drawn(2, 2, 2, 4, 4)
    hide = as_operator("inpaint:0.5", shape=(1, 4, 4), seed=1, batch=6)
    given = {"flow": flow, "iterations": 120, "window": 5, "trail": 1, "seed": 2, "rank": 1}
    found = restore_video(
        hide(y.flatten(0, 1)).unflatten(0, (2, 3)), hide, squash(), starts=3, **given
    )
    assert found.history["loss"].shape == (len(found.trail), 2)
    assert found.settings["starts"] == 3
    for clip, step in enumerate(found.chosen.tolist()):
        assert "of 3 starts the one of least loss" in found.why[clip]
        torch.testing.assert_close(found.trail[step, clip], found.frames[clip])
    again = squash()(found.seeds.flatten(0, 1))
    torch.testing.assert_close(again, found.frames.flatten(0, 1))
    gap = (again - y.flatten(0, 1))[hide.observed.expand(6, 1, 4, 4) > 0]
    torch.testing.assert_close(
        (found.residual.flatten().square() * hide.observed.flatten(1).sum(1)).sum(),
        gap.square().sum(),
    )
    torch.testing.assert_close(found.flow, flow)


def test_a_blind_operator_has_one_unknown_for_all_frames_of_a_clip():
    """y_t = g (p + c_t w) with p ⟂ w known: the gain g of the clip and every c_t are found."""

    class Gain:
        def unknowns(self, batch, like):
            return torch.ones(batch, 1, dtype=like.dtype)

        def __call__(self, x, unknowns):
            return x * unknowns[:, :, None, None]

    p, w = torch.linalg.qr(drawn(16, 2, seed=9))[0].T.reshape(2, 1, 4, 4) * 4
    prior = Generator(
        lambda z: p + z[:, :, None, None] * w, shape=(1, 4, 4), seed_shape=(1,), range=(-20, 20)
    )
    gains = torch.tensor([0.5, 1.5], dtype=F64)[:, None]
    places = torch.tensor([[0.2, -0.4, 0.9], [1.1, 0.3, 0.0]], dtype=F64)
    truth = p + places[..., None, None, None] * w
    found = restore_video(
        gains[..., None, None, None] * truth, Gain(), prior, pixel=False, slack=0.0, **PLAIN
    )
    torch.testing.assert_close(found.unknowns, gains, atol=1e-3, rtol=0)
    torch.testing.assert_close(found.frames, truth, atol=1e-2, rtol=0)


def test_an_operator_by_name():
    y = torch.rand(2, 3, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    found = restore_video(y, "sr:2", squash(), pixel=False, iterations=120, window=5)
    means = torch.nn.functional.avg_pool2d(found.frames.flatten(0, 1), 2).unflatten(0, (2, 3))
    gap = (means - y).square().flatten(2).mean(2).sqrt()
    torch.testing.assert_close(found.residual, gap)


def test_an_interruption_gives_the_best_so_far():
    def stop(step, steps, residual):
        assert (steps, residual.shape) == (100, (1,))
        if step == 30:
            raise KeyboardInterrupt

    y = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    found = restore_video(
        y, lambda x: x, squash(), pixel=False, window=5, iterations=100, callback=stop
    )
    assert found.interrupted
    assert "iteration 30" in found.status
    assert len(found.history["loss"]) == 31
    assert int(found.chosen) <= 30


def test_a_prior_with_parameters_is_left_as_it_is():
    network = torch.nn.Linear(16, 16)
    prior = Generator(
        lambda z: torch.sigmoid(network(z.flatten(1))).reshape(-1, 1, 4, 4),
        shape=(1, 4, 4),
        range=(0.0, 1.0),
    )
    y = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = restore_video(y, lambda x: x, prior, pixel=False, iterations=30, window=5)
    assert network.weight.grad is None
    assert float(found.history["loss"][-1]) < 0.5 * float(found.history["loss"][0])
    assert not found.frames.requires_grad


GOOD = torch.full((3, 1, 4, 4), 0.5)
STILL = torch.zeros(2, 2, 4, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"flow": torch.zeros(3, 2, 4, 4)}, r"flow is \(3, 2, 4, 4\); wanted \(1, 2, 2, 4, 4\)"),
        ({"flow": STILL / 0}, "not finite"),
        ({"flow": STILL, "valid": torch.ones(2, 2, 4, 4)}, "valid is"),
        ({"flow": "raft"}, "'raft' is not known"),
        ({"flow": lambda a, b: a, "refine": 1}, r"flow estimator gives \(2, 1, 4, 4\)"),
        ({"flow": lambda a, b: STILL / 0, "refine": 1}, "not finite"),
        ({"flow": lambda a, b: STILL, "refine": 0}, "nothing to warp with"),
        ({"rank": -1}, "rank=-1 must be a whole number"),
        ({"starts": 0}, "starts=0 must be a whole number"),
        ({"starts": 1.5}, "starts=1.5 must be a whole number"),
        ({"weight": -1.0}, "weight is a number"),
        ({"rate": 0.0}, "rate is a number above 0"),
        ({"smoothing": 1.0}, "smoothing"),
        ({"iterations": 0}, "iterations=0 must be a whole number"),
        ({"y": GOOD[:1]}, "two frames or more"),
        ({"y": GOOD[0]}, "the operator makes"),
        ({"y": GOOD[None, None]}, "neither one clip|the operator makes"),
        ({"y": GOOD.long()}, "floats"),
    ],
)
def test_bad_input_is_a_sentence(given, words):
    given = {"flow": STILL, **given}
    y = given.pop("y", GOOD)
    with pytest.raises(SetpointError, match=words):
        restore_video(y, lambda x: x, squash(), **{"iterations": 3, "warmup": 0, **given})


def test_an_operator_that_gives_no_numbers_is_told():
    y = GOOD.clone()
    with pytest.raises(SetpointError):
        restore_video(y, lambda x: x / 0, squash(), flow=STILL)


def test_a_named_estimator_is_checked_before_the_run():
    with pytest.raises(SetpointError, match="bounded range"):
        as_estimator("opencv", (-np.inf, np.inf))


def test_the_shell():
    rows = on_shell(drawn(3, 50))
    torch.testing.assert_close(rows.norm(dim=-1), torch.full((3,), 50.0).double().sqrt())
