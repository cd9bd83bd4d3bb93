"""A goal in a loop of one's own: any loader, any optimiser, no sampler.

python examples/plain_loop.py
"""

import torch
from data import network, rows
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp

x, y = rows(4000)
model = network()
loss = sp.GoalLoss("maximize recall subject to precision >= 0.8")
keeper = sp.GoalKeeper(model, loss, x[2500:3250], y[2500:3250], patience=5)
optimiser = torch.optim.Adam(model.parameters(), 3e-3)
loader = DataLoader(TensorDataset(x[:2500], y[:2500]), batch_size=128, shuffle=True)

for _ in range(20):
    for inputs, target in loader:
        optimiser.zero_grad()
        loss(model(inputs), target).backward()
        optimiser.step()
    keeper.step()
    if keeper.stop:
        break

rule = keeper.finish()  # the model has its best weights now
print(loss.status())
print(rule.sentence())
with torch.no_grad():
    print(sp.evaluate(rule, y[3250:], model(x[3250:])))  # rows that nothing was chosen on
