"""A goal under Lightning: train on it, stop early on it, keep the best checkpoint by it.

python examples/lightning_loop.py     # needs: pip install 'setpoint[lightning]'
"""

import lightning
import torch
from data import network, rows
from lightning.pytorch.callbacks import EarlyStopping
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.lightning import GoalCallback

GOAL = "maximize recall subject to precision >= 0.8"


class Classifier(lightning.LightningModule):
    """A network and a loss; the running totals are saved with every checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.loss = sp.GoalLoss(GOAL, method="costs", accumulate=2)

    def training_step(self, batch, index):
        """The loss of a batch."""
        return self.loss(self.network(batch[0]), batch[1])

    def validation_step(self, batch, index):
        """What GoalCallback looks at."""
        return {"logits": self.network(batch[0]), "target": batch[1]}

    def configure_optimizers(self):
        """Adam."""
        return torch.optim.Adam(self.network.parameters(), 3e-3)


x, y = rows()
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=64, shuffle=True)
held = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=256)
watch = GoalCallback(GOAL)
trainer = lightning.Trainer(
    max_epochs=20,
    accumulate_grad_batches=2,
    callbacks=[watch, EarlyStopping("goal", mode="max", patience=5)],
    accelerator="auto",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Classifier(), train, held)
print(watch.rule)
