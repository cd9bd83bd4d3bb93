"""Rows for the examples: 2,000 of them, 10 % positive."""

import torch


def rows(n: int = 2000, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (n, 8) and labels (n,)."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=generator) < 0.1).long()
    x = torch.randn(n, 8, generator=generator) + 1.2 * y[:, None]
    return x, y


def network(seed: int = 0) -> torch.nn.Module:
    """A small network with one output per row."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1), torch.nn.Flatten(0)
    )
