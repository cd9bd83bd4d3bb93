"""A goal under Lightning Fabric, with accumulation.

    python examples/fabric_loop.py        # needs: pip install 'setpoint[lightning]'

The loss is no part of the model: it stays outside of ``setup``, is moved to Fabric's device, and is
told how many calls make up a step.
"""

import torch
from data import network, rows
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp

PARTS = 4

fabric = Fabric(accelerator="auto", devices=1)
fabric.launch()
x, y = rows()
model = network()
model, optimiser = fabric.setup(model, torch.optim.Adam(model.parameters(), 3e-3))
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True))
loss = sp.GoalLoss("maximize f1", method="soft-set", accumulate=PARTS).to(fabric.device)

for _ in range(40):
    for i, (inputs, target) in enumerate(loader, start=1):
        with fabric.no_backward_sync(model, enabled=i % PARTS != 0):
            fabric.backward(loss(model(inputs), target) / PARTS)
        if i % PARTS == 0:
            optimiser.step()
            optimiser.zero_grad()

print(loss.recover())
