"""A goal in a loop of one's own: any loader, any optimiser, no sampler.

python examples/plain_loop.py
"""

import torch
from data import network, rows
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp

x, y = rows()
model = network()
goal = "maximize recall subject to precision >= 0.8"
loss = sp.GoalLoss(goal, method="costs")
optimiser = torch.optim.Adam(model.parameters(), 3e-3)
loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=128, shuffle=True)

for _ in range(20):
    for inputs, target in loader:
        optimiser.zero_grad()
        loss(model(inputs), target).backward()
        optimiser.step()

with torch.no_grad():
    scores = torch.sigmoid(model(x)).double().numpy()
labels = y.numpy()
rule = sp.tune(goal, labels[1500:1750], scores[1500:1750])
print(loss.recover())
print(rule.sentence())
print(sp.evaluate(rule, labels[1750:], scores[1750:]))  # rows the rule was not chosen on
