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

    def __init__(self, accumulate=1, told=True, guard=False):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(3, 1)
        self.loss = sp.GoalLoss(GOAL, "costs", accumulate=accumulate, guard=guard)
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
        logits = model.linear(x).squeeze(1).double()
    rule = sp.tune(GOAL, y.numpy(), logits.numpy())
    assert callback.rule.threshold == pytest.approx(rule.threshold)
    assert callback.rule.task.score == "logit"
    assert sp.evaluate(callback.rule, y, logits).value == pytest.approx(rule.value)
    shown = trainer.callback_metrics
    assert float(shown["goal"]) == pytest.approx(rule.value)
    assert float(shown["goal_feasible"]) == rule.feasible
    assert float(shown["goal_constraint_1"]) == pytest.approx(rule.held[0].value)


def test_probabilities_where_the_task_declares_them():
    callback = GoalCallback(GOAL, sp.Task.binary(score="probability"))
    model = Model()
    fit(model, callback)
    x, y = rows()
    with torch.no_grad():
        logits = model.linear(x).squeeze(1).double() * 10
    assert callback.rule.task.score == "probability"
    assert callback.rule.decide(torch.sigmoid(logits)).shape == y.shape
    with pytest.raises(sp.KindError, match=r"tuned on probabilities; pass sigmoid\(logits\)"):
        callback.rule.decide(logits)


def test_how_the_loss_stands_is_logged_too():
    model = Model(guard=True)
    shown = fit(model, GoalCallback(GOAL)).callback_metrics
    status = model.loss.status()
    assert float(shown["train_held"]) == status.held
    assert float(shown["train_threshold"]) == pytest.approx(status.threshold)
    assert float(shown["train_goal"]) == pytest.approx(status.objective.value)


def test_another_accumulation_is_refused():
    with pytest.raises(sp.KindError, match="accumulates 2 batches and loss was made with"):
        fit(Model(), GoalCallback(GOAL), accumulate_grad_batches=2)
    fit(Model(accumulate=2), GoalCallback(GOAL), accumulate_grad_batches=2)


def test_a_validation_step_that_tells_nothing_is_refused():
    with pytest.raises(sp.DataError, match="validation_step must return"):
        fit(Model(told=False), GoalCallback(GOAL))
