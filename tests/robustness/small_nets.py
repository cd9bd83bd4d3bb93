"""Small networks with random weights for attacks to work on, and images in the box."""

import torch
from torch import nn


def network(dtype=torch.float64, seed=0, size=8, classes=4):
    """A two-layer network on 1×2×(size/2) images."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), nn.Linear(size, 24), nn.ReLU(), nn.Linear(24, classes))
    torch.set_rng_state(state)
    with torch.no_grad():
        for one in net.parameters():
            one.mul_(3.0)
    return net.to(dtype).eval()


def images(net, count=24, dtype=torch.float64, seed=0, size=8):
    """Uniform images and the network's own decisions."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 1, 2, size // 2, generator=draw, dtype=torch.float64).to(dtype)
    with torch.no_grad():
        return x, net(x).argmax(1)
