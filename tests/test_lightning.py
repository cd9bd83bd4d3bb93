"""GoalCallback: the exact goal is logged, and a loss with another accumulation is refused."""

import lightning
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.lightning import GoalCallback

# Lightning walks its batches with a torch function that is deprecated; not ours to change.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.*", "ignore:.*does not have many workers.*", "ignore:.*log_every_n_steps.*"
)
GOAL = "maximize recall subject to precision >= 0.5"


class Model(lightning.LightningModule):
    """A linear classifier."""

    def __init__(self, accumulate=1, told=True):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(3, 1)
        self.loss = sp.GoalLoss(GOAL, "costs", accumulate=accumulate)
        self.told = told

    def training_step(self, batch, index):
        """The loss of a batch."""
        return self.loss(self.linear(batch[0]), batch[1])

    def validation_step(self, batch, index):
        """What the callback looks at."""
        return {"logits": self.linear(batch[0]), "target": batch[1]} if self.told else None

    def configure_optimizers(self):
        """SGD."""
        return torch.optim.SGD(self.parameters(), 0.1)


def rows():
    x = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0.8).long()


def fit(model, callback, **options):
    loader = DataLoader(TensorDataset(*rows()), batch_size=50)
    trainer = lightning.Trainer(
        max_epochs=3,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(model, loader, loader)
    return trainer


def test_the_goal_is_logged_as_it_is():
    callback = GoalCallback(GOAL)
    model = Model()
    trainer = fit(model, callback)
    x, y = rows()
    with torch.no_grad():
        scores = torch.sigmoid(model.linear(x).squeeze(1).double()).numpy()
    rule = sp.tune(GOAL, y.numpy(), scores)
    assert callback.rule.threshold == pytest.approx(rule.threshold)
    assert float(trainer.callback_metrics["goal"]) == pytest.approx(rule.value)
    assert float(trainer.callback_metrics["goal_feasible"]) == rule.feasible


def test_another_accumulation_is_refused():
    with pytest.raises(sp.KindError, match="accumulates 2 batches and loss was made with"):
        fit(Model(), GoalCallback(GOAL), accumulate_grad_batches=2)
    fit(Model(accumulate=2), GoalCallback(GOAL), accumulate_grad_batches=2)


def test_a_validation_step_that_tells_nothing_is_refused():
    with pytest.raises(sp.DataError, match="validation_step must return"):
        fit(Model(told=False), GoalCallback(GOAL))
