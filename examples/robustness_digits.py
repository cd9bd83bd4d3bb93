"""How robust a network is: two norms, a promise to refute, an attack of one's own beside ours.

python examples/robustness_digits.py

The images are the digits that scikit-learn carries, 8 × 8 pixels.
"""

import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn

import setpoint as sp


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 1, 8, 8) between 0 and 1, and labels."""
    data = load_digits()
    return torch.tensor(data.images[:, None] / 16, dtype=torch.float32), torch.tensor(data.target)


def trained(x: torch.Tensor, y: torch.Tensor) -> nn.Sequential:
    """A small convolutional network."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 10),
    )
    adam = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(40):
        adam.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        adam.step()
    return net.eval()


def one_step(model, x, y, eps):
    """The fast gradient sign method (Goodfellow et al. 2015), as an attack of one's own."""
    point = x.clone().requires_grad_(True)
    loss = nn.functional.cross_entropy(model(point), y, reduction="sum")
    (slope,) = torch.autograd.grad(loss, point)
    return x + eps * slope.sign()


def main() -> None:
    """Train on the first 1,000 digits, attack on some of the rest."""
    x, y = digits()
    net = trained(x[:1000], y[:1000])
    x, y = x[1400:1430], y[1400:1430]

    print("=== l2")
    found = sp.robustness.evaluate(net, x, y, "l2", [0.3, 0.6])
    print(found)
    print(found.promise(0.8).sentence)

    print("=== linf, with an attack of one's own beside ours")
    found = sp.robustness.evaluate(net, x, y, "linf", 0.1, attacks=["auto", one_step])
    for ran in found.attacks:
        print(f"{ran.name}: beat {ran.won} of the {ran.tried} images it was run on")
    print(f"robust accuracy <= {found.robust_accuracy:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        print("files:", *sorted(p.name for p in found.save(folder).iterdir()))


if __name__ == "__main__":
    main()
