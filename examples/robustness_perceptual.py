"""A perceptual attack: images that look alike to a feature network and are told apart wrongly.

    maximise the margin of a wrong class   subject to   ‖φ(x') − φ(x)‖₂ <= ε,  0 <= x' <= 1

φ are the activations of a small network, so that no projection onto the ball is known. Beside the
constrained solver: the same problem as a penalty, margin − w · distance, with several w, of which
an image is lost to any. One judge for both: the image is clipped
to the box, then the margin and the distance are measured.

python examples/robustness_perceptual.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from setpoint.robustness.attacks.attack_losses import margin
from setpoint.robustness.attacks.general_distance import general_max_loss

EPS, IMAGES = 0.25, 30
WEIGHTS = (1.0, 3.0, 10.0, 30.0)


def trained(seed, x, y):
    """A small convolutional network: its layers, two blocks of features and a head."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ELU()),
        nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ELU()),
        nn.Sequential(nn.Flatten(), nn.Linear(256, 10)),
    )
    optimiser = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(128):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval().requires_grad_(False)


def perceptual(net):
    """‖φ(x) − φ(x')‖₂, φ the activations of both blocks, each over the root of its size."""

    def distance(x, moved):
        total = 0.0
        for block in net[:2]:
            x, moved = block(x), block(moved)
            total = total + (x - moved).square().flatten(1).mean(1)
        return (total + 1e-12).sqrt() - 1e-6

    return distance


def by_penalty(net, x, y, distance, weight, steps=50):
    """Adam on −margin + w · distance: a first-order attack that trades one for the other."""
    moved = (x + 0.02 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(
        0, 1
    )
    moved.requires_grad_()
    optimiser = torch.optim.Adam([moved], 0.02)
    for _ in range(steps):
        loss = (weight * distance(x, moved) - margin(net(moved), y).clamp(max=0.01)).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            moved.clamp_(0, 1)
    return moved.detach()


def judged(net, x, y, distance, moved):
    """Which images are attacks: clipped to the box, wrongly told, and within ε."""
    moved = moved.clamp(0, 1)
    return (margin(net(moved), y) >= 0) & (distance(x, moved) <= EPS * (1 + 1e-6))


def main():
    """Attack, and print how many images are lost to each."""
    digits = load_digits()
    x = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
    y = torch.tensor(digits.target)
    net, eyes = trained(0, x[:1400], y[:1400]), trained(1, x[:1400], y[:1400])
    told = net(x[1400:]).argmax(1) == y[1400:]
    x, y, distance = x[1400:][told][:IMAGES], y[1400:][told][:IMAGES], perceptual(eyes)
    print(f"accuracy of the network {told.float().mean():.3f}; {len(x)} images it tells rightly")
    found = general_max_loss(net, x, y, distance, EPS, restarts=2, iterations=50)
    lost = judged(net, x, y, distance, found.x)
    most = float((distance(x, found.x) / EPS).max())
    print(f"constrained: {int(lost.sum())} of {len(x)} lost; greatest distance {most:.6f} ε")
    penalties = [judged(net, x, y, distance, by_penalty(net, x, y, distance, w)) for w in WEIGHTS]
    counts = {w: int(p.sum()) for w, p in zip(WEIGHTS, penalties, strict=True)}
    union = int(torch.stack(penalties).any(0).sum())
    print(f"penalty: {union} of {len(x)} lost to any of the weights; by weight {counts}")


if __name__ == "__main__":
    main()
