"""A goal under Hugging Face Accelerate, with accumulation done right.

    python examples/accelerate_loop.py    # needs: pip install accelerate

``accelerator.backward`` divides by the number of parts, so the loss is not divided again. The loss
is told the number of parts and keeps its prices fixed within a step: the step is that of the whole
batch. Leave out the incomplete last step of an epoch (``drop_last`` with whole steps), or the parts
of two epochs would share one.
"""

import torch
from accelerate import Accelerator
from data import network, rows
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp

PARTS = 4

accelerator = Accelerator(gradient_accumulation_steps=PARTS, cpu=not torch.cuda.is_available())
x, y = rows(1920)
loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True, drop_last=True)
model = network()
optimiser = torch.optim.Adam(model.parameters(), 3e-3)
model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
loss = sp.GoalLoss("maximize f1", method="costs", accumulate=PARTS).to(accelerator.device)
# every process evaluates all validation rows, so these are not prepared
keeper = sp.GoalKeeper(accelerator.unwrap_model(model), loss, *rows(500, seed=1))
accelerator.register_for_checkpointing(loss, keeper)  # accelerator.save_state holds both

for _ in range(40):
    for inputs, target in loader:
        with accelerator.accumulate(model):
            accelerator.backward(loss(model(inputs), target))
            optimiser.step()
            optimiser.zero_grad()
    keeper.step()
    if keeper.stop:
        break

print(loss.recover())
accelerator.print(keeper.finish())
