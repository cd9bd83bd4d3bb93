"""Physics objects of deepinv, as they are; skipped where deepinv is not installed."""

from importlib.util import find_spec

import pytest
import torch

from setpoint.restoration.measurement.input_checks import check
from setpoint.restoration.operators import as_operator
from setpoint.restoration.priors.prior import Generator

if find_spec("deepinv") is None:
    pytest.skip("deepinv is not installed", allow_module_level=True)
try:
    import torchvision  # noqa: F401
except RuntimeError:  # built for a GPU and without its own operators here: two names stand in
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
deepinv = pytest.importorskip("deepinv")

SHAPE = (1, 16, 16)


def physics(name):
    made, noise = deepinv.physics, deepinv.physics.GaussianNoise(0.1)
    if name == "inpainting":
        mask = torch.rand(SHAPE, generator=torch.Generator().manual_seed(0)) > 0.7
        return made.Inpainting(img_size=SHAPE, mask=mask.float(), noise_model=noise)
    if name == "downsampling":
        return made.Downsampling(img_size=SHAPE, factor=2, filter="gaussian", noise_model=noise)
    kernel = torch.ones(1, 1, 3, 3) / 9
    return made.BlurFFT(img_size=SHAPE, filter=kernel, noise_model=noise)


@pytest.mark.parametrize("name", ["inpainting", "downsampling", "blur"])
def test_physics_of_deepinv(name):
    given = physics(name)
    A = as_operator(given, shape=SHAPE)
    x = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(1), requires_grad=True)
    y = A(x)
    assert (y == A(x)).all()  # no noise
    assert not torch.equal(given(x), y)
    v = torch.rand(y.shape, generator=torch.Generator().manual_seed(2))
    (pulled,) = torch.autograd.grad(y, x, v)
    torch.testing.assert_close(A.adjoint(v, SHAPE), pulled, rtol=1e-4, atol=1e-5)
    prior = Generator(torch.sigmoid, shape=SHAPE, range=(0, 1))
    check(given(x), given, prior, 0.1)
    check(given(x), A, prior, None)
