"""Half of the pixels are gone: a prior of one's own, three methods, what they selected, a folder.

python examples/restoration_digits.py

The images are the digits that scikit-learn carries, 8 × 8 pixels. The prior is the simplest there
is, x = mean + W z with W from principal components: a prior is any differentiable map of seeds.
"""

import tempfile

import torch
from sklearn.datasets import load_digits

import setpoint as sp


def digits() -> torch.Tensor:
    """Images (n, 1, 8, 8) between 0 and 1."""
    return torch.tensor(load_digits().images[:, None] / 16, dtype=torch.float32)


def principal(images: torch.Tensor, count: int = 40) -> sp.restoration.LinearPrior:
    """The map z -> mean + W z, with the covariance of the images in their first directions."""
    flat = images.flatten(1)
    mean = flat.mean(0)
    _, scale, right = torch.linalg.svd(flat - mean, full_matrices=False)
    matrix = right[:count].T * (scale[:count] / len(flat) ** 0.5)
    return sp.restoration.LinearPrior(matrix, mean, (1, 8, 8), range=(0.0, 1.0))


def main() -> None:
    """Learn from the first 1,500 digits, restore some of the rest."""
    images = digits()
    known, truth = images[:1500], images[1500:1506]
    prior = principal(known)
    operator = sp.restoration.as_operator("inpaint:0.5", shape=prior.shape, batch=len(truth))
    noise = sp.restoration.as_noise("gaussian:0.05")
    y = noise.add(operator(truth), 0, observed=operator.observed)

    print("=== one method")
    found = sp.restoration.restore(y, operator, prior, noise=noise, method="constrained")
    print(found.status)
    print(f"image 0: iterate {int(found.chosen[0])}, because {found.why[0]}")

    print("=== several, and the truth for their scores")
    compared = sp.restoration.compare(
        y, operator, prior, ["constrained", "tv", "nearest"], truth, noise=noise, training=known
    )
    print(compared)
    with tempfile.TemporaryDirectory() as folder:
        place = compared.save(f"{folder}/run")
        print("files:", *sorted(p.name for p in place.iterdir()))


if __name__ == "__main__":
    main()
