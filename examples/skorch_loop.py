"""A goal in skorch: its loss, its history, its best weights.

python examples/skorch_loop.py    # needs: pip install 'setpoint[skorch]'
"""

import torch
from data import network, rows
from skorch import NeuralNet
from skorch.callbacks import EarlyStopping
from skorch.dataset import ValidSplit

import setpoint as sp
from setpoint.skorch import GoalNetCallback

x, y = rows(6000)
net = NeuralNet(
    network(),
    criterion=sp.GoalLoss,
    criterion__goal="maximize recall subject to precision >= 0.8",
    criterion__method="costs",
    criterion__guard=True,
    optimizer=torch.optim.Adam,
    lr=3e-3,
    max_epochs=20,
    batch_size=128,
    iterator_train__shuffle=True,
    train_split=ValidSplit(5, stratified=True),
    callbacks=[
        ("goal", GoalNetCallback()),
        ("stop", EarlyStopping("goal", patience=5, lower_is_better=False, threshold_mode="abs")),
    ],
)
net.fit(x[:5000].numpy(), y[:5000].numpy())
rule = dict(net.callbacks_)["goal"].rule_
print(rule.sentence())
print(sp.evaluate(rule, y[5000:], net.forward(x[5000:])))  # rows that nothing was chosen on
